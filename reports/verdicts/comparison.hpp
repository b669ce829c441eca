#pragma once
#include <string>

#include "core/text/json.hpp"
#include "validation/engine/compare.hpp"
#include "validation/verdicts/claim_comparison.hpp"

namespace spiked::reports {

/// The names of the two stores of a comparison, as messages show them.
struct ComparedNames {
    std::string a;
    std::string b;
};

/// The means of two stores that differ beyond chance, or all of them, and what is in one store only.
[[nodiscard]] std::string comparison_text(const validation::StoreComparison& found, const ComparedNames& names,
                                          bool all);
/// The same for stores of claims, after a table of all claims with the verdicts and the deciding number of both.
[[nodiscard]] std::string comparison_text(const validation::ClaimComparison& found, const ComparedNames& names,
                                          bool all);
/// JSON of schema `spiked.compare/1`, whose member `claims` is null where the stores are not of claims.
[[nodiscard]] Json comparison_json(const validation::StoreComparison& found);
[[nodiscard]] Json comparison_json(const validation::ClaimComparison& found);

}  // namespace spiked::reports

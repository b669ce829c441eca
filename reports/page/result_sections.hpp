#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "reports/page/html.hpp"
#include "validation/store/sqlite.hpp"

namespace spiked::reports {

/// Which cells the tables of a page show, and a note about the others.
struct ShownCells {
    std::optional<std::set<std::int64_t>> ids;  ///< without a value all cells are shown
    std::string note;                           ///< markup

    [[nodiscard]] bool contains(std::int64_t cell) const { return !ids || ids->contains(cell); }
};

/// Tables of the results, each of at most `most_bytes`: the sample beside theory, estimators and codecs with the best
/// in bold; for a dump the paper's table and one row per head. Empty when there are no results.
[[nodiscard]] std::string results_markup(validation::Database& store, const PagePlace& place, const ShownCells& cells,
                                         std::size_t most_bytes);

}  // namespace spiked::reports

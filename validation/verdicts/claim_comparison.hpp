#pragma once
#include <string>
#include <vector>

#include "validation/engine/compare.hpp"
#include "validation/verdicts/claim_study.hpp"

namespace spiked::validation {

/// A claim that two stores have, for example of two versions of the program, or of two seeds.
struct ComparedClaim {
    const ClaimOutcome* a = nullptr;
    const ClaimOutcome* b = nullptr;
    /// What the table shows: the deciding finding of one store (of b where the verdicts differ, otherwise of a), and
    /// the finding of the same criterion at the same size in the other one; null if that has none.
    const CriterionOutcome* shown = nullptr;
    const Finding* finding_a = nullptr;
    const Finding* finding_b = nullptr;
    std::size_t compared = 0;  ///< rows of ClaimComparison::means that are about the claim
    std::size_t beyond = 0;    ///< those of them that differ beyond chance

    [[nodiscard]] bool same_verdicts() const {
        return a->printed == b->printed && a->corrected == b->corrected && a->failed == b->failed;
    }
};

struct ClaimComparison {
    Validation a;
    Validation b;
    /// The means of the trials of each cell (compare_stores), and the slopes over sizes of both stores, which are
    /// compared as if they were independent: with equal draws small differences of slopes are not found.
    StoreComparison means;
    std::vector<ComparedClaim> claims;             ///< in the order of store a
    std::vector<const ClaimOutcome*> only_a = {};  ///< judged in that store only
    std::vector<const ClaimOutcome*> only_b = {};

    /// Number of claims whose verdicts differ.
    [[nodiscard]] std::size_t with_other_verdicts() const;
};

/// Compares two stores of claims. Each is judged by itself, at its own false-alarm rate, on the claims given for it,
/// which must outlive the result. Throws as compare_stores does.
[[nodiscard]] ClaimComparison compare_claims(Database& a, const std::vector<Claim>& claims_a, Database& b,
                                             const std::vector<Claim>& claims_b);

}  // namespace spiked::validation

#pragma once
#include <map>
#include <optional>
#include <vector>

#include "validation/claims/claim_runs.hpp"

namespace spiked::validation {

/// A negative control of a criterion that holds, with the trials of both.
struct FaultSearch {
    const Claim* claim = nullptr;
    const TrialRun* sound = nullptr;
    const TrialRun* faulty = nullptr;
    ControlOutcome* control = nullptr;  ///< its `closest` is set where the control fails
    std::uint64_t times = 1;            ///< drawn trials over those in the plan
};

/// Finds for each control how large its fault may be before the criterion fails, each comparison at level alpha. A
/// smaller fault is the planted one in a fraction of the trials, which are those already drawn. In the full tier,
/// faults with a size are bisected in their own unit, on new trials with the random numbers of the criterion; the
/// search of a claim draws at most as much again as its verdict did, `drawn`, in the unit of work_of.
void search_closest_faults(std::vector<FaultSearch>& searches, const std::map<const Claim*, double>& drawn,
                           const ValidationPlan& plan, double alpha);

/// Of the closest faults of a claim's controls, the one to show. A fault planted in several criteria counts where it is
/// found soonest.
[[nodiscard]] std::optional<ClosestFault> closest_fault_of(const ClaimOutcome& claim);

}  // namespace spiked::validation

#pragma once
#include <string>
#include <vector>

#include "validation/verdicts/claim_study.hpp"

// The trials of claims and their analysis, for verdicts (claim_verdicts.cpp) and closest faults (closest_fault.cpp).
namespace spiked::validation {

[[nodiscard]] const std::vector<SizePlan>& plan_of(const Criterion& criterion, Tier tier);
/// Whether one slope over all sizes is compared.
[[nodiscard]] bool one_slope(const Criterion& criterion);

struct SizeTrials {
    std::size_t size = 0;
    std::vector<double> values;
};

/// The trials of all sizes of a criterion, with one control or none (an empty name).
struct TrialRun {
    const Criterion* criterion = nullptr;
    std::string control;
    std::vector<SizeTrials> sizes = {};
};

/// The trials of `sound`, where trial i is replaced by that of `faulty` if the fraction part of (i + 1/2) times the
/// golden ratio is below `share`. Larger shares replace more trials of those that smaller ones replace.
[[nodiscard]] TrialRun mixed(const TrialRun& sound, const TrialRun& faulty, double share);

/// The trials of a control with a smaller fault, the fraction `part` of the planted one: `sound` + part (`faulty` -
/// `sound`). Only for controls whose trials are linear in the size of the fault (Control::linear).
[[nodiscard]] TrialRun blended(const TrialRun& sound, const TrialRun& faulty, double part);

/// Judges the trials, each comparison at level alpha.
[[nodiscard]] Outcome analyse(const TrialRun& run, double alpha);

/// A negative control of a criterion that holds, with the trials of both.
struct FaultSearch {
    const Claim* claim = nullptr;
    const TrialRun* sound = nullptr;
    const TrialRun* faulty = nullptr;
    ControlOutcome* control = nullptr;  ///< its `closest` is set where the control fails
};

/// Finds for each control how large its fault may be before the criterion fails, each comparison at level alpha. A
/// smaller fault is the planted one in a fraction of the trials, or a smaller one in all of them where trials are
/// linear in its size (`share_faults`): both need no trials but those already drawn. In the full tier, other faults
/// with a size are searched in their own unit, on further trials of the store with the random numbers of the criterion,
/// as far as it has them, at the size of blocks where the fault is found soonest (all of them where a slope over them
/// is compared): what fails there fails as a whole. Between sizes of the fault that are drawn, at first 0 and the
/// planted one, trials are interpolated in proportion to a power of them (for slopes 1, else 2, then the one that the
/// last draw shows), or, where the summary is a fraction or a distance, are those of one of the two. A size an eighth
/// above the one at which the criterion begins to fail there is drawn. The search ends where a size that was drawn
/// fails and is at most a third above the expected one or 1/64 of the planted size, or after three draws.
void search_closest_faults(std::vector<FaultSearch>& searches, Tier tier, double alpha, bool share_faults,
                           ClaimStore& store);

/// The fault that reports show for a claim: the largest of the closest faults of its controls, where of a fault that is
/// planted in several criteria only the smallest counts.
[[nodiscard]] std::optional<ClosestFault> closest_fault_of(const ClaimOutcome& claim);

}  // namespace spiked::validation

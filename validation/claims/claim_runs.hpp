#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/runtime/call_once.hpp"
#include "validation/claims/claim_verdicts.hpp"

// Drawing the trials of claims and analysing them, for verdicts (claim_verdicts.cpp) and closest faults
// (closest_fault.cpp).
namespace spiked::validation {

/// Interim analyses of the same trials: the second one, with four times as many trials, only where the first one was
/// inconclusive.
inline constexpr std::uint64_t interim_analyses = 2;
inline constexpr std::uint64_t extension = 4;

[[nodiscard]] const std::vector<SizePlan>& plan_of(const Criterion& criterion, Tier tier);
/// Whether one slope over all sizes is compared.
[[nodiscard]] bool one_slope(const Criterion& criterion);

/// The trials of one size with at most one control: prepared by the first thread that draws, drawn in any order.
class SizeRun {
public:
    SizeRun(const Criterion& criterion, TrialPlace place) : criterion_(&criterion), place_(std::move(place)) {}
    /// The trials of `sound`, where trial i is replaced by that of `faulty` if the fraction part of (i + 1/2) times the
    /// golden ratio is below `share`. Larger shares replace more trials of those that smaller ones replace.
    SizeRun(const SizeRun& sound, const SizeRun& faulty, double share);

    [[nodiscard]] std::size_t size() const { return place_.size; }
    [[nodiscard]] std::size_t drawn() const { return values_.size(); }
    void make_room(std::size_t trials) { values_.resize(trials); }
    void draw(std::size_t at) {
        ready_([&] { trial_ = criterion_->prepare(place_); });
        values_[at] = trial_(at);
    }
    [[nodiscard]] const std::vector<double>& values() const { return values_; }
    /// The reach of the criterion; 0 for a control whose trials are constant.
    [[nodiscard]] double reach() const;

private:
    const Criterion* criterion_;
    TrialPlace place_;
    CallOnce ready_;
    Trial trial_;
    std::vector<double> values_;
};

/// The trials of all sizes of a criterion, with one control or none.
struct TrialRun {
    const Criterion* criterion = nullptr;
    std::vector<std::unique_ptr<SizeRun>> sizes;
};

/// Measure of the work of the trials drawn: the sum of the cubes of their sizes.
[[nodiscard]] double work_of(const TrialRun& run);

/// A run without trials. `fault` is the size of the control's fault as a part of the planted size.
[[nodiscard]] TrialRun make_run(const Claim& claim, const Criterion& criterion, const std::string& control,
                                const ValidationPlan& plan, double fault = 1.0);

/// The runs of a criterion and its controls. They are drawn trial by trial together because a control often uses the
/// block that its criterion has just decomposed.
using RunGroup = std::vector<TrialRun*>;
/// Draws the trials that are missing up to `times` the number in the plan of the tier.
void draw_all(const std::vector<RunGroup>& run_groups, const ValidationPlan& plan, std::uint64_t times);

/// Judges the trials drawn so far, each comparison at level alpha.
[[nodiscard]] Outcome analyse(const TrialRun& run, double alpha);

}  // namespace spiked::validation

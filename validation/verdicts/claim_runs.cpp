#include "validation/verdicts/claim_runs.hpp"

#include <algorithm>
#include <cmath>

#include "validation/statistics/moments.hpp"

namespace spiked::validation {
namespace {

/// Criterion::reach, which is 0 for a control whose trials are constant.
double reach_of(const TrialRun& run) {
    const Criterion& criterion = *run.criterion;
    for (const auto* controls : {&criterion.negative_controls, &criterion.positive_controls})
        for (const Control& control : *controls)
            if (control.name == run.control && control.constant) return 0.0;
    return criterion.reach;
}

Interval summarise(const Criterion& criterion, const SizeTrials& trials, double reach, double alpha) {
    const std::vector<double>& values = trials.values;
    if (criterion.summary == Summary::distance) return distance_interval(values, criterion.law(trials.size), alpha);
    if (criterion.summary == Summary::mean) {
        const Interval interval = mean_interval(values, alpha);
        return all_equal(interval.estimate, interval.error)
                   ? equal_values_interval(interval.estimate, interval.count, reach, alpha)
                   : interval;
    }
    const auto ones = std::count(values.begin(), values.end(), 1.0);
    if (ones + std::count(values.begin(), values.end(), 0.0) != static_cast<std::ptrdiff_t>(values.size()))
        return {.count = values.size()};
    return fraction_interval(static_cast<std::uint64_t>(ones), values.size(), alpha);
}

Finding find(const Criterion& criterion, std::size_t size, const Interval& interval, double alpha) {
    const AcceptanceRegion region = criterion.region(size);
    const double detectable = criterion.summary == Summary::share
                                  ? smallest_detectable_fraction(interval.count, region, alpha)
                                  : smallest_detectable(interval, region);
    return {size, interval, region, detectable, judge(interval, region)};
}

/// The number at each size whose slope is compared.
std::vector<SizeLevel> levels_of(const TrialRun& run) {
    std::vector<SizeLevel> levels;
    if (!one_slope(*run.criterion)) return levels;
    for (const auto& at : run.sizes) {
        std::vector<double> values = at.values;
        if (values.empty()) continue;
        Moments moments;
        for (const double value : values) moments.add(value);
        const double n = static_cast<double>(values.size());
        SizeLevel level{at.size, std::sqrt(moments.mean * moments.mean + moments.m2 / n), moments.mean};
        if (run.criterion->summary == Summary::growth) {
            const auto rank = static_cast<std::ptrdiff_t>(std::llround(run.criterion->level * (n - 1.0)));
            std::nth_element(values.begin(), values.begin() + rank, values.end());
            level.level = values[static_cast<std::size_t>(rank)];
        }
        levels.push_back(level);
    }
    return levels;
}

}  // namespace

const std::vector<SizePlan>& plan_of(const Criterion& criterion, Tier tier) {
    return tier == Tier::quick || criterion.full.empty() ? criterion.quick : criterion.full;
}

bool one_slope(const Criterion& criterion) {
    return criterion.summary == Summary::rate || criterion.summary == Summary::growth;
}

TrialRun mixed(const TrialRun& sound, const TrialRun& faulty, double share) {
    constexpr double golden_ratio = 0.6180339887498949;
    // The name is that of the sound trials: whether a mixture is constant is not known of its control.
    TrialRun run = sound;
    for (std::size_t size = 0; size < run.sizes.size(); ++size)
        for (std::size_t i = 0; i < run.sizes[size].values.size(); ++i)
            if (std::fmod((static_cast<double>(i) + 0.5) * golden_ratio, 1.0) < share)
                run.sizes[size].values[i] = faulty.sizes[size].values[i];
    return run;
}

TrialRun blended(const TrialRun& sound, const TrialRun& faulty, double part) {
    TrialRun run = sound;
    for (std::size_t size = 0; size < run.sizes.size(); ++size)
        for (std::size_t i = 0; i < run.sizes[size].values.size(); ++i) {
            double& value = run.sizes[size].values[i];
            value += part * (faulty.sizes[size].values[i] - value);
        }
    return run;
}

Outcome analyse(const TrialRun& run, double alpha) {
    const Criterion& criterion = *run.criterion;
    Outcome outcome;
    if (one_slope(criterion)) {
        std::vector<SizeDraws> sweep;
        for (const auto& at : run.sizes) sweep.push_back({at.size, at.values});
        if (!sweep.empty())
            outcome.findings.push_back(find(criterion, 0,
                                            criterion.summary == Summary::rate
                                                ? rate_interval(sweep, alpha)
                                                : growth_interval(sweep, criterion.level, alpha),
                                            alpha));
    } else {
        for (const auto& at : run.sizes)
            outcome.findings.push_back(find(criterion, at.size, summarise(criterion, at, reach_of(run), alpha), alpha));
    }
    const auto any = [&](Verdict verdict) {
        return std::any_of(outcome.findings.begin(), outcome.findings.end(),
                           [&](const Finding& finding) { return finding.verdict == verdict; });
    };
    outcome.levels = levels_of(run);
    outcome.verdict = any(Verdict::fail)           ? Verdict::fail
                      : any(Verdict::inconclusive) ? Verdict::inconclusive
                                                   : Verdict::pass;
    return outcome;
}

}  // namespace spiked::validation

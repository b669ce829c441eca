#include "validation/claims/claim_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "core/runtime/parallel.hpp"
#include "validation/statistics/moments.hpp"

namespace spiked::validation {
namespace {

Interval summarise(const Criterion& criterion, const SizeRun& run, double alpha) {
    const std::vector<double>& values = run.values();
    if (criterion.summary == Summary::distance) return distance_interval(values, criterion.law(run.size()), alpha);
    if (criterion.summary == Summary::mean) {
        const Interval interval = mean_interval(values, alpha);
        return all_equal(interval.estimate, interval.error)
                   ? equal_values_interval(interval.estimate, interval.count, run.reach(), alpha)
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
        std::vector<double> values = at->values();
        if (values.empty()) continue;
        Moments moments;
        for (const double value : values) moments.add(value);
        const double n = static_cast<double>(values.size());
        SizeLevel level{at->size(), std::sqrt(moments.mean * moments.mean + moments.m2 / n), moments.mean};
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

SizeRun::SizeRun(const SizeRun& sound, const SizeRun& faulty, double share)
    : criterion_(sound.criterion_), place_(sound.place_), values_(sound.values_) {
    constexpr double golden_ratio = 0.6180339887498949;
    for (std::size_t i = 0; i < values_.size(); ++i)
        if (std::fmod((static_cast<double>(i) + 0.5) * golden_ratio, 1.0) < share) values_[i] = faulty.values_[i];
}

double SizeRun::reach() const {
    for (const auto* controls : {&criterion_->negative_controls, &criterion_->positive_controls})
        for (const Control& control : *controls)
            if (place_.control_is(control.name) && control.constant) return 0.0;
    return criterion_->reach;
}

double work_of(const TrialRun& run) {
    double work = 0.0;
    for (const auto& at : run.sizes)
        work += static_cast<double>(at->drawn()) * std::pow(static_cast<double>(at->size()), 3);
    return work;
}

TrialRun make_run(const Claim& claim, const Criterion& criterion, const std::string& control,
                  const ValidationPlan& plan, double fault) {
    TrialRun run{&criterion, {}};
    for (const auto& [size, trials] : plan_of(criterion, plan.tier))
        run.sizes.push_back(std::make_unique<SizeRun>(
            criterion, TrialPlace{size, control, plan.seed,
                                  fmt::format("claim {} {} {}", claim.id, criterion.name, size), fault}));
    return run;
}

void draw_all(const std::vector<RunGroup>& run_groups, const ValidationPlan& plan, std::uint64_t times) {
    struct Task {
        std::vector<SizeRun*> runs;
        std::size_t first;
        std::size_t end;
    };
    std::vector<Task> tasks;
    for (const RunGroup& run_group : run_groups) {
        const auto& sizes = plan_of(*run_group.front()->criterion, plan.tier);
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            std::vector<SizeRun*> runs;
            for (TrialRun* run : run_group) runs.push_back(run->sizes[i].get());
            const std::size_t from = runs.front()->drawn();
            const std::size_t to = sizes[i].trials * times;
            for (SizeRun* run : runs) run->make_room(to);
            const std::size_t chunk = std::max<std::size_t>(1, (to - from) / 16);
            for (std::size_t first = from; first < to; first += chunk)
                tasks.push_back({runs, first, std::min(first + chunk, to)});
        }
    }
    // Large blocks come first, so that no thread is left with a large one at the end.
    std::stable_sort(tasks.begin(), tasks.end(),
                     [](const Task& a, const Task& b) { return a.runs.front()->size() > b.runs.front()->size(); });
    std::mutex guard;
    std::size_t done = 0;
    for_each_parallel(tasks.size(), plan.threads, [&](std::size_t i) {
        for (std::size_t at = tasks[i].first; at < tasks[i].end; ++at)
            for (SizeRun* run : tasks[i].runs) run->draw(at);
        if (!plan.progress) return;
        const std::lock_guard lock(guard);
        plan.progress(++done, tasks.size());
    });
}

Outcome analyse(const TrialRun& run, double alpha) {
    const Criterion& criterion = *run.criterion;
    Outcome outcome;
    if (one_slope(criterion)) {
        std::vector<SizeDraws> sweep;
        for (const auto& at : run.sizes) sweep.push_back({at->size(), at->values()});
        if (!sweep.empty())
            outcome.findings.push_back(find(criterion, 0,
                                            criterion.summary == Summary::rate
                                                ? rate_interval(sweep, alpha)
                                                : growth_interval(sweep, criterion.level, alpha),
                                            alpha));
    } else {
        for (const auto& at : run.sizes)
            outcome.findings.push_back(find(criterion, at->size(), summarise(criterion, *at, alpha), alpha));
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

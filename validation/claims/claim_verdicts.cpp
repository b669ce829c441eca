#include "validation/claims/claim_verdicts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>

#include "core/runtime/call_once.hpp"
#include "core/runtime/error.hpp"
#include "core/runtime/parallel.hpp"
#include "core/text/names.hpp"

namespace spiked::validation {
namespace {

/// Looks at the same trials: at first, and four times as far where that decided nothing.
constexpr std::uint64_t looks = 2;
constexpr std::uint64_t extension = 4;

const std::vector<SizePlan>& plan_of(const Criterion& criterion, Tier tier) {
    return tier == Tier::quick || criterion.full.empty() ? criterion.quick : criterion.full;
}

bool one_slope(const Criterion& criterion) {
    return criterion.summary == Summary::rate || criterion.summary == Summary::growth;
}

std::size_t comparisons_of(const std::vector<Claim>& claims, Tier tier) {
    std::size_t count = 0;
    for (const auto& claim : claims)
        for (const auto& criterion : claim.criteria) {
            const std::size_t sizes = plan_of(criterion, tier).size();
            count += (one_slope(criterion) ? std::min<std::size_t>(sizes, 1) : sizes) *
                     (1 + criterion.positive_controls.size());
        }
    return std::max<std::size_t>(count, 1);
}

/// The trials of one size with one fault planted: made ready by the first thread that asks, drawn in any order.
class SizeRun {
public:
    SizeRun(const Criterion& criterion, TrialPlace place) : criterion_(&criterion), place_(std::move(place)) {}

    [[nodiscard]] std::size_t size() const { return place_.size; }
    [[nodiscard]] std::size_t drawn() const { return values_.size(); }
    void make_room(std::size_t trials) { values_.resize(trials); }
    void draw(std::size_t at) {
        ready_([&] { trial_ = criterion_->prepare(place_); });
        values_[at] = trial_(at);
    }
    [[nodiscard]] const std::vector<double>& values() const { return values_; }

private:
    const Criterion* criterion_;
    TrialPlace place_;
    CallOnce ready_;
    Trial trial_;
    std::vector<double> values_;
};

/// A criterion with one fault, or with none.
struct Run {
    const Criterion* criterion = nullptr;
    std::vector<std::unique_ptr<SizeRun>> sizes;
};

Run make_run(const Claim& claim, const Criterion& criterion, const std::string& fault, const ValidationPlan& plan) {
    Run run{&criterion, {}};
    for (const auto& [size, trials] : plan_of(criterion, plan.tier))
        run.sizes.push_back(std::make_unique<SizeRun>(
            criterion,
            TrialPlace{size, fault, plan.seed, fmt::format("claim {} {} {}", claim.id, criterion.name, size)}));
    return run;
}

/// Runs that are drawn trial by trial together, because a control often asks of the block its criterion has just had: a
/// criterion and its controls.
using RunGroup = std::vector<Run*>;

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
            for (Run* run : run_group) runs.push_back(run->sizes[i].get());
            const std::size_t from = runs.front()->drawn();
            const std::size_t to = sizes[i].trials * times;
            for (SizeRun* run : runs) run->make_room(to);
            const std::size_t chunk = std::max<std::size_t>(1, (to - from) / 16);
            for (std::size_t first = from; first < to; first += chunk)
                tasks.push_back({runs, first, std::min(first + chunk, to)});
        }
    }
    // Large blocks first, so that no thread is left with one at the end.
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

Interval summarise(const Criterion& criterion, std::size_t size, const std::vector<double>& values, double alpha) {
    if (criterion.summary == Summary::distance) return distance_interval(values, criterion.law(size), alpha);
    if (criterion.summary == Summary::mean) return mean_interval(values, alpha);
    const auto ones = std::count(values.begin(), values.end(), 1.0);
    if (ones + std::count(values.begin(), values.end(), 0.0) != static_cast<std::ptrdiff_t>(values.size()))
        return {.count = values.size()};
    return share_interval(static_cast<std::uint64_t>(ones), values.size(), alpha);
}

Finding find(const Criterion& criterion, std::size_t size, const Interval& interval, double alpha) {
    const Region region = criterion.region(size);
    const double detectable = criterion.summary == Summary::share
                                  ? smallest_detectable_fraction(interval.count, region, alpha)
                                  : smallest_detectable(interval, region);
    return {size, interval, region, detectable, judge(interval, region)};
}

Outcome look(const Run& run, double alpha) {
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
            outcome.findings.push_back(
                find(criterion, at->size(), summarise(criterion, at->size(), at->values(), alpha), alpha));
    }
    const auto any = [&](Verdict verdict) {
        return std::any_of(outcome.findings.begin(), outcome.findings.end(),
                           [&](const Finding& finding) { return finding.verdict == verdict; });
    };
    outcome.verdict = any(Verdict::fail)           ? Verdict::fail
                      : any(Verdict::inconclusive) ? Verdict::inconclusive
                                                   : Verdict::pass;
    return outcome;
}

/// A criterion with its controls and true cases, drawn as far as any of them.
struct Question {
    const Claim* claim = nullptr;
    std::size_t at = 0;  ///< position among the claims asked
    Run run;
    std::vector<Run> controls;
    std::vector<Run> positive_controls;
    CriterionOutcome outcome;

    [[nodiscard]] RunGroup run_group() {
        RunGroup all{&run};
        for (auto* changed : {&controls, &positive_controls})
            for (auto& one : *changed) all.push_back(&one);
        return all;
    }
    void judge(double alpha) {
        outcome.criterion = run.criterion;
        outcome.outcome = look(run, alpha);
        const auto look_at = [alpha](const std::vector<Fault>& changes, const std::vector<Run>& runs) {
            std::vector<ControlOutcome> found;
            for (std::size_t i = 0; i < runs.size(); ++i) found.push_back({changes[i], look(runs[i], alpha)});
            return found;
        };
        outcome.controls = look_at(run.criterion->faults, controls);
        outcome.positive_controls = look_at(run.criterion->positive_controls, positive_controls);
    }
    /// Controls are asked where the criterion holds, true cases where it is refuted.
    [[nodiscard]] bool open() const {
        const Verdict verdict = outcome.outcome.verdict;
        return verdict == Verdict::inconclusive ||
               any_open(verdict == Verdict::pass ? outcome.controls : outcome.positive_controls);
    }
    [[nodiscard]] static bool any_open(const std::vector<ControlOutcome>& controls) {
        return std::any_of(controls.begin(), controls.end(), [](const ControlOutcome& control) {
            return control.outcome.verdict == Verdict::inconclusive;
        });
    }
};

PrintedVerdict verdict_of(const std::vector<CriterionOutcome>& criteria, Form form) {
    bool asked = false;
    bool open = false;
    bool blind = false;
    for (const auto& one : criteria) {
        if (one.criterion->form != form) continue;
        asked = true;
        const bool shown =
            std::all_of(one.positive_controls.begin(), one.positive_controls.end(),
                        [](const ControlOutcome& positive_control) { return positive_control.passes(); });
        if (one.outcome.verdict == Verdict::fail && shown) return PrintedVerdict::refuted;
        open = open || one.outcome.verdict == Verdict::fail;
        open = open || one.outcome.verdict == Verdict::inconclusive;
        for (const auto& control : one.controls) {
            blind = blind || control.outcome.verdict == Verdict::pass;
            open = open || control.outcome.verdict == Verdict::inconclusive;
        }
    }
    if (!asked) return PrintedVerdict::none;
    if (blind) return form == Form::printed ? PrintedVerdict::vacuous : PrintedVerdict::refuted;
    return open ? PrintedVerdict::inconclusive : PrintedVerdict::holds;
}

/// A printed criterion without controls stands there to be refuted: one that holds has shown nothing.
const CriterionOutcome* unshown(const ClaimOutcome& claim) {
    if (claim.claim->settled != PrintedVerdict::refuted) return nullptr;
    for (const auto& one : claim.criteria)
        if (one.criterion->form == Form::printed && one.controls.empty() && one.outcome.verdict == Verdict::pass)
            return &one;
    return nullptr;
}

/// A true case that is refuted as well, and the criterion it is of.
std::pair<const CriterionOutcome*, const ControlOutcome*> wronged(const ClaimOutcome& claim) {
    for (const auto& one : claim.criteria)
        for (const auto& positive_control : one.positive_controls)
            if (positive_control.fails()) return {&one, &positive_control};
    return {};
}

/// The first thing to say about a claim that failed or is open.
std::string reason_of(const ClaimOutcome& claim) {
    if (const auto [one, positive_control] = wronged(claim); one != nullptr)
        return fmt::format("{}: refutes \"{}\" too, which is true", one->criterion->name, positive_control->fault.name);
    if (const auto* one = unshown(claim); one != nullptr)
        return fmt::format("{}: holds, and was refuted before", one->criterion->name);
    if (claim.failed && claim.corrected != PrintedVerdict::refuted)
        return fmt::format("the printed form is {}, and {} was found before", name_of(claim.printed),
                           name_of(claim.claim->settled));
    for (const auto& one : claim.criteria) {
        const bool corrected = one.criterion->form == Form::corrected;
        if (claim.failed && corrected && one.outcome.verdict == Verdict::fail)
            return fmt::format("{}: outside its margin", one.criterion->name);
        for (const auto& control : one.controls)
            if (claim.failed && corrected && control.outcome.verdict == Verdict::pass)
                return fmt::format("{}: the planted fault \"{}\" passes", one.criterion->name, control.fault.name);
    }
    for (const auto& one : claim.criteria) {
        if (one.outcome.verdict == Verdict::inconclusive) return fmt::format("{} is open", one.criterion->name);
        for (const auto& control : one.controls)
            if (claim.open() && control.outcome.verdict == Verdict::inconclusive)
                return fmt::format("{}: the control \"{}\" is open", one.criterion->name, control.fault.name);
        for (const auto& positive_control : one.positive_controls)
            if (claim.open() && positive_control.outcome.verdict == Verdict::inconclusive)
                return fmt::format("{}: the true case \"{}\" is open", one.criterion->name,
                                   positive_control.fault.name);
    }
    return "";
}

void decide(ClaimOutcome& claim) {
    claim.printed = verdict_of(claim.criteria, Form::printed);
    claim.corrected = verdict_of(claim.criteria, Form::corrected);
    const bool decided = claim.printed != PrintedVerdict::inconclusive && claim.printed != PrintedVerdict::none;
    const bool settled = claim.claim->settled != PrintedVerdict::none;
    claim.failed = claim.corrected == PrintedVerdict::refuted ||
                   (decided && settled && claim.printed != claim.claim->settled) || unshown(claim) != nullptr ||
                   wronged(claim).first != nullptr;
    if (claim.failed || claim.open()) claim.reason = reason_of(claim);
}

}  // namespace

std::string_view name_of(Tier tier) { return tier == Tier::quick ? "quick" : "full"; }
const Finding& Outcome::deciding() const {
    const auto room = [](const Finding& one) {
        const double width = one.interval.high - one.interval.low;
        return std::min(one.interval.low - one.region.low, one.region.high - one.interval.high) /
               (width > 0.0 ? width : 1.0);
    };
    const auto rank = [](Verdict one) { return one == Verdict::fail ? 0 : one == Verdict::inconclusive ? 1 : 2; };
    return *std::min_element(findings.begin(), findings.end(), [&](const Finding& a, const Finding& b) {
        return rank(a.verdict) != rank(b.verdict) ? rank(a.verdict) < rank(b.verdict) : room(a) < room(b);
    });
}

const CriterionOutcome& ClaimOutcome::shown() const {
    // Of the corrected form before the printed one, and one that failed or is open before others.
    const auto place = [](const CriterionOutcome& one) {
        return std::pair{one.criterion->form == Form::printed, one.outcome.verdict == Verdict::pass};
    };
    return *std::min_element(criteria.begin(), criteria.end(),
                             [&](const CriterionOutcome& a, const CriterionOutcome& b) { return place(a) < place(b); });
}

Validation validate_claims(const ValidationPlan& plan, const std::vector<Claim>& all) {
    std::vector<std::string> ids;
    for (const auto& claim : all)
        if (!claim.criteria.empty()) ids.push_back(claim.id);
    for (const auto& id : plan.claims)
        if (std::find(ids.begin(), ids.end(), id) == ids.end())
            throw usage_error(
                "unknown claim \"{}\"{}", id,
                id.find(' ') != std::string::npos ? ": separate several with commas" : suggestion(id, ids));

    Validation result{plan.tier, plan.seed, plan.false_alarm, comparisons_of(all, plan.tier), {}};
    const double alpha = plan.false_alarm / static_cast<double>(result.comparisons) / static_cast<double>(looks);
    std::vector<std::unique_ptr<Question>> questions;
    for (const auto& claim : all) {
        if (claim.criteria.empty()) continue;
        if (!plan.claims.empty() && std::find(plan.claims.begin(), plan.claims.end(), claim.id) == plan.claims.end())
            continue;
        ClaimOutcome outcome;
        outcome.claim = &claim;
        for (const auto& criterion : claim.criteria) {
            if (plan_of(criterion, plan.tier).empty()) continue;
            auto question = std::make_unique<Question>();
            question->claim = &claim;
            question->at = result.claims.size();
            question->run = make_run(claim, criterion, "", plan);
            for (const auto& fault : criterion.faults)
                question->controls.push_back(make_run(claim, criterion, fault.name, plan));
            for (const auto& positive_control : criterion.positive_controls)
                question->positive_controls.push_back(make_run(claim, criterion, positive_control.name, plan));
            questions.push_back(std::move(question));
        }
        result.claims.push_back(std::move(outcome));
    }

    std::vector<Question*> asked;
    for (auto& question : questions) asked.push_back(question.get());
    for (std::uint64_t times = 1; !asked.empty(); times *= extension) {
        std::vector<RunGroup> run_groups;
        for (Question* question : asked) run_groups.push_back(question->run_group());
        draw_all(run_groups, plan, times);
        for (Question* question : asked) {
            question->judge(alpha);
            question->outcome.extended = times > 1;
        }
        std::erase_if(asked, [&](const Question* question) { return times > 1 || !question->open(); });
    }
    for (auto& question : questions) result.claims[question->at].criteria.push_back(std::move(question->outcome));
    for (auto& claim : result.claims) decide(claim);
    return result;
}

Validation validate_claims(const ValidationPlan& plan) { return validate_claims(plan, claims()); }

Outcome judge_control(const Claim& claim, const Criterion& criterion, const std::string& fault,
                      const ValidationPlan& plan) {
    Run run = make_run(claim, criterion, fault, plan);
    draw_all({{&run}}, plan, 1);
    return look(run, plan.false_alarm / static_cast<double>(looks));
}

}  // namespace spiked::validation

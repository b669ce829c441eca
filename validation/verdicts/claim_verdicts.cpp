#include "validation/verdicts/claim_verdicts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "validation/engine/engine.hpp"
#include "validation/verdicts/claim_runs.hpp"

namespace spiked::validation {
namespace {

/// A criterion with its controls, all of which have the same number of trials.
struct CriterionRuns {
    const Claim* claim = nullptr;
    TrialRun run;
    std::vector<TrialRun> controls;
    std::vector<TrialRun> positive_controls;
    CriterionOutcome outcome;

    CriterionRuns(const Claim& of, const Criterion& criterion) : claim(&of), run{&criterion, ""} {
        for (const Control& control : criterion.negative_controls) controls.push_back({&criterion, control.name});
        for (const Control& control : criterion.positive_controls)
            positive_controls.push_back({&criterion, control.name});
    }
    [[nodiscard]] std::vector<TrialRun*> all() {
        std::vector<TrialRun*> runs{&run};
        for (auto* changed : {&controls, &positive_controls})
            for (auto& one : *changed) runs.push_back(&one);
        return runs;
    }
    /// Adds the trials of an analysis, the first or the second one, at every size; false if the store lacks some.
    [[nodiscard]] bool take(bool second, ClaimStore& store) {
        const auto sizes = store.sizes_of(*claim, *run.criterion);
        std::vector<ClaimTrials> found;
        for (const auto& [size, trials] : sizes) {
            ClaimCell cell{.claim = claim, .criterion = run.criterion, .size = size, .first = 0, .trials = trials};
            if (second) cell.first = trials, cell.trials = trials * (extension - 1);
            if (auto of_size = store.trials(cell)) found.push_back(std::move(*of_size));
        }
        if (found.size() < sizes.size()) return false;
        for (TrialRun* one : all()) {
            one->sizes.resize(sizes.size());
            for (std::size_t i = 0; i < sizes.size(); ++i) {
                one->sizes[i].size = sizes[i].size;
                const auto& more = found[i].at(one->control);
                one->sizes[i].values.insert(one->sizes[i].values.end(), more.begin(), more.end());
            }
        }
        return true;
    }
    void judge(double alpha) {
        outcome = {.criterion = run.criterion, .outcome = analyse(run, alpha)};
        const auto analyse_all = [alpha](const std::vector<Control>& changes, const std::vector<TrialRun>& runs) {
            std::vector<ControlOutcome> found;
            for (std::size_t i = 0; i < runs.size(); ++i) found.push_back({changes[i], analyse(runs[i], alpha)});
            return found;
        };
        outcome.controls = analyse_all(run.criterion->negative_controls, controls);
        outcome.positive_controls = analyse_all(run.criterion->positive_controls, positive_controls);
    }
    /// Negative controls matter where the criterion holds, positive controls where it is refuted.
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
    bool any = false;
    bool open = false;
    bool without_power = false;
    for (const auto& one : criteria) {
        if (one.criterion->form != form) continue;
        any = true;
        const bool controls_pass =
            std::all_of(one.positive_controls.begin(), one.positive_controls.end(),
                        [](const ControlOutcome& positive_control) { return positive_control.passes(); });
        if (one.outcome.verdict == Verdict::fail && controls_pass) return PrintedVerdict::refuted;
        open = open || one.outcome.verdict == Verdict::fail;
        open = open || one.outcome.verdict == Verdict::inconclusive;
        for (const auto& control : one.controls) {
            without_power = without_power || control.outcome.verdict == Verdict::pass;
            open = open || control.outcome.verdict == Verdict::inconclusive;
        }
    }
    if (!any) return PrintedVerdict::none;
    if (without_power) return form == Form::printed ? PrintedVerdict::vacuous : PrintedVerdict::refuted;
    return open ? PrintedVerdict::inconclusive : PrintedVerdict::holds;
}

/// A printed criterion without negative controls is expected to be refuted; returns one that holds nevertheless.
const CriterionOutcome* unexpected_pass(const ClaimOutcome& claim) {
    if (claim.claim->expected_verdict != PrintedVerdict::refuted) return nullptr;
    for (const auto& one : claim.criteria)
        if (one.criterion->form == Form::printed && one.controls.empty() && one.outcome.verdict == Verdict::pass)
            return &one;
    return nullptr;
}

/// A positive control that fails, and its criterion.
std::pair<const CriterionOutcome*, const ControlOutcome*> failed_positive_control(const ClaimOutcome& claim) {
    for (const auto& one : claim.criteria)
        for (const auto& positive_control : one.positive_controls)
            if (positive_control.fails()) return {&one, &positive_control};
    return {};
}

/// The most important reason why a claim failed or is inconclusive.
std::string reason_of(const ClaimOutcome& claim) {
    if (const auto [one, positive_control] = failed_positive_control(claim); one != nullptr)
        return fmt::format("{}: the positive control \"{}\" fails, although the statement is true there",
                           one->criterion->name, positive_control->definition.name);
    if (const auto* one = unexpected_pass(claim); one != nullptr)
        return fmt::format("{}: holds, but is expected to be refuted", one->criterion->name);
    if (claim.failed && claim.corrected != PrintedVerdict::refuted)
        return fmt::format("the printed form is {}, but the expected verdict is {}", name_of(claim.printed),
                           name_of(claim.claim->expected_verdict));
    for (const auto& one : claim.criteria) {
        const bool corrected = one.criterion->form == Form::corrected;
        if (claim.failed && corrected && one.outcome.verdict == Verdict::fail)
            return fmt::format("{}: outside its margin", one.criterion->name);
        for (const auto& control : one.controls)
            if (claim.failed && corrected && control.outcome.verdict == Verdict::pass)
                return fmt::format("{}: the negative control \"{}\" passes", one.criterion->name,
                                   control.definition.name);
    }
    for (const auto& one : claim.criteria) {
        if (one.outcome.verdict == Verdict::inconclusive) return fmt::format("{} is inconclusive", one.criterion->name);
        for (const auto& control : one.controls)
            if (claim.open() && control.outcome.verdict == Verdict::inconclusive)
                return fmt::format("{}: the negative control \"{}\" is inconclusive", one.criterion->name,
                                   control.definition.name);
        for (const auto& positive_control : one.positive_controls)
            if (claim.open() && positive_control.outcome.verdict == Verdict::inconclusive)
                return fmt::format("{}: the positive control \"{}\" is inconclusive", one.criterion->name,
                                   positive_control.definition.name);
    }
    return "";
}

void decide(ClaimOutcome& claim) {
    claim.printed = verdict_of(claim.criteria, Form::printed);
    claim.corrected = verdict_of(claim.criteria, Form::corrected);
    const bool decided = claim.printed != PrintedVerdict::inconclusive && claim.printed != PrintedVerdict::none;
    const bool expected = claim.claim->expected_verdict != PrintedVerdict::none;
    claim.failed = claim.corrected == PrintedVerdict::refuted ||
                   (decided && expected && claim.printed != claim.claim->expected_verdict) ||
                   unexpected_pass(claim) != nullptr || failed_positive_control(claim).first != nullptr;
    if (claim.failed || claim.open()) claim.reason = reason_of(claim);
}

/// Searches the closest faults of the forms that hold. The criteria are those of result.claims in the same order.
void find_closest_faults(std::vector<CriterionRuns>& criteria, Validation& result, double alpha, bool share_faults,
                         ClaimStore& store) {
    std::vector<FaultSearch> searches;
    auto one = criteria.begin();
    for (ClaimOutcome& claim : result.claims)
        for (CriterionOutcome& outcome : claim.criteria) {
            const bool printed = outcome.criterion->form == Form::printed;
            if ((printed ? claim.printed : claim.corrected) == PrintedVerdict::holds)
                for (std::size_t i = 0; i < outcome.controls.size(); ++i)
                    searches.push_back({claim.claim, &one->run, &one->controls[i], &outcome.controls[i]});
            ++one;
        }
    search_closest_faults(searches, result.tier, alpha, share_faults, store);
    for (auto& claim : result.claims) claim.closest_fault = closest_fault_of(claim);
}

}  // namespace

bool ValidationPlan::judges(const Claim& claim) const {
    return !claim.criteria.empty() &&
           (claims.empty() || std::find(claims.begin(), claims.end(), claim.id) != claims.end());
}

Rate rate_of(Summary summary) {
    return summary == Summary::share || summary == Summary::distance ? Rate::exact : Rate::nominal;
}
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

std::optional<ClaimKind> ClaimOutcome::kind() const {
    switch (printed) {
        case PrintedVerdict::holds:
            return ClaimKind::holds;
        case PrintedVerdict::vacuous:
            return ClaimKind::vacuous;
        case PrintedVerdict::refuted:
            return claim->refuted_as;
        default:
            return std::nullopt;
    }
}

const CriterionOutcome& ClaimOutcome::shown() const {
    // The corrected form comes before the printed one, and a criterion that failed or is inconclusive before others.
    const auto place = [](const CriterionOutcome& one) {
        return std::pair{one.criterion->form == Form::printed, one.outcome.verdict == Verdict::pass};
    };
    return *std::min_element(criteria.begin(), criteria.end(),
                             [&](const CriterionOutcome& a, const CriterionOutcome& b) { return place(a) < place(b); });
}

Validation judge_claims(ClaimStore& store, const std::vector<Claim>& claims, double false_alarm, bool share_faults) {
    const ValidationPlan& plan = store.plan();
    Validation result{.tier = plan.tier,
                      .seed = plan.seed,
                      .false_alarm = false_alarm,
                      .comparisons = store.comparisons(),
                      .claims = {}};
    const double alpha = false_alarm / static_cast<double>(result.comparisons) / static_cast<double>(interim_analyses);
    std::vector<CriterionRuns> criteria;
    for (const Claim& claim : claims) {
        if (!plan.judges(claim)) continue;
        std::vector<CriterionRuns> own;
        bool lacking = false;
        for (const Criterion& criterion : claim.criteria) {
            if (plan_of(criterion, plan.tier).empty()) continue;
            CriterionRuns& one = own.emplace_back(claim, criterion);
            if (!one.take(false, store)) lacking = true;
        }
        if (lacking) continue;
        ClaimOutcome outcome;
        outcome.claim = &claim;
        for (CriterionRuns& one : own) {
            one.judge(alpha);
            if (one.open() && one.take(true, store)) {
                one.judge(alpha);
                one.outcome.extended = true;
            }
            outcome.criteria.push_back(std::move(one.outcome));
        }
        std::move(own.begin(), own.end(), std::back_inserter(criteria));
        decide(outcome);
        result.claims.push_back(std::move(outcome));
    }
    find_closest_faults(criteria, result, alpha, share_faults, store);
    result.left_out = plan.claims.size() - std::min(plan.claims.size(), result.claims.size());
    result.lacking = static_cast<std::size_t>(
        std::count_if(store.asked().begin(), store.asked().end(), [](const auto& one) { return !one.done; }));
    return result;
}

Validation validate_claims(const ValidationPlan& plan, const std::vector<Claim>& claims) {
    const Experiment experiment = claim_experiment(plan, claims);
    Store store(":memory:", experiment, "", plan.threads, Json::object());
    run_experiment(experiment, store, {.threads = plan.threads, .progress = plan.progress});
    ClaimStore trials(store.database());
    return judge_claims(trials, claims, plan.false_alarm);
}

std::vector<CriterionOutcome> judge_once(const ValidationPlan& plan, const std::vector<Claim>& claims) {
    Experiment experiment = claim_experiment(plan, claims);
    experiment.grow = {};
    Store store(":memory:", experiment, "", plan.threads, Json::object());
    run_experiment(experiment, store, {.threads = plan.threads, .progress = plan.progress});
    ClaimStore trials(store.database());
    std::vector<CriterionOutcome> found;
    for (const Claim& claim : claims)
        for (const Criterion& criterion : claim.criteria) {
            CriterionRuns one(claim, criterion);
            (void)one.take(false, trials);
            one.judge(plan.false_alarm / static_cast<double>(interim_analyses));
            found.push_back(std::move(one.outcome));
        }
    return found;
}

VerdictCounts counts_of(const Validation& validation) {
    VerdictCounts counts;
    for (const ClaimOutcome& claim : validation.claims)
        ++(claim.failed ? counts.failed : claim.open() ? counts.inconclusive : counts.passed);
    return counts;
}

Validation validate_claims(const ValidationPlan& plan) { return validate_claims(plan, claims().rows()); }

Validation claims_where(const Validation& validation, bool on_dumps) {
    Validation chosen = validation;
    std::erase_if(chosen.claims, [&](const ClaimOutcome& one) { return one.claim->on.empty() == on_dumps; });
    return chosen;
}

}  // namespace spiked::validation

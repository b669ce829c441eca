#include "validation/claims/claim_verdicts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "validation/claims/closest_fault.hpp"

namespace spiked::validation {
namespace {

std::size_t comparisons_of(const std::vector<Claim>& claims, Tier tier) {
    std::size_t count = 0;
    for (const auto& claim : claims)
        for (const auto& criterion : claim.criteria) {
            const std::size_t sizes = plan_of(criterion, tier).size();
            count += (one_slope(criterion) ? std::min<std::size_t>(sizes, 1) : sizes) *
                     (1 + criterion.negative_controls.size() + criterion.positive_controls.size());
        }
    return std::max<std::size_t>(count, 1);
}

/// A criterion with its controls, all of which have the same number of trials.
struct CriterionRuns {
    const Claim* claim = nullptr;
    std::size_t at = 0;  ///< position of the claim in the result
    TrialRun run;
    std::vector<TrialRun> controls;
    std::vector<TrialRun> positive_controls;
    CriterionOutcome outcome;

    [[nodiscard]] RunGroup run_group() {
        RunGroup all{&run};
        for (auto* changed : {&controls, &positive_controls})
            for (auto& one : *changed) all.push_back(&one);
        return all;
    }
    void judge(double alpha) {
        outcome.criterion = run.criterion;
        outcome.outcome = analyse(run, alpha);
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

/// Searches the closest faults of the forms that hold.
void find_closest_faults(const std::vector<std::unique_ptr<CriterionRuns>>& criteria, Validation& result,
                         const ValidationPlan& plan, double alpha) {
    std::vector<FaultSearch> searches;
    std::map<const Claim*, double> drawn;
    std::vector<std::size_t> next(result.claims.size());
    for (const auto& one : criteria) {
        for (const TrialRun* run : one->run_group()) drawn[one->claim] += work_of(*run);
        ClaimOutcome& claim = result.claims[one->at];
        CriterionOutcome& outcome = claim.criteria[next[one->at]++];
        const bool printed = outcome.criterion->form == Form::printed;
        if ((printed ? claim.printed : claim.corrected) != PrintedVerdict::holds) continue;
        for (std::size_t i = 0; i < outcome.controls.size(); ++i)
            searches.push_back(
                {claim.claim, &one->run, &one->controls[i], &outcome.controls[i], outcome.extended ? extension : 1});
    }
    search_closest_faults(searches, drawn, plan, alpha);
    for (auto& claim : result.claims) claim.closest_fault = closest_fault_of(claim);
}

}  // namespace

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
    const double alpha =
        plan.false_alarm / static_cast<double>(result.comparisons) / static_cast<double>(interim_analyses);
    std::vector<std::unique_ptr<CriterionRuns>> criteria;
    for (const auto& claim : all) {
        if (claim.criteria.empty()) continue;
        if (!plan.claims.empty() && std::find(plan.claims.begin(), plan.claims.end(), claim.id) == plan.claims.end())
            continue;
        ClaimOutcome outcome;
        outcome.claim = &claim;
        for (const auto& criterion : claim.criteria) {
            if (plan_of(criterion, plan.tier).empty()) continue;
            auto runs = std::make_unique<CriterionRuns>();
            runs->claim = &claim;
            runs->at = result.claims.size();
            runs->run = make_run(claim, criterion, "", plan);
            for (const auto& control : criterion.negative_controls)
                runs->controls.push_back(make_run(claim, criterion, control.name, plan));
            for (const auto& positive_control : criterion.positive_controls)
                runs->positive_controls.push_back(make_run(claim, criterion, positive_control.name, plan));
            criteria.push_back(std::move(runs));
        }
        result.claims.push_back(std::move(outcome));
    }

    std::vector<CriterionRuns*> open;
    for (auto& one : criteria) open.push_back(one.get());
    for (std::uint64_t times = 1; !open.empty(); times *= extension) {
        std::vector<RunGroup> run_groups;
        for (CriterionRuns* one : open) run_groups.push_back(one->run_group());
        draw_all(run_groups, plan, times);
        for (CriterionRuns* one : open) {
            one->judge(alpha);
            one->outcome.extended = times > 1;
        }
        std::erase_if(open, [&](const CriterionRuns* one) { return times > 1 || !one->open(); });
    }
    for (auto& one : criteria) result.claims[one->at].criteria.push_back(std::move(one->outcome));
    for (auto& claim : result.claims) decide(claim);
    find_closest_faults(criteria, result, plan, alpha);
    return result;
}

Validation validate_claims(const ValidationPlan& plan) { return validate_claims(plan, claims().rows()); }

Validation claims_where(const Validation& validation, bool on_dumps) {
    Validation chosen = validation;
    std::erase_if(chosen.claims, [&](const ClaimOutcome& one) { return one.claim->on.empty() == on_dumps; });
    return chosen;
}

Outcome judge_control(const Claim& claim, const Criterion& criterion, const std::string& control,
                      const ValidationPlan& plan) {
    TrialRun run = make_run(claim, criterion, control, plan);
    draw_all({{&run}}, plan, 1);
    return analyse(run, plan.false_alarm / static_cast<double>(interim_analyses));
}

}  // namespace spiked::validation

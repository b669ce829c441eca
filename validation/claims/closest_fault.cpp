#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "validation/claims/claim_runs.hpp"

namespace spiked::validation {
namespace {

// The size of a fault is known to 2^-halvings of the planted one.
constexpr std::size_t most_halvings = 8;
constexpr std::size_t least_halvings = 5;  // of a fault in a unit of its own
// Trials of a fault in a unit of its own at sizes where it is expected to begin to fail, before its bracket is halved.
constexpr std::size_t most_guesses = 3;

/// How far a comparison is from failing, in widths of its interval: above 0 it fails.
double beyond_failing(const Outcome& outcome) {
    double most = -std::numeric_limits<double>::infinity();
    for (const Finding& finding : outcome.findings) {
        const double width = finding.interval.high - finding.interval.low;
        const double beyond =
            std::max(finding.interval.low - finding.region.high, finding.region.low - finding.interval.high);
        most = std::max(most, beyond / std::max(width, std::numeric_limits<double>::min()));
    }
    return most;
}

/// Parts of the planted size: the largest that passes and the smallest that fails, of those tried.
struct PartBracket {
    double passes = 0.0;
    double fails = 1.0;
    double beyond_passes = -std::numeric_limits<double>::infinity();  ///< beyond_failing there
    double beyond_fails = std::numeric_limits<double>::infinity();

    [[nodiscard]] double middle() const { return 0.5 * (passes + fails); }
    /// A part close to where beyond_failing is 0 if it is linear between the ends: half of `tolerance` further from the
    /// nearer end, so that the trials after the next enclose that place. The middle where nothing is known of the ends.
    [[nodiscard]] double guess(double tolerance) const {
        const double share = beyond_passes / (beyond_passes - beyond_fails);
        if (!(share >= 0.0 && share <= 1.0)) return middle();
        const double expected = passes + share * (fails - passes);
        const double beside = expected + (expected < middle() ? 0.5 : -0.5) * tolerance;
        return std::clamp(beside, passes + 0.25 * tolerance, fails - 0.25 * tolerance);
    }
    void narrow(double part, const Outcome& outcome) {
        const bool failed = outcome.verdict == Verdict::fail;
        (failed ? fails : passes) = part;
        (failed ? beyond_fails : beyond_passes) = beyond_failing(outcome);
    }
};

/// "a threshold 15 to 22 % too large", "the median of all values, in 27 to 28 % of the trials", or one number where
/// both are the same in two digits.
std::string fault_words(const Control& control, bool own_unit, double passes, double fails) {
    std::string words = !own_unit                     ? control.description + ", in {} % of the trials"
                        : control.size->words.empty() ? control.description + ": {} " + control.size->unit
                                                      : control.size->words;
    const std::size_t at = words.find("{}");
    const double unit = words.compare(at, 4, "{} %") == 0 ? 100.0 : 1.0;
    const auto digits = [](double size) {
        return std::abs(size) < 99.5 ? fmt::format("{:.2g}", size) : fmt::format("{:.0f}", size);
    };
    const std::string least = digits(unit * passes);
    const std::string most = digits(unit * fails);
    return words.replace(at, 2, least == most ? least : least + " to " + most);
}

void keep_bracket(FaultSearch& search, const PartBracket& found, bool own_unit) {
    const Control& control = search.control->definition;
    const auto size = [&](double part) {
        return own_unit ? control.size->none + part * (control.size->planted - control.size->none) : part;
    };
    search.control->closest = ClosestFault{control.name,
                                           search.sound->criterion->name,
                                           size(found.passes),
                                           size(found.fails),
                                           own_unit ? control.size->unit : "of the trials",
                                           found.passes,
                                           own_unit,
                                           fault_words(control, own_unit, size(found.passes), size(found.fails))};
}

/// The fault in a fraction of the trials, or a smaller one in all of them, from the trials that are drawn already.
PartBracket bisect_drawn(const FaultSearch& search, double alpha,
                         TrialRun (*smaller)(const TrialRun& sound, const TrialRun& faulty, double part)) {
    PartBracket bracket;
    for (std::size_t step = 0; step < most_halvings; ++step) {
        const double part = bracket.middle();
        bracket.narrow(part, analyse(smaller(*search.sound, *search.faulty, part), alpha));
    }
    return bracket;
}

/// The search for a fault with a unit of its own.
struct OwnSearch {
    FaultSearch* search = nullptr;
    PartBracket bracket = {};
    double tolerance = 0.0;  ///< the search ends with a bracket as narrow as this
    std::size_t tried = 0;

    /// Whether a size was tried: a store may lack its trials.
    [[nodiscard]] bool searched() const { return bracket.fails - bracket.passes < 1.0; }
    [[nodiscard]] bool ended() const { return bracket.fails - bracket.passes <= tolerance * (1.0 + 1e-9); }
    [[nodiscard]] double part() const { return tried < most_guesses ? bracket.guess(tolerance) : bracket.middle(); }
};

/// One step of the searches of a criterion, which share their trials' blocks. They end where the store lacks trials.
void try_parts(const std::vector<OwnSearch*>& own, double alpha, ClaimStore& store) {
    const FaultSearch& first = *own.front()->search;
    std::vector<TrialRun> runs;
    ClaimCell cell{.claim = first.claim, .criterion = first.sound->criterion};
    for (const OwnSearch* one : own) {
        const std::string& control = one->search->control->definition.name;
        cell.faults.emplace(control, one->part());
        runs.push_back({cell.criterion, control});
    }
    bool lacking = false;
    for (const SizeTrials& at : first.sound->sizes) {
        cell.size = at.size;
        cell.trials = at.values.size();
        auto found = store.trials(cell);
        lacking = lacking || !found;
        if (found)
            for (TrialRun& run : runs) run.sizes.push_back({at.size, std::move(found->at(run.control))});
    }
    for (std::size_t i = 0; i < own.size(); ++i) {
        if (lacking)
            own[i]->tolerance = 1.0;
        else
            own[i]->bracket.narrow(own[i]->part(), analyse(runs[i], alpha));
        ++own[i]->tried;
    }
}

void search_together(std::vector<OwnSearch>& own, double alpha, ClaimStore& store) {
    for (std::size_t step = 0; step < most_guesses + most_halvings; ++step) {
        std::vector<std::vector<OwnSearch*>> groups;  // the searches of one criterion are neighbours
        for (OwnSearch& one : own) {
            if (one.ended()) continue;
            if (groups.empty() || groups.back().front()->search->sound != one.search->sound) groups.emplace_back();
            groups.back().push_back(&one);
        }
        for (const auto& group : groups) try_parts(group, alpha, store);
    }
}

}  // namespace

void search_closest_faults(std::vector<FaultSearch>& searches, const std::map<const Claim*, double>& drawn, Tier tier,
                           double alpha, bool share_faults, ClaimStore& store) {
    std::erase_if(searches,
                  [](const FaultSearch& one) { return !one.control->fails() || one.control->definition.whole; });
    std::vector<OwnSearch> own;
    std::map<const Claim*, double> step;  // work of one step of all searches of a claim
    for (FaultSearch& one : searches) {
        const Control& control = one.control->definition;
        const bool interpolated = control.size && control.linear;
        if (share_faults) keep_bracket(one, bisect_drawn(one, alpha, interpolated ? blended : mixed), interpolated);
        if (tier != Tier::full || !control.size || interpolated) continue;
        own.push_back({&one});
        own.back().bracket.beyond_passes = beyond_failing(analyse(*one.sound, alpha));
        own.back().bracket.beyond_fails = beyond_failing(analyse(*one.faulty, alpha));
        step[one.claim] += work_of(*one.faulty);
    }
    for (OwnSearch& one : own)
        one.tolerance =
            std::exp2(-std::floor(std::clamp(drawn.at(one.search->claim) / step.at(one.search->claim),
                                             static_cast<double>(least_halvings), static_cast<double>(most_halvings))));
    search_together(own, alpha, store);
    for (const OwnSearch& one : own)
        if (one.searched()) keep_bracket(*one.search, one.bracket, true);
}

std::optional<ClosestFault> closest_fault_of(const ClaimOutcome& claim) {
    std::map<std::string, ClosestFault> soonest;  // by the name of the fault
    for (const auto& one : claim.criteria)
        for (const auto& control : one.controls) {
            if (!control.closest) continue;
            const auto [found, fresh] = soonest.try_emplace(control.definition.name, *control.closest);
            const auto rank = [](const ClosestFault& fault) { return std::pair{!fault.own_unit, fault.part}; };
            if (!fresh && rank(*control.closest) < rank(found->second)) found->second = *control.closest;
        }
    const auto shown = std::max_element(soonest.begin(), soonest.end(), [](const auto& a, const auto& b) {
        return std::pair{a.second.own_unit, a.second.part} < std::pair{b.second.own_unit, b.second.part};
    });
    return shown == soonest.end() ? std::nullopt : std::optional(shown->second);
}

}  // namespace spiked::validation

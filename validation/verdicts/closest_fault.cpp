#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "validation/verdicts/claim_runs.hpp"

namespace spiked::validation {
namespace {

// The size of a fault is known to 2^-halvings of the planted one.
constexpr double halvings = 8.0;
// A size this much larger than the one at which the criterion is expected to begin to fail is drawn, in parts of it.
constexpr double beside = 1.0 / 8.0;
// The search ends with a size that fails and is at most this many times the expected one.
constexpr double close = 4.0 / 3.0;
constexpr std::size_t most_draws = 3;
// No smaller part of a planted size is drawn.
constexpr double smallest = 1.0 / 64.0;

/// Parts of the planted size: the largest that passes and the smallest that fails, of those tried.
struct PartBracket {
    double passes = 0.0;
    double fails = 1.0;
    [[nodiscard]] double middle() const { return 0.5 * (passes + fails); }
};

/// Trials between two runs, the first where the share is 0 and the second where it is 1: mixed or blended.
using Between = TrialRun (*)(const TrialRun& first, const TrialRun& second, double share);

/// "a threshold 15 to 22 % too large", "the median of all values, in 27 to 28 % of the trials"; one number where both
/// are the same in two digits, and "up to 22" where no smaller fault was tried at all sizes of blocks.
std::string fault_words(const Control& control, bool own_unit, double passes, double fails) {
    std::string words = !own_unit                     ? control.description + ", in {} % of the trials"
                        : control.size->words.empty() ? control.description + ": {} " + control.size->unit
                                                      : control.size->words;
    const std::size_t at = words.find("{}");
    const double unit = words.compare(at, 4, "{} %") == 0 ? 100.0 : 1.0;
    const double none = own_unit ? control.size->none : 0.0;
    const auto digits = [&](double size) {
        if (std::abs(size) >= 99.5) return fmt::format("{:.0f}", size);
        std::string text = fmt::format("{:.2g}", size);
        // A power of 1.02 is not "1", which would be no fault.
        for (int more = 3; size != unit * none && text == fmt::format("{:.2g}", unit * none) && more < 6; ++more)
            text = fmt::format("{:.{}g}", size, more);
        return text;
    };
    const std::string least = digits(unit * passes);
    const std::string most = digits(unit * fails);
    if (passes == none) return words.replace(at, 2, (fails > none ? "up to " : "down to ") + most);
    return words.replace(at, 2, least == most ? least : least + " to " + most);
}

/// Keeps the sizes between which the criterion begins to fail.
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
                                           found.fails,
                                           own_unit,
                                           fault_words(control, own_unit, size(found.passes), size(found.fails))};
}

/// The trials that are drawn, by the size of their fault as a part of the planted one: 0, 1 and others.
using DrawnRuns = std::map<double, const TrialRun*>;

/// The largest fault that passes, where the trials of other sizes are `between` those of the nearest sizes drawn, in
/// proportion to sizes to this power.
PartBracket bisect(const DrawnRuns& drawn, Between between, double alpha, double power = 1.0,
                   PartBracket bracket = {}) {
    while (bracket.fails - bracket.passes > std::exp2(-halvings)) {
        const double part = bracket.middle();
        const auto above = drawn.lower_bound(part);
        const auto below = std::prev(above);
        const double least = std::pow(below->first, power);
        const double share = (std::pow(part, power) - least) / (std::pow(above->first, power) - least);
        const Outcome outcome = analyse(between(*below->second, *above->second, share), alpha);
        (outcome.verdict == Verdict::fail ? bracket.fails : bracket.passes) = part;
    }
    return bracket;
}

/// The trials of one size, or all of them where one slope over the sizes is compared.
TrialRun at_size(const TrialRun& run, std::size_t index) {
    if (one_slope(*run.criterion)) return run;
    return {run.criterion, run.control, {run.sizes[index]}};
}

/// The search for a fault with a unit of its own, at the size of its criterion where it is found soonest.
class OwnSearch {
public:
    OwnSearch(FaultSearch& search, double alpha)
        : search_(&search),
          alpha_(alpha),
          power_(one_slope(*search.sound->criterion) ? 1.0 : 2.0),
          sizes_(one_slope(*search.sound->criterion) ? 1 : search.sound->sizes.size()) {
        double least = std::numeric_limits<double>::infinity();
        std::size_t soonest = 0;
        for (std::size_t i = 0; i < sizes_; ++i) {
            look_at(i);
            if (expected_ >= least) continue;
            least = expected_;
            soonest = i;
        }
        if (soonest != index_) look_at(soonest);
        none_ = number_of(analyse(sound_, alpha_));
        whole_ = number_of(analyse(faulty_, alpha_));
    }

    [[nodiscard]] FaultSearch& search() const { return *search_; }
    /// The sizes of blocks that are drawn, with their trials.
    [[nodiscard]] const std::vector<SizeTrials>& sizes() const { return sound_.sizes; }
    [[nodiscard]] bool shares_blocks_with(const OwnSearch& other) const {
        return search_->sound == other.search_->sound && index_ == other.index_;
    }
    /// Faults that were drawn, or none and the planted one. One that passes at one of several sizes may fail at others.
    [[nodiscard]] PartBracket enclosing() const { return {sizes_ == 1 ? enclosing_.passes : 0.0, enclosing_.fails}; }
    /// The fault to draw next.
    [[nodiscard]] double part() const {
        return std::max(smallest, std::min((1.0 + beside) * expected_, 0.5 * (expected_ + enclosing_.fails)));
    }
    [[nodiscard]] bool searched() const { return !lacking_ || !drawn_.empty(); }
    [[nodiscard]] bool ended() const { return ended_; }

    /// The store lacks the trials.
    void end() { lacking_ = ended_ = true; }
    void add(TrialRun run) {
        const double at = part();
        const Outcome outcome = analyse(run, alpha_);
        const bool fails = outcome.verdict == Verdict::fail;
        (fails ? enclosing_.fails : enclosing_.passes) = at;
        drawn_.emplace(at, std::move(run));
        const double effect = (number_of(outcome) - none_) / (whole_ - none_);
        if (effect > 0.0 && effect < 1.0) power_ = std::clamp(std::log(effect) / std::log(at), 1.0, 8.0);
        expect_again();
    }

private:
    static double number_of(const Outcome& one) { return one.findings.front().interval.estimate; }
    /// Searches at this size of blocks.
    void look_at(std::size_t index) {
        index_ = index;
        sound_ = at_size(*search_->sound, index);
        faulty_ = at_size(*search_->faulty, index);
        expect_again();
    }
    /// The search ends where a drawn fault fails that is close to the one expected on interpolated trials.
    void expect_again() {
        DrawnRuns runs{{0.0, &sound_}, {1.0, &faulty_}};
        for (const auto& [part, run] : drawn_) runs.emplace(part, &run);
        const Summary summary = sound_.criterion->summary;
        const bool smooth = summary != Summary::share && summary != Summary::distance;
        expected_ = bisect(runs, smooth ? blended : mixed, alpha_, power_, enclosing_).middle();
        const bool fails_near = enclosing_.fails <= std::max(smallest, close * expected_);
        ended_ = (fails_near && !drawn_.empty()) || drawn_.size() == most_draws;
    }

    FaultSearch* search_;
    double alpha_;
    double power_;       ///< of the fault's size, in proportion to which the number is expected to change
    std::size_t sizes_;  ///< that are judged one by one
    std::size_t index_ = 0;
    TrialRun sound_ = {}, faulty_ = {};
    double none_ = 0.0, whole_ = 0.0;  ///< the number without a fault, and with the planted one
    std::map<double, TrialRun> drawn_ = {};
    PartBracket enclosing_ = {};
    double expected_ = 0.0;  ///< where the criterion begins to fail on interpolated trials
    bool ended_ = false;
    bool lacking_ = false;
};

/// One step of searches that share their trials' blocks. They end where the store lacks trials.
void draw_next(const std::vector<OwnSearch*>& own, ClaimStore& store) {
    const FaultSearch& first = own.front()->search();
    std::vector<TrialRun> runs;
    ClaimCell cell{.claim = first.claim, .criterion = first.sound->criterion};
    for (const OwnSearch* one : own) {
        const std::string& control = one->search().control->definition.name;
        cell.faults.emplace(control, one->part());
        runs.push_back({cell.criterion, control});
    }
    bool lacking = false;
    for (const SizeTrials& at : own.front()->sizes()) {
        cell.size = at.size;
        cell.trials = at.values.size();
        auto found = store.trials(cell);
        lacking = lacking || !found;
        if (found)
            for (TrialRun& run : runs) run.sizes.push_back({at.size, std::move(found->at(run.control))});
    }
    for (std::size_t i = 0; i < own.size(); ++i)
        if (lacking)
            own[i]->end();
        else
            own[i]->add(std::move(runs[i]));
}

void search_together(std::vector<OwnSearch>& own, ClaimStore& store) {
    while (true) {
        std::vector<std::vector<OwnSearch*>> groups;
        for (OwnSearch& one : own) {
            if (one.ended()) continue;
            const auto group = std::find_if(groups.begin(), groups.end(),
                                            [&](const auto& other) { return other.front()->shares_blocks_with(one); });
            (group == groups.end() ? groups.emplace_back() : *group).push_back(&one);
        }
        if (groups.empty()) return;
        for (const auto& group : groups) draw_next(group, store);
    }
}

}  // namespace

void search_closest_faults(std::vector<FaultSearch>& searches, Tier tier, double alpha, bool share_faults,
                           ClaimStore& store) {
    std::erase_if(searches,
                  [](const FaultSearch& one) { return !one.control->fails() || one.control->definition.whole; });
    std::vector<OwnSearch> own;
    for (FaultSearch& one : searches) {
        const Control& control = one.control->definition;
        const bool linear_in_size = control.size && control.linear;
        if (share_faults)
            keep_bracket(one, bisect({{0.0, one.sound}, {1.0, one.faulty}}, linear_in_size ? blended : mixed, alpha),
                         linear_in_size);
        if (tier == Tier::full && control.size && !linear_in_size) own.emplace_back(one, alpha);
    }
    search_together(own, store);
    for (const OwnSearch& one : own)
        if (one.searched()) keep_bracket(one.search(), one.enclosing(), true);
}

std::optional<ClosestFault> closest_fault_of(const ClaimOutcome& claim) {
    std::map<std::string, const ControlOutcome*> soonest;  // by the name of the fault
    // Criteria may plant different sizes, so that parts of these do not tell which fault is smaller.
    const auto rank = [](const ControlOutcome& control) {
        const ClosestFault& fault = *control.closest;
        const FaultSize& size = fault.own_unit ? *control.definition.size : FaultSize{1.0, ""};
        return std::pair{!fault.own_unit, fault.part * std::abs(size.planted - size.none)};
    };
    for (const auto& one : claim.criteria)
        for (const auto& control : one.controls) {
            if (!control.closest) continue;
            const auto [found, fresh] = soonest.try_emplace(control.definition.name, &control);
            if (!fresh && rank(control) < rank(*found->second)) found->second = &control;
        }
    const auto shown = std::max_element(soonest.begin(), soonest.end(), [](const auto& a, const auto& b) {
        return std::pair{a.second->closest->own_unit, a.second->closest->part} <
               std::pair{b.second->closest->own_unit, b.second->closest->part};
    });
    return shown == soonest.end() ? std::nullopt : shown->second->closest;
}

}  // namespace spiked::validation

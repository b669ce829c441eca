#include "validation/claims/closest_fault.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

namespace spiked::validation {
namespace {

constexpr std::size_t most_steps = 8;

/// Parts of the planted size: the largest that passes and the smallest that fails, of those tried.
struct PartBracket {
    double passes = 0.0;
    double fails = 1.0;

    [[nodiscard]] double middle() const { return 0.5 * (passes + fails); }
    void narrow(const Outcome& at_middle) { (at_middle.verdict == Verdict::fail ? fails : passes) = middle(); }
};

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
                                           own_unit};
}

/// The fault in a fraction of the trials.
PartBracket bisect_share(const FaultSearch& search, double alpha) {
    PartBracket bracket;
    for (std::size_t step = 0; step < most_steps; ++step) {
        TrialRun mixed{search.sound->criterion, {}};
        for (std::size_t i = 0; i < search.sound->sizes.size(); ++i)
            mixed.sizes.push_back(
                std::make_unique<SizeRun>(*search.sound->sizes[i], *search.faulty->sizes[i], bracket.middle()));
        bracket.narrow(analyse(mixed, alpha));
    }
    return bracket;
}

/// A fault with a unit of its own, in bisection.
struct OwnSearch {
    FaultSearch* search = nullptr;
    PartBracket bracket = {};
    std::size_t steps = 0;
    TrialRun run = {};
};

void bisect_together(std::vector<OwnSearch>& own, const ValidationPlan& plan, double alpha) {
    for (std::size_t step = 0; step < most_steps; ++step) {
        for (const std::uint64_t times : {std::uint64_t{1}, extension}) {
            // The searches of a criterion are drawn together, because they often share a decomposed block.
            std::map<const TrialRun*, RunGroup> groups;
            for (OwnSearch& one : own) {
                if (step >= one.steps || one.search->times != times) continue;
                one.run = make_run(*one.search->claim, *one.search->sound->criterion,
                                   one.search->control->definition.name, plan, one.bracket.middle());
                groups[one.search->sound].push_back(&one.run);
            }
            std::vector<RunGroup> all;
            for (auto& [sound, group] : groups) all.push_back(std::move(group));
            if (!all.empty()) draw_all(all, plan, times);
        }
        for (OwnSearch& one : own)
            if (step < one.steps) one.bracket.narrow(analyse(std::exchange(one.run, {}), alpha));
    }
}

}  // namespace

void search_closest_faults(std::vector<FaultSearch>& searches, const std::map<const Claim*, double>& drawn,
                           const ValidationPlan& plan, double alpha) {
    std::erase_if(searches, [](const FaultSearch& one) { return !one.control->fails(); });
    std::vector<OwnSearch> own;
    std::map<const Claim*, double> step;  // work of one step of all bisections of a claim
    for (FaultSearch& one : searches) {
        keep_bracket(one, bisect_share(one, alpha), false);
        if (plan.tier != Tier::full || !one.control->definition.size) continue;
        own.push_back({&one});
        step[one.claim] += work_of(*one.faulty);
    }
    for (OwnSearch& one : own)
        one.steps = static_cast<std::size_t>(
            std::min(static_cast<double>(most_steps), drawn.at(one.search->claim) / step.at(one.search->claim)));
    bisect_together(own, plan, alpha);
    for (const OwnSearch& one : own) keep_bracket(*one.search, one.bracket, true);
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

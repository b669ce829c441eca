#pragma once
#include <functional>
#include <string>
#include <vector>

#include "validation/claims/claims.hpp"

namespace spiked::validation {

enum class Tier { quick, full };
[[nodiscard]] std::string_view name_of(Tier tier);

/// One comparison: a number of a criterion at one size, or its slope over all of them (size 0).
struct Finding {
    std::size_t size = 0;
    Interval interval;
    Region region;
    double detectable = 0.0;  ///< the smallest deviation that fails with probability 0.99
    Verdict verdict = Verdict::inconclusive;
};

/// Of a criterion, or of its control: fail when one finding fails, pass when all pass.
struct Outcome {
    std::vector<Finding> findings;
    Verdict verdict = Verdict::inconclusive;
    /// What decides the verdict: the first failure, else the first inconclusive one, else the one with the least room.
    [[nodiscard]] const Finding& deciding() const;
};

struct ControlOutcome {
    Fault fault;
    Outcome outcome;
    [[nodiscard]] bool fails() const { return outcome.verdict == Verdict::fail; }
    [[nodiscard]] bool passes() const { return outcome.verdict == Verdict::pass; }
};

struct CriterionOutcome {
    const Criterion* criterion = nullptr;
    Outcome outcome;
    std::vector<ControlOutcome> controls;           ///< that must fail
    std::vector<ControlOutcome> positive_controls;  ///< that must pass
    bool extended = false;                          ///< decided, or left open, by the second look
};

struct ClaimOutcome {
    const Claim* claim = nullptr;
    PrintedVerdict printed = PrintedVerdict::none;
    PrintedVerdict corrected = PrintedVerdict::none;  ///< never vacuous
    std::vector<CriterionOutcome> criteria;
    /// A corrected form that fails, a control of one that passes, a printed form decided against what is settled; where
    /// that is refuted, a printed criterion without controls that holds, or one that refutes what is true.
    bool failed = false;
    std::string reason;  ///< why it failed, or why it is open; empty otherwise
    [[nodiscard]] bool open() const {
        return printed == PrintedVerdict::inconclusive || corrected == PrintedVerdict::inconclusive;
    }
    /// The criterion a table shows: of the corrected form where there is one.
    [[nodiscard]] const CriterionOutcome& shown() const;
};

struct ValidationPlan {
    Tier tier = Tier::quick;
    stream::StudySeed seed;
    double false_alarm = 1e-6;        ///< that any true statement of the whole tier is called false
    std::vector<std::string> claims;  ///< ids; empty: all
    std::size_t threads = 0;
    std::function<void(std::size_t done, std::size_t of)> progress;
};

struct Validation {
    Tier tier = Tier::quick;
    stream::StudySeed seed;
    double false_alarm = 0.0;
    std::size_t comparisons = 0;  ///< of the whole tier, among which the false alarm is divided
    std::vector<ClaimOutcome> claims;
};

/// Judges claims. A criterion that is inconclusive at first is drawn four times as far, once: each look spends half of
/// its share of the false alarm. Controls and true cases run the same trials, numbers and regions as their criterion; a
/// form is refuted only where its true cases pass, which are comparisons of their own. Verdicts depend
/// on the seed alone, not on threads or on which other claims were asked. Throws usage_error for an unknown id.
[[nodiscard]] Validation validate_claims(const ValidationPlan& plan);

/// The same for claims that are given, which outlive the result.
[[nodiscard]] Validation validate_claims(const ValidationPlan& plan, const std::vector<Claim>& claims);

/// A control of a criterion at its own numbers of trials, alone: whether the planted fault is caught.
[[nodiscard]] Outcome judge_control(const Claim& claim, const Criterion& criterion, const std::string& fault,
                                    const ValidationPlan& plan);

}  // namespace spiked::validation

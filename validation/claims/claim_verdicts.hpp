#pragma once
#include <functional>
#include <string>
#include <vector>

#include "validation/claims/claims.hpp"

namespace spiked::validation {

enum class Tier { quick, full };
[[nodiscard]] std::string_view name_of(Tier tier);

/// One comparison: the statistic of a criterion at one size, or its slope over all sizes (size 0).
struct Finding {
    std::size_t size = 0;
    Interval interval;
    AcceptanceRegion region;
    double detectable = 0.0;  ///< the smallest deviation that fails with probability 0.99
    Verdict verdict = Verdict::inconclusive;
};

/// The result of a criterion or of a control: fail when one finding fails, pass when all pass, otherwise inconclusive.
struct Outcome {
    std::vector<Finding> findings;
    Verdict verdict = Verdict::inconclusive;
    /// The finding that decides the verdict: among failures, else inconclusive findings, else passes, the one
    /// whose interval has the smallest signed distance to the bounds of its acceptance region, relative to its width.
    [[nodiscard]] const Finding& deciding() const;
};

struct ControlOutcome {
    Control definition;
    Outcome outcome;
    [[nodiscard]] bool fails() const { return outcome.verdict == Verdict::fail; }
    [[nodiscard]] bool passes() const { return outcome.verdict == Verdict::pass; }
};

struct CriterionOutcome {
    const Criterion* criterion = nullptr;
    Outcome outcome;
    std::vector<ControlOutcome> controls;           ///< negative controls, which must fail
    std::vector<ControlOutcome> positive_controls;  ///< must pass
    bool extended = false;                          ///< the second interim analysis was needed
};

struct ClaimOutcome {
    const Claim* claim = nullptr;
    PrintedVerdict printed = PrintedVerdict::none;
    PrintedVerdict corrected = PrintedVerdict::none;  ///< never vacuous
    std::vector<CriterionOutcome> criteria;
    /// True when the corrected form or one of its negative controls gives the wrong verdict, when the verdict on the
    /// printed form is conclusive and not the expected one, when a printed criterion without negative controls holds
    /// although the printed form is expected to be refuted, or when a positive control fails.
    bool failed = false;
    std::string reason;  ///< why it failed or is inconclusive; empty otherwise
    [[nodiscard]] bool open() const {
        return printed == PrintedVerdict::inconclusive || corrected == PrintedVerdict::inconclusive;
    }
    /// The criterion that a table shows: one of the corrected form where there is one.
    [[nodiscard]] const CriterionOutcome& shown() const;
};

struct ValidationPlan {
    Tier tier = Tier::quick;
    stream::StudySeed seed;
    double false_alarm = 1e-6;        ///< probability that any true statement of the whole tier is rejected
    std::vector<std::string> claims;  ///< ids of the claims to judge; empty: all
    std::size_t threads = 0;
    std::function<void(std::size_t done, std::size_t of)> progress;
};

struct Validation {
    Tier tier = Tier::quick;
    stream::StudySeed seed;
    double false_alarm = 0.0;
    std::size_t comparisons = 0;  ///< number of comparisons of the whole tier, which share the false-alarm rate
    std::vector<ClaimOutcome> claims;
};

/// Judges claims. A criterion that is inconclusive at the first interim analysis is run once more with four times as
/// many trials; each analysis spends half of the criterion's part of the false-alarm rate. Controls use the same
/// trials, random numbers and acceptance regions as their criterion. A form is refuted only where its positive controls
/// pass; these count as comparisons of their own. Verdicts depend only on the seed, not on threads or on the choice of
/// claims. Throws usage_error for an unknown id.
[[nodiscard]] Validation validate_claims(const ValidationPlan& plan);

/// The same for given claims, which must outlive the result.
[[nodiscard]] Validation validate_claims(const ValidationPlan& plan, const std::vector<Claim>& claims);

/// Runs one control of a criterion alone, with the criterion's own numbers of trials.
[[nodiscard]] Outcome judge_control(const Claim& claim, const Criterion& criterion, const std::string& control,
                                    const ValidationPlan& plan);

}  // namespace spiked::validation

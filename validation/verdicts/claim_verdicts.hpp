#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/text/enum_names.hpp"
#include "validation/claims/claims.hpp"
#include "validation/engine/judge.hpp"

namespace spiked::validation {

enum class Tier { quick, full };

/// How far the stated probability of the intervals for this summary holds: exact for shares and distances, nominal for
/// means, rates and growth.
[[nodiscard]] Rate rate_of(Summary summary);

/// One comparison: the statistic of a criterion at one size, or its slope over all sizes (size 0).
struct Finding {
    std::size_t size = 0;
    Interval interval;
    AcceptanceRegion region;
    double detectable = 0.0;  ///< the smallest deviation that fails with probability 0.99
    Verdict verdict = Verdict::inconclusive;
};

/// The number at one size whose slope over all sizes is compared.
struct SizeLevel {
    std::size_t size = 0;
    double level = 0.0;  ///< root mean square of the trials, or their quantile for growth
    double mean = 0.0;
};

/// The result of a criterion or of a control: fail when one finding fails, pass when all pass, otherwise inconclusive.
struct Outcome {
    std::vector<Finding> findings;
    std::vector<SizeLevel> levels;  ///< for slopes only
    Verdict verdict = Verdict::inconclusive;
    /// The finding that decides the verdict: among failures, else inconclusive findings, else passes, the one
    /// whose interval has the smallest signed distance to the bounds of its acceptance region, relative to its width.
    [[nodiscard]] const Finding& deciding() const;
};

/// How large the fault of a negative control may be before its criterion fails, at the criterion's own trials. Found by
/// a search between sizes that do not fail and sizes that fail, which assumes that a larger fault fails sooner.
struct ClosestFault {
    std::string fault;  ///< name of the control
    std::string criterion;
    double passes = 0.0;  ///< the largest size tried at which the criterion does not fail
    double fails = 0.0;   ///< the smallest size tried at which it fails
    std::string unit;
    double part = 0.0;      ///< `fails` as a part of the planted size
    bool own_unit = false;  ///< whether it has a unit of its own: the sizes of other faults are fractions of the trials
    std::string words = {};  ///< the fault with both sizes, such as "a threshold 15 to 22 % too large"
};

struct ControlOutcome {
    Control definition;
    Outcome outcome;
    std::optional<ClosestFault> closest = {};  ///< where the form holds
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
    /// Of the faults that its controls plant, the one that may be largest before any criterion fails, as a part of the
    /// planted size; faults with a unit of their own come first. Nothing where no form holds.
    std::optional<ClosestFault> closest_fault = {};
    [[nodiscard]] bool open() const {
        return printed == PrintedVerdict::inconclusive || corrected == PrintedVerdict::inconclusive;
    }
    /// Holds and vacuous follow from the verdict on the printed form, other kinds are stated in the claim. Nothing
    /// where the verdict is inconclusive or there is none.
    [[nodiscard]] std::optional<ClaimKind> kind() const;
    /// The criterion that a table shows: one of the corrected form where there is one.
    [[nodiscard]] const CriterionOutcome& shown() const;
};

struct ValidationPlan {
    Tier tier = Tier::quick;
    stream::StudySeed seed;
    /// Probability that any interval of the whole tier misses, so that a true statement is rejected or a control
    /// judged wrongly; nominal where rate_of says so. The intervals of means have been measured to keep such a rate for
    /// skewed values (mean_interval); one of 1e-6 they would exceed by factors.
    double false_alarm = 1e-3;
    std::vector<std::string> claims;  ///< ids of the claims to judge; empty: all
    std::size_t threads = 0;
    std::function<void(std::size_t done, std::size_t of)> progress;  ///< in trials; the total grows

    [[nodiscard]] bool judges(const Claim& claim) const;
};

struct Validation {
    Tier tier = Tier::quick;
    stream::StudySeed seed;
    double false_alarm = 0.0;
    /// Number of comparisons of the whole tier, those of controls included, which share the false-alarm rate.
    std::size_t comparisons = 0;
    std::vector<ClaimOutcome> claims;
    /// Number of claims of the store that are not among these: their dumps, or some of their trials, are not there.
    std::size_t left_out = 0;
    /// Number of cells that these verdicts ask for and the store lacks: of claims that are left out, of second
    /// analyses, which are inconclusive without, and of closest faults.
    std::size_t lacking = 0;
};

/// Numbers of claims that failed, that are open without having failed, and of the others.
[[nodiscard]] VerdictCounts counts_of(const Validation& validation);

/// Judges claims. A criterion that is inconclusive at the first interim analysis is run once more with four times as
/// many trials; each analysis spends half of the criterion's part of the false-alarm rate. Controls use the same
/// trials, random numbers and acceptance regions as their criterion, and count as comparisons of their own. A form is
/// refuted only where its positive controls pass. Where a form holds, the largest fault that would not fail is
/// searched: in the quick tier among faults that occur in a fraction of the trials, which needs no further trials; in
/// the full tier also in the faults' own units, with further trials at a few sizes. Verdicts depend only on the
/// seed, not on threads or on the choice of claims. Throws usage_error for an unknown id.
[[nodiscard]] Validation validate_claims(const ValidationPlan& plan);

/// The same for given claims, which must outlive the result.
[[nodiscard]] Validation validate_claims(const ValidationPlan& plan, const std::vector<Claim>& claims);

/// The claims of a result that are about dumps, or those that are not.
[[nodiscard]] Validation claims_where(const Validation& validation, bool on_dumps);

/// Draws the trials of the first analysis of each criterion and judges it and its controls, each comparison at the
/// level false_alarm / 2, in the order of the criteria.
[[nodiscard]] std::vector<CriterionOutcome> judge_once(const ValidationPlan& plan, const std::vector<Claim>& claims);

}  // namespace spiked::validation

template <>
struct spiked::EnumNames<spiked::validation::Tier> {
    static constexpr EnumName<spiked::validation::Tier> table[] = {{spiked::validation::Tier::quick, "quick"},
                                                                   {spiked::validation::Tier::full, "full"}};
};

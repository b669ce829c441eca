#pragma once
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/enum_names.hpp"
#include "core/text/registry.hpp"
#include "sim/random/address.hpp"
#include "validation/statistics/statistics.hpp"
#include "validation/trials/predictions.hpp"

namespace spiked::validation {

/// Which statement a criterion judges: the one in the paper, or the corrected one that replaces it.
enum class Form { printed, corrected };
[[nodiscard]] std::string_view name_of(Form form);

/// The summary statistic of the trials, which is compared with an acceptance region.
enum class Summary {
    mean,      ///< mean of the trials, for each size
    share,     ///< fraction of trials with value 1 (the others have value 0), for each size
    rate,      ///< slope of log(root mean square) against log(size) over all sizes
    growth,    ///< slope of log(quantile) against log(size) over all sizes
    distance,  ///< Kolmogorov distance of the trials from a law, for each size
};
[[nodiscard]] std::string_view name_of(Summary summary);

/// The size of a planted fault in the fault's own unit.
struct FaultSize {
    double planted = 0.0;  ///< of the control
    std::string unit;      ///< words that follow a number, such as "of the threshold"
    double none = 0.0;     ///< the size that changes nothing
    /// The fault of any size in words, with {} for the size ("a threshold {} too large"), or {} % for a fraction.
    std::string words = {};
};

/// A positive or negative control of a criterion: one change of its trials.
struct Control {
    std::string name;
    std::string description;
    /// Where the trials plant the fault at any size, TrialPlace::fault_of. Other faults are there or not: another rank,
    /// another rotation, another law of entries. Smaller ones occur in a fraction of the trials only.
    std::optional<FaultSize> size = {};
    /// Whether the number of each trial is linear in the size: smaller faults then need no trials of their own.
    bool linear = false;
    /// Whether no smaller fault makes sense, because nothing is drawn that it could occur in: the paper's tables.
    bool whole = false;
    /// All its trials of a size have one value by construction, up to rounding. (Criterion::reach of 0 for this
    /// control.)
    bool constant = false;
};
/// The same control where its trials are constant.
[[nodiscard]] inline Control with_equal_trials(Control control) {
    control.constant = true;
    return control;
}

/// The same control where no smaller fault makes sense.
[[nodiscard]] inline Control only_whole(Control control) {
    control.whole = true;
    return control;
}

/// The same control where the numbers of its trials are linear in the size of its fault.
[[nodiscard]] inline Control linear(Control control) {
    control.linear = true;
    return control;
}

/// The size of the trials of a criterion, the address of their random numbers, and the control that they run (empty:
/// none).
struct TrialPlace {
    std::size_t size = 0;
    std::string control;
    stream::StudySeed seed;
    std::string cell;
    double fault = 1.0;  ///< size of the control's fault as a part of the planted size

    [[nodiscard]] bool control_is(std::string_view name) const { return control == name; }
    /// The size of the fault of this control as a part of the planted size; 0 where the trials do not run it.
    [[nodiscard]] double fault_of(std::string_view name) const { return control == name ? fault : 0.0; }
};
/// Computes one number as a pure function of the replicate; called from several threads at once.
using Trial = std::function<double(std::uint64_t replicate)>;

struct SizePlan {
    std::size_t size = 0;
    std::uint64_t trials = 0;
};

/// A form of a statement that can be tested numerically.
struct Criterion {
    Form form = Form::printed;
    std::string name;  ///< unique in its claim; part of the address of its random numbers
    std::string measures;
    Summary summary = Summary::mean;
    std::function<Trial(const TrialPlace&)> prepare;
    /// For slopes it is called with size 0.
    std::function<AcceptanceRegion(std::size_t size)> region;
    std::vector<SizePlan> quick;  ///< empty: the criterion belongs to the full tier only
    std::vector<SizePlan> full;   ///< empty: the same as quick
    /// Violations that must fail with the same trials, sample sizes and acceptance region.
    std::vector<Control> negative_controls = {};
    /// For a printed form that is refuted: changes that make the statement true, so that they must pass.
    std::vector<Control> positive_controls = {};
    /// For `mean`, where all trials have one value, up to rounding: the most that the mean of trials with other values
    /// can be from it. 0: there are none, because nothing is random or it all cancels. Infinite: nothing is known, so
    /// that equal trials are inconclusive.
    double reach = std::numeric_limits<double>::infinity();
    double level = 0.95;                                               ///< level of the quantile for `growth`
    std::function<double(double)> (*law)(std::size_t size) = nullptr;  ///< law that `distance` compares with
};

enum class PrintedVerdict { none, holds, refuted, inconclusive, vacuous };
[[nodiscard]] std::string_view name_of(PrintedVerdict verdict);

/// What the verdict on a printed statement means to a reader.
enum class ClaimKind {
    untrue,       ///< false as mathematics, under hypotheses of its source
    finite_size,  ///< refuted at the sizes measured, where the source speaks of a limit
    misprint,     ///< a slip that nothing else in the source uses
    overstated,   ///< true in a weaker form
    vacuous,      ///< what plainly violates it satisfies it too
    holds,
    does_not_transfer,  ///< not so on this dump, which the source does not speak of
    ambiguous,          ///< refuted in one reading, not in another
};

/// A claim in words for a reader who will use the method, with the number that decides it.
struct PlainWords {
    std::string says;       ///< a sentence without symbols
    std::string number;     ///< what the number is
    std::string criterion;  ///< whose deciding finding is that number
};

/// A statement of the theory with its criteria.
struct Claim {
    std::string id;
    std::string place;      ///< location in the paper or the literature
    std::string statement;  ///< the printed statement, paraphrased
    PlainWords plain = {};
    std::string corrected;  ///< the statement that holds instead or in addition; may be empty
    /// The verdict of the full tier on the printed form; any other conclusive verdict is a failure. None: every verdict
    /// is accepted.
    PrintedVerdict expected_verdict = PrintedVerdict::holds;
    /// What a refutation of the printed form means: untrue, finite_size, misprint, overstated, does_not_transfer or
    /// ambiguous. Stated where one is expected, and for dumps.
    std::optional<ClaimKind> refuted_as = {};
    std::string note = {};  ///< what the verdict does not say: hypotheses, sizes, other readings; may be empty
    std::string on = {};    ///< the dump whose blocks are judged; empty: simulated blocks
    std::vector<Criterion> criteria = {};
    std::optional<StudyForm> in_study = {};
};

/// The description of a claim in the table of claims.
[[nodiscard]] RegistryEntry entry_of(const Claim& claim);
[[nodiscard]] const Registry<Claim>& claims();
struct OpenDumps;
/// A part of a claim that a dump may lack.
struct PartOnDump {
    std::string_view criteria;  ///< with which the names of its criteria begin
    std::string_view side;      ///< of the dump: key or value
    std::string_view what, why_untested;
};
/// A claim that can be judged on the blocks and heads of a dump.
struct ClaimAboutBlocks {
    std::string_view id;
    std::string_view needs;   ///< what a dump must have for it
    std::string_view random;  ///< what its errors are over
    std::span<const PartOnDump> parts;
};
inline constexpr PartOnDump keys_and_values[] = {{"keys", "key", "the keys", "there are none, or all are zero"},
                                                 {"values", "value", "the values", "there are none, or all are zero"}};
inline constexpr PartOnDump rotated_keys[] = {
    {"rotation", "key", "the rotary embedding", "the file does not say how its keys were rotated"}};
inline constexpr ClaimAboutBlocks claims_about_blocks[] = {
    {"one-bit-saved", "blocks", "rotations", keys_and_values},
    {"adaptive-rank", "blocks", "rotations", keys_and_values},
    {"rope.cost", "keys", "random orders of the tokens", rotated_keys},
    {"spectrum.gain", "heads of 512 tokens", "rotations", keys_and_values}};
/// These claims for each of the dumps, whose titles are Claim::on, in blocks of so many tokens. A claim is left out
/// where the dump has no blocks for it; a side that is all zero decides nothing. A verdict holds for that dump only,
/// not for others of its kind.
[[nodiscard]] std::vector<Claim> claims_on_dumps(const std::shared_ptr<const OpenDumps>& open,
                                                 const std::vector<std::string>& titles, std::size_t block_tokens);
/// The titles of dumps, from their names (OpenDumps::name_of): file names, or the whole name where two are equal.
[[nodiscard]] std::vector<std::string> dump_titles(const std::vector<std::string>& names);
/// Returns null when no claim has this id; does not throw.
[[nodiscard]] const Claim* find_claim(std::string_view id);

}  // namespace spiked::validation

template <>
struct spiked::EnumNames<spiked::validation::Summary> {
    using Summary = spiked::validation::Summary;
    static constexpr EnumName<Summary> table[] = {
        {Summary::mean, "mean"},     {Summary::share, "share"},       {Summary::rate, "rate"},
        {Summary::growth, "growth"}, {Summary::distance, "distance"},
    };
};

template <>
struct spiked::EnumNames<spiked::validation::PrintedVerdict> {
    using Verdict = spiked::validation::PrintedVerdict;
    static constexpr EnumName<Verdict> table[] = {
        {Verdict::none, "none"},       {Verdict::holds, "holds"},
        {Verdict::refuted, "refuted"}, {Verdict::inconclusive, "inconclusive"},
        {Verdict::vacuous, "vacuous"},
    };
};

template <>
struct spiked::EnumNames<spiked::validation::ClaimKind> {
    using Kind = spiked::validation::ClaimKind;
    static constexpr EnumName<Kind> table[] = {
        {Kind::untrue, "false"},
        {Kind::finite_size, "finite-size"},
        {Kind::misprint, "misprint"},
        {Kind::overstated, "overstated"},
        {Kind::vacuous, "vacuous"},
        {Kind::ambiguous, "ambiguous"},
        {Kind::does_not_transfer, "does-not-transfer"},
        {Kind::holds, "holds"},
    };
};

#include "reports/verdicts/claim_summary.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>

#include "reports/tables/claim_report.hpp"
#include "reports/tables/text_table.hpp"

namespace spiked::reports {
namespace {

using validation::ClaimKind;
using validation::ClaimOutcome;
using validation::CriterionOutcome;
using validation::Finding;
using validation::Form;
using validation::Validation;

std::string_view title_of(std::optional<ClaimKind> kind) {
    if (!kind) return "Undecided in this run";
    switch (*kind) {
        case ClaimKind::untrue:
            return "False as mathematics";
        case ClaimKind::finite_size:
            return "False at the sizes measured, where the paper speaks of a limit";
        case ClaimKind::misprint:
            return "Misprints";
        case ClaimKind::overstated:
            return "Overstated";
        case ClaimKind::vacuous:
            return "Vacuous: what plainly violates it satisfies it too";
        case ClaimKind::ambiguous:
            return "Ambiguous: false in one reading, true in another";
        case ClaimKind::does_not_transfer:
            return "Does not transfer";
        case ClaimKind::holds:
            return "Holds within the margin";
    }
    return "";
}

/// The criterion whose number stands for a claim: the one that its plain words name, or else a printed one that fails,
/// or else the first.
const CriterionOutcome& headline_of(const ClaimOutcome& claim) {
    const auto find = [&](auto test) { return std::find_if(claim.criteria.begin(), claim.criteria.end(), test); };
    auto found = find([&](const auto& one) { return one.criterion->name == claim.claim->plain.criterion; });
    if (found == claim.criteria.end())
        found = find([](const auto& one) {
            return one.criterion->form == Form::printed && one.outcome.verdict == validation::Verdict::fail;
        });
    return found == claim.criteria.end() ? claim.criteria.front() : *found;
}

std::string region_words(const validation::AcceptanceRegion& region) {
    if (std::isinf(region.low)) return fmt::format("at most {:.3g}", region.high);
    if (std::isinf(region.high)) return fmt::format("at least {:.3g}", region.low);
    return fmt::format("within {:.2g} of {:.3g}", region.margin, region.predicted);
}

std::string finding_value(const Finding& finding) {
    return with_error(finding.interval.estimate, finding.interval.error, 3);
}

std::string closest_words(const ClaimOutcome& claim) {
    std::vector<std::string> passing;
    for (const auto& one : claim.criteria)
        for (const auto& control : one.controls) {
            const bool printed = one.criterion->form == Form::printed;
            if (claim.kind() == ClaimKind::vacuous && printed && control.passes())
                passing.push_back(control.definition.description);
            if (claim.kind() != ClaimKind::vacuous && claim.closest_fault && passing.empty() &&
                control.definition.name == claim.closest_fault->fault &&
                one.criterion->name == claim.closest_fault->criterion)
                passing.push_back(claim.closest_fault->words);
        }
    return fmt::format("{}{}", claim.kind() == ClaimKind::vacuous ? "passes as a whole: " : "",
                       fmt::join(passing, "; "));
}

SummaryRow row_of(const ClaimOutcome& claim) {
    const CriterionOutcome& one = headline_of(claim);
    const Finding& finding = one.outcome.deciding();
    const auto& plain = claim.claim->plain;
    const bool named = one.criterion->name == plain.criterion;
    return {claim_title(claim), plain.says.empty() ? claim.claim->statement : plain.says,
            fmt::format("{}: {}{}", named ? plain.number : one.criterion->measures, finding_value(finding),
                        finding.size == 0 ? "" : fmt::format(" at d = {}", finding.size)),
            region_words(finding.region), closest_words(claim)};
}

/// One row for the same claim on all dumps, which names every dump with its numbers and its kind.
SummaryRow row_on_dumps(const std::string& id, const std::vector<const ClaimOutcome*>& claims) {
    std::vector<std::string> dumps;
    for (const auto* claim : claims) {
        std::vector<std::string> numbers;
        for (const auto& one : claim->criteria)
            if (one.criterion->form == Form::printed)
                numbers.push_back(fmt::format("{} {}", one.criterion->name, finding_value(one.outcome.deciding())));
        const auto kind = claim->kind();
        dumps.push_back(fmt::format("{} ({}): {}", std::filesystem::path(claim->claim->on).stem().string(),
                                    kind ? enum_name(*kind) : "undecided", fmt::join(numbers, ", ")));
    }
    const ClaimOutcome& first = *claims.front();
    return {id + " on dumps", first.claim->plain.says.empty() ? first.claim->statement : first.claim->plain.says,
            fmt::format("{}", fmt::join(dumps, "; ")), region_words(headline_of(first).outcome.deciding().region),
            first.claim->note};
}

std::vector<SummaryGroup> groups_of(const Validation& validation) {
    std::vector<SummaryGroup> groups;
    const auto add_group = [&](std::optional<ClaimKind> kind) {
        SummaryGroup group{std::string(title_of(kind)), {}};
        for (const auto& claim : validation.claims)
            if (claim.claim->on.empty() && claim.kind() == kind) group.rows.push_back(row_of(claim));
        if (!group.rows.empty()) groups.push_back(std::move(group));
    };
    for (const auto& kind : EnumNames<ClaimKind>::table) add_group(kind.value);
    add_group(std::nullopt);
    std::map<std::string, std::vector<const ClaimOutcome*>> on_dumps;
    for (const auto& claim : validation.claims)
        if (!claim.claim->on.empty()) on_dumps[claim.claim->id].push_back(&claim);
    SummaryGroup dumps{"On dumps: what does not hold there does not transfer to them, and refutes nothing about others",
                       {}};
    for (const auto& [id, claims] : on_dumps) dumps.rows.push_back(row_on_dumps(id, claims));
    if (!dumps.rows.empty()) groups.push_back(std::move(dumps));
    return groups;
}

/// Numbers of a run by claim and criterion; those of simulated blocks.
class Numbers {
public:
    explicit Numbers(const Validation& validation) : validation_(&validation) {}

    [[nodiscard]] const ClaimOutcome* claim(std::string_view id) const {
        for (const auto& one : validation_->claims)
            if (one.claim->on.empty() && one.claim->id == id) return &one;
        return nullptr;
    }
    [[nodiscard]] const CriterionOutcome* criterion(std::string_view id, std::string_view name) const {
        if (const auto* found = claim(id); found != nullptr)
            for (const auto& one : found->criteria)
                if (one.criterion->name == name) return &one;
        return nullptr;
    }

private:
    const Validation* validation_;
};

/// `66 % at d = 128 and 35 % at d = 256`, of number(finding).
template <class Number>
std::string at_all_sizes(const CriterionOutcome& one, Number number) {
    std::vector<std::string> all;
    for (const auto& finding : one.outcome.findings)
        all.push_back(fmt::format("{} at d = {}", number(finding), finding.size));
    return fmt::format("{}", fmt::join(all, " and "));
}
std::string as_percent(double share) {
    const double percent = 100.0 * share;
    return std::abs(percent) < 99.5 ? fmt::format("{:.2g} %", percent) : fmt::format("{:.0f} %", percent);
}
std::string share_of(const Finding& finding) { return as_percent(finding.interval.estimate); }
std::string share_without(const Finding& finding) { return as_percent(1.0 - finding.interval.estimate); }

std::string capitalised(std::string text) {
    if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
    return text;
}

using Losses = std::vector<SummaryLoss>;

void add_edge(Losses& losses, const Numbers& numbers) {
    const auto* edge = numbers.criterion("edge.estimator", "rate-coloured");
    if (edge == nullptr || edge->outcome.levels.empty()) return;
    std::vector<std::string> levels;
    for (const auto& level : edge->outcome.levels)
        levels.push_back(fmt::format("{} {} at d = {}", as_percent(std::abs(level.mean)),
                                     level.mean < 0.0 ? "too low" : "too high", level.size));
    losses.push_back({"The edge of the noise",
                      fmt::format("Under coloured noise the estimated edge is {}. It approaches the true one slowly.",
                                  fmt::join(levels, ", ")),
                      "edge.estimator, rate-coloured"});
}

void add_false_alarms(Losses& losses, const Numbers& numbers) {
    const auto* coloured = numbers.criterion("rank.false-alarm", "reference-coloured");
    const auto* literal = numbers.criterion("rank.false-alarm", "literal-coloured");
    if (coloured == nullptr || literal == nullptr) return;
    losses.push_back(
        {"False alarms",
         fmt::format("Fraction of blocks without signal, under coloured noise, in which the rank rule finds "
                     "one: {} in the reference reading, {} in the literal one.",
                     at_all_sizes(*coloured, share_without), at_all_sizes(*literal, share_without)),
         "rank.false-alarm, reference-coloured and literal-coloured"});
}

void add_weak_signals(Losses& losses, const Numbers& numbers) {
    const auto* gap = numbers.criterion("rank.consistency", "gap");
    if (gap == nullptr) return;
    losses.push_back(
        {"Weak signals: what alpha + d^(-1/6) means",
         fmt::format("A signal 1.5 d^(-1/3) above the threshold alpha stands out of the noise. The rank rule asks for "
                     "an eigenvalue above its edge by a factor of 1 + d^(-1/3), which takes a distance of about "
                     "d^(-1/6). Fraction of white blocks, with entries +1 and -1, in which it counts such a signal: "
                     "{}. It counts signals from about 1.54 thresholds on at d = 128 and from 1.41 at d = 512.",
                     at_all_sizes(*gap, share_of)),
         "rank.consistency, gap, and its note"});
}

void add_savings(Losses& losses, const Numbers& numbers, const Validation& validation) {
    const auto* keys = numbers.criterion("one-bit-saved", "keys");
    const auto* values = numbers.criterion("one-bit-saved", "values");
    if (keys == nullptr || values == nullptr) return;
    const auto number = [](const Finding& finding) { return fmt::format("{:.2f}", finding.interval.estimate); };
    std::map<std::string, std::pair<double, double>> on_dumps;  // least and most by side
    std::size_t dumps = 0;
    for (const auto& claim : validation.claims) {
        if (claim.claim->on.empty() || claim.claim->id != "one-bit-saved") continue;
        ++dumps;
        for (const auto& one : claim.criteria) {
            if (one.criterion->form != Form::printed) continue;
            const double saved = one.outcome.deciding().interval.estimate;
            const auto [range, fresh] = on_dumps.try_emplace(one.criterion->name, saved, saved);
            range->second = {std::min(range->second.first, saved), std::max(range->second.second, saved)};
        }
    }
    std::string text = fmt::format(
        "Bits an entry that eOptShrinkQ saves over TurboQuant, all stored bits counted, at the energies of the paper's "
        "tables: {} on keys, {} on values. {}.",
        at_all_sizes(*keys, number), at_all_sizes(*values, number),
        capitalised(numbers.claim("one-bit-saved")->claim->note));
    for (const auto& [side, range] : on_dumps)
        text +=
            fmt::format(" On the {} of {}: {:.2f} to {:.2f}.", side, counted(dumps, "dump"), range.first, range.second);
    losses.push_back({"Savings in bits", text, "one-bit-saved, keys and values, and its note"});
}

void add_sketch(Losses& losses, const Numbers& numbers) {
    const auto* decoded = numbers.criterion("tq-prod.bit-cost", "corrected");
    if (decoded == nullptr) return;
    losses.push_back(
        {"The bit of the sign sketch",
         fmt::format(
             "It removes the bias and costs squared error: a factor of {} against a third index bit.",
             at_all_sizes(*decoded,
                          [](const Finding& finding) { return fmt::format("{:.2g}", finding.interval.estimate); })),
         "tq-prod.bit-cost, corrected"});
}

void add_gaussian(Losses& losses, const Numbers& numbers) {
    const auto* peak = numbers.criterion("corollary.constant", "five-moments");
    const auto* shell = numbers.criterion("thin-shell", "variance");
    if (peak == nullptr || shell == nullptr) return;
    std::string text = fmt::format(
        "Entries are Gaussian unless a row says otherwise. With Student entries of 5 degrees of freedom, truncated "
        "as the paper assumes, the largest coordinate of a remaining row grows like d^{:.2f} over its printed bound.",
        peak->outcome.deciding().interval.estimate);
    for (const auto& control : shell->controls)
        if (control.definition.name == "heavy")
            text += fmt::format(" With Laplace entries the variance of row norms is {} above the Gaussian one.",
                                as_percent(control.outcome.deciding().interval.estimate));
    losses.push_back({"Gaussian only", text, "corollary.constant, five-moments; thin-shell, variance, control heavy"});
}

void add_rates(Losses& losses, const Validation& validation) {
    std::size_t exact = 0;
    std::size_t nominal = 0;
    for (const auto& claim : validation.claims)
        for (const auto& one : claim.criteria) {
            const std::size_t findings =
                one.outcome.findings.size() * (1 + one.controls.size() + one.positive_controls.size());
            (rate_of(one.criterion->summary) == validation::Rate::exact ? exact : nominal) += findings;
        }
    losses.push_back(
        {"Error rates",
         fmt::format(
             "The declared probability that any of the {} comparisons of the tier is wrong is {:g}. For the {} "
             "comparisons of fractions and distances in this run the rate is exact. For the {} of means and slopes it "
             "is nominal: at these rates a mean of 200 exponential values is wrong 1.2 times as often as stated, one "
             "of lognormal values 13 times.",
             validation.comparisons, validation.false_alarm, exact, nominal),
         "this run"});
}

void add_untested(Losses& losses, const Validation& validation) {
    std::size_t largest = 0;
    for (const auto& claim : validation.claims)
        for (const auto& one : claim.criteria) {
            for (const auto& finding : one.outcome.findings) largest = std::max(largest, finding.size);
            for (const auto& level : one.outcome.levels) largest = std::max(largest, level.size);
        }
    losses.push_back(
        {"What was not tested",
         fmt::format(
             "Sizes above d = {}; scores of language models (LongBench, needles); the caches of the paper's own "
             "models; noise with several bulk components, but for the threshold; covariances that are not separable; "
             "complex or missing entries; low-rank parts that depend on the noise.",
             largest),
         "the largest size of this run"});
}

std::string tier_sentence(const Validation& validation) {
    std::size_t left_out = 0;
    for (const auto& claim : validation.claims) left_out += claim.claim->criteria.size() - claim.criteria.size();
    return fmt::format("Tier {}: {}{}. The evidence for each line is in the report of the same command (-o).",
                       enum_name(validation.tier), counted(validation.claims.size(), "claim"),
                       left_out == 0 ? "" : fmt::format(", {} criteria are judged in the full tier only", left_out));
}

/// What the columns of page 1 say.
std::string reading() {
    return fmt::format(
        "Some statements are those of articles that the paper builds on; the report has the place of each. Measured "
        "is the number that decides, with the standard error of its last digits in brackets. Allowed is the margin "
        "within which the statement holds. The checks of each claim are repeated on the same trials with planted "
        "faults, and the last column has the largest fault that none of them would reject. Where the statement as "
        "printed fails, these are the checks of its corrected form, which is in the report. {}",
        noise_legend);
}

}  // namespace

ClaimSummary summary_of(const Validation& validation) {
    const Numbers numbers(validation);
    ClaimSummary summary{tier_sentence(validation), reading(), groups_of(validation), {}};
    add_edge(summary.losses, numbers);
    add_false_alarms(summary.losses, numbers);
    add_weak_signals(summary.losses, numbers);
    add_savings(summary.losses, numbers, validation);
    add_sketch(summary.losses, numbers);
    add_gaussian(summary.losses, numbers);
    add_rates(summary.losses, validation);
    add_untested(summary.losses, validation);
    return summary;
}

std::string summary_markdown(const ClaimSummary& summary, std::string_view origin) {
    std::string text = fmt::format("# {}\n\n{} {}\n\n{}\n", summary_title, origin, summary.tier, summary.reading);
    for (const auto& group : summary.groups) {
        text +=
            fmt::format("\n## {}\n\n| {} |\n|---|---|---|---|---|\n", group.title, fmt::join(summary_columns, " | "));
        for (const auto& row : group.rows)
            text += fmt::format("| `{}` | {} | {} | {} | {} |\n", row.claim, markdown_cell(row.says),
                                markdown_cell(row.measured), markdown_cell(row.allowed), markdown_cell(row.closest));
    }
    text += fmt::format("\n# {}\n\n", losses_title);
    for (const auto& loss : summary.losses)
        text += fmt::format("- **{}.** {} *({})*\n", loss.title, loss.text, loss.source);
    return text;
}

}  // namespace spiked::reports

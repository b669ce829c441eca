#include "reports/tables/claim_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/text/markup.hpp"
#include "reports/tables/text_table.hpp"

namespace spiked::reports {
namespace {

using validation::AcceptanceRegion;
using validation::ClaimOutcome;
using validation::ClosestFault;
using validation::ControlOutcome;
using validation::CriterionOutcome;
using validation::Finding;
using validation::Validation;

/// `0 +- 0.03`, `<= 0.05`, `>= 0.95`.
std::string region_text(const AcceptanceRegion& region) {
    if (std::isinf(region.low)) return fmt::format("<= {:.4g}", region.high);
    if (std::isinf(region.high)) return fmt::format(">= {:.4g}", region.low);
    return fmt::format("{:.4g} +- {:.2g}", region.predicted, region.margin);
}

/// `2/3`: negative controls that fail, of all of a claim.
std::string failing_controls(const ClaimOutcome& claim) {
    std::size_t fails = 0;
    std::size_t all = 0;
    for (const auto& one : claim.criteria)
        for (const auto& control : one.controls) {
            ++all;
            fails += control.fails() ? 1 : 0;
        }
    return all == 0 ? "" : fmt::format("{}/{}", fails, all);
}

std::string_view verdict_text(validation::Verdict verdict) {
    using validation::Verdict;
    return verdict == Verdict::pass ? "holds" : verdict == Verdict::fail ? "refuted" : "open";
}

std::string at_size(const Finding& finding) {
    return finding.size == 0 ? "all sizes" : fmt::format("d = {}", finding.size);
}

Json finding_json(const Finding& finding, validation::Rate rate) {
    return Json::object({{"size", finding.size == 0 ? Json() : Json(finding.size)},
                         {"estimate", finding.interval.estimate},
                         {"mcse", finding.interval.error},
                         {"low", finding.interval.low},
                         {"high", finding.interval.high},
                         {"trials", static_cast<std::int64_t>(finding.interval.count)},
                         {"predicted", finding.region.predicted},
                         {"margin", finding.region.margin},
                         {"allowed_low", finding.region.low},
                         {"allowed_high", finding.region.high},
                         {"detectable", finding.detectable},
                         {"rate", name_of(rate)},
                         {"verdict", name_of(finding.verdict)}});
}

Json closest_json(const std::optional<ClosestFault>& found) {
    if (!found) return {};
    return Json::object({{"fault", found->fault},
                         {"criterion", found->criterion},
                         {"size", found->passes},
                         {"detected_from", found->fails},
                         {"unit", found->unit},
                         {"words", found->words}});
}

/// `d = 64: 0.29 (mean -0.28), d = 128: 0.23 (mean -0.22)`: what a slope is fitted to.
std::string levels_text(const CriterionOutcome& one) {
    std::vector<std::string> levels;
    for (const auto& at : one.outcome.levels)
        levels.push_back(fmt::format("d = {}: {:.2g} (mean {:.2g})", at.size, at.level, at.mean));
    return fmt::format("{}", fmt::join(levels, ", "));
}
std::string level_name(const CriterionOutcome& one) {
    return one.criterion->summary == validation::Summary::growth ? fmt::format("{} quantile", one.criterion->level)
                                                                 : "root mean square";
}

Json control_json(const ControlOutcome& control) {
    const Finding& finding = control.outcome.deciding();
    return Json::object({{"name", control.definition.name},
                         {"fault", control.definition.description},
                         {"fails", control.fails()},
                         {"size", finding.size == 0 ? Json() : Json(finding.size)},
                         {"closest", closest_json(control.closest)},
                         {"deviation", std::abs(finding.interval.estimate - finding.region.predicted)},
                         {"estimate", finding.interval.estimate},
                         {"mcse", finding.interval.error}});
}

/// Calls add_row(change, finding) for each finding of a criterion, then for the deciding finding of each negative and
/// positive control, where `change` describes the control.
template <class AddRow>
void for_each_finding(const CriterionOutcome& one, const AddRow& add_row) {
    for (const auto& finding : one.outcome.findings) add_row("", finding);
    const auto add_controls = [&](std::string_view kind, const std::vector<ControlOutcome>& all) {
        for (const auto& each : all)
            add_row(
                fmt::format("{} {}: {}{}", kind, each.definition.name, each.definition.description,
                            each.closest ? fmt::format(" (largest that does not fail: {})", each.closest->words) : ""),
                each.outcome.deciding());
    };
    add_controls("control", one.controls);
    add_controls("positive control", one.positive_controls);
}

/// The statements of a claim, and the deciding number of each criterion and control.
std::string evidence_text(const ClaimOutcome& claim) {
    std::string text = fmt::format("printed: {}\n", claim.claim->statement);
    if (!claim.claim->corrected.empty()) text += fmt::format("corrected: {}\n", claim.claim->corrected);
    const auto line = [&](const std::string& of, const validation::Outcome& outcome) {
        const Finding& finding = outcome.deciding();
        text += fmt::format("{}, {}: {} against {}: {}\n", of, at_size(finding),
                            with_error(finding.interval.estimate, finding.interval.error), region_text(finding.region),
                            verdict_text(outcome.verdict));
    };
    for (const auto& one : claim.criteria) {
        line(fmt::format("{} {}", name_of(one.criterion->form), one.criterion->name), one.outcome);
        for (const auto& each : one.controls) line(fmt::format("control {}", each.definition.name), each.outcome);
        for (const auto& each : one.positive_controls)
            line(fmt::format("positive control {}", each.definition.name), each.outcome);
    }
    return text;
}

}  // namespace

std::string claims_text(const Validation& validation, bool details) {
    TextTable table({"claim", "printed", "corrected", "kind", "measured", "allowed", "detectable", "controls",
                     "closest fault that passes"},
                    4);
    table.align_left(8);
    std::string notes;
    for (const auto& claim : validation.claims) {
        const CriterionOutcome& shown = claim.shown();
        const Finding& finding = shown.outcome.deciding();
        table.add({claim_title(claim), std::string(name_of(claim.printed)), std::string(name_of(claim.corrected)),
                   std::string(claim_kind(claim)), with_error(finding.interval.estimate, finding.interval.error),
                   region_text(finding.region), fmt::format("{:.2g}", finding.detectable), failing_controls(claim),
                   closest_fault_text(claim)});
        if (!claim.reason.empty())
            notes += fmt::format("{}: {}: {}\n", claim.failed ? "FAILED" : "open", claim_title(claim), claim.reason);
    }
    std::string text = table.text();
    if (details)
        for (const auto& claim : validation.claims) {
            text += fmt::format("\n{}  ({})\n  printed: {}\n", claim_title(claim), claim.claim->place,
                                claim.claim->statement);
            if (!claim.claim->corrected.empty()) text += fmt::format("  corrected: {}\n", claim.claim->corrected);
            if (!claim.claim->note.empty()) text += fmt::format("  note: {}\n", claim.claim->note);
            for (const auto& one : claim.criteria) {
                text += fmt::format("  {} {}: {}{}\n", name_of(one.criterion->form), one.criterion->name,
                                    one.criterion->measures, one.extended ? " (with more trials)" : "");
                for_each_finding(one, [&](const std::string& change, const Finding& finding) {
                    text += fmt::format(
                        "    {:<9} {:<13} {:>14}  {}  detectable {:.2g}{}\n", verdict_text(finding.verdict),
                        at_size(finding), with_error(finding.interval.estimate, finding.interval.error),
                        region_text(finding.region), finding.detectable, change.empty() ? "" : "  " + change);
                });
                if (!one.outcome.levels.empty())
                    text += fmt::format("    {} at {}\n", level_name(one), levels_text(one));
            }
        }
    text += "\n" + notes;
    const auto counts = counts_of(validation);
    text += fmt::format(
        "{}, {} tier: {} failed, {} open. False alarm {:g} for the tier, {}, exact for fractions and distances, "
        "nominal for means and slopes; controls: negative controls that fail, of all.\n",
        counted(validation.claims.size(), "claim"), enum_name(validation.tier), counts.failed, counts.inconclusive,
        validation.false_alarm, counted(validation.comparisons, "comparison"));
    return text;
}

std::string stored_claims_text(const Validation& validation, bool details) {
    std::string text = claims_text(validation, details);
    if (validation.left_out > 0)
        text += fmt::format(
            "{} of this store {} not shown (their dumps, or some of their trials, are not there): see the command that "
            "made it\n",
            counted(validation.left_out, "more claim"), validation.left_out == 1 ? "is" : "are");
    if (validation.lacking > 0)
        text += lacking_cells(validation.lacking, "the store") +
                ": the command that made it draws those of its false-alarm rate\n";
    return text;
}

std::string lacking_cells(std::size_t count, std::string_view where) {
    return fmt::format("{} that these verdicts ask for, such as second analyses of undecided claims, {} not in {}",
                       counted(count, "cell"), count == 1 ? "is" : "are", where);
}

Json claims_json(const Validation& validation) {
    Json list = Json::array();
    for (const auto& claim : validation.claims) {
        const Finding& shown = claim.shown().outcome.deciding();
        Json controls = Json::array();
        Json criteria = Json::array();
        for (const auto& one : claim.criteria) {
            Json findings = Json::array();
            for (const auto& finding : one.outcome.findings)
                findings.push(finding_json(finding, rate_of(one.criterion->summary)));
            Json levels = Json::array();
            for (const auto& at : one.outcome.levels)
                levels.push(Json::object({{"size", at.size}, {"level", at.level}, {"mean", at.mean}}));
            Json own = Json::array();
            Json positive_controls = Json::array();
            for (const auto& each : one.positive_controls)
                positive_controls.push(control_json(each).set("passes", each.passes()));
            for (const auto& control : one.controls) {
                own.push(control_json(control));
                controls.push(control_json(control).set("criterion", one.criterion->name));
            }
            criteria.push(Json::object({{"name", one.criterion->name},
                                        {"form", name_of(one.criterion->form)},
                                        {"measures", one.criterion->measures},
                                        {"summary", name_of(one.criterion->summary)},
                                        {"verdict", name_of(one.outcome.verdict)},
                                        {"extended", one.extended},
                                        {"findings", std::move(findings)},
                                        {"levels", std::move(levels)},
                                        {"controls", std::move(own)},
                                        {"true_cases", std::move(positive_controls)}}));
        }
        list.push(Json::object(
            {{"id", claim.claim->id},
             {"on", claim.claim->on.empty() ? Json() : Json(claim.claim->on)},
             {"place", claim.claim->place},
             {"statement", claim.claim->statement},
             {"corrected_statement", claim.claim->corrected.empty() ? Json() : Json(claim.claim->corrected)},
             {"printed", name_of(claim.printed)},
             {"corrected", name_of(claim.corrected)},
             {"kind", claim.kind() ? Json(claim_kind(claim)) : Json()},
             {"note", claim.claim->note.empty() ? Json() : Json(claim.claim->note)},
             {"failed", claim.failed},
             {"reason", claim.reason.empty() ? Json() : Json(claim.reason)},
             {"estimate", shown.interval.estimate},
             {"mcse", shown.interval.error},
             {"predicted", shown.region.predicted},
             {"margin", shown.region.margin},
             {"detectable", shown.detectable},
             {"closest_passing_fault", closest_json(claim.closest_fault)},
             {"controls", std::move(controls)},
             {"criteria", std::move(criteria)}}));
    }
    return Json::object({{"schema", "spiked.validate/1"},
                         {"tier", enum_name(validation.tier)},
                         {"seed", validation.seed.text()},
                         {"false_alarm", validation.false_alarm},
                         {"comparisons", validation.comparisons},
                         {"claims", std::move(list)}});
}

std::string claims_junit(const Validation& validation, const std::vector<std::string>& without_verdict) {
    std::string cases;
    for (const auto& claim : validation.claims) {
        cases += fmt::format("  <testcase classname=\"claims\" name=\"{}\">", escape(claim_title(claim)));
        const Finding& finding = claim.shown().outcome.deciding();
        const std::string message = fmt::format(
            "printed {}, corrected {}: {}; measured {} against {}", name_of(claim.printed), name_of(claim.corrected),
            claim.reason, with_error(finding.interval.estimate, finding.interval.error), region_text(finding.region));
        if (claim.failed || claim.open())
            cases += fmt::format("<{} message=\"{}\"/>", claim.failed ? "failure" : "skipped", escape(message));
        cases += fmt::format("<system-out>{}</system-out></testcase>\n", escape(evidence_text(claim)));
    }
    for (const auto& title : without_verdict)
        cases += fmt::format(
            "  <testcase classname=\"claims\" name=\"{}\"><skipped message=\"the run ended before its trials were "
            "drawn\"/></testcase>\n",
            escape(title));
    const auto counts = counts_of(validation);
    return fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"spiked validate\" tests=\"{}\" "
        "failures=\"{}\" skipped=\"{}\">\n{}</testsuite>\n",
        validation.claims.size() + without_verdict.size(), counts.failed, counts.inconclusive + without_verdict.size(),
        cases);
}

std::string claim_title(const ClaimOutcome& claim) {
    return claim.claim->id + (claim.claim->on.empty() ? "" : " on " + claim.claim->on);
}

std::string closest_fault_text(const ClaimOutcome& claim) {
    if (!claim.closest_fault) return "";
    return claim.closest_fault->words;
}

std::string_view claim_kind(const ClaimOutcome& claim) {
    const auto kind = claim.kind();
    return kind ? enum_name(*kind) : std::string_view();
}

std::string_view corrected_verdict(const ClaimOutcome& claim) {
    return claim.corrected == validation::PrintedVerdict::none ? std::string_view() : name_of(claim.corrected);
}

std::vector<std::vector<std::string>> evidence_rows(const ClaimOutcome& claim) {
    std::vector<std::vector<std::string>> rows;
    for (const auto& one : claim.criteria) {
        bool first = true;
        for_each_finding(one, [&](const std::string& change, const Finding& finding) {
            rows.push_back({first ? std::string(name_of(one.criterion->form)) : "",
                            !change.empty() ? change
                            : first         ? one.criterion->measures
                                            : "",
                            at_size(finding), with_error(finding.interval.estimate, finding.interval.error),
                            region_text(finding.region), fmt::format("{:.2g}", finding.detectable),
                            std::string(verdict_text(finding.verdict))});
            first = false;
        });
        if (!one.outcome.levels.empty())
            rows.push_back({"", level_name(one) + " at each size", levels_text(one), "", "", "", ""});
    }
    return rows;
}

std::string markdown_cell(std::string_view text) {
    std::string escaped;
    for (const char c : text) {
        if (c == '|') escaped += '\\';
        escaped += c;
    }
    return escaped;
}

std::string claims_markdown(const Validation& validation, std::string_view origin) {
    std::string text = fmt::format(
        "# The paper, statement by statement\n\n{}\n\n| claim | kind | printed | corrected | statement "
        "|\n|---|---|---|---|---|\n",
        origin);
    for (const auto& claim : validation.claims)
        text += fmt::format("| `{}` | {} | {} | {} | {} |\n", claim_title(claim), claim_kind(claim),
                            name_of(claim.printed), corrected_verdict(claim), markdown_cell(claim.claim->statement));
    text += "\n";
    for (const auto& [word, meaning] : claims_legend(validation)) text += fmt::format("- **{}**: {}\n", word, meaning);
    for (const auto& claim : validation.claims) {
        text += fmt::format("\n## {}\n\n**{}**: {}. *{}.*\n", claim_title(claim), name_of(claim.printed),
                            claim.claim->statement, claim.claim->place);
        if (!claim.claim->corrected.empty())
            text += fmt::format("\n**Corrected, {}**: {}.\n", name_of(claim.corrected), claim.claim->corrected);
        if (!claim.claim->note.empty()) text += fmt::format("\n**Note**: {}.\n", claim.claim->note);
        if (claim.closest_fault)
            text += fmt::format("\n**Largest fault that would not fail**: {}.\n", closest_fault_text(claim));
        text +=
            "\n| form | measured | where | value | allowed | detectable | verdict |\n|---|---|---|---|---|---|---|\n";
        for (const auto& cells : evidence_rows(claim)) {
            for (const auto& cell : cells) text += fmt::format("| {} ", markdown_cell(cell));
            text += "|\n";
        }
    }
    return text;
}

std::string selftest_text(const validation::Selftest& selftest) {
    TextTable defects({"planted defect", "claim", "measured", "allowed", "caught"}, 2);
    for (const auto& one : selftest.defects)
        defects.add({one.defect.name, one.defect.claim,
                     with_error(one.finding.interval.estimate, one.finding.interval.error),
                     region_text(one.finding.region),
                     one.caught   ? "yes"
                     : one.intact ? "NO"
                                  : "NO: refuted without it too"});
    TextTable calibrations({"calibration", "with a defect", "p", "p with defect", "passed"}, 2);
    for (const auto& one : selftest.calibrations)
        calibrations.add({one.name + ": " + one.measures, one.control, fmt::format("{:.2g}", one.p_value),
                          fmt::format("{:.2g}", one.control_p_value),
                          one.passed && one.control_rejected ? "yes" : "NO"});
    return fmt::format("{}\n{}\n{} of {} defects caught; {}.\n", defects.text(), calibrations.text(), selftest.caught(),
                       selftest.defects.size(), selftest.passed() ? "the self-test passed" : "the self-test FAILED");
}

Json selftest_json(const validation::Selftest& selftest) {
    Json defects = Json::array();
    for (const auto& one : selftest.defects)
        defects.push(Json::object({{"name", one.defect.name},
                                   {"claim", one.defect.claim},
                                   {"criterion", one.defect.criterion},
                                   {"estimate", one.finding.interval.estimate},
                                   {"mcse", one.finding.interval.error},
                                   {"predicted", one.finding.region.predicted},
                                   {"margin", one.finding.region.margin},
                                   {"caught", one.caught},
                                   {"intact", one.intact}}));
    Json calibrations = Json::array();
    for (const auto& one : selftest.calibrations)
        calibrations.push(Json::object({{"name", one.name},
                                        {"measures", one.measures},
                                        {"p_value", one.p_value},
                                        {"passed", one.passed},
                                        {"control", one.control},
                                        {"control_p_value", one.control_p_value},
                                        {"control_refused", one.control_rejected}}));
    return Json::object({{"schema", "spiked.selftest/1"},
                         {"defects", selftest.defects.size()},
                         {"caught", selftest.caught()},
                         {"passed", selftest.passed()},
                         {"rows", std::move(defects)},
                         {"calibrations", std::move(calibrations)}});
}

}  // namespace spiked::reports

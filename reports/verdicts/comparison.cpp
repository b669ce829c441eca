#include "reports/verdicts/comparison.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <utility>
#include <vector>

#include "core/text/printable.hpp"
#include "reports/tables/claim_report.hpp"
#include "reports/tables/store_queries.hpp"
#include "reports/tables/text_table.hpp"

namespace spiked::reports {
namespace {

using validation::ClaimComparison;
using validation::ClaimOutcome;
using validation::ComparedClaim;
using validation::ComparedVerdict;
using validation::Finding;
using validation::StoreComparison;
using validation::Validation;
using validation::VerdictComparison;

/// `refuted, corrected holds`, with `FAILED` in front where that is not expected.
std::string verdicts_of(const ClaimOutcome& claim) {
    std::string text(name_of(claim.printed));
    if (claim.corrected != validation::PrintedVerdict::none)
        text = (claim.printed == validation::PrintedVerdict::none ? "" : text + ", ") + "corrected " +
               std::string(name_of(claim.corrected));
    return claim.failed ? "FAILED: " + text : text;
}

std::string estimate_of(const Finding* finding) {
    return finding == nullptr ? "-" : with_error(finding->interval.estimate, finding->interval.error);
}

std::size_t size_of(const ComparedClaim& one) { return (one.finding_a ? one.finding_a : one.finding_b)->size; }

std::string claims_table(const ClaimComparison& found) {
    TextTable table({"claim", "verdict a", "verdict b", "compared", "a", "b", "means that differ"}, 4);
    for (const ComparedClaim& one : found.claims)
        table.add({claim_title(*one.a), verdicts_of(*one.a), one.same_verdicts() ? "the same" : verdicts_of(*one.b),
                   fmt::format("{}, {}", one.shown->criterion->name,
                               size_of(one) == 0 ? "all sizes" : fmt::format("d = {}", size_of(one))),
                   estimate_of(one.finding_a), estimate_of(one.finding_b),
                   fmt::format("{} of {}", one.beyond, one.compared)});
    return table.text();
}

std::vector<std::string> titles_of(const std::vector<const ClaimOutcome*>& claims) {
    std::vector<std::string> titles;
    for (const ClaimOutcome* one : claims) titles.push_back(claim_title(*one));
    return titles;
}

/// Notes on settings that make the verdicts of two stores of claims differ although no number does.
std::string notes_on(const ClaimComparison& found, const ComparedNames& names) {
    std::string text;
    if (found.a.tier != found.b.tier)
        text += fmt::format("tiers differ ({}, {}): other sizes, and other numbers of trials\n",
                            enum_name(found.a.tier), enum_name(found.b.tier));
    if (found.a.false_alarm != found.b.false_alarm)
        text += fmt::format("each store is judged at its own false-alarm rate ({:g}, {:g})\n", found.a.false_alarm,
                            found.b.false_alarm);
    if (found.a.comparisons != found.b.comparisons)
        text += fmt::format("the rates are divided among {} and {} comparisons\n", found.a.comparisons,
                            found.b.comparisons);
    for (const auto& [name, of] : {std::pair{names.a, &found.a}, std::pair{names.b, &found.b}})
        if (of->lacking > 0)
            text += fmt::format(
                "{}: {} cells that its verdicts ask for are not in it, such as second analyses of undecided claims: "
                "the command that made it goes on with them\n",
                name, of->lacking);
    for (const auto& [name, only] : {std::pair{names.a, &found.only_a}, std::pair{names.b, &found.only_b}})
        if (!only->empty())
            text += one_line(fmt::format("judged only in {}: {}", name, fmt::join(titles_of(*only), ", "))) + "\n";
    return text;
}

Json verdicts_json(const ClaimOutcome& claim, const Finding* finding) {
    const auto number = [&](auto value) { return finding == nullptr ? Json() : Json(value(*finding)); };
    return Json::object({{"printed", name_of(claim.printed)},
                         {"corrected", name_of(claim.corrected)},
                         {"failed", claim.failed},
                         {"estimate", number([](const Finding& of) { return of.interval.estimate; })},
                         {"mcse", number([](const Finding& of) { return of.interval.error; })},
                         {"trials", number([](const Finding& of) { return std::size_t{of.interval.count}; })}});
}

Json claims_compared_json(const ClaimComparison& found) {
    Json rows = Json::array();
    for (const ComparedClaim& one : found.claims)
        rows.push(Json::object({{"id", one.a->claim->id},
                                {"on", one.a->claim->on.empty() ? Json() : Json(one.a->claim->on)},
                                {"same_verdicts", one.same_verdicts()},
                                {"criterion", one.shown->criterion->name},
                                {"size", size_of(one) == 0 ? Json() : Json(size_of(one))},
                                {"a", verdicts_json(*one.a, one.finding_a)},
                                {"b", verdicts_json(*one.b, one.finding_b)},
                                {"compared", one.compared},
                                {"beyond", one.beyond}}));
    const auto store = [](const Validation& of) {
        return Json::object({{"tier", enum_name(of.tier)},
                             {"false_alarm", of.false_alarm},
                             {"comparisons", of.comparisons},
                             {"lacking", of.lacking}});
    };
    return Json::object({{"a", store(found.a)},
                         {"b", store(found.b)},
                         {"other_verdicts", found.with_other_verdicts()},
                         {"rows", std::move(rows)},
                         {"only_a", titles_of(found.only_a)},
                         {"only_b", titles_of(found.only_b)}});
}

std::string stated_by(const ComparedVerdict::Side& side) {
    return std::isnan(side.expected) ? stated_region(side.allowed_low, side.allowed_high) : four_digits(side.expected);
}

/// The verdicts on checks and claims of studies that differ, or all of them; empty without any in either store.
std::string verdicts_text(const VerdictComparison& found, const ComparedNames& names, bool all) {
    TextTable table({"check", "cell", "method", "verdict a", "verdict b", "a", "b", "theory"}, 5);
    bool any = false;
    for (const ComparedVerdict& row : found.rows) {
        if (row.same() && !all) continue;
        any = true;
        const std::string of_a = stated_by(row.a);
        const std::string of_b = stated_by(row.b);
        table.add({row.k > 0 ? fmt::format("{} k={}", row.check, row.k) : row.check, row.cell, row.method,
                   row.a.verdict, row.b.verdict, with_error(row.a.estimate, row.a.standard_error),
                   with_error(row.b.estimate, row.b.standard_error), of_a == of_b ? of_a : of_a + ", " + of_b});
    }
    std::string text = any ? table.text() : "";
    if (!found.rows.empty())
        text += fmt::format("{} in both stores, {} differ\n", counted(found.rows.size(), "verdict"), found.others());
    for (const auto& [name, only] : {std::pair{names.a, found.only_a}, std::pair{names.b, found.only_b}})
        if (only > 0) text += fmt::format("only in {}: {}\n", name, counted(only, "verdict"));
    return text.empty() ? text : text + "\n";
}

Json compared_verdicts_json(const VerdictComparison& found) {
    const auto side = [](const ComparedVerdict::Side& of) {
        return Json::object({{"verdict", of.verdict},
                             {"estimate", of.estimate},
                             {"mcse", of.standard_error},
                             {"n", static_cast<std::int64_t>(of.count)},
                             {"expected", of.expected},
                             {"allowed_lo", of.allowed_low},
                             {"allowed_hi", of.allowed_high}});
    };
    Json rows = Json::array();
    for (const ComparedVerdict& row : found.rows)
        rows.push(Json::object({{"check", row.check},
                                {"cell", row.cell},
                                {"method", row.method},
                                {"metric", row.metric},
                                {"k", row.k},
                                {"same", row.same()},
                                {"a", side(row.a)},
                                {"b", side(row.b)}}));
    return Json::object(
        {{"others", found.others()}, {"only_a", found.only_a}, {"only_b", found.only_b}, {"rows", std::move(rows)}});
}

}  // namespace

std::string comparison_text(const StoreComparison& found, const ComparedNames& names, bool all) {
    TextTable table({"cell", "method", "metric", "k", "a", "b", "b - a", "over", "p"}, 3);
    std::size_t shown = 0;
    for (const auto& row : found.rows) {
        if (!row.beyond && !all) continue;
        ++shown;
        table.add({row.cell, row.method, row.metric, fmt::format("{}", row.k),
                   with_error(row.a.mean, row.a.standard_error), with_error(row.b.mean, row.b.standard_error),
                   with_error(row.difference, row.standard_error),
                   row.pairs > 0     ? fmt::format("{} pairs", row.pairs)
                   : row.batches > 0 ? fmt::format("{} batches", row.batches)
                                     : "means",
                   number(row.p, 2)});
    }
    std::string text = verdicts_text(found.verdicts, names, all);
    if (shown > 0) text += table.text();
    text += fmt::format(
        "{} means in both stores, {} differ beyond chance (nominal false-alarm rate {:g} for all of them together)\n",
        found.rows.size(), found.beyond, found.false_alarm);
    if (found.seed_a != found.seed_b)
        text += fmt::format("seeds differ ({}, {}): other draws, so that means are compared, not replicates\n",
                            one_line(found.seed_a), one_line(found.seed_b));
    if (found.cells_by_label > 0)
        text += fmt::format("{} cells have one label in both but differ in their model: other draws there, too\n",
                            found.cells_by_label);
    if (found.dependent_draws)
        text +=
            "blocks of one head or document depend on each other: within a cell errors and p-values are too small\n";
    if (found.batches_in_both > 0)
        text +=
            fmt::format("{} of {} batches with the same draws hold different numbers for a method of both stores{}\n",
                        found.batches_changed, found.batches_in_both,
                        found.first_changed.empty() ? "" : " (first: " + one_line(found.first_changed) + ")");
    for (const auto& [name, list] : {std::pair{names.a, &found.only_a}, std::pair{names.b, &found.only_b}})
        if (!list->empty())
            text += fmt::format("only in {}: {} means, first {}\n", name, list->size(), one_line(list->front()));
    return text;
}

std::string comparison_text(const ClaimComparison& found, const ComparedNames& names, bool all) {
    return fmt::format("{}{} in both stores, {} with other verdicts\n{}\n{}",
                       found.claims.empty() ? "" : claims_table(found) + "\n", counted(found.claims.size(), "claim"),
                       found.with_other_verdicts(), notes_on(found, names), comparison_text(found.means, names, all));
}

Json comparison_json(const StoreComparison& found) {
    return found.json().set("verdicts", compared_verdicts_json(found.verdicts)).set("claims", Json());
}

Json comparison_json(const ClaimComparison& found) {
    return comparison_json(found.means).set("claims", claims_compared_json(found));
}

}  // namespace spiked::reports

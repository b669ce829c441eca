#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/text/names.hpp"
#include "validation/claims/claims.hpp"
#include "validation/store/size_groups.hpp"
#include "validation/study/study_tables.hpp"

// [[check]] and [[claim]].
namespace spiked::validation {
namespace {

void read_margin(Section& section, Check& check, Diagnostics& diagnostics) {
    const toml::table* margin = section.table("margin", "{ rel = 0.05 }");
    if (margin == nullptr) return;
    Section inside(*margin, "margin", diagnostics);
    check.margin_absolute = inside.number("abs", 0.0, 0.0, 1e6);
    check.margin_relative = inside.number("rel", 0.0, 0.0, 1.0);
    const std::pair<const char*, double> rates[] = {
        {"1", 0.0}, {"n^-1/3", -1.0 / 3.0}, {"n^-1/2", -0.5}, {"n^-2/3", -2.0 / 3.0}, {"n^-1", -1.0}};
    std::vector<std::string> names;
    for (const auto& rate : rates) names.emplace_back(rate.first);
    const std::string chosen = inside.choice("rate", names.front(), names);
    for (const auto& [name, exponent] : rates)
        if (chosen == name) check.rate_exponent = exponent;
    inside.no_other_keys();
    if (check.margin_absolute + check.margin_relative <= 0.0)
        diagnostics.add(*margin, "a margin needs abs or rel above 0 (limits are never exactly true at finite size)");
}

void read_where(Section& section, Check& check, Diagnostics& diagnostics) {
    const toml::table* where = section.table("where", "{ n = { ge = 128 } }");
    if (where == nullptr) return;
    for (const auto& [factor, condition] : *where) {
        const std::string name(factor.str());
        if (const toml::table* comparisons = condition.as_table())
            for (const auto& [relation, number] : read_comparisons(*comparisons, diagnostics))
                check.where.push_back({name, relation, number, ""});
        else if (condition.is_number())
            check.where.push_back({name, Relation::equal, *condition.value<double>(), ""});
        else if (const auto text = condition.value_exact<std::string>())
            check.where.push_back({name, std::nullopt, 0.0, *text});
        else
            diagnostics.add(condition, "a condition is a number, a text or a table such as { ge = 1.2 }");
    }
}

/// Adds a check, whose name must be new.
void keep_check(Check check, const toml::table& table, const char* key, CheckTables& checks, Diagnostics& diagnostics) {
    reject_long_name(table, key, check.name, diagnostics);
    if (const toml::node* name = table.get(key); name != nullptr && check.name.empty())
        diagnostics.add(*name, fmt::format("\"{}\" is empty: give it a name", key));
    const auto first =
        std::find_if(checks.begin(), checks.end(), [&](const auto& other) { return other.first.name == check.name; });
    if (first != checks.end())
        diagnostics.add(table,
                        fmt::format("check \"{}\" is defined twice (first in line {}): give one of them another name",
                                    check.name, first->second->source().begin.line));
    checks.emplace_back(std::move(check), &table);
}

/// Largest size of a finite number that a claim compares with: sums and differences of two are finite too.
constexpr double largest_end = 1e300;

/// Reads what a claim of the study says of the mean, or of the exponent with which it changes: `equals` with a margin,
/// or `between` two numbers, one of which may be infinite.
void read_region(const toml::table& table, Section& section, OwnClaim& claim, Check& check, Diagnostics& diagnostics) {
    const toml::node* between = section.node("between");
    const toml::node* margin = section.node("margin");
    (void)section.node("equals");
    if ((between == nullptr) == (table.get("equals") == nullptr)) {
        diagnostics.add(table, "a claim says either equals = 0.5, with a margin, or between = [0.4, 0.6]");
        return;
    }
    if (between == nullptr) {
        section.require("margin", "margin = { abs = 0.02 }");
        claim.prediction.value = section.number("equals", 0.0, -largest_end, largest_end);
        read_margin(section, check, diagnostics);
        if (claim.prediction.value == 0.0 && check.margin_absolute == 0.0 && check.margin_relative > 0.0)
            diagnostics.add(*margin, "a fraction of 0 is a margin of 0: write margin = { abs = 0.02 }");
        if (!check.exponent_of.empty() && check.rate_exponent != 0.0)
            diagnostics.add(*table.get("margin"),
                            "the margin of an exponent is one number for all sizes: leave its rate out");
        return;
    }
    if (margin != nullptr)
        diagnostics.add(*margin,
                        "between has no margin (its two numbers are the ends of what is allowed): leave margin out, or "
                        "move the ends");
    const toml::array* ends = between->as_array();
    const auto end = [&](std::size_t i) {
        return ends == nullptr || ends->size() != 2 ? std::nullopt : (*ends)[i].value<double>();
    };
    if (!end(0) || !end(1) || !(*end(0) < *end(1))) {
        diagnostics.add(*between, "between is a list of two numbers, the smaller first: between = [0.4, 0.6]");
        return;
    }
    const AcceptanceRegion region = validation::between(*end(0), *end(1));
    const double reached = std::isfinite(region.low) ? region.low : region.high;
    if (!std::isfinite(reached))
        diagnostics.add(*between, "between allows every number: give it an end, as in between = [-inf, 0.3]");
    for (const double one : {region.low, region.high})
        if (std::isfinite(one) && std::abs(one) > largest_end)
            diagnostics.add(*between,
                            fmt::format("between: an end is a number from -{0} to {0}, or -inf or inf where the claim "
                                        "has no limit on that side",
                                        largest_end));
    // The deviation from a region with one end is measured by that of the control.
    const toml::node* control = table.get("control");
    if (control != nullptr && std::isinf(region.high - region.low) && claim.prediction.with_fault == reached)
        diagnostics.add(*control, "the control is the end of the region: give it a number outside");
    claim.prediction.region = region;
    claim.prediction.value = region.predicted;
}

}  // namespace

CheckTables read_checks(Section& root, Diagnostics& diagnostics) {
    CheckTables checks;
    each_table(root, "check", diagnostics, "[[check]]", [&](const toml::table& table) {
        Section section(table, "[[check]]", diagnostics);
        section.require("claim", "claim = \"overlap.left\"");
        section.require("margin", "margin = { abs = 0.02, rate = \"n^-1/2\" }");
        Check check;
        check.claim = section.text("claim", "");
        check.name = section.text("name", check.claim);
        const Claim* claim = find_claim(check.claim);
        if (table.get("claim") != nullptr && (claim == nullptr || !claim->in_study)) {
            std::vector<std::string> names;
            for (const auto& one : claims())
                if (one.in_study) names.push_back(one.id);
            diagnostics.add(
                *table.get("claim"),
                claim == nullptr
                    ? fmt::format("unknown claim \"{}\"{}", check.claim, suggestion(check.claim, names))
                    : fmt::format("claim \"{0}\" cannot be checked in a study (it has its own trials): judge it with "
                                  "spiked validate --claim {0}; studies check {1}",
                                  check.claim, fmt::join(names, ", ")));
        }
        read_margin(section, check, diagnostics);
        read_where(section, check, diagnostics);
        section.no_other_keys();
        keep_check(std::move(check), table, table.contains("name") ? "name" : "claim", checks, diagnostics);
    });
    return checks;
}

std::vector<OwnClaim> read_claims(Section& root, CheckTables& checks, Diagnostics& diagnostics) {
    std::vector<OwnClaim> found;
    each_table(root, "claim", diagnostics, "[[claim]]", [&](const toml::table& table) {
        Section section(table, "[[claim]]", diagnostics);
        section.require("id", "id = \"error\"");
        section.require("metric", "metric = \"relative_l2\"");
        section.require("control", "control = 0.9, the mean (or exponent) if the statement were false");
        OwnClaim claim;
        const std::string id = section.text("id", "");
        claim.text = {id, "this study", section.text("statement", id),
                      section.text("control_is", "the value of control")};
        const std::vector<std::string> names = metrics().names();
        claim.prediction.claim = id;
        claim.prediction.metric = section.choice("metric", names.front(), names);
        const Metric* metric = metrics().find(claim.prediction.metric);
        // Spikes count from 1; other metrics have none.
        const std::size_t first = metric != nullptr && (metric->measure.sample || metric->measure.component) ? 1 : 0;
        claim.prediction.k = static_cast<int>(section.count("k", first, first, first * 100000));
        claim.prediction.with_fault = section.number("control", 0.0, -largest_end, largest_end);
        claim.method = section.text("method", "sample");
        Check check{.name = id, .claim = id, .where = {}};
        check.exponent_of = section.text("exponent_of", "");
        read_region(table, section, claim, check, diagnostics);
        read_where(section, check, diagnostics);
        section.no_other_keys();
        if (claim.text.statement.size() > longest_statement)
            diagnostics.add(table, fmt::format("statement has {} bytes (at most {}): shorten it",
                                               claim.text.statement.size(), longest_statement));
        if (find_claim(id) != nullptr)
            diagnostics.add(table, fmt::format("id \"{}\" is that of a claim of the program: give it another", id));
        keep_check(std::move(check), table, "id", checks, diagnostics);
        found.push_back(std::move(claim));
    });
    return found;
}

void add_claims(const std::vector<OwnClaim>& claims, const CheckTables& checks, Experiment& experiment,
                Diagnostics& diagnostics) {
    for (const OwnClaim& claim : claims) {
        const auto& [check, table] = *std::find_if(checks.begin(), checks.end(),
                                                   [&](const auto& one) { return one.first.claim == claim.text.id; });
        std::vector<std::string> names;
        for (const auto& method : experiment.methods)
            if (metrics()[metric_index(claim.prediction.metric)].is_of(method.kind)) names.push_back(method.name);
        const auto method = std::find_if(experiment.methods.begin(), experiment.methods.end(),
                                         [&](const auto& one) { return one.name == claim.method; });
        if (std::find(names.begin(), names.end(), claim.method) == names.end()) {
            diagnostics.add(*table,
                            fmt::format("claim \"{}\": no method \"{}\" measures {} (methods that do: {})", check.name,
                                        claim.method, claim.prediction.metric, fmt::join(names, ", ")));
            continue;
        }
        const Metric& metric = metrics()[metric_index(claim.prediction.metric)];
        const double control = claim.prediction.with_fault;
        if (check.exponent_of.empty() && metric.unit == share_of_replicates && !(control >= 0.0 && control <= 1.0))
            experiment.notes.push_back(
                fmt::format("claim \"{}\": its control {:g} shows little, because {} lies between 0 and 1: name a "
                            "fraction that it would have if the statement were false",
                            check.name, control, metric.name));
        const auto lacks_component = [&, &check = check](const ExperimentCell& cell) {
            return check.applies_to(cell) && cell.components.value_or(static_cast<std::size_t>(claim.prediction.k)) <
                                                 static_cast<std::size_t>(claim.prediction.k);
        };
        const auto lacking = std::find_if(experiment.cells.begin(), experiment.cells.end(), lacks_component);
        if (lacking != experiment.cells.end()) {
            diagnostics.add(*table,
                            fmt::format("claim \"{}\": cell {} has no component {} (it has {}): give a smaller k, "
                                        "or leave the cell out with \"where\"",
                                        check.name, lacking->label, claim.prediction.k, *lacking->components));
            continue;
        }
        experiment.claims.push_back(claim.text);
        Prediction prediction = claim.prediction;
        prediction.method = static_cast<std::size_t>(method - experiment.methods.begin());
        for (auto& cell : experiment.cells)
            if (check.applies_to(cell)) cell.predictions.push_back(prediction);
    }
}

void check_conditions(const CheckTables& checks, const std::vector<std::string>& factors, Diagnostics& diagnostics) {
    for (const auto& [check, table] : checks) {
        if (!check.exponent_of.empty() && std::find(factors.begin(), factors.end(), check.exponent_of) == factors.end())
            diagnostics.add(*table->get("exponent_of"),
                            fmt::format("exponent_of: no cell has a factor \"{}\" (only what cells differ in is one){}",
                                        check.exponent_of, suggestion(check.exponent_of, factors)));
        if (const toml::table* where = (*table)["where"].as_table())
            for (const auto& [key, value] : *where)
                if (std::find(factors.begin(), factors.end(), key.str()) == factors.end())
                    diagnostics.add(
                        key.source(),
                        fmt::format("where: no cell has a factor \"{}\" (only what cells differ in is one){}",
                                    key.str(), suggestion(key.str(), factors)));
    }
}

namespace {

/// Notes what the theory does not know about the cells of a check: one note for each reason, with its first cell.
void note_caveats(const Check& check, Experiment& experiment) {
    struct Found {
        Caveat caveat;
        std::string first;
        std::size_t cells = 0;
    };
    std::vector<Found> all;
    for (const auto& cell : experiment.cells)
        for (const Caveat& caveat : cell.caveats) {
            if (caveat.claim != check.claim || !check.applies_to(cell)) continue;
            auto found = std::find_if(all.begin(), all.end(), [&](const Found& one) { return one.caveat == caveat; });
            if (found == all.end()) found = all.insert(all.end(), {caveat, cell.label});
            ++found->cells;
        }
    for (const auto& [caveat, first, cells] : all)
        experiment.notes.push_back(fmt::format(
            "{}{}: check \"{}\" {} ({}): {}", first,
            cells == 1 ? "" : fmt::format(" (and {} more of the cells)", cells - 1), check.name,
            caveat.judged ? "compares with the theory of Gaussian entries" : "leaves a strength out", caveat.why,
            caveat.judged ? "allow for their effect in the margin"
                          : "for a verdict take a strength farther from the threshold, or larger blocks"));
}

/// Rejects an exponent that no two sizes determine.
void reject_lone_sizes(const Check& check, const toml::table& table, const Experiment& experiment,
                       Diagnostics& diagnostics) {
    if (check.exponent_of.empty()) return;
    const auto groups = size_groups(check, experiment.cells);
    const auto lone = std::find_if(groups.begin(), groups.end(), [](const auto& group) { return group.size() < 2; });
    if (groups.empty() || lone != groups.end())
        diagnostics.add(
            table, fmt::format("claim \"{}\": an exponent of {} needs two or more of its values, positive numbers, in "
                               "cells that agree in everything else{}: add values to [sweep], or correct \"where\"",
                               check.name, check.exponent_of,
                               groups.empty() ? ""
                                              : fmt::format(" (cell {} has none beside it)",
                                                            experiment.cells[lone->front().cell].label)));
}

/// Why a check finds nothing to judge in the cells that it matches.
std::string nothing_to_judge(const Check& check, const Experiment& experiment) {
    for (const auto& cell : experiment.cells)
        for (const Caveat& caveat : cell.caveats)
            if (caveat.claim == check.claim && !caveat.judged && check.applies_to(cell)) return caveat.why;
    return "wrong side of the threshold, a component too close to one below the threshold, or its codec is missing";
}

}  // namespace

void add_checks(const CheckTables& checks, Experiment& experiment, Diagnostics& diagnostics) {
    constexpr std::size_t most_pairs = 1'000'000;  // each check is evaluated in each cell
    if (checks.size() * experiment.cells.size() > most_pairs) {
        diagnostics.add(*checks.front().second,
                        fmt::format("{} checks of {} cells are too many (at most {} pairs): split the "
                                    "study",
                                    checks.size(), experiment.cells.size(), most_pairs));
        return;
    }
    for (const auto& [check, table] : checks) {
        bool any = false;
        bool predicted = false;
        for (const auto& cell : experiment.cells) {
            const bool applies = check.applies_to(cell);
            any = any || applies;
            for (const auto& prediction : cell.predictions)
                predicted = predicted || (applies && prediction.claim == check.claim);
        }
        if (!any)
            diagnostics.add(*table, fmt::format("check \"{}\" matches no cell: correct its \"where\"", check.name));
        else if (!predicted)
            diagnostics.add(*table,
                            fmt::format("check \"{}\": the claim says nothing about the cells it matches ({}): correct "
                                        "its \"where\" or the study",
                                        check.name, nothing_to_judge(check, experiment)));
        if (any) reject_lone_sizes(check, *table, experiment, diagnostics);
        note_caveats(check, experiment);
        experiment.checks.push_back(check);
    }
}

}  // namespace spiked::validation

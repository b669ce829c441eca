#include "reports/tables/store_queries.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "reports/tables/metric_words.hpp"
#include "reports/tables/text_table.hpp"
#include "validation/store/experiment.hpp"

namespace spiked::reports {
namespace {

using validation::Database;
using validation::Statement;

using validation::Verdict;

int severity(Verdict verdict) { return verdict == Verdict::fail ? 0 : verdict == Verdict::inconclusive ? 1 : 2; }

/// The verdict that a store states. Other texts than those that are written decide nothing.
Verdict stored_verdict(const std::string& text) { return find_enum<Verdict>(text).value_or(Verdict::inconclusive); }

}  // namespace

std::string short_factor(const std::string& factor) {
    for (const std::string_view section : {"noise.", "signal."})
        if (factor.starts_with(section)) return factor.substr(section.size());
    return factor;
}

std::string short_numbers(const std::string& text) {
    constexpr std::size_t places = 6;  // numbers with at least as many decimal places are shortened
    const auto digits_end = [&](std::size_t from) {
        return std::min(text.find_first_not_of("0123456789", from), text.size());
    };
    std::string shorter;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t whole = digits_end(at);
        if (whole == at) {
            shorter += text[at++];
            continue;
        }
        const bool decimal = whole < text.size() && text[whole] == '.';
        const std::size_t end = decimal ? digits_end(whole + 1) : whole;
        const std::string number = text.substr(at, end - at);
        shorter +=
            decimal && end - whole - 1 >= places ? fmt::format("{:.4g}", to_number(number).value_or(0.0)) : number;
        at = end;
    }
    return shorter;
}

validation::Moments pooled_moments(Database& store, std::int64_t cell, std::int64_t method, std::int64_t metric,
                                   std::int64_t k) {
    Statement batch(store,
                    "SELECT n, mean, m2, m3, m4 FROM moment WHERE cell_id = ? AND method_id = ? AND metric_id = ? AND "
                    "k = ? AND n > 0 ORDER BY batch");
    batch.bind(1, cell).bind(2, method).bind(3, metric).bind(4, k);
    validation::Moments all;
    while (batch.step()) {
        validation::Moments one;
        one.count = static_cast<std::uint64_t>(batch.integer(0));
        one.mean = batch.real(1);
        one.m2 = batch.real(2);
        one.m3 = batch.real(3);
        one.m4 = batch.real(4);
        all.merge(one);
    }
    return all;
}

bool is_dump_study(Database& store) {
    Statement kind(store, "SELECT kind FROM study");
    return kind.step() && validation::of_dumps_or_models(kind.text(0));
}

std::string replicate_name(Database& store) {
    if (!is_dump_study(store)) return "replicate";
    // The cells of a model are its documents or prompts, which are also the clusters. The cells of a dump are heads.
    Statement whole(store,
                    "SELECT min(by.txt) FROM factor by JOIN factor side USING(cell_id) WHERE by.name = 'cluster_by' "
                    "AND side.name = 'side' AND side.txt = 'cache'");
    return whole.step() && !whole.is_null(0) ? whole.text(0) : "block";
}

std::string frontier_metric(Database& store) {
    const auto& known = frontier_metrics();
    Statement figure(store, "SELECT spec FROM figure WHERE kind = 'frontier' ORDER BY figure_id LIMIT 1");
    if (figure.step())
        if (auto y = text_of(Json::parse(figure.text(0), store.path() + ": table figure"), "y");
            std::find(known.begin(), known.end(), y) != known.end())
            return y;
    for (const auto& metric : known)
        if (has_means(store, metric)) return metric;
    return known.front();
}

bool has_means(Database& store, const std::string& metric) {
    Statement query(store, "SELECT 1 FROM moment JOIN metric USING(metric_id) WHERE name = ?1 AND n > 0 LIMIT 1");
    query.bind(1, metric);
    return query.step();
}

StudyRow read_study(Database& store) {
    Statement query(
        store,
        "SELECT name, title, kind, config_source, config_resolved, science_hash, seed, seed_source, false_alarm, "
        "backend, status, created_utc FROM study");
    if (!query.step())
        throw input_error("{}: the store holds no study (one row is expected): run the study again", store.path());
    return {query.text(0), query.text(1), query.text(2), query.text(3), query.text(4),  query.text(5),
            query.text(6), query.text(7), query.real(8), query.text(9), query.text(10), query.text(11)};
}

std::vector<CheckRow> read_checks(Database& store) {
    Statement query(store,
                    fmt::format("SELECT verdict_id, check_name, claim, cell_id, {}, me.name, metric, k, estimate, "
                                "mcse, expected, margin, lo, hi, detectable, v.n, needed, control_expected, "
                                "control_verdict, verdict, reason, allowed_lo, allowed_hi FROM verdict v LEFT JOIN "
                                "cell c USING(cell_id) LEFT JOIN method me USING(method_id) ORDER BY verdict_id",
                                judged_cell));
    std::vector<CheckRow> checks;
    while (query.step()) {
        CheckRow row;
        row.id = query.integer(0);
        row.check = query.text(1);
        row.claim = query.text(2);
        row.cell_id = query.integer(3);
        row.cell = query.text(4);
        row.method = query.text(5);
        row.metric = query.text(6);
        row.k = query.integer(7);
        row.estimate = query.real(8);
        row.standard_error = query.real(9);
        row.expected = query.real(10);
        row.margin = query.real(11);
        row.low = query.real(12);
        row.high = query.real(13);
        row.detectable = query.real(14);
        row.n = query.integer(15);
        row.needed = query.integer(16);
        row.control_expected = query.real(17);
        row.control = stored_verdict(query.text(18));
        row.verdict = stored_verdict(query.text(19));
        row.reason = query.text(20);
        row.allowed_low = query.real(21);
        row.allowed_high = query.real(22);
        checks.push_back(std::move(row));
    }
    std::stable_sort(checks.begin(), checks.end(), farther_off);
    return checks;
}

double CheckRow::unit() const {
    if (std::isinf(allowed_low)) return std::abs(control_expected - allowed_high);
    return std::isinf(allowed_high) ? std::abs(control_expected - allowed_low) : margin;
}

double CheckRow::margins_off(double number) const {
    const bool at_most = std::isinf(allowed_low);
    if (!at_most && !std::isinf(allowed_high)) return std::abs(number - 0.5 * (allowed_low + allowed_high)) / margin;
    const double off = 1.0 + (at_most ? number - allowed_high : allowed_low - number) / unit();
    return off < 0.0 ? 0.0 : off;
}

std::string_view control_text(Verdict control) {
    return control == Verdict::fail   ? "fails, as it should"
           : control == Verdict::pass ? "passes: no power"
                                      : "inconclusive";
}

std::string stated_region(double low, double high) {
    if (std::isinf(low)) return fmt::format("at most {:.4g}", high);
    return std::isinf(high) ? fmt::format("at least {:.4g}", low) : fmt::format("{:.4g} to {:.4g}", low, high);
}

std::string stated(const CheckRow& check) {
    return std::isnan(check.expected) ? stated_region(check.allowed_low, check.allowed_high)
                                      : four_digits(check.expected);
}

bool farther_off(const CheckRow& a, const CheckRow& b) {
    const auto sort_key = [](const CheckRow& row) {
        const double off = row.margins_off(row.estimate);
        return std::pair(severity(row.verdict), row.verdict == Verdict::pass || std::isnan(off) ? 0.0 : -off);
    };
    return sort_key(a) < sort_key(b);
}

validation::VerdictCounts count_checks(const std::vector<CheckRow>& checks) {
    validation::VerdictCounts counts;
    for (const auto& check : checks)
        ++(check.verdict == Verdict::pass   ? counts.passed
           : check.verdict == Verdict::fail ? counts.failed
                                            : counts.inconclusive);
    return counts;
}

std::string counts_text(const validation::VerdictCounts& counts) {
    return fmt::format("{} passed, {} failed, {} inconclusive", counts.passed, counts.failed, counts.inconclusive);
}

Json counts_json(const validation::VerdictCounts& counts) {
    return Json::object({{"passed", counts.passed}, {"failed", counts.failed}, {"inconclusive", counts.inconclusive}});
}

std::vector<CellRow> read_cells(Database& store) {
    std::vector<CellRow> cells;
    std::map<std::int64_t, std::size_t> position;
    Statement query(store, "SELECT cell_id, label, n, d FROM cell ORDER BY cell_id");
    while (query.step()) {
        position[query.integer(0)] = cells.size();
        cells.push_back({query.integer(0), query.text(1), query.integer(2), query.integer(3), {}});
    }
    Statement factors(store, "SELECT cell_id, name, num, txt FROM factor ORDER BY cell_id, name");
    while (factors.step())
        if (const auto found = position.find(factors.integer(0)); found != position.end())
            cells[found->second].factors[factors.text(1)] = {factors.real(2), factors.text(3)};
    return cells;
}

const CellRow* cell_of(const std::vector<CellRow>& cells, std::int64_t id) {
    const auto cell = std::ranges::lower_bound(cells, id, {}, &CellRow::id);
    return cell == cells.end() || cell->id != id ? nullptr : &*cell;
}

std::map<std::int64_t, std::string> short_names(const std::vector<CellRow>& cells) {
    std::map<std::int64_t, std::string> names;
    constexpr std::size_t most_factors = 16;      // limits the search; studies have fewer
    std::vector<std::string> factors = {"side"};  // first, because it tells keys from values
    for (const auto& cell : cells) {
        names[cell.id];
        for (const auto& [factor, value] : cell.factors)
            if (factors.size() < most_factors && std::find(factors.begin(), factors.end(), factor) == factors.end())
                factors.push_back(factor);
    }
    const auto extended = [&](const std::string& factor) {
        std::map<std::string, std::set<std::string>> values;  // by name of the cells that still have the same one
        for (const auto& cell : cells)
            if (const auto value = cell.factors.find(factor); value != cell.factors.end())
                values[names.at(cell.id)].insert(value->second.text);
        auto longer = names;
        for (const auto& cell : cells) {
            const auto value = cell.factors.find(factor);
            std::string& name = longer.at(cell.id);
            if (value == cell.factors.end() || values.at(name).size() < 2) continue;
            name += (name.empty() ? "" : ", ") +
                    (factor == "side" ? value->second.text + "s"
                                      : short_factor(factor) + " = " + short_numbers(value->second.text));
        }
        return longer;
    };
    const auto distinct = [](const std::map<std::int64_t, std::string>& name_of) {
        std::set<std::string> all;
        for (const auto& [id, name] : name_of) all.insert(name);
        return all.size();
    };
    for (;;) {
        auto best = names;
        for (const auto& factor : factors) {
            auto longer = extended(factor);
            if (distinct(longer) > distinct(best)) best = std::move(longer);
            if (factor == "side" && distinct(best) > distinct(names)) break;
        }
        if (distinct(best) == distinct(names)) return names;
        names = std::move(best);
    }
}

std::vector<std::int64_t> worst_cells(Database& store, const std::vector<CheckRow>& checks, std::size_t limit) {
    struct Badness {
        int severity = 3;
        double deviation = 0.0;
        double error = 0.0;
    };
    std::map<std::int64_t, Badness> cells;
    Statement query(
        store,
        "SELECT cell_id, worst FROM cell LEFT JOIN (SELECT cell_id, MAX(mean) AS worst FROM v_summary WHERE metric IN "
        "('relative_error', 'relative_l2') GROUP BY cell_id) USING(cell_id) ORDER BY cell_id");
    while (query.step()) cells[query.integer(0)].error = query.is_null(1) ? 0.0 : query.real(1);
    for (const auto& check : checks) {
        auto& cell = cells[check.cell_id];
        cell.severity = std::min(cell.severity, severity(check.verdict));
        const double deviation = check.margins_off(check.estimate);
        if (std::isfinite(deviation)) cell.deviation = std::max(cell.deviation, deviation);
    }
    std::vector<std::pair<std::int64_t, Badness>> order(cells.begin(), cells.end());
    std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
        return std::tuple(a.second.severity, -a.second.deviation, -a.second.error) <
               std::tuple(b.second.severity, -b.second.deviation, -b.second.error);
    });
    order.resize(std::min(order.size(), limit));
    std::vector<std::int64_t> ids;
    for (const auto& [id, badness] : order) ids.push_back(id);
    std::sort(ids.begin(), ids.end());
    return ids;
}

}  // namespace spiked::reports

#include "reports/tables/export.hpp"

#include <fmt/format.h>

#include <armadillo>
#include <cmath>
#include <filesystem>
#include <map>

#include "core/runtime/error.hpp"
#include "core/text/json.hpp"
#include "core/text/names.hpp"
#include "core/text/printable.hpp"
#include "reports/tables/claim_report.hpp"
#include "reports/tables/csv_text.hpp"
#include "reports/tables/latex.hpp"
#include "reports/tables/method_table.hpp"
#include "reports/tables/metric_words.hpp"
#include "reports/tables/store_queries.hpp"
#include "reports/tables/text_table.hpp"
#include "sim/io/npy.hpp"
#include "validation/verdicts/claim_study.hpp"

namespace spiked::reports {
namespace {

using validation::Database;
using validation::Statement;

const StoreTable& find_table(const std::string& name) {
    if (const StoreTable* table = store_tables().find(name)) return *table;
    throw usage_error("--table \"{}\" is not possible{}", name, suggestion(name, store_tables().names()));
}

std::string number_text(const Statement& row, int column) {
    return row.is_integer(column) ? std::to_string(row.integer(column)) : Json(row.real(column)).text();
}

std::string csv_field(const Statement& row, int column) {
    if (row.is_null(column)) return "";
    if (!row.is_text(column)) return number_text(row, column);
    return row.text(column);
}

std::string as_csv(Statement& row) {
    const auto line = [&](const auto& field) {
        std::vector<std::string> fields;
        for (int c = 0; c < row.columns(); ++c) fields.push_back(field(c));
        return csv_line(fields);
    };
    std::string text = line([&](int c) { return row.column_name(c); });
    while (row.step()) text += line([&](int c) { return csv_field(row, c); });
    return text;
}

Json as_json(Statement& row, const std::string& table) {
    Json rows = Json::array();
    while (row.step()) {
        Json line = Json::object();
        for (int c = 0; c < row.columns(); ++c) {
            Json value;
            if (row.is_integer(c))
                value = row.integer(c);
            else if (row.is_text(c))
                value = row.text(c);
            else if (!row.is_null(c))
                value = row.real(c);
            line.set(row.column_name(c), std::move(value));
        }
        rows.push(std::move(line));
    }
    return Json::object({{"schema", "spiked.export/1"}, {"table", table}, {"rows", std::move(rows)}});
}

/// The head of a column as it is printed. Not every replicate without a value has failed.
std::string head_of(const std::string& column) { return column == "failed" ? "no value" : column; }

/// The number of digits that a column is printed with.
int digits_of(const std::string& column) {
    return column == "num_err" || column == "detectable" ? 2 : column == "margin" ? 3 : 4;
}

/// A table as it is printed: a mean and its standard error are one column, and numbers have few digits.
struct PrintedTable {
    std::vector<std::string> header;
    std::vector<std::vector<std::string>> rows;
    std::vector<bool> numeric;  ///< columns without any text
};

/// The places of the columns that are read together; -1 where a table lacks one.
struct ColumnPlaces {
    int mean = -1;
    int error = -1;
    int metric = -1;  ///< what the numbers of a row measure
    int count = -1;

    explicit ColumnPlaces(const Statement& row) {
        for (int c = 0; c < row.columns(); ++c) {
            const std::string name = row.column_name(c);
            if (name == "mean" || name == "estimate") mean = c;
            if (name == "mcse") error = c;
            if (name == "metric" || name == "quantity") metric = c;
            if (name == "n") count = c;
        }
    }
    [[nodiscard]] double error_of(const Statement& row) const {
        if (error < 0) return std::nan("");
        if (metric < 0 || count < 0) return row.real(error);
        return shown_error(row.text(metric), row.real(mean), row.real(error), row.integer(count));
    }
};

PrintedTable printed_table(Statement& row) {
    PrintedTable result;
    const ColumnPlaces places(row);
    const auto joined = [&](int c) { return c == places.error && places.mean >= 0; };  // its column is that of the mean
    for (int c = 0; c < row.columns(); ++c)
        if (!joined(c)) result.header.push_back(head_of(row.column_name(c)));
    result.numeric.assign(result.header.size(), true);
    struct Real {
        std::size_t row;
        std::size_t column;
        std::string metric;
        double value;
    };
    std::vector<Real> reals;
    std::map<std::pair<std::size_t, std::string>, bool> counts;  // by column and metric: all its numbers are whole
    while (row.step()) {
        std::vector<std::string> cells;
        for (int c = 0; c < row.columns(); ++c) {
            if (joined(c)) continue;
            if (c == places.mean) {
                cells.push_back(with_error(row.real(c), places.error_of(row)));
            } else if (row.is_null(c)) {
                cells.emplace_back("-");
            } else if (row.is_text(c)) {
                result.numeric[cells.size()] = false;
                cells.push_back(row.text(c));
            } else if (row.is_integer(c)) {
                cells.push_back(std::to_string(row.integer(c)));
            } else {
                const std::string metric = places.metric < 0 ? "" : row.text(places.metric);
                reals.push_back({result.rows.size(), cells.size(), metric, row.real(c)});
                bool& whole = counts.try_emplace({cells.size(), metric}, true).first->second;
                whole = whole && row.real(c) == std::trunc(row.real(c));
                cells.emplace_back();
            }
        }
        result.rows.push_back(std::move(cells));
    }
    for (const auto& [at, column, metric, value] : reals)
        result.rows[at][column] =
            counts.at({column, metric}) ? number(value) : with_digits(value, digits_of(result.header[column]));
    return result;
}

std::string as_latex(const PrintedTable& table) {
    std::vector<std::string> header;
    for (const auto& name : table.header) header.push_back(latex_text(name));
    std::vector<std::vector<std::string>> rows;
    for (std::size_t r = 0; r < table.rows.size(); ++r) {
        auto& cells = rows.emplace_back();
        for (std::size_t c = 0; c < header.size(); ++c)
            cells.push_back(table.numeric[c] ? latex_number(table.rows[r][c]) : latex_text(table.rows[r][c]));
    }
    const std::string text = latex_table(header, table.numeric, rows);
    return fmt::format("% Needs {}. 0.7525(22): the standard error is 0.0022.\n", latex_packages(text)) + text;
}

/// A comment with the study and its science hash, so that a table in a paper can be traced.
std::string latex_origin(Database& store, const std::string& table) {
    Statement study(store, "SELECT name, science_hash FROM study");
    (void)study.step();
    return fmt::format("% Table {} of study {}, settings {}\n", table, one_line(study.text(0)),
                       one_line(study.text(1)));
}

Statement rows_of(Database& store, const std::string& query) {
    Statement rows(store, query);
    if (rows.parameters() > 0) rows.bind(1, quoted_for_shell(std::filesystem::absolute(store.path()).string()));
    return rows;
}

std::string as_text(const PrintedTable& table) {
    TextTable text(table.header, 3);
    for (std::size_t c = 0; c < table.numeric.size(); ++c)
        if (!table.numeric[c]) text.align_left(c);
    for (const auto& row : table.rows) text.add(row);
    return text.text();
}

}  // namespace

const Registry<StoreTable>& store_tables() {
    static const Registry<StoreTable> tables(
        "table of a store",
        {
            {"summary", "mean, standard deviation and standard error of every metric of every method and cell",
             "SELECT s.cell, s.method, s.metric, s.k, s.n, s.failed, s.mean, s.sd, s.mcse, s.lo, s.hi FROM v_summary s"
             " ORDER BY s.cell_id, s.method_id, s.metric_id, s.k",
             "k: the number of the component, 0: of the whole block. n: replicates with a value. no value: replicates "
             "that failed, and those in which there is nothing to measure, such as the strength of a component that "
             "was not found. sd: standard deviation. lo and hi: the smallest and the largest value."},
            {"methods", "a row for each method, a column for each metric, the best of each kind and bit width marked",
             ""},
            {"values", "every draw that was kept",
             "SELECT c.label AS cell, v.rep, me.name AS method, mt.name AS metric, v.k, v.v AS value, v.cell_id, "
             "v.method_id, v.metric_id FROM value v JOIN cell c USING(cell_id) JOIN method me USING(method_id) JOIN "
             "metric mt USING(metric_id) ORDER BY v.cell_id, v.rep, v.method_id, v.metric_id, v.k"},
            {"cells", "the design points",
             "SELECT cell_id, label, n, d, reps_least, reps_target, (SELECT coalesce(sum(reps), 0) FROM batch b WHERE "
             "b.cell_id = c.cell_id) AS reps, state, why, params FROM cell c ORDER BY cell_id"},
            {"failures", "replicates that failed, with the command that replays each",
             "SELECT c.label AS cell, f.rep, f.stage, f.code, f.message, 'spiked replay ' || ?1 || ' --cell ' || "
             "f.cell_id || ' --rep ' || f.rep AS replay FROM failure f JOIN cell c USING(cell_id) ORDER BY f.cell_id, "
             "f.rep"},
            {"bits", "stored bits an entry, by item",
             "SELECT c.label AS cell, m.name AS method, l.item, l.bits_per_entry FROM ledger l JOIN cell c "
             "USING(cell_id) JOIN method m USING(method_id) ORDER BY l.cell_id, l.method_id, l.item"},
            {"checks", "verdicts with margins and controls",
             fmt::format("SELECT v.check_name, v.claim, {} AS cell, m.name AS method, v.k, v.estimate, v.mcse, "
                         "v.expected, v.margin, v.lo, v.hi, v.detectable, v.n, v.verdict, v.control_expected, "
                         "v.control_verdict, v.reason, v.allowed_lo, v.allowed_hi, v.exponent_of FROM verdict v JOIN "
                         "cell c USING(cell_id) JOIN method m USING(method_id) ORDER BY v.verdict_id",
                         judged_cell),
             "estimate: the mean, with its standard error. lo and hi: the ends of its confidence interval. allowed_lo "
             "and allowed_hi: the region in which it must lie. detectable: the smallest deviation that would have "
             "failed with probability 0.99."},
            {"theory", "the theoretical values of each cell",
             "SELECT c.label AS cell, t.quantity, t.k, t.value, t.num_err, t.source FROM theory t JOIN cell c "
             "USING(cell_id) ORDER BY t.cell_id, t.quantity, t.k",
             "k: the number of the component. num_err: the numerical error of the value, where it is known."},
        });
    return tables;
}

static TableFormat table_format(const std::string& name) { return enum_named<TableFormat>(name, "format of tables"); }

static std::string legend_of(const std::string& table) {
    const StoreTable* known = store_tables().find(table);
    return known != nullptr && !known->legend.empty() ? "\n" + known->legend + "\n" : "";
}

static std::string formatted(Statement& rows, const std::string& table, TableFormat format) {
    switch (format) {
        case TableFormat::csv:
            return as_csv(rows);
        case TableFormat::json:
            return as_json(rows, table).text(2) + "\n";
        case TableFormat::latex:
            return as_latex(printed_table(rows));
        case TableFormat::text:
            return as_text(printed_table(rows)) + legend_of(table);
    }
    throw precondition_error("unknown format of a table");
}

std::string formatted(Statement& rows, const std::string& table, const std::string& format) {
    return formatted(rows, table, table_format(format));
}

namespace {

/// The table of checks of a store of claims: every comparison of every criterion and control.
std::string checks_of_claims(Database& store, const std::string& format, const std::vector<validation::Claim>& claims) {
    Database made(":memory:", Database::Mode::trusted);
    made.execute(
        "CREATE TABLE finding(claim TEXT, form TEXT, criterion TEXT, control TEXT, size INTEGER, estimate REAL, mcse "
        "REAL, lo REAL, hi REAL, allowed_lo REAL, allowed_hi REAL, detectable REAL, n INTEGER, verdict TEXT)");
    Statement insert(made, "INSERT INTO finding VALUES(?,?,?,nullif(?,''),nullif(?,0),?,?,?,?,?,?,?,?,?)");
    const auto number = [](double value) { return std::isfinite(value) ? value : std::nan(""); };
    for (const auto& claim : validation::stored_verdicts(store, claims).claims)
        for (const auto& one : claim.criteria) {
            const auto add = [&](const std::string& control, const validation::Outcome& outcome) {
                for (const auto& [size, interval, region, detectable, verdict] : outcome.findings)
                    insert.bind(1, claim_title(claim))
                        .bind(2, name_of(one.criterion->form))
                        .bind(3, one.criterion->name)
                        .bind(4, control)
                        .bind(5, size)
                        .bind_real(6, number(interval.estimate))
                        .bind_real(7, number(interval.error))
                        .bind_real(8, number(interval.low))
                        .bind_real(9, number(interval.high))
                        .bind_real(10, number(region.low))
                        .bind_real(11, number(region.high))
                        .bind_real(12, number(detectable))
                        .bind(13, static_cast<std::int64_t>(interval.count))
                        .bind(14, name_of(verdict))
                        .run();
            };
            add("", one.outcome);
            for (const auto* controls : {&one.controls, &one.positive_controls})
                for (const auto& control : *controls) add(control.definition.name, control.outcome);
        }
    Statement rows(made, "SELECT * FROM finding ORDER BY rowid");
    return formatted(rows, "checks", format);
}

}  // namespace

std::string export_table(Database& store, const std::string& table, const std::string& format,
                         const std::vector<std::string>& metrics, const std::vector<validation::Claim>& claims) {
    if (table == "checks" && validation::holds_claims(store))
        return checks_of_claims(store, format, claims.empty() ? validation::claims().rows() : claims);
    const std::string& query = find_table(table).query;
    const TableFormat as = table_format(format);
    if (!query.empty() && !metrics.empty())
        throw usage_error("--metric chooses columns of the table methods: leave it out for {}", table);
    const std::string origin = as == TableFormat::latex ? latex_origin(store, table) : "";
    if (query.empty()) return origin + formatted(method_table(store, {.metrics = metrics}), as);
    Statement rows = rows_of(store, query);
    return origin + formatted(rows, table, as);
}

std::string export_npy(Database& store, const std::string& table) {
    const std::string& query = find_table(table).query;
    if (query.empty())
        throw usage_error("--format npy cannot hold the names in table {}: use csv, json or latex", table);
    Statement rows = rows_of(store, query);
    std::vector<std::vector<double>> numbers;
    std::vector<bool> numeric(static_cast<std::size_t>(rows.columns()), true);
    while (rows.step()) {
        auto& line = numbers.emplace_back();
        for (int c = 0; c < rows.columns(); ++c) {
            if (rows.is_text(c)) numeric[static_cast<std::size_t>(c)] = false;
            line.push_back(rows.is_text(c) ? std::nan("") : rows.real(c));
        }
    }
    std::vector<std::size_t> kept;
    for (std::size_t c = 0; c < numeric.size(); ++c)
        if (numeric[c]) kept.push_back(c);
    arma::mat matrix(numbers.size(), kept.size());
    for (std::size_t r = 0; r < numbers.size(); ++r)
        for (std::size_t c = 0; c < kept.size(); ++c) matrix(r, c) = numbers[r][kept[c]];
    return sim::npy_bytes(matrix);
}

}  // namespace spiked::reports

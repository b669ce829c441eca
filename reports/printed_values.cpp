#include "reports/printed_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>
#include <vector>

#include "reports/export.hpp"
#include "reports/figures.hpp"
#include "reports/text_table.hpp"
#include "theory/base/error.hpp"
#include "theory/base/names.hpp"

namespace spiked::reports {

using validation::Database;
using validation::Statement;

namespace {

const std::string header = "table,cell,method,metric,printed,note";

/// Of the last digit of a number as it is printed: 0.005 for 0.34.
double half_unit(const std::string& number) {
    const std::size_t point = number.find('.');
    return 0.5 * std::pow(10.0, point == std::string::npos ? 0.0 : -static_cast<double>(number.size() - point - 1));
}

void read_rows(Database& store, const std::string& path) {
    std::ifstream file(path);
    if (!file) throw input_error("{}: the file of printed values cannot be opened: check the path", path);
    Statement insert(store,
                     "INSERT INTO temp.printed(name, cell, method, metric, printed, note, shown, half_unit) VALUES "
                     "(?,?,?,?,?,?,?,?)");
    std::string line;
    std::size_t number = 0;
    bool begun = false;
    while (std::getline(file, line)) {
        ++number;
        if (!line.empty() && line.back() == '\r') line.pop_back();
        if (line.empty() || line.front() == '#') continue;
        if (!begun) {
            if (line != header) throw input_error("{}:{}: the first line is not \"{}\": mend it", path, number, header);
            begun = true;
            continue;
        }
        const auto fields = split(line, ',');
        const auto cell = fields.size() == 6 ? to_integer(fields[1]) : std::nullopt;
        const auto value = fields.size() == 6 ? to_number(fields[4]) : std::nullopt;
        if (!cell || *cell < 1 || !value)
            throw input_error(
                "{}:{}: the line is not {} (6 fields, cell a whole number from 1, printed a number): "
                "mend it",
                path, number, header);
        insert.bind(1, fields[0]).bind(2, *cell).bind(3, fields[2]).bind(4, fields[3]).bind_real(5, *value);
        insert.bind(6, fields[5]).bind(7, fields[4]).bind_real(8, half_unit(fields[4])).run();
    }
}

/// The rows of the file joined with the means, in its order.
Statement joined(Database& store, const std::string& path, const std::string& columns) {
    store.execute(
        "CREATE TEMP TABLE printed(name TEXT, cell INTEGER, method TEXT, metric TEXT, printed REAL, note TEXT, shown "
        "TEXT, half_unit REAL)");
    read_rows(store, path);
    return {store,
            "SELECT " + columns +
                " FROM temp.printed p LEFT JOIN (SELECT cell_id, row_number() OVER (ORDER BY cell_id) AS number "
                "FROM cell) c ON c.number = p.cell LEFT JOIN v_summary s ON s.cell_id = c.cell_id AND s.method = "
                "p.method AND s.metric = p.metric AND s.k = 0 ORDER BY p.rowid"};
}

/// A rounding of the doubles is no disagreement.
constexpr const char* agreement = "abs(s.mean - p.printed) <= p.half_unit * 1.000001 + 2 * coalesce(s.mcse, 0)";

}  // namespace

std::string against_printed(Database& store, const std::string& path, const std::string& format) {
    Statement rows = joined(store, path,
                            fmt::format("p.name AS \"table\", p.method, p.metric, p.printed, s.mean, s.mcse, s.mean - "
                                        "p.printed AS difference, {} AS agree, p.note",
                                        agreement));
    return formatted(rows, "against " + path, format);
}

std::string printed_markup(Database& store, const std::string& path) {
    Statement rows = joined(
        store, path,
        fmt::format("p.name, p.method, p.metric, p.shown, s.mean, s.mcse, s.mean - p.printed, p.note, {}", agreement));
    std::vector<std::pair<std::string, HtmlTable>> tables;
    std::size_t compared = 0;
    std::size_t agreed = 0;
    std::size_t unexplained = 0;
    while (rows.step()) {
        const std::string name = rows.text(0);
        auto table = std::find_if(tables.begin(), tables.end(), [&](const auto& t) { return t.first == name; });
        if (table == tables.end())
            table = tables.insert(tables.end(), {name, HtmlTable(name, {"method", "metric", "#printed", "#ours",
                                                                        "#difference", "#in errors", "agree", "why"})});
        const bool measured = !rows.is_null(4);
        const bool agree = measured && rows.integer(8) != 0;
        const std::string note = rows.text(7);
        compared += measured ? 1 : 0;
        agreed += agree ? 1 : 0;
        unexplained += measured && !agree && note.empty() ? 1 : 0;
        const double errors = rows.real(6) / rows.real(5);
        table->second.add({rows.text(1), rows.text(2), rows.text(3), with_error(rows.real(4), rows.real(5)),
                           measured ? fmt::format("{:+.3g}", rows.real(6)) : "-",
                           std::isfinite(errors) ? fmt::format("{:+.1f}", errors) : "-",
                           !measured ? "not measured"
                           : agree   ? "yes"
                                     : "no",
                           !agree && measured && note.empty() ? "no reason is given" : note});
    }
    std::string markup = paragraph(
        fmt::format("{} printed values, {} of them measured here: {} agree, {} differ with a reason, {} without. "
                    "Agree: within half "
                    "a unit of the last printed digit and two standard errors. What is printed has no standard error.",
                    std::accumulate(tables.begin(), tables.end(), std::size_t{0},
                                    [](std::size_t sum, const auto& table) { return sum + table.second.rows(); }),
                    compared, agreed, compared - agreed - unexplained, unexplained));
    for (const auto& [name, table] : tables)
        markup += folded(fmt::format("{}: {}", name, counted(table.rows(), "value")), table.html());
    return markup;
}

}  // namespace spiked::reports

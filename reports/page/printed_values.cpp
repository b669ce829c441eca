#include "reports/page/printed_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <sstream>
#include <vector>

#include "core/files/text_file.hpp"
#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "core/text/printable.hpp"
#include "reports/tables/export.hpp"
#include "reports/tables/store_queries.hpp"
#include "reports/tables/text_table.hpp"
#include "validation/kv/kv_table.hpp"
#include "validation/statistics/clustered.hpp"

namespace spiked::reports {

using validation::Database;
using validation::Statement;

namespace {

constexpr std::uint64_t most_bytes = 1 << 24;
const std::string header = "table,cell,method,metric,printed,note";

/// Half a unit of the last printed digit of a number: 0.005 for 0.34 and for 3.4e-1.
double half_unit(const std::string& number) {
    const std::size_t end = std::min(number.find_first_of("eE"), number.size());
    const std::size_t point = std::min(number.find('.'), end);
    const double decimals = point == end ? 0.0 : static_cast<double>(end - point - 1);
    const std::size_t digits = number.find_first_not_of('+', end + 1);
    const double exponent = digits < number.size() ? to_number(number.substr(digits)).value_or(0.0) : 0.0;
    return 0.5 * std::pow(10.0, exponent - decimals);
}

/// The cell or side whose means a printed value is compared with.
struct Place {
    std::int64_t cell_id = 0;  ///< 0 in a dump study
    std::string side;          ///< in a dump study, the side, with all of its blocks
};

bool holds(const CellRow& cell, const std::string& factor, const std::string& value) {
    const auto found = cell.factors.find(factor);
    if (found == cell.factors.end()) return false;
    const auto number = to_number(value);
    return found->second.text == value || (number && found->second.number == *number);
}

/// Finds the only cell of a store with factors such as `side=key n=128`, or the side of a dump study.
class PlaceFinder {
public:
    explicit PlaceFinder(Database& store)
        : path_(store.path()), dump_(is_dump_study(store)), cells_(read_cells(store)) {}

    Place find(const std::string& text, const std::string& where) {
        if (const auto known = known_.find(text); known != known_.end()) return known->second;
        std::vector<const CellRow*> left;
        for (const auto& cell : cells_) left.push_back(&cell);
        std::string side;
        bool all_sides = true;
        for (const auto& condition : split(text, ' ')) {
            const std::size_t equals = condition.find('=');
            if (equals == std::string::npos || equals == 0)
                throw input_error("{}: {} names no cell: write factors with their values, as side=key n=128", where,
                                  in_quotes(text));
            const std::string factor = condition.substr(0, equals);
            const std::string value = condition.substr(equals + 1);
            std::erase_if(left, [&](const CellRow* cell) { return !holds(*cell, factor, value); });
            if (factor == "side")
                side = value;
            else
                all_sides = false;
        }
        if (dump_ && !all_sides)
            throw input_error(
                "{}: {} is not a side (values for a dump study cover all its keys or all its values): write side=key "
                "or side=value",
                where, in_quotes(text));
        if (left.empty() || (!dump_ && left.size() > 1))
            throw input_error(
                "{}: {} cells of {} match {} (one is expected): name a store of the study that the values belong to, "
                "or the factors that distinguish its cells",
                where, left.size(), path_, printable(text));
        return known_[text] = dump_ ? Place{0, side} : Place{left.front()->id, ""};
    }

private:
    std::string path_;
    bool dump_;
    std::vector<CellRow> cells_;
    std::map<std::string, Place> known_;
};

/// Splits `overlap.left 2`, as tables write it, into the metric overlap.left and component 2; without a number the
/// component is 0.
std::pair<std::string, std::int64_t> metric_and_component(const std::string& text) {
    const std::size_t space = text.rfind(' ');
    const auto k = space == std::string::npos ? std::nullopt : to_integer(text.substr(space + 1));
    if (!k || *k < 1) return {text, 0};
    return {text.substr(0, space), *k};
}

/// A line of the file.
struct PrintedRow {
    std::int64_t line = 0;
    std::vector<std::string> fields;  ///< those of the header
    Place place;
    double printed = 0.0;
};

/// Reads and validates the whole file.
std::vector<PrintedRow> read_rows(Database& store, const std::string& path) {
    std::istringstream file(read_text_file(path, most_bytes, "a file of printed values"));
    std::vector<PrintedRow> rows;
    std::optional<PlaceFinder> places;
    std::string line;
    std::int64_t number = 0;
    bool begun = false;
    while (std::getline(file, line)) {
        ++number;
        if (!line.empty() && line.back() == '\r') line.pop_back();
        if (line.empty() || line.front() == '#') continue;
        const std::string where = fmt::format("{}:{}", path, number);
        auto fields = split(line, ',');
        if (!begun && fields.size() == 2 && fields[0] == "study") {
            Statement study(store, "SELECT name FROM study");
            (void)study.step();
            if (study.text(0) != fields[1])
                throw input_error(
                    "{}: {} is a store of study {}, but these values belong to study {}: name another store", where,
                    store.path(), study.text(0), fields[1]);
            continue;
        }
        if (!begun) {
            if (line != header) throw input_error("{}: the first line is not \"{}\": correct it", where, header);
            begun = true;
            continue;
        }
        const auto value = fields.size() == 6 ? to_number(fields[4]) : std::nullopt;
        if (!value) throw input_error("{}: the line is not {} (6 fields, printed a number): correct it", where, header);
        if (!places) places.emplace(store);
        Place place = places->find(fields[1], where);
        rows.push_back({number, std::move(fields), std::move(place), *value});
    }
    if (rows.empty())
        throw input_error("{}: the file holds no printed value: write them below the line {}", path, header);
    return rows;
}

/// The clustered means of a dump study as a temporary table, whose column `reach` is the distance of a limit that is
/// exceeded as often as two standard errors of the normal law.
void fill_clustered(Database& store) {
    store.execute(
        "CREATE TEMP TABLE IF NOT EXISTS clustered(side TEXT, method TEXT, metric TEXT, mean REAL, mcse REAL, df REAL, "
        "reach REAL); DELETE FROM temp.clustered");
    Statement insert(store, "INSERT INTO temp.clustered VALUES (?,?,?,?,?,?,?)");
    const double outside = std::erfc(std::sqrt(2.0));
    for (const auto& one : validation::block_means(store)) {
        const validation::MeanAndError found = one.clusters.mean().mean_and_error();
        insert.bind(1, one.side).bind(2, one.name).bind(3, one.metric).bind_real(4, found.mean);
        insert.bind_real(5, found.mcse).bind_real(6, found.df);
        insert.bind_real(7, validation::limits_in_errors(found.df, outside) * found.mcse).run();
    }
}

/// The rows of the file joined with the means of the store, in the order of the file. The error of a mean over one
/// replicate is missing, and so is the mean of a value that the store does not have.
Statement joined(Database& store, const std::string& path, const std::string& columns) {
    const std::vector<PrintedRow> rows = read_rows(store, path);
    store.execute(
        "CREATE TEMP TABLE IF NOT EXISTS printed(line INTEGER, name TEXT, cell_id INTEGER, side TEXT, method TEXT, "
        "metric TEXT, printed REAL, note TEXT, shown TEXT, half_unit REAL, base TEXT, k INTEGER); DELETE FROM "
        "temp.printed");
    Statement insert(store,
                     "INSERT INTO temp.printed(line, name, cell_id, side, method, metric, printed, note, shown, "
                     "half_unit, base, k) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)");
    for (const auto& [line, fields, place, printed] : rows) {
        insert.bind(1, line).bind(2, fields[0]).bind(3, place.cell_id).bind(4, place.side).bind(5, fields[2]);
        insert.bind(6, fields[3]).bind_real(7, printed).bind(8, fields[5]).bind(9, fields[4]);
        const auto [base, k] = metric_and_component(fields[3]);
        insert.bind_real(10, half_unit(fields[4])).bind(11, base).bind(12, k).run();
    }
    const bool dump = is_dump_study(store);
    if (dump) fill_clustered(store);
    return {store, "SELECT " + columns + " FROM temp.printed p LEFT JOIN " +
                       (dump ? "temp.clustered s ON s.side = p.side AND p.k = 0"
                             : "(SELECT *, iif(n > 1, n - 1, NULL) AS df, 2 * mcse AS reach FROM v_summary) s ON "
                               "s.cell_id = p.cell_id AND s.k = p.k") +
                       " AND s.method = p.method AND s.metric = p.base ORDER BY p.line"};
}

/// The factor 1.000001 allows for rounding errors of doubles.
const std::string agreement =
    "CASE WHEN s.mean IS NULL THEN 'not measured' WHEN abs(s.mean - p.printed) <= p.half_unit * 1.000001 + "
    "coalesce(s.reach, 0) THEN 'yes' ELSE 'no' END";
/// The note of the file is shown only where the values differ.
const std::string reason =
    "CASE WHEN " + agreement + " <> 'no' THEN '' WHEN p.note = '' THEN 'no reason is given' ELSE p.note END";

}  // namespace

std::string against_printed(Database& store, const std::string& path, const std::string& format) {
    Statement rows = joined(
        store, path,
        "p.name AS \"table\", p.method, p.metric, p.printed, s.mean, s.mcse, s.df, s.mean - p.printed AS difference, " +
            agreement + " AS agree, " + reason + " AS why");
    return formatted(rows, "against " + path, format);
}

std::vector<std::string> printed_without_partner(Database& store, const std::string& path) {
    Statement rows = joined(store, path, "p.line, p.method, p.metric, s.mean IS NULL");
    std::vector<std::string> lines;
    while (rows.step())
        if (rows.integer(3) != 0)
            lines.push_back(fmt::format("{}:{}: {} of {}", path, rows.integer(0), rows.text(2), rows.text(1)));
    return lines;
}

std::string printed_markup(Database& store, const std::string& path) {
    Statement rows = joined(store, path,
                            "p.name, p.method, p.metric, p.shown, s.mean, s.mcse, s.mean - p.printed, " + reason +
                                ", " + agreement + ", p.note = ''");
    std::vector<std::pair<std::string, HtmlTable>> tables;
    std::map<std::string, std::size_t> place_of;
    std::size_t compared = 0;
    std::size_t agreed = 0;
    std::size_t unexplained = 0;
    while (rows.step()) {
        const std::string name = rows.text(0);
        const auto [place, first] = place_of.try_emplace(name, tables.size());
        if (first)
            tables.emplace_back(name, HtmlTable(name, {"method", "metric", "#printed", "#ours", "#difference",
                                                       "#in errors", "agree", "why"}));
        HtmlTable& table = tables[place->second].second;
        const std::string agree = rows.text(8);
        compared += rows.is_null(4) ? 0 : 1;
        agreed += agree == "yes" ? 1 : 0;
        unexplained += agree == "no" && rows.integer(9) != 0 ? 1 : 0;
        const double errors = rows.real(6) / rows.real(5);
        table.add({rows.text(1), rows.text(2), rows.text(3), with_error(rows.real(4), rows.real(5)),
                   rows.is_null(4) ? "-" : fmt::format("{:+.3g}", rows.real(6)),
                   std::isfinite(errors) ? fmt::format("{:+.1f}", errors) : "-", agree, rows.text(7)});
    }
    std::string markup = paragraph(
        fmt::format("{} printed values, {} of them measured here: {} agree, {} differ with a reason, {} without. "
                    "Agree: within half a unit of the last printed digit and two standard errors, or with few "
                    "clusters the quantile of Student's law of the same probability. Printed values have no standard "
                    "error.",
                    std::accumulate(tables.begin(), tables.end(), std::size_t{0},
                                    [](std::size_t sum, const auto& table) { return sum + table.second.rows(); }),
                    compared, agreed, compared - agreed - unexplained, unexplained));
    for (const auto& [name, table] : tables)
        markup += folded(fmt::format("{}: {}", name, counted(table.rows(), "value")), table.html());
    return markup;
}

}  // namespace spiked::reports

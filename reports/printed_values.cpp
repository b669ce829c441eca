#include "reports/printed_values.hpp"

#include <fstream>

#include "reports/export.hpp"
#include "theory/base/error.hpp"
#include "theory/base/names.hpp"

namespace spiked::reports {

using validation::Database;
using validation::Statement;

namespace {

const std::string header = "table,cell,method,metric,printed,note";

void read_rows(Database& store, const std::string& path) {
    std::ifstream file(path);
    if (!file) throw input_error("{}: the file of printed values cannot be opened: check the path", path);
    Statement insert(store, "INSERT INTO temp.printed(name, cell, method, metric, printed, note) VALUES (?,?,?,?,?,?)");
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
        insert.bind(6, fields[5]).run();
    }
}

}  // namespace

std::string against_printed(Database& store, const std::string& path, const std::string& format) {
    store.execute(
        "CREATE TEMP TABLE printed(name TEXT, cell INTEGER, method TEXT, metric TEXT, printed REAL, note TEXT)");
    read_rows(store, path);
    Statement rows(store,
                   "SELECT p.name AS \"table\", p.method, p.metric, p.printed, s.mean, s.mcse,"
                   " s.mean - p.printed AS difference, p.note FROM temp.printed p"
                   " LEFT JOIN (SELECT cell_id, row_number() OVER (ORDER BY cell_id) AS number FROM cell) c"
                   " ON c.number = p.cell"
                   " LEFT JOIN v_summary s ON s.cell_id = c.cell_id AND s.method = p.method AND s.metric = p.metric"
                   " AND s.k = 0 ORDER BY p.rowid");
    return formatted(rows, "against " + path, format);
}

}  // namespace spiked::reports

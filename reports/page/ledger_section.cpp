#include "reports/page/ledger_section.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "reports/figures/figure_parts.hpp"
#include "reports/tables/kv_report.hpp"
#include "reports/tables/store_queries.hpp"
#include "reports/tables/text_table.hpp"
#include "validation/kv/equal_bits.hpp"

namespace spiked::reports {
namespace {

using validation::Database;
using validation::Statement;

constexpr std::size_t items_unfolded = 20;

/// Stored bits by item: by side in a dump study, by cell where there are few cells, otherwise over all cells.
std::string ledger_table(Database& store, bool dump, std::size_t most_bytes) {
    const auto cells = read_cells(store);
    const bool by_cell = !dump && cells.size() > 1 && cells.size() <= most_panels;
    const auto names = by_cell ? short_names(cells) : std::map<std::int64_t, std::string>();
    std::map<std::string, std::size_t> column;
    std::vector<std::string> columns = {"method"};
    if (dump || by_cell) columns.emplace_back(dump ? "side" : "cell");
    const std::size_t fixed = columns.size();
    Statement items(store,
                    "SELECT mt.name FROM moment m JOIN metric mt USING(metric_id) WHERE mt.name LIKE 'bits.%' AND "
                    "m.n > 0 GROUP BY metric_id HAVING MAX(m.mean) > 0 ORDER BY metric_id");
    while (items.step()) {
        column[items.text(0)] = columns.size();
        std::string item = items.text(0).substr(5);
        std::replace(item.begin(), item.end(), '_', ' ');
        columns.push_back("#" + item);
    }
    if (column.empty()) return "";
    columns.emplace_back("#total");
    HtmlTable table(
        "Stored bits an entry, item by item, mean over blocks" +
            (dump || by_cell || cells.size() == 1 ? std::string() : fmt::format(" of all {} cells", cells.size())),
        columns);
    table.limit(most_bytes, "spiked export STORE --table bits");
    Statement query(
        store,
        fmt::format("SELECT me.method_id, me.name, {}, mt.name, SUM(m.n * m.mean) / SUM(m.n) FROM moment m JOIN metric "
                    "mt USING(metric_id) JOIN method me USING(method_id) LEFT JOIN factor side ON side.cell_id = "
                    "m.cell_id AND side.name = 'side' WHERE mt.name LIKE 'bits.%' AND m.n > 0 GROUP BY me.method_id, "
                    "3, mt.metric_id ORDER BY me.method_id, 3, mt.metric_id",
                    dump      ? "coalesce(side.txt, '')"
                    : by_cell ? "m.cell_id"
                              : "''"));
    std::pair<std::int64_t, std::string> current{-1, ""};
    std::vector<Html> row;
    double total = 0.0;
    const auto finish = [&] {
        if (row.empty()) return;
        row.back() = fmt::format("{:.4f}", total);
        table.add(row);
    };
    while (query.step()) {
        if (const std::pair key{query.integer(0), query.text(2)}; row.empty() || key != current) {
            finish();
            current = key;
            total = 0.0;
            row.assign(columns.size(), Html("0"));
            row[0] = query.text(1);
            if (fixed > 1) row[1] = dump ? query.text(2) : names.at(query.integer(2));
        }
        total += query.real(4);
        if (const auto found = column.find(query.text(3)); found != column.end() && query.real(4) > 0.0)
            row[found->second] = fmt::format("{:.4f}", query.real(4));
    }
    finish();
    return (table.rows() > items_unfolded
                ? folded(fmt::format("Stored bits by item: {}", counted(table.rows(), "row")), table.html())
                : table.html()) +
           paragraph("Counted from the bytes a decoder reads; items that no method stores are left out.");
}

/// Errors at equal bits: one row per method, one column per number of bits, one table per side or cell.
std::string equal_bits_tables(Database& store, bool dump) {
    const auto equal = validation::equal_bits(store);
    const auto groups = equal.groups();
    std::map<std::string, std::string> names;  // by group
    const auto cells = read_cells(store);
    const auto short_name = short_names(cells);
    for (const auto& cell : cells) {
        const auto found = short_name.find(cell.id);
        if (found != short_name.end()) names[cell.label] = found->second.empty() ? cell.label : found->second;
    }
    std::string markup;
    for (std::size_t g = 0; g < std::min(groups.size(), most_panels); ++g) {
        const auto& group = groups[g];
        auto [header, rows, outside] = equal_bits_rows(equal, group);
        for (std::size_t h = 1; h < header.size(); ++h) header[h] = "#" + header[h];  // numeric columns
        HtmlTable table(
            fmt::format("{}: relative L2 error in percent at equal stored bits", dump ? group + "s" : names[group]),
            header);
        for (const auto& row : rows) table.add(std::vector<Html>(row.begin(), row.end()));
        if (table.rows() > 0) markup += table.html();
        if (!outside.empty())
            markup += paragraph(table.rows() > 0 ? outside : (dump ? group + "s" : names[group]) + ": " + outside);
    }
    if (markup.empty()) return "";
    if (groups.size() > most_panels)
        markup +=
            paragraph(fmt::format("The first {} of {} cells; the bits and errors of the others are in spiked "
                                  "export STORE --table methods.",
                                  most_panels, groups.size()));
    return markup + paragraph(fmt::format(
                        "The logarithm of the mean error is interpolated between bit widths; ratios are to the first "
                        "method, with paired {}.",
                        dump ? "clusters" : "batches"));
}

}  // namespace

std::string ledger_markup(Database& store, const PagePlace& place, std::size_t most_bytes) {
    const bool dump = is_dump_study(store);
    const std::string ledger = ledger_table(store, dump, most_bytes);
    if (ledger.empty()) return "";
    const std::string equal = equal_bits_tables(store, dump);
    return ledger + (equal.empty() ? "" : subheading(place, "At equal bits") + equal);
}

}  // namespace spiked::reports

#include "reports/tables/method_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "core/runtime/error.hpp"
#include "core/text/json.hpp"
#include "core/text/names.hpp"
#include "core/text/printable.hpp"
#include "reports/tables/csv_text.hpp"
#include "reports/tables/latex.hpp"
#include "reports/tables/metric_words.hpp"
#include "reports/tables/store_queries.hpp"
#include "reports/tables/text_table.hpp"
#include "validation/statistics/moments.hpp"

namespace spiked::reports {
namespace {

using validation::Database;
using validation::Parts;
using validation::Statement;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// metric_id and number of the spike; the map is ordered as the store is.
using Quantity = std::pair<std::int64_t, std::int64_t>;

struct MethodColumns {
    std::vector<MethodColumn> list;
    std::map<Quantity, std::size_t> position;
};

MethodColumns read_columns(Database& store, const std::vector<std::string>& metrics) {
    MethodColumns columns;
    std::set<std::string> found;
    std::vector<std::string> names;
    Statement query(
        store,
        "SELECT DISTINCT m.metric_id, m.k, mt.name, mt.better FROM moment m JOIN metric mt USING(metric_id) JOIN "
        "method me USING(method_id) WHERE me.kind <> 'sample' ORDER BY m.metric_id, m.k");
    while (query.step()) {
        const std::string name = query.text(2);
        if (names.empty() || names.back() != name) names.push_back(name);
        const bool wanted = metrics.empty() ? !name.starts_with("bits.")
                                            : std::find(metrics.begin(), metrics.end(), name) != metrics.end();
        if (!wanted) continue;
        found.insert(name);
        columns.position[{query.integer(0), query.integer(1)}] = columns.list.size();
        columns.list.push_back({name, query.integer(1), query.text(3)});
    }
    for (const auto& metric : metrics)
        if (!found.contains(metric))
            throw usage_error("metric \"{}\" is not in {}{}", metric, store.path(), suggestion(metric, names));
    // Metrics in the order of the request, the spikes of a metric in their own order.
    std::vector<std::pair<MethodColumn, Quantity>> order;
    for (const auto& [quantity, at] : columns.position) order.emplace_back(columns.list[at], quantity);
    std::stable_sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
        return std::find(metrics.begin(), metrics.end(), a.first.metric) <
               std::find(metrics.begin(), metrics.end(), b.first.metric);
    });
    for (std::size_t c = 0; c < order.size(); ++c) {
        columns.list[c] = order[c].first;
        columns.position[order[c].second] = c;
    }
    return columns;
}

struct Method {
    std::string name, kind, bits;
};

std::map<std::int64_t, Method> read_methods(Database& store) {
    std::map<std::int64_t, Method> methods;
    Statement query(store,
                    "SELECT method_id, CASE WHEN kind = 'codec' THEN base || coalesce(' at ' || json_extract(params, "
                    "'$.budget'), '') ELSE name END, kind, coalesce(bits, '') FROM method WHERE kind <> 'sample'");
    while (query.step()) methods[query.integer(0)] = {query.text(1), query.text(2), query.text(3)};
    return methods;
}

/// Limits the size of the table: in a table of many columns most means are missing, but they take memory all the same.
class TableLimit {
public:
    TableLimit(const Database& store, std::size_t columns) : store_(store), columns_(columns) {}
    [[nodiscard]] std::size_t columns() const { return columns_; }
    void add_row() {
        constexpr std::size_t most = 1'000'000;
        if (++rows_ * columns_ > most)
            throw input_error(
                "{}: the table of methods has {} columns and more than {} rows, most of them without a mean: choose "
                "some with --metric",
                store_.path(), columns_, rows_ - 1);
    }

private:
    const Database& store_;
    std::size_t columns_;
    std::size_t rows_ = 0;
};

/// The rows of one group by method, created when their first mean is read.
class Group {
public:
    Group(std::int64_t cell, std::string label, const std::map<std::int64_t, Method>& methods, TableLimit& limit)
        : cell_(cell), label_(std::move(label)), methods_(methods), limit_(limit) {}

    MethodMean& at(std::int64_t method, std::size_t column) {
        auto found = rows_.find(method);
        if (found == rows_.end()) {
            limit_.add_row();
            const Method& known = methods_.at(method);
            MethodRow row{cell_, label_, method, known.name, known.kind, known.bits, {}};
            row.means.assign(limit_.columns(), MethodMean{nan, nan, nan, 0, 0, false, {}});
            found = rows_.emplace(method, std::move(row)).first;
        }
        return found->second.means[column];
    }

    /// Computes the means that are not set from their parts, marks the best, and appends the rows in the order of the
    /// methods.
    void finish(const std::vector<MethodColumn>& columns, std::vector<MethodRow>& rows) {
        for (auto& [method, row] : rows_)
            for (auto& mean : row.means)
                if (std::isnan(mean.mean) && !mean.parts.sums.empty()) {
                    const auto found = mean.parts.mean().mean_and_error();
                    mean.mean = found.mean;
                    mean.error = found.mcse;
                    mean.df = found.df;
                }
        for (std::size_t c = 0; c < columns.size(); ++c)
            if (columns[c].better == "lower" || columns[c].better == "higher") mark(c, columns[c].better == "higher");
        for (auto& [method, row] : rows_) rows.push_back(std::move(row));
    }

private:
    void mark(std::size_t column, bool higher) {
        std::map<std::pair<std::string, std::string>, std::vector<MethodMean*>> contests;
        for (auto& [method, row] : rows_)
            if (!std::isnan(row.means[column].mean)) contests[{row.kind, row.bits}].push_back(&row.means[column]);
        for (auto& [contest, means] : contests) {
            const auto best = *std::max_element(means.begin(), means.end(), [&](const auto* a, const auto* b) {
                return higher ? a->mean < b->mean : a->mean > b->mean;
            });
            best->best = means.size() > 1 && std::all_of(means.begin(), means.end(), [&](const MethodMean* other) {
                             return other == best || (!best->parts.sums.empty() && !other->parts.sums.empty() &&
                                                      paired_difference(best->parts, other->parts).beyond_noise());
                         });
        }
    }

    std::int64_t cell_;
    std::string label_;
    const std::map<std::int64_t, Method>& methods_;
    TableLimit& limit_;
    std::map<std::int64_t, MethodRow> rows_;
};

/// Reads a dump study: one group per side, standard errors over clusters as in Parts::mean.
void read_sides(Database& store, const MethodColumns& columns, MethodTable& table) {
    const auto methods = read_methods(store);
    TableLimit limit(store, columns.list.size());
    std::map<std::string, Group> sides;
    std::map<std::string, std::int64_t> clusters;
    Statement query(
        store,
        "SELECT side.txt, m.method_id, m.metric_id, m.k, cl.txt, SUM(m.n), SUM(m.n * m.mean), SUM(m.n_null) FROM "
        "moment m JOIN factor side ON side.cell_id = m.cell_id AND side.name = 'side' JOIN factor cl ON cl.cell_id = "
        "m.cell_id AND cl.name = 'cluster' GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5");
    while (query.step()) {
        const auto column = columns.position.find({query.integer(2), query.integer(3)});
        if (column == columns.position.end() || !methods.contains(query.integer(1))) continue;
        const std::string name = query.text(0);
        auto side = sides.find(name);
        if (side == sides.end()) side = sides.emplace(name, Group(0, name + "s", methods, limit)).first;
        MethodMean& mean = side->second.at(query.integer(1), column->second);
        mean.n += query.integer(5);
        mean.failed += query.integer(7);
        if (query.integer(5) == 0) continue;
        const auto cluster = clusters.emplace(query.text(4), static_cast<std::int64_t>(clusters.size())).first->second;
        mean.parts.sums[cluster] = {query.real(5), query.real(6)};
    }
    for (auto& [name, group] : sides) group.finish(columns.list, table.rows);
}

/// Reads the groups of a study without dumps. The parts for pairing methods are the kept draws where all of them were
/// kept, else the batches.
class CellReader {
public:
    CellReader(Database& store, const MethodColumns& columns)
        : columns_(columns),
          limit_(store, columns.list.size()),
          methods_(read_methods(store)),
          batches_(store,
                   "SELECT method_id, metric_id, k, batch, n, n_null, mean, m2 FROM moment WHERE cell_id = ?1 ORDER BY "
                   "method_id, metric_id, k, batch"),
          draws_(store,
                 "SELECT rep, v FROM value WHERE cell_id = ?1 AND method_id = ?2 AND metric_id = ?3 AND k = ?4 AND v "
                 "IS NOT NULL ORDER BY rep") {}

    void read(std::int64_t cell, const std::string& label, MethodTable& table) {
        Group group(cell, label, methods_, limit_);
        std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, validation::Moments> pooled;
        batches_.reset();
        batches_.bind(1, cell);
        while (batches_.step()) {
            const auto column = columns_.position.find({batches_.integer(1), batches_.integer(2)});
            if (column == columns_.position.end() || !methods_.contains(batches_.integer(0))) continue;
            MethodMean& mean = group.at(batches_.integer(0), column->second);
            mean.n += batches_.integer(4);
            mean.failed += batches_.integer(5);
            if (batches_.integer(4) == 0) continue;
            mean.parts.sums[batches_.integer(3)] = {batches_.real(4), batches_.real(4) * batches_.real(6)};
            validation::Moments batch;
            batch.count = static_cast<std::uint64_t>(batches_.integer(4));
            batch.mean = batches_.real(6);
            batch.m2 = batches_.real(7);
            pooled[{batches_.integer(0), batches_.integer(1), batches_.integer(2)}].merge(batch);
        }
        for (const auto& [key, moments] : pooled) {
            const auto& [method, metric, k] = key;
            const std::size_t column = columns_.position.at({metric, k});
            MethodMean& mean = group.at(method, column);
            mean.mean = moments.mean;
            mean.error = shown_error(columns_.list[column].metric, moments.mean, moments.standard_error(), mean.n);
            if (moments.count > 1) mean.df = static_cast<double>(moments.count) - 1.0;
            const std::string& better = columns_.list[column].better;
            if (better != "lower" && better != "higher") continue;
            Parts draws;
            draws_.reset();
            draws_.bind(1, cell).bind(2, method).bind(3, metric).bind(4, k);
            while (draws_.step()) draws.sums[draws_.integer(0)] = {1.0, draws_.real(1)};
            if (draws.sums.size() == moments.count)
                mean.parts = std::move(draws);
            else if (mean.parts.sums.size() < 2)
                mean.parts.sums.clear();
        }
        group.finish(columns_.list, table.rows);
    }

private:
    const MethodColumns& columns_;
    TableLimit limit_;
    std::map<std::int64_t, Method> methods_;
    Statement batches_;
    Statement draws_;
};

std::string name_of(const MethodColumn& column) {
    return column.k > 0 ? fmt::format("{} {}", column.metric, column.k) : column.metric;
}

std::string as_csv(const MethodTable& table) {
    std::vector<std::string> header = {"group", "method", "bits"};
    for (const auto& column : table.columns)
        for (const char* part : {"", " mcse", " best"}) header.push_back(name_of(column) + part);
    std::string text = csv_line(header);
    for (const auto& row : table.rows) {
        std::vector<std::string> fields = {row.group, row.method, row.bits};
        for (const auto& mean : row.means)
            fields.insert(fields.end(), {exact(mean.mean), exact(mean.error), mean.best ? "1" : "0"});
        text += csv_line(fields);
    }
    return text;
}

Json as_json(const MethodTable& table) {
    Json rows = Json::array();
    for (const auto& row : table.rows)
        for (std::size_t c = 0; c < table.columns.size(); ++c) {
            const auto& mean = row.means[c];
            if (mean.n + mean.failed == 0) continue;
            rows.push(Json::object({{"group", row.group},
                                    {"method", row.method},
                                    {"bits", row.bits.empty() ? Json() : Json(to_number(row.bits).value_or(nan))},
                                    {"metric", table.columns[c].metric},
                                    {"k", table.columns[c].k},
                                    {"n", mean.n},
                                    {"failed", mean.failed},
                                    {"mean", mean.mean},
                                    {"mcse", mean.error},
                                    {"df", mean.df},
                                    {"best", mean.best}}));
        }
    return Json::object({{"schema", "spiked.export/1"}, {"table", "methods"}, {"rows", std::move(rows)}});
}

}  // namespace

std::string clusters_limits(const MethodTable& table) {
    double fewest = nan;
    double most = nan;
    for (const auto& row : table.rows)
        for (const auto& mean : row.means)
            if (row.cell_id == 0) fewest = std::fmin(fewest, mean.df), most = std::fmax(most, mean.df);
    return limits_text(fewest, most);
}

namespace {

std::string mean_text_of(const MethodTable& table, const MethodRow& row, std::size_t column) {
    return with_error(row.means[column].mean, row.means[column].error, 4, usual_size_of(table.columns[column].metric));
}

/// One table per group, without the columns that are empty in it.
std::string as_text(const MethodTable& table) {
    std::string text;
    for (std::size_t first = 0; first < table.rows.size();) {
        std::size_t end = first;
        while (end < table.rows.size() && table.rows[end].group == table.rows[first].group) ++end;
        std::vector<std::size_t> shown;
        std::vector<std::string> header = {"method", "B"};
        for (std::size_t c = 0; c < table.columns.size(); ++c)
            if (std::any_of(table.rows.begin() + static_cast<std::ptrdiff_t>(first),
                            table.rows.begin() + static_cast<std::ptrdiff_t>(end),
                            [&](const MethodRow& row) { return !std::isnan(row.means[c].mean); })) {
                shown.push_back(c);
                header.push_back(name_of(table.columns[c]));
            }
        TextTable lines(header);
        for (std::size_t r = first; r < end; ++r) {
            const auto& row = table.rows[r];
            std::vector<std::string> cells = {row.method, row.bits};
            for (const auto c : shown) cells.push_back(mean_text_of(table, row, c) + (row.means[c].best ? "*" : " "));
            lines.add(cells);
        }
        text += one_line(table.rows[first].group) + "\n" + lines.text() + "\n";
        first = end;
    }
    const std::string limits = clusters_limits(table);
    if (!limits.empty()) text += "Clustered standard errors have " + limits + ".\n";
    return text +
           "* ahead of the others of its kind and bit width B by over two standard errors of the paired difference; "
           "methods of one B differ in stored bits\n";
}

std::string as_latex(const MethodTable& table) {
    std::vector<std::string> header = {"method", "$B$"};
    std::vector<bool> numeric = {false, true};
    for (const auto& column : table.columns) {
        header.push_back(latex_text(name_of(column)));
        numeric.push_back(true);
    }
    std::vector<std::vector<std::string>> rows;
    for (std::size_t r = 0; r < table.rows.size(); ++r) {
        const auto& row = table.rows[r];
        if (r == 0 || row.group != table.rows[r - 1].group) rows.push_back({latex_text(row.group)});
        std::vector<std::string> cells = {latex_text(row.method), latex_text(row.bits)};
        for (std::size_t c = 0; c < row.means.size(); ++c)
            cells.push_back(latex_number(mean_text_of(table, row, c), row.means[c].best));
        rows.push_back(std::move(cells));
    }
    const std::string text = latex_table(header, numeric, rows);
    const std::string limits = clusters_limits(table);
    return fmt::format(
               "% Needs {}. 0.7525(22): the standard error is 0.0022. Bold: ahead of the others of its kind and\n"
               "% bit width B by over two standard errors of the paired difference (with few parts by the\n"
               "% quantile of Student's law of the same probability).{}\n",
               latex_packages(text), limits.empty() ? "" : "\n% Clustered standard errors have " + limits + ".") +
           text;
}

}  // namespace

/// Every row has all columns. Where each cell has columns of its own, the size is the product of cells and columns.
MethodTable method_table(Database& store, const MethodQuery& query) {
    const MethodColumns columns = read_columns(store, query.metrics);
    MethodTable table{columns.list, {}};
    if (is_dump_study(store)) {
        read_sides(store, columns, table);
        return table;
    }
    CellReader reader(store, columns);
    Statement cells(store, "SELECT cell_id, label FROM cell ORDER BY cell_id");
    while (cells.step())
        if (!query.cells || query.cells->contains(cells.integer(0)))
            reader.read(cells.integer(0), cells.text(1), table);
    return table;
}

std::string formatted(const MethodTable& table, TableFormat format) {
    switch (format) {
        case TableFormat::csv:
            return as_csv(table);
        case TableFormat::json:
            return as_json(table).text(2) + "\n";
        case TableFormat::latex:
            return as_latex(table);
        case TableFormat::text:
            return as_text(table);
    }
    throw precondition_error("unknown format of a table");
}

}  // namespace spiked::reports

// Maps over two factors: detections, false alarms, errors, or how far off the checks of a cell are.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "reports/figure_parts.hpp"
#include "reports/text_table.hpp"

namespace spiked::reports {
namespace {

using validation::Database;
using validation::Statement;

struct CellNumber {
    std::int64_t cell = 0;
    std::string method;
    double value = 0.0;
    double error = 0.0;
    std::int64_t n = 0;
};

/// |estimate - expected| in units of the margin, of the worst check of each cell.
std::vector<CellNumber> check_deviations(Database& store) {
    std::map<std::int64_t, CellNumber> worst;
    for (const auto& check : read_checks(store)) {
        const double off = std::abs(check.estimate - check.expected) / check.margin;
        if (!std::isfinite(off)) continue;
        auto& cell = worst.emplace(check.cell_id, CellNumber{check.cell_id, "", -1.0, 0.0, 0}).first->second;
        if (off > cell.value) cell = {check.cell_id, "", off, check.standard_error / check.margin, check.n};
    }
    std::vector<CellNumber> numbers;
    for (const auto& [id, number] : worst) numbers.push_back(number);
    return numbers;
}

std::vector<CellNumber> metric_means(Database& store, const std::string& metric, const std::string& method) {
    std::vector<CellNumber> numbers;
    Statement query(store,
                    "SELECT cell_id, method, mean, mcse, n FROM v_summary WHERE metric = ?1 AND (?2 = '' OR method = "
                    "?2) AND mean IS NOT NULL AND k <= 1 ORDER BY method_id, cell_id");
    query.bind(1, metric).bind(2, method);
    while (query.step())
        numbers.push_back({query.integer(0), query.text(1), query.real(2), query.real(3), query.integer(4)});
    return numbers;
}

/// Factors by how many values they take, most first.
std::vector<std::string> by_values(const std::vector<CellRow>& cells) {
    std::map<std::string, std::set<std::string>> values;
    for (const auto& cell : cells)
        for (const auto& [name, value] : cell.factors) values[name].insert(value.text);
    std::vector<std::string> names = varying_factors(cells);
    std::stable_sort(names.begin(), names.end(),
                     [&](const auto& a, const auto& b) { return values.at(a).size() > values.at(b).size(); });
    return names;
}

/// Values of a factor along an axis: texts in the order of the cells, then numbers by size.
std::vector<std::string> axis_values(const std::vector<CellRow>& cells, const std::string& factor) {
    std::vector<FactorValue> values;
    for (const auto& cell : cells) {
        const auto found = cell.factors.find(factor);
        if (found != cell.factors.end() && std::none_of(values.begin(), values.end(), [&](const FactorValue& known) {
                return known.text == found->second.text;
            }))
            values.push_back(found->second);
    }
    std::stable_sort(values.begin(), values.end(), [](const FactorValue& a, const FactorValue& b) {
        return std::isnan(a.number) ? !std::isnan(b.number) : a.number < b.number;
    });
    std::vector<std::string> texts;
    for (const auto& value : values) texts.push_back(value.text);
    return texts;
}

}  // namespace

std::vector<Figure> factor_map(Database& store, const Json& spec) {
    const auto cells = read_cells(store);
    const std::string metric = texts_of(spec, "y", {""}).front();
    const auto names = by_values(cells);
    std::string x = text_of(spec, "x");
    std::string y = text_of(spec, "by");
    for (const auto& name : names) {
        if (x.empty() && name != y)
            x = name;
        else if (y.empty() && name != x)
            y = name;
    }
    const std::string what = metric.empty() ? "Deviation of the worst check in margins" : words_of(metric);
    const std::string title = fmt::format("{} by {} and {}", what, x, y);
    if (x.empty() || y.empty() || x == y)
        return {without_data(title, "a map needs two factors that take more than one value")};
    const auto numbers =
        metric.empty() ? check_deviations(store) : metric_means(store, metric, text_of(spec, "method"));
    std::map<std::int64_t, const CellRow*> cell_of;
    std::vector<CellRow> asked;
    for (const auto& cell : cells)
        if (cell.factors.contains(x) && cell.factors.contains(y)) asked.push_back(cell);
    for (const auto& cell : asked) cell_of[cell.id] = &cell;
    const auto columns = axis_values(asked, x);
    const auto rows = axis_values(asked, y);
    const auto panel_name = panels_of(asked, {x, y});
    std::set<std::string> panel_names;
    for (const auto& [id, name] : panel_name) panel_names.insert(name);
    const bool pooled = metric.empty() && panel_names.size() > most_panels;  // all of a large study in one map
    const auto place = [](const std::vector<std::string>& all, const std::string& one) {
        return static_cast<std::size_t>(std::distance(all.begin(), std::find(all.begin(), all.end(), one)));
    };
    bool several_methods = false;
    for (const auto& number : numbers) several_methods = several_methods || number.method != numbers.front().method;

    Figure figure;
    figure.title = title;
    figure.columns = {"panel", "#" + x, "#" + y, "cell", "#n", "#" + what};
    figure.csv = csv_line({"panel", x, y, "cell", "n", "value", "mcse"});
    // Where cells share a box (more factors than there is room for), it has the worst of them.
    std::map<std::tuple<std::string, std::size_t, std::size_t>, double> boxes;
    std::vector<std::string> order;
    std::size_t left_out = 0;
    std::size_t shared = 0;
    const CellNumber* largest = nullptr;
    for (const auto& number : numbers) {
        const auto cell = cell_of.find(number.cell);
        if (cell == cell_of.end()) continue;
        std::vector<std::string> parts;
        if (several_methods) parts.push_back(number.method);
        if (!panel_name.at(number.cell).empty()) parts.push_back(panel_name.at(number.cell));
        std::string panel = fmt::format("{}", fmt::join(parts, ", "));
        const auto& factors = cell->second->factors;
        figure.rows.push_back({panel, factors.at(x).text, factors.at(y).text, cell->second->label,
                               std::to_string(number.n), with_error(number.value, number.error)});
        figure.csv += csv_line({panel, factors.at(x).text, factors.at(y).text, cell->second->label,
                                std::to_string(number.n), exact(number.value), exact(number.error)});
        if (largest == nullptr || number.value > largest->value) largest = &number;
        if (pooled) panel.clear();
        if (std::find(order.begin(), order.end(), panel) == order.end()) {
            if (order.size() >= most_panels) {
                ++left_out;
                continue;
            }
            order.push_back(panel);
        }
        const std::tuple key{panel, place(columns, factors.at(x).text), place(rows, factors.at(y).text)};
        const auto [box, fresh] = boxes.emplace(key, number.value);
        if (!fresh) {
            ++shared;
            box->second = std::max(box->second, number.value);
        }
    }
    if (figure.rows.empty())
        return {without_data(title, metric.empty() ? "the store holds no checks of such cells"
                                                   : fmt::format("the store holds no values of {} there", metric))};
    std::vector<MapBox> map;
    for (const auto& panel : order)
        for (const auto& [key, value] : boxes)
            if (std::get<0>(key) == panel) map.push_back({panel, std::get<1>(key), std::get<2>(key), value});
    draw_map(figure, map, {x, y, columns, rows}, what);
    figure.description = fmt::format(
        "{} over {} x {} values of {} and {}{}. Largest: {:.4g} at {}{}.", counted(figure.rows.size(), "mean"),
        columns.size(), rows.size(), x, y, order.size() > 1 ? fmt::format(" in {} panels", order.size()) : "",
        largest->value, cell_of.at(largest->cell)->label, several_methods ? " (" + largest->method + ")" : "");
    if (metric.empty())
        figure.description += " Below 1 the estimate lies inside the margin of the check, above 1 outside.";
    if (shared > 0) figure.description += " Where several cells share a box it has the largest of them.";
    if (left_out > 0)
        figure.problem =
            fmt::format("{} values are not drawn (at most {} panels are); the data has them", left_out, most_panels);
    draw(figure);
    return {figure};
}

}  // namespace spiked::reports

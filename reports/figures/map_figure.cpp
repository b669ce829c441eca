// Maps over two factors: detections, false alarms, errors, or the deviations of the checks of each cell.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "reports/figures/figure_parts.hpp"
#include "reports/tables/csv_text.hpp"
#include "reports/tables/metric_words.hpp"
#include "reports/tables/text_table.hpp"

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

/// For the worst check of each cell, the distance of the estimate from the middle of the region in units of the margin.
std::vector<CellNumber> check_deviations(Database& store) {
    std::map<std::int64_t, CellNumber> worst;
    for (const auto& check : read_checks(store)) {
        const double off = check.margins_off(check.estimate);
        if (!std::isfinite(off)) continue;
        auto& cell = worst.emplace(check.cell_id, CellNumber{check.cell_id, "", -1.0, 0.0, 0}).first->second;
        if (off > cell.value) cell = {check.cell_id, "", off, check.standard_error / check.unit(), check.n};
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
        numbers.push_back({query.integer(0), query.text(1), query.real(2),
                           shown_error(metric, query.real(2), query.real(3), query.integer(4)), query.integer(4)});
    return numbers;
}

/// The varying factors in decreasing order of the number of their values.
std::vector<std::string> by_values(const std::vector<CellRow>& cells) {
    std::map<std::string, std::set<std::string>> values;
    for (const auto& cell : cells)
        for (const auto& [name, value] : cell.factors) values[name].insert(value.text);
    std::vector<std::string> names = varying_factors(cells);
    std::stable_sort(names.begin(), names.end(),
                     [&](const auto& a, const auto& b) { return values.at(a).size() > values.at(b).size(); });
    return names;
}

/// The values of a factor along an axis: texts in the order of the cells, then numbers in increasing order.
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

/// The requested factors, else those with the most values.
MapAxes choose_axes(const std::vector<CellRow>& cells, const Json& spec) {
    MapAxes axes{text_of(spec, "x"), text_of(spec, "by"), {}, {}};
    for (const auto& name : by_values(cells)) {
        if (axes.x.empty() && name != axes.y)
            axes.x = name;
        else if (axes.y.empty() && name != axes.x)
            axes.y = name;
    }
    return axes;
}

std::size_t index_of(const std::vector<std::string>& all, const std::string& one) {
    return static_cast<std::size_t>(std::distance(all.begin(), std::find(all.begin(), all.end(), one)));
}

/// The boxes of the panels in order of appearance. Where several cells fall into one box, because there are more
/// factors than axes and panels, it has the largest of their values. Values that would need more than most_panels are
/// counted and left out.
struct PanelBoxes {
    std::vector<std::string> order;
    std::map<std::string, std::map<std::pair<std::size_t, std::size_t>, double>>
        panels;  ///< by title, then by column and row
    std::size_t left_out = 0;
    std::size_t shared = 0;  ///< values that fall into a box which has one
};

void add_box(PanelBoxes& boxes, const MapBox& box) {
    if (!boxes.panels.contains(box.panel)) {
        if (boxes.order.size() >= most_panels) {
            ++boxes.left_out;
            return;
        }
        boxes.order.push_back(box.panel);
    }
    const auto [known, is_new] = boxes.panels[box.panel].emplace(std::pair(box.column, box.row), box.value);
    if (is_new) return;
    ++boxes.shared;
    known->second = std::max(known->second, box.value);
}

std::vector<MapBox> in_order(const PanelBoxes& boxes) {
    std::vector<MapBox> map;
    for (const auto& panel : boxes.order)
        for (const auto& [place, value] : boxes.panels.at(panel))
            map.push_back({panel, place.first, place.second, value});
    return map;
}

struct MappedNumbers {
    PanelBoxes boxes;
    double largest = 0.0;
    std::string largest_at;
};

/// Puts the numbers of the cells into boxes and adds all of them to the table and the CSV of the figure.
MappedNumbers map_numbers(const std::vector<CellRow>& cells, const std::vector<CellNumber>& numbers,
                          const MapAxes& axes, bool of_checks, Figure& figure) {
    MappedNumbers mapped;
    const auto panel_name = panels_of(cells, {axes.x, axes.y});
    std::set<std::string> panel_names;
    for (const auto& [id, name] : panel_name) panel_names.insert(name);
    const bool pooled = of_checks && panel_names.size() > most_panels;  // a large study is one map
    bool several_methods = false;
    for (const auto& number : numbers) several_methods = several_methods || number.method != numbers.front().method;
    for (const auto& number : numbers) {
        const CellRow* const cell = cell_of(cells, number.cell);
        if (cell == nullptr) continue;
        std::vector<std::string> parts;
        if (several_methods) parts.push_back(number.method);
        if (!panel_name.at(number.cell).empty()) parts.push_back(panel_name.at(number.cell));
        const std::string panel = fmt::format("{}", fmt::join(parts, ", "));
        const std::string& x = cell->factors.at(axes.x).text;
        const std::string& y = cell->factors.at(axes.y).text;
        if (figure.rows.empty() || number.value > mapped.largest) {
            mapped.largest = number.value;
            mapped.largest_at = cell->label + (several_methods ? " (" + number.method + ")" : "");
        }
        figure.rows.push_back(
            {panel, x, y, cell->label, std::to_string(number.n), with_error(number.value, number.error)});
        figure.csv +=
            csv_line({panel, x, y, cell->label, std::to_string(number.n), exact(number.value), exact(number.error)});
        add_box(mapped.boxes, {pooled ? "" : panel, index_of(axes.columns, x), index_of(axes.rows, y), number.value});
    }
    return mapped;
}

}  // namespace

std::vector<Figure> factor_map(Database& store, const Json& spec) {
    auto cells = read_cells(store);
    const std::string metric = texts_of(spec, "y", {""}).front();
    MapAxes axes = choose_axes(cells, spec);
    const std::string what = metric.empty() ? "Deviation of the worst check in margins" : long_name_of(metric);
    const std::string title = fmt::format("{} by {} and {}", what, axes.x, axes.y);
    if (axes.x.empty() || axes.y.empty() || axes.x == axes.y)
        return {without_data(title, "a map needs two factors that take more than one value")};
    const auto numbers =
        metric.empty() ? check_deviations(store) : metric_means(store, metric, text_of(spec, "method"));
    std::erase_if(
        cells, [&](const CellRow& cell) { return !cell.factors.contains(axes.x) || !cell.factors.contains(axes.y); });
    axes.columns = axis_values(cells, axes.x);
    axes.rows = axis_values(cells, axes.y);

    constexpr std::size_t most_boxes = 100'000;
    if (axes.columns.size() * axes.rows.size() > most_boxes)
        return {without_data(
            title, fmt::format("a map of {} x {} boxes is too large to draw", axes.columns.size(), axes.rows.size()))};

    Figure figure;
    figure.title = title;
    figure.columns = {"panel", "#" + axes.x, "#" + axes.y, "cell", "#n", "#" + what};
    figure.csv = csv_line({"panel", axes.x, axes.y, "cell", "n", "value", "mcse"});
    const auto [boxes, largest, largest_at] = map_numbers(cells, numbers, axes, metric.empty(), figure);
    if (figure.rows.empty())
        return {without_data(title, metric.empty() ? "the store holds no checks of such cells"
                                                   : fmt::format("the store holds no values of {} there", metric))};
    draw_map(figure, in_order(boxes), axes, what);
    figure.description = fmt::format(
        "{} over {} x {} values of {} and {}{}. Largest: {:.4g} at {}.", counted(figure.rows.size(), "mean"),
        axes.columns.size(), axes.rows.size(), axes.x, axes.y,
        boxes.order.size() > 1 ? fmt::format(" in {} panels", boxes.order.size()) : "", largest, largest_at);
    if (metric.empty())
        figure.description += " Below 1 the estimate lies inside the margin of the check, above 1 outside.";
    if (boxes.shared > 0) figure.description += " Where several cells fall into one box it shows the largest of them.";
    if (boxes.left_out > 0)
        figure.problem = fmt::format("{} values are not drawn (at most {} panels are); the data has them",
                                     boxes.left_out, most_panels);
    draw(figure);
    return {figure};
}

}  // namespace spiked::reports

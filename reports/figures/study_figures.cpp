// Figures of a design: metrics against its factors.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "core/text/names.hpp"
#include "reports/figures/figure_parts.hpp"
#include "reports/tables/csv_text.hpp"
#include "reports/tables/metric_words.hpp"
#include "reports/tables/store_queries.hpp"
#include "reports/tables/text_table.hpp"

namespace spiked::reports {
namespace {

using validation::Database;
using validation::Statement;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// The tic label of a value: a long list is shortened to its first element.
std::string tick_name(const std::string& text) {
    constexpr std::size_t longest = 14;
    return text.size() <= longest ? text : text.substr(0, std::min(longest, text.find(','))) + ", …]";
}

/// The numbers of a list such as `[8, 4]`, or a single number; empty where an element is not a number.
std::vector<double> numbers_of(std::string text) {
    if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
    std::vector<double> numbers;
    for (const auto& word : split(text, ',')) {
        const auto number = to_number(word.substr(std::min(word.size(), word.find_first_not_of(' '))));
        if (!number) return {};
        numbers.push_back(*number);
    }
    return numbers;
}

/// The unit of the strengths of all cells; empty where cells have different units.
std::string strength_unit(Database& store) {
    Statement units(store, "SELECT DISTINCT coalesce(json_extract(params, '$.signal.unit'), 'threshold') FROM cell");
    const std::string unit = units.step() ? units.text(0) : "";
    return units.step() ? "" : unit;
}

/// Whether all means of these metrics belong to spikes or components, whose k counts from 1.
bool of_spikes(Database& store, const std::vector<std::string>& metrics) {
    Statement query(store,
                    "SELECT count(*), min(m.k) FROM moment m JOIN metric USING(metric_id) WHERE metric.name = ?1");
    for (const auto& metric : metrics) {
        query.reset();
        query.bind(1, metric);
        (void)query.step();
        if (query.integer(0) > 0 && query.integer(1) < 1) return false;
    }
    return true;
}

/// The positions of cells and their spikes along a factor.
struct FactorAxis {
    std::string factor;
    std::vector<CellRow> cells;  ///< cells that have the factor, by id
    bool spikes = false;         ///< each spike is placed at its own strength
    bool ordinal = false;        ///< values are equally spaced in the order of the cells
    std::vector<std::string> ticks;
    bool lengths_shown = false;  ///< lists with the same first element are distinguished by their length
    std::map<std::int64_t, std::vector<double>> strengths;
    std::map<std::string, double> ordinal_of;

    /// The position of component k of a cell. An estimated spike beyond the list of strengths has strength 0.
    [[nodiscard]] double position(const CellRow& cell, std::int64_t k) const {
        const auto& value = cell.factors.at(factor);
        if (!spikes) return ordinal ? ordinal_of.at(value.text) : value.number;
        const auto& list = strengths.at(cell.id);
        return k <= static_cast<std::int64_t>(list.size()) ? list[static_cast<std::size_t>(k - 1)] : 0.0;
    }
};

/// The requested factor, else the strength if it varies, else the first factor that varies.
std::string chosen_factor(const std::vector<CellRow>& cells, const Json& spec) {
    const std::string requested = text_of(spec, "x");
    if (!requested.empty()) return requested;
    const auto varying = varying_factors(cells);
    const bool strength = std::find(varying.begin(), varying.end(), "signal.strength") != varying.end();
    return strength || varying.empty() ? "signal.strength" : varying.front();
}

FactorAxis factor_axis(Database& store, const std::vector<std::string>& metrics, const Json& spec) {
    FactorAxis axis;
    axis.cells = read_cells(store);
    axis.factor = chosen_factor(axis.cells, spec);
    const std::string& x = axis.factor;
    if (x == "cell")
        for (std::size_t c = 0; c < axis.cells.size(); ++c) axis.cells[c].factors[x] = {nan, std::to_string(c + 1)};
    std::erase_if(axis.cells, [&](const CellRow& cell) { return !cell.factors.contains(x); });

    bool numbers = true;
    bool lists = false;
    for (const auto& cell : axis.cells) {
        const auto& value = cell.factors.at(x);
        lists = lists || value.text.starts_with('[');
        numbers = numbers && !std::isnan(value.number);
        if (x == "signal.strength") axis.strengths[cell.id] = numbers_of(value.text);
    }
    axis.spikes =
        lists && of_spikes(store, metrics) && !axis.strengths.empty() &&
        std::none_of(axis.strengths.begin(), axis.strengths.end(), [](const auto& s) { return s.second.empty(); });
    axis.ordinal = !axis.spikes && (lists || !numbers);
    std::map<std::string, std::size_t> of_name;
    for (const auto& cell : axis.cells) {
        const auto& text = cell.factors.at(x).text;
        if (axis.ordinal && axis.ordinal_of.emplace(text, static_cast<double>(axis.ordinal_of.size() + 1)).second)
            ++of_name[tick_name(text)];
    }
    for (const auto& [text, place] : axis.ordinal_of) {
        std::string name = tick_name(text);
        if (of_name.at(name) > 1) {
            name += fmt::format(" ({})", std::count(text.begin(), text.end(), ',') + 1);
            axis.lengths_shown = true;
        }
        axis.ticks.push_back(fmt::format("{} {:g}", gnuplot_quoted(name), place));
    }
    return axis;
}

/// Means of metrics along an axis.
struct AxisMeans {
    PanelSeries series;
    std::size_t points = 0;
    bool theory_shown = false;
    double worst = -1.0;  ///< largest distance from theory in standard errors
    std::string worst_text;
    bool worst_checked = false;  ///< whether a check judges that mean
    bool any_checked = false;
    Range x_range;
    Range y_range;
};

AxisMeans gather_means(Database& store, const FactorAxis& axis, const std::vector<std::string>& metrics,
                       Figure& figure) {
    AxisMeans means;
    const auto panel_name = panels_of(axis.cells, {axis.factor}, axis.spikes);
    Statement query(
        store,
        // The table theory has no methods; the prediction for a codec is stored with its check.
        fmt::format("SELECT s.cell_id, s.cell, s.method, s.k, s.n, s.mean, s.mcse, CASE WHEN m.kind <> 'codec' THEN "
                    "t.value ELSE v.expected END, v.expected, (SELECT COUNT(DISTINCT o.k) FROM moment o JOIN metric "
                    "om USING(metric_id) WHERE om.name = ?1) FROM v_summary s JOIN method m USING(method_id) LEFT "
                    "JOIN theory t ON t.cell_id = s.cell_id AND t.quantity = s.metric AND t.k = s.k LEFT JOIN {} v ON "
                    "v.cell_id = s.cell_id AND v.method_id = s.method_id AND v.metric = s.metric AND v.k = s.k WHERE "
                    "s.metric = ?1 AND s.mean IS NOT NULL ORDER BY s.cell_id, s.method_id, s.k",
                    first_expectations));
    for (const auto& metric : metrics) {
        query.reset();
        query.bind(1, metric);
        while (query.step()) {
            const CellRow* cell = cell_of(axis.cells, query.integer(0));
            if (cell == nullptr) continue;
            const std::string& value = cell->factors.at(axis.factor).text;
            const std::string method = query.text(2);
            const std::int64_t k = query.integer(3);
            const double error = shown_error(metric, query.real(5), query.real(6), query.integer(4));
            const Point point{axis.position(*cell, k), query.real(5), error, query.real(7)};
            figure.csv += csv_line({query.text(1), value, metric, method, std::to_string(k), query.text(4),
                                    exact(point.y), exact(point.error), exact(point.theory)});
            figure.rows.push_back({query.text(1), value, long_name_of(metric), method, std::to_string(k), query.text(4),
                                   with_error(point.y, point.error),
                                   std::isnan(point.theory) ? "" : fmt::format("{:.4g}", point.theory)});
            // A check may expect another number than the limit: theory at the size of the cell.
            const bool checked = !query.is_null(8);
            means.any_checked = means.any_checked || checked;
            const double expected = checked ? query.real(8) : point.theory;
            const double deviation = std::abs(point.y - expected) / point.error;
            if (std::isfinite(deviation) && deviation > means.worst) {
                means.worst = deviation;
                means.worst_checked = checked;
                means.worst_text = fmt::format("{}{} at {}, {} against {}{:.4g} ({})", long_name_of(metric),
                                               k > 1 ? fmt::format(" of spike {}", k) : "", query.text(1),
                                               with_error(point.y, point.error), checked ? "" : "the limit ", expected,
                                               standard_errors(deviation));
            }
            // A single metric is the label of the axis, so it is not repeated in the legend.
            std::string label = method == "sample"    ? long_name_of(metric)
                                : metrics.size() == 1 ? method
                                                      : long_name_of(metric) + ", " + method;
            if (!axis.spikes && query.integer(9) > 1) label += fmt::format(" k = {}", k);
            if (means.points >= most_points) {
                ++means.series.left_out;
                continue;
            }
            Series* series = means.series.find(panel_name.at(cell->id), label);
            if (series == nullptr) continue;
            means.theory_shown = means.theory_shown || std::isfinite(point.theory);
            means.x_range.take(point.x);
            const double reach = std::isfinite(point.error) ? point.error : 0.0;
            for (const double y : {point.y - reach, point.y + reach, point.theory}) means.y_range.take(y);
            series->points.push_back(point);
            ++means.points;
        }
    }
    return means;
}

std::string description_of(const FactorAxis& axis, const AxisMeans& means, const std::vector<std::string>& metrics,
                           const std::string& unit) {
    std::string text =
        fmt::format("{} of {} over {}{}. ", counted(means.points, "mean"), fmt::join(long_names_of(metrics), " and "),
                    counted(axis.cells.size(), "cell"),
                    means.series.panels.size() > 1 ? fmt::format(" in {} panels", means.series.panels.size()) : "");
    text += means.worst < 0.0 ? std::string("The store holds no theory for them.")
                              : "Farthest from theory in standard errors: " + means.worst_text + ".";
    if (means.worst >= 0.0 && means.any_checked && !means.worst_checked)
        text += " No check of the study judges this mean.";
    text += " Bars are one standard error";
    text += means.theory_shown ? "; dashed lines join theory at the study's points." : ".";
    if (unit == "threshold") text += " Strength in units of the detection threshold.";
    if (unit == "sqrt_n") text += " Strength in units of sqrt(n).";
    if (unit == "absolute") text += " Strength is the singular value of the clean signal.";
    if (axis.spikes) text += " Every spike stands at its own strength.";
    if (axis.lengths_shown) text += " Lists with the same first element have their length in brackets.";
    if (axis.factor == "cell") {
        const auto names = short_names(axis.cells);
        std::vector<std::string> known;
        for (std::size_t c = 0; c < axis.cells.size(); ++c)
            known.push_back(fmt::format("{}: {}", c + 1, names.at(axis.cells[c].id)));
        text += fmt::format(" Cells {}.", fmt::join(known, "; "));
    }
    return text;
}

}  // namespace

std::vector<Figure> estimate_against_theory(Database& store, const Json& spec) {
    const auto metrics = texts_of(spec, "y", {"overlap.left", "overlap.right"});
    const FactorAxis axis = factor_axis(store, metrics, spec);
    const std::string& x = axis.factor;
    Figure figure;
    const std::string quantities = fmt::format("{}", fmt::join(long_names_of(metrics), ", "));
    figure.title = fmt::format("{} against {}", quantities, x);
    if (axis.cells.empty()) return {without_data(figure.title, fmt::format("no cell has a factor called {}", x))};
    figure.columns = {"cell", "#" + x, "quantity", "method", "#k", "#n", "#estimate", "#theory"};
    figure.csv = csv_line({"cell", x, "metric", "method", "k", "count", "mean", "mcse", "theory"});
    AxisMeans means = gather_means(store, axis, metrics, figure);
    if (figure.rows.empty())
        return {without_data(figure.title, fmt::format("the store holds no values of {} yet", quantities))};

    const std::string unit = x == "signal.strength" && !axis.ordinal ? strength_unit(store) : "";
    figure.description = description_of(axis, means, metrics, unit);
    if (means.series.left_out > 0)
        figure.problem = fmt::format("{} points are not drawn (at most {} panels and {} points are); the data has them",
                                     means.series.left_out, most_panels, most_points);
    auto [data, drawn] = draw_panels(means.series, false);
    std::string settings = fmt::format("set xrange {}\nset yrange {}\nset xlabel {} noenhanced\n",
                                       means.x_range.text(0.04), means.y_range.text(0.06), gnuplot_quoted(x));
    if (metrics.size() == 1) settings += fmt::format("set ylabel {} noenhanced\n", gnuplot_quoted(quantities));
    if (axis.ordinal) settings += fmt::format("set xtics nomirror ({})\n", fmt::join(axis.ticks, ", "));
    if (unit == "threshold" && means.x_range.low <= 1.0 && means.x_range.high >= 1.0)
        settings +=
            "set arrow 1 from first 1, graph 0 to first 1, graph 1 nohead lw 1 dt 3 lc rgb '#888888'\n"
            "set label 1 'threshold' at first 1, graph 0.98 right rotate by 90 offset -0.6,0 font ',11'\n";
    constexpr std::size_t most_named = 20;
    auto& styles = means.series.styles;
    if (styles.size() > most_named) {
        figure.description += fmt::format(" {} curves are too many for a legend; the data name them.", styles.size());
        styles.clear();
    }
    figure.script = panel_script(figure.title, data, settings, drawn, legend_of(styles, means.theory_shown, false));
    draw(figure);
    return {figure};
}

}  // namespace spiked::reports

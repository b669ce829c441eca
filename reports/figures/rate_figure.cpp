// How a deviation or a standard deviation falls with size: points on logarithmic axes and the slope fitted to them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/text/names.hpp"
#include "reports/figures/figure_parts.hpp"
#include "reports/tables/csv_text.hpp"
#include "reports/tables/metric_words.hpp"
#include "reports/tables/text_table.hpp"
#include "validation/statistics/power_law.hpp"

namespace spiked::reports {
namespace {

using validation::Database;
using validation::Statement;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
using validation::least_standard_errors;

/// The power law through the points of a series.
validation::PowerLaw fit(const std::vector<Point>& points) {
    std::vector<validation::MeasuredPoint> measured;
    for (const Point& point : points) measured.push_back({point.x, point.y, point.error});
    return validation::fit_power_law(measured);
}

/// A number of the JSON, or a text with a number; NaN where there is none.
double number_of(const Json& spec, std::string_view key) {
    const Json* value = spec.find(key);
    if (value == nullptr) return nan;
    if (value->real() != nullptr) return *value->real();
    if (value->integer() != nullptr) return static_cast<double>(*value->integer());
    return value->string() != nullptr ? to_number(*value->string()).value_or(nan) : nan;
}

/// The quantity that is drawn: the deviation of means from theory, the standard deviation, or the size of means.
struct RateSpec {
    std::string x;
    std::string of;
    std::vector<std::string> metrics;

    [[nodiscard]] std::string quantity() const {
        return of == "deviation" ? "|mean - theory|" : of == "spread" ? "standard deviation" : "|mean|";
    }
};

/// The cells with a positive value of x, by id.
std::vector<CellRow> cells_along(Database& store, const std::string& x) {
    std::vector<CellRow> cells = read_cells(store);
    for (auto& cell : cells) {
        if (x == "n" || x == "d")
            cell.factors.try_emplace(x, FactorValue{static_cast<double>(x == "n" ? cell.n : cell.d),
                                                    std::to_string(x == "n" ? cell.n : cell.d)});
        // n and d grow together, so d is not a factor of its own.
        if (x == "n") cell.factors.erase("d");
    }
    std::erase_if(cells, [&](const CellRow& cell) {
        const auto factor = cell.factors.find(x);
        return factor == cell.factors.end() || !(factor->second.number > 0.0);
    });
    return cells;
}

struct Gathered {
    PanelSeries series;
    Range x_range;
    Range y_range;
};

Gathered gather(Database& store, const std::vector<CellRow>& cells, const RateSpec& rate_spec, Figure& figure) {
    Gathered found;
    const auto panel_name = panels_of(cells, {rate_spec.x, "n", "d"});
    Statement query(
        store,
        fmt::format(
            "SELECT s.cell_id, s.cell, s.method, s.k, s.n, s.mean, s.mcse, s.sd, CASE WHEN m.kind <> 'codec' THEN "
            "t.value ELSE v.expected END, (SELECT COUNT(DISTINCT o.k) FROM moment o JOIN metric om USING(metric_id) "
            "WHERE om.name = ?1), s.method_id, s.metric_id FROM v_summary s JOIN method m USING(method_id) LEFT JOIN "
            "theory t ON t.cell_id = s.cell_id AND t.quantity = s.metric AND t.k = s.k LEFT JOIN {} v ON v.cell_id = "
            "s.cell_id AND v.method_id = s.method_id AND v.metric = s.metric AND v.k = s.k WHERE s.metric = ?1 AND "
            "s.mean IS NOT NULL ORDER BY s.cell_id, s.method_id, s.k",
            first_expectations));
    for (const auto& metric : rate_spec.metrics) {
        query.reset();
        query.bind(1, metric);
        while (query.step()) {
            const CellRow* const cell = cell_of(cells, query.integer(0));
            if (cell == nullptr) continue;
            const FactorValue& value = cell->factors.at(rate_spec.x);
            Point point{value.number, nan, nan, nan};
            const double count = query.real(4);
            if (rate_spec.of == "spread") {
                // The standard error of a standard deviation follows from the fourth moment.
                const validation::Moments all =
                    pooled_moments(store, query.integer(0), query.integer(10), query.integer(11), query.integer(3));
                point.y = query.real(7);
                const double variance = point.y * point.y;
                point.error = std::sqrt(std::max(0.0, all.m4 / count - variance * variance) / count) / (2.0 * point.y);
            } else {
                point.y = std::abs(query.real(5) - (rate_spec.of == "deviation" ? query.real(8) : 0.0));
                point.error = query.real(6);
            }
            if (!(point.y > 0.0)) continue;
            figure.rows.push_back({query.text(1), value.text, long_name_of(metric), query.text(2), query.text(3),
                                   query.text(4), with_error(point.y, point.error)});
            figure.csv += csv_line({query.text(1), value.text, metric, query.text(2), query.text(3), query.text(4),
                                    exact(point.y), exact(point.error)});
            std::string label = long_name_of(metric);
            if (query.text(2) != "sample") label += ", " + query.text(2);
            if (query.integer(9) > 1) label += fmt::format(" k = {}", query.integer(3));
            Series* series = found.series.find(panel_name.at(cell->id), label);
            if (series == nullptr) continue;
            series->points.push_back(point);
            found.x_range.take(point.x);
            // The bar of a deviation within the noise ends at the frame, because the deviation may be zero.
            found.y_range.take(point.y + point.error);
            found.y_range.take(point.y > least_standard_errors * point.error ? point.y - point.error : point.error);
        }
    }
    return found;
}

/// The number of points so close to zero that only the upper end of their bar lies inside the frame.
std::size_t points_below(const Gathered& found) {
    std::size_t below = 0;
    for (const auto& [panel, of_panel] : found.series.panels)
        for (const auto& [label, series] : of_panel)
            for (const auto& point : series.points) below += point.y < found.y_range.low / Range::log_room ? 1 : 0;
    return below;
}

struct Slopes {
    std::vector<std::string> sentences;
    std::size_t too_few = 0;  ///< series with too few points for a slope
};

/// Adds the fitted lines, and lines of the reference slope, to the panels.
Slopes draw_slopes(const PanelSeries& all, const std::string& x, double reference, std::vector<Panel>& drawn) {
    Slopes slopes;
    for (std::size_t p = 0; p < all.order.size(); ++p) {
        for (const auto& [label, series] : all.panels.at(all.order[p])) {
            const validation::PowerLaw law = fit(series.points);
            if (std::isnan(law.exponent)) {
                ++slopes.too_few;
                continue;
            }
            const std::string& color = series_style(series.style).color;
            const auto line = [&](double through, const char* dash) {
                return fmt::format("exp({:.8g} + {:.8g} * (log(x) - {:.8g})) with lines lw 1.4 {} lc rgb '{}'",
                                   law.center_y, through, law.center_x, dash, color);
            };
            drawn[p].plots.push_back(line(law.exponent, ""));
            if (std::isfinite(reference)) drawn[p].plots.push_back(line(reference, "dt 2"));
            const std::string text = with_error(law.exponent, law.error);
            drawn[p].legend.push_back({fmt::format("slope {}", text), fmt::format("lines lw 1.4 lc rgb '{}'", color)});
            slopes.sentences.push_back(fmt::format(
                "{}{}: {}^{} over {} points, chi-square {:.2g} on {} degrees of freedom{}", label,
                all.order[p].empty() ? "" : " (" + all.order[p] + ")", x, text, law.points, law.chi_square,
                law.points - 2,
                std::isfinite(reference)
                    ? fmt::format(", {} from {:.4g}", standard_errors(std::abs(law.exponent - reference) / law.error),
                                  reference)
                    : ""));
        }
    }
    return slopes;
}

/// Tics at all values of the factor.
std::vector<std::string> tics_of(const std::vector<CellRow>& cells, const std::string& x) {
    std::vector<std::string> tics;
    for (const auto& cell : cells)
        if (const auto tic = reports::gnuplot_quoted(cell.factors.at(x).text) + " " + exact(cell.factors.at(x).number);
            std::find(tics.begin(), tics.end(), tic) == tics.end())
            tics.push_back(tic);
    return tics;
}

}  // namespace

std::vector<Figure> rate(Database& store, const Json& spec) {
    const RateSpec rate_spec{text_of(spec, "x"), text_of(spec, "of"), texts_of(spec, "y", {"outlier"})};
    const auto& [x, of, metrics] = rate_spec;
    const double reference = number_of(spec, "slope");
    Figure figure;
    const std::string quantities = fmt::format("{}", fmt::join(long_names_of(metrics), ", "));
    figure.title = fmt::format("{} of {} against {}", rate_spec.quantity(), quantities, x);
    if (of != "deviation" && of != "spread" && of != "mean")
        return {without_data(figure.title, fmt::format("of = \"{}\" is none of deviation, spread, mean", of))};
    figure.columns = {"cell", "#" + x, "quantity", "method", "#k", "#n", "#" + rate_spec.quantity()};
    figure.csv = csv_line({"cell", x, "metric", "method", "k", "count", "value", "error"});
    const std::vector<CellRow> cells = cells_along(store, x);
    Gathered found = gather(store, cells, rate_spec, figure);
    if (figure.rows.empty())
        return {
            without_data(figure.title, fmt::format("the store holds no {} of {} at values of {} above 0",
                                                   of == "deviation" ? "means with theory" : "means", quantities, x))};
    const std::size_t below = points_below(found);
    auto [data, drawn] = draw_panels(found.series, false, true);
    const Slopes slopes = draw_slopes(found.series, x, reference, drawn);
    figure.description = fmt::format(
        "{} on logarithmic axes, slopes fitted by weighted least squares{}{}. Bars are one standard error; points "
        "within {:g} standard errors of zero are not fitted{}.{}{}",
        counted(figure.rows.size(), "value"), slopes.sentences.empty() ? "" : ". ", fmt::join(slopes.sentences, "; "),
        least_standard_errors,
        below > 0 ? fmt::format("; {} of them so close to it that only the upper end of the bar is drawn", below) : "",
        slopes.too_few > 0 ? fmt::format(" {} have fewer than three points to fit.", slopes.too_few) : "",
        std::isfinite(reference) ? fmt::format(" Dashed: slope {:.4g}.", reference) : "");
    if (found.series.left_out > 0)
        figure.problem = fmt::format("{} points are not drawn (at most {} panels and {} series are)",
                                     found.series.left_out, most_panels, most_labels);
    figure.script = panel_script(
        figure.title, data,
        fmt::format("set logscale xy\nset format y '%g'\n{}set xtics nomirror ({})\nset "
                    "xrange [{:.6g}:{:.6g}]\nset yrange {}\nset xlabel {} noenhanced\nset ylabel {} noenhanced\n",
                    found.y_range.log_tics(), fmt::join(tics_of(cells, x), ", "), found.x_range.low / 1.15,
                    found.x_range.high * 1.15, found.y_range.log_text(), reports::gnuplot_quoted(x),
                    reports::gnuplot_quoted(rate_spec.quantity())),
        drawn, legend_of(found.series.styles, false, false));
    draw(figure);
    return {figure};
}

}  // namespace spiked::reports

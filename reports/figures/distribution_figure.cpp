// Kept draws of one quantity: histogram and distribution function.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reports/figures/figure_parts.hpp"
#include "reports/tables/csv_text.hpp"
#include "reports/tables/metric_words.hpp"
#include "reports/tables/text_table.hpp"
#include "validation/statistics/statistics.hpp"

namespace spiked::reports {
namespace {

using validation::Database;
using validation::Statement;

constexpr std::size_t most_cells = 4;
constexpr std::size_t most_rows = 2000;
constexpr double band_level = 0.95;

/// A histogram over the whole range of the draws, with the bin width of Freedman and Diaconis and 5 to 60 bins.
struct Histogram {
    double low = 0.0;
    double width = 1.0;
    std::vector<std::size_t> counts;

    explicit Histogram(const std::vector<double>& sorted) {
        const auto quantile = [&](double probability) {
            return sorted[static_cast<std::size_t>(probability * static_cast<double>(sorted.size() - 1))];
        };
        const double range = sorted.back() - sorted.front();
        if (!std::isfinite(range)) {  // such numbers cannot be drawn
            counts.assign(1, sorted.size());
            return;
        }
        const double step = 2.0 * (quantile(0.75) - quantile(0.25)) / std::cbrt(static_cast<double>(sorted.size()));
        const double wanted = step > 0.0 ? std::ceil(range / step) : 10.0;
        const auto bins = static_cast<std::size_t>(std::clamp(wanted, 5.0, 60.0));
        low = range > 0.0 ? sorted.front() : sorted.front() - 0.5;
        width = range > 0.0 ? range / static_cast<double>(bins) : 1.0 / static_cast<double>(bins);
        counts.assign(bins, 0);
        for (const double value : sorted) ++counts[std::min(bins - 1, static_cast<std::size_t>((value - low) / width))];
    }
};

/// The first metric with kept draws.
std::string first_metric(Database& store) {
    Statement first(store,
                    "SELECT name FROM metric WHERE metric_id = (SELECT metric_id FROM value ORDER BY method_id, "
                    "metric_id LIMIT 1)");
    return first.step() ? first.text(0) : "";
}

/// The first method with kept draws of a metric.
std::string first_method(Database& store, const std::string& metric) {
    Statement first(store,
                    "SELECT m.name FROM method m WHERE EXISTS(SELECT 1 FROM value v JOIN metric mt USING(metric_id) "
                    "WHERE v.method_id = m.method_id AND mt.name = ?1) ORDER BY method_id LIMIT 1");
    first.bind(1, metric);
    return first.step() ? first.text(0) : "";
}

/// The draws of one cell.
struct Draws {
    std::string cell;
    std::string metric;
    std::vector<double> sorted;
    double theory = std::numeric_limits<double>::quiet_NaN();
    std::size_t number = 0;  ///< index of the cell in the figure

    /// Half the width of the simultaneous confidence band around the empirical distribution function.
    [[nodiscard]] double band() const { return validation::band_half_width(sorted.size(), 1.0 - band_level); }
};

/// The data blocks `$b0` of the histogram and `$e0` of the distribution function. Adds rows to the data table and the
/// CSV.
std::string data_of(const Draws& draws, const Histogram& histogram, Figure& figure) {
    const auto& sorted = draws.sorted;
    std::string data = fmt::format("$b{} << END\n", draws.number);
    for (std::size_t b = 0; b < histogram.counts.size(); ++b)
        data += fmt::format("{:.8g} {} {:.4g}\n", histogram.low + (static_cast<double>(b) + 0.5) * histogram.width,
                            histogram.counts[b], std::sqrt(static_cast<double>(histogram.counts[b])));
    data += fmt::format("END\n$e{} << END\n", draws.number);
    // At most 500 steps are drawn, because more are not visible.
    const std::size_t step = 1 + sorted.size() / 500;
    for (std::size_t i = 0; i < sorted.size(); ++i) {
        const double fraction = (static_cast<double>(i) + 1.0) / static_cast<double>(sorted.size());
        const double low = std::max(0.0, fraction - draws.band());
        const double high = std::min(1.0, fraction + draws.band());
        if (i % step == 0 || i + 1 == sorted.size())
            data += fmt::format("{:.8g} {:.6g} {:.6g} {:.6g}\n", sorted[i], fraction, low, high);
        if (figure.rows.size() < most_rows)
            figure.rows.push_back({draws.cell, std::to_string(i + 1), fmt::format("{:.5g}", sorted[i]),
                                   fmt::format("{:.4f}", fraction), fmt::format("{:.4f}", low),
                                   fmt::format("{:.4f}", high)});
        figure.csv +=
            csv_line({draws.cell, std::to_string(i + 1), exact(sorted[i]), exact(fraction), exact(low), exact(high)});
    }
    return data + "END\n";
}

/// Adds the panel of the histogram and the panel of the distribution function.
void add_panels(const Draws& draws, const Histogram& histogram, const validation::Moments& moments,
                std::vector<Panel>& panels) {
    const std::string range =
        fmt::format("[{:.8g}:{:.8g}]", histogram.low - 0.5 * histogram.width,
                    histogram.low + (static_cast<double>(histogram.counts.size()) + 0.5) * histogram.width);
    const std::string line = std::isfinite(draws.theory)
                                 ? fmt::format(
                                       "set arrow 1 from first {0:.8g}, graph 0 to first {0:.8g}, graph 1 nohead front "
                                       "lw 1.5 dt 2 lc rgb '#A63C00'\n",
                                       draws.theory)
                                 : std::string("unset arrow 1\n");
    const std::string settings = fmt::format("set xrange {}\nset xtics nomirror autofreq\n{}set xlabel {} noenhanced\n",
                                             range, line, gnuplot_quoted(long_name_of(draws.metric)));
    Panel bars;
    bars.title = draws.cell;
    bars.settings =
        settings + fmt::format("set ylabel 'draws'\nset yrange [0:*]\nset boxwidth {:.8g}\n", 0.92 * histogram.width);
    bars.plots = {fmt::format("$b{} using 1:2 with boxes fill solid 0.8 noborder lc rgb '#1573D1'", draws.number),
                  error_bars(fmt::format("$b{}", draws.number), "lw 1.1 lc rgb '#004C7F'")};
    Panel steps;
    steps.title = fmt::format("{} draws", draws.sorted.size());
    steps.settings = settings + "set ylabel 'cumulative fraction'\nset yrange [0:1]\n";
    steps.plots = {
        fmt::format("$e{} using 1:3:4 with filledcurves fill solid 0.35 noborder lc rgb '#1573D1'", draws.number),
        fmt::format("$e{} using 1:2 with steps lw 1.6 lc rgb '#004C7F'", draws.number)};
    const double deviation = std::sqrt(moments.m2 / static_cast<double>(moments.count - 1));
    if (deviation > 0.0)
        steps.plots.push_back(
            fmt::format("norm((x - {:.8g}) / {:.8g}) with lines lw 1.2 dt 3 lc black", moments.mean, deviation));
    panels.push_back(std::move(bars));
    panels.push_back(std::move(steps));
}

std::string summary_of(const Draws& draws, const validation::Moments& moments) {
    const auto& sorted = draws.sorted;
    return fmt::format("{}: {} draws from {:.4g} to {:.4g}, median {:.4g}, mean {}{}", draws.cell, sorted.size(),
                       sorted.front(), sorted.back(), sorted[sorted.size() / 2],
                       with_error(moments.mean, moments.standard_error()),
                       std::isfinite(draws.theory) ? fmt::format(" where theory says {:.4g}", draws.theory) : "");
}

/// The kept draws of every cell, or of the cells `wanted`. Beyond most_cells, cells have empty draws.
std::vector<Draws> kept_draws(Database& store, const std::string& metric, const std::string& method,
                              const std::vector<std::string>& wanted) {
    Statement cells(store,
                    "SELECT DISTINCT v.cell_id, c.label, (SELECT t.value FROM theory t WHERE t.cell_id = c.cell_id AND "
                    "t.quantity = ?1 AND t.k = v.k), v.k FROM value v JOIN cell c USING(cell_id) JOIN method m "
                    "USING(method_id) JOIN metric mt USING(metric_id) WHERE mt.name = ?1 AND m.name = ?2 AND v.k <= 1 "
                    "ORDER BY v.cell_id, v.k");
    cells.bind(1, metric).bind(2, method);
    Statement values(store,
                     "SELECT v.v FROM value v JOIN method m USING(method_id) JOIN metric mt USING(metric_id) WHERE "
                     "v.cell_id = ?1 AND mt.name = ?2 AND m.name = ?3 AND v.k = ?4 AND v.v IS NOT NULL ORDER BY v.v");
    std::vector<Draws> found;
    while (cells.step()) {
        if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), cells.text(1)) == wanted.end()) continue;
        Draws draws{cells.text(1), metric, {}, cells.real(2), found.size()};
        values.reset();
        values.bind(1, cells.integer(0)).bind(2, metric).bind(3, method).bind(4, cells.integer(3));
        while (values.step()) draws.sorted.push_back(values.real(0));
        if (draws.sorted.size() < 2) continue;
        if (found.size() >= most_cells) draws.sorted = {};  // counted, not drawn
        found.push_back(std::move(draws));
    }
    return found;
}

}  // namespace

std::vector<Figure> distribution(Database& store, const Json& spec) {
    std::string metric = texts_of(spec, "y", {""}).front();
    if (metric.empty()) metric = first_metric(store);
    std::string method = text_of(spec, "method");
    if (method.empty()) method = first_method(store, metric);
    const std::string of = method.empty() || method == "sample" ? "" : " of " + method;
    Figure figure;
    figure.title = fmt::format("Distribution of {}{}", long_name_of(metric), of);
    figure.columns = {"cell", "#draw", "#" + long_name_of(metric), "#fraction up to it", "#band from", "#to"};
    figure.csv = csv_line({"cell", "draw", "value", "ecdf", "band_low", "band_high"});
    const std::vector<Draws> cells = kept_draws(store, metric, method, texts_of(spec, "cell", {}));
    if (cells.empty())
        return {without_data(figure.title,
                             fmt::format("the store keeps no draws of {}{} ([store] raw sets how many are kept)",
                                         metric.empty() ? "any metric" : long_name_of(metric), of))};
    std::string data;
    std::vector<Panel> panels;
    std::vector<std::string> sentences;
    for (std::size_t c = 0; c < std::min(cells.size(), most_cells); ++c) {
        const Histogram histogram(cells[c].sorted);
        validation::Moments moments;
        for (const double value : cells[c].sorted) moments.add(value);
        data += data_of(cells[c], histogram, figure);
        add_panels(cells[c], histogram, moments, panels);
        sentences.push_back(summary_of(cells[c], moments));
    }
    figure.description = fmt::format(
        "{}. Bars on the histogram are the root of the count; the band holds the whole distribution function with "
        "probability {:g} (Dvoretzky, Kiefer, Wolfowitz, Massart); dotted: the normal law of the same mean and "
        "standard deviation.",
        fmt::join(sentences, "; "), band_level);
    if (cells.size() > most_cells)
        figure.problem = fmt::format("{} more cells are not drawn (at most {} are); choose one by cell",
                                     cells.size() - most_cells, most_cells);
    std::vector<LegendEntry> legend = {{"draws", "linespoints pt 5 ps 1.4 lw 2 lc rgb '#1573D1'"},
                                       {"distribution function, 95 % band", "lines lw 2 lc rgb '#004C7F'"},
                                       {"normal law", "lines lw 1.2 dt 3 lc black"},
                                       {"theory for the mean", "lines lw 1.5 dt 2 lc rgb '#A63C00'"}};
    figure.script = panel_script(figure.title, data, "", panels, legend, {.columns = 2});
    draw(figure);
    return {figure};
}

}  // namespace spiked::reports

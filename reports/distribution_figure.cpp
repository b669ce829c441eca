// Kept draws of one quantity: histogram and distribution function.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reports/figure_parts.hpp"
#include "reports/text_table.hpp"

namespace spiked::reports {
namespace {

using validation::Database;
using validation::Statement;

constexpr std::size_t most_cells = 4;
constexpr std::size_t most_rows = 2000;
constexpr double band_level = 0.95;

/// Every draw lies in some bin; a width after Freedman and Diaconis, 5 to 60 bins.
struct Histogram {
    double low = 0.0;
    double width = 1.0;
    std::vector<std::size_t> counts;

    explicit Histogram(const std::vector<double>& sorted) {
        const auto quantile = [&](double share) {
            return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
        };
        const double range = sorted.back() - sorted.front();
        const double step = 2.0 * (quantile(0.75) - quantile(0.25)) / std::cbrt(static_cast<double>(sorted.size()));
        const double wanted = step > 0.0 ? std::ceil(range / step) : 10.0;
        const auto bins = static_cast<std::size_t>(std::clamp(wanted, 5.0, 60.0));
        low = range > 0.0 ? sorted.front() : sorted.front() - 0.5;
        width = range > 0.0 ? range / static_cast<double>(bins) : 1.0 / static_cast<double>(bins);
        counts.assign(bins, 0);
        for (const double value : sorted) ++counts[std::min(bins - 1, static_cast<std::size_t>((value - low) / width))];
    }
};

}  // namespace

std::vector<Figure> distribution(Database& store, const Json& spec) {
    std::string metric = texts_of(spec, "y", {""}).front();
    if (metric.empty()) {
        Statement first(store,
                        "SELECT name FROM metric WHERE metric_id = (SELECT metric_id FROM value ORDER BY method_id, "
                        "metric_id LIMIT 1)");
        if (first.step()) metric = first.text(0);
    }
    std::string method = text_of(spec, "method");
    if (method.empty()) {
        Statement first(
            store,
            "SELECT m.name FROM method m WHERE EXISTS(SELECT 1 FROM value v JOIN metric mt USING(metric_id) "
            "WHERE v.method_id = m.method_id AND mt.name = ?1) ORDER BY method_id LIMIT 1");
        first.bind(1, metric);
        if (first.step()) method = first.text(0);
    }
    const std::string of = method.empty() || method == "sample" ? "" : " of " + method;
    const std::string title = fmt::format("Distribution of {}{}", metric, of);
    const auto wanted = texts_of(spec, "cell", {});

    Figure figure;
    figure.title = title;
    figure.columns = {"cell", "#draw", "#" + metric, "#share up to it", "#band from", "#to"};
    figure.csv = csv_line({"cell", "draw", "value", "ecdf", "band_low", "band_high"});
    std::string data;
    std::vector<Panel> panels;
    std::size_t cells_left_out = 0;
    std::size_t drawn = 0;
    std::vector<std::string> sentences;
    Statement cells(store,
                    "SELECT DISTINCT v.cell_id, c.label, (SELECT t.value FROM theory t WHERE t.cell_id = c.cell_id AND "
                    "t.quantity = ?1 AND t.k = v.k), v.k FROM value v JOIN cell c USING(cell_id) JOIN method m "
                    "USING(method_id) JOIN metric mt USING(metric_id) WHERE mt.name = ?1 AND m.name = ?2 AND v.k <= 1 "
                    "ORDER BY v.cell_id, v.k");
    cells.bind(1, metric).bind(2, method);
    Statement draws(store,
                    "SELECT v.v FROM value v JOIN method m USING(method_id) JOIN metric mt USING(metric_id) WHERE "
                    "v.cell_id = ?1 AND mt.name = ?2 AND m.name = ?3 AND v.k = ?4 AND v.v IS NOT NULL ORDER BY v.v");
    while (cells.step()) {
        if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), cells.text(1)) == wanted.end()) continue;
        std::vector<double> sorted;
        draws.reset();
        draws.bind(1, cells.integer(0)).bind(2, metric).bind(3, method).bind(4, cells.integer(3));
        while (draws.step()) sorted.push_back(draws.real(0));
        if (sorted.size() < 2) continue;
        if (drawn == most_cells) {
            ++cells_left_out;
            continue;
        }
        const auto count = static_cast<double>(sorted.size());
        const double band = std::sqrt(std::log(2.0 / (1.0 - band_level)) / (2.0 * count));
        const Histogram histogram(sorted);
        validation::Moments moments;
        for (const double value : sorted) moments.add(value);
        const double spread = std::sqrt(moments.m2 / static_cast<double>(moments.count - 1));
        const double theory = cells.real(2);
        data += fmt::format("$b{} << END\n", drawn);
        for (std::size_t b = 0; b < histogram.counts.size(); ++b)
            data += fmt::format("{:.8g} {} {:.4g}\n", histogram.low + (static_cast<double>(b) + 0.5) * histogram.width,
                                histogram.counts[b], std::sqrt(static_cast<double>(histogram.counts[b])));
        data += fmt::format("END\n$e{} << END\n", drawn);
        // At most 500 steps are drawn: no eye sees more.
        const std::size_t step = 1 + sorted.size() / 500;
        for (std::size_t i = 0; i < sorted.size(); ++i) {
            const double share = (static_cast<double>(i) + 1.0) / count;
            const double low = std::max(0.0, share - band);
            const double high = std::min(1.0, share + band);
            if (i % step == 0 || i + 1 == sorted.size())
                data += fmt::format("{:.8g} {:.6g} {:.6g} {:.6g}\n", sorted[i], share, low, high);
            if (figure.rows.size() < most_rows)
                figure.rows.push_back({cells.text(1), std::to_string(i + 1), fmt::format("{:.5g}", sorted[i]),
                                       fmt::format("{:.4f}", share), fmt::format("{:.4f}", low),
                                       fmt::format("{:.4f}", high)});
            figure.csv += csv_line(
                {cells.text(1), std::to_string(i + 1), exact(sorted[i]), exact(share), exact(low), exact(high)});
        }
        data += "END\n";
        const std::string range =
            fmt::format("[{:.8g}:{:.8g}]", histogram.low - 0.5 * histogram.width,
                        histogram.low + (static_cast<double>(histogram.counts.size()) + 0.5) * histogram.width);
        const std::string line =
            std::isfinite(theory)
                ? fmt::format(
                      "set arrow 1 from first {0:.8g}, graph 0 to first {0:.8g}, graph 1 nohead front lw 1.5 dt 2 lc "
                      "rgb '#A63C00'\n",
                      theory)
                : std::string("unset arrow 1\n");
        const std::string settings = fmt::format(
            "set xrange {}\nset xtics nomirror autofreq\n{}set xlabel {} noenhanced\n", range, line, quoted(metric));
        Panel bars;
        bars.title = cells.text(1);
        bars.settings = settings + fmt::format("set ylabel 'draws'\nset yrange [0:*]\nset boxwidth {:.8g}\n",
                                               0.92 * histogram.width);
        bars.plots = {fmt::format("$b{} using 1:2 with boxes fill solid 0.8 noborder lc rgb '#1573D1'", drawn),
                      error_bars(fmt::format("$b{}", drawn), "lw 1.1 lc rgb '#004C7F'")};
        Panel steps;
        steps.title = fmt::format("{} draws", sorted.size());
        steps.settings = settings + "set ylabel 'share up to'\nset yrange [0:1]\n";
        steps.plots = {
            fmt::format("$e{} using 1:3:4 with filledcurves fill solid 0.35 noborder lc rgb '#1573D1'", drawn),
            fmt::format("$e{} using 1:2 with steps lw 1.6 lc rgb '#004C7F'", drawn)};
        if (spread > 0.0)
            steps.plots.push_back(
                fmt::format("norm((x - {:.8g}) / {:.8g}) with lines lw 1.2 dt 3 lc black", moments.mean, spread));
        panels.push_back(std::move(bars));
        panels.push_back(std::move(steps));
        sentences.push_back(fmt::format("{}: {} draws from {:.4g} to {:.4g}, median {:.4g}, mean {}{}", cells.text(1),
                                        sorted.size(), sorted.front(), sorted.back(), sorted[sorted.size() / 2],
                                        with_error(moments.mean, moments.standard_error()),
                                        std::isfinite(theory) ? fmt::format(" where theory says {:.4g}", theory) : ""));
        ++drawn;
    }
    if (drawn == 0)
        return {without_data(title, fmt::format("the store keeps no draws of {}{} ([store] raw says how many are kept)",
                                                metric.empty() ? "any metric" : metric, of))};
    figure.description = fmt::format(
        "{}. Bars on the histogram are the root of the count; the band holds the whole distribution function with "
        "probability {:g} (Dvoretzky, Kiefer, Wolfowitz, Massart); dotted: the normal law of the same mean and spread.",
        fmt::join(sentences, "; "), band_level);
    if (cells_left_out > 0)
        figure.problem =
            fmt::format("{} more cells are not drawn (at most {} are); name one by cell", cells_left_out, most_cells);
    std::vector<LegendEntry> legend = {{"draws", "linespoints pt 5 ps 1.4 lw 2 lc rgb '#1573D1'"},
                                       {"distribution function, 95 % band", "lines lw 2 lc rgb '#004C7F'"},
                                       {"normal law", "lines lw 1.2 dt 3 lc black"},
                                       {"theory for the mean", "lines lw 1.5 dt 2 lc rgb '#A63C00'"}};
    figure.script = panel_script(title, data, "", panels, legend, {.columns = 2});
    draw(figure);
    return {figure};
}

}  // namespace spiked::reports

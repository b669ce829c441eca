// Figures of codecs: distortion against index bits, error against stored bits.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>

#include "core/text/names.hpp"
#include "reports/figures/figure_parts.hpp"
#include "reports/tables/csv_text.hpp"
#include "reports/tables/store_queries.hpp"
#include "reports/tables/text_table.hpp"
#include "theory/quantization/rate_distortion.hpp"
#include "validation/kv/equal_bits.hpp"
#include "validation/kv/kv_table.hpp"

namespace spiked::reports {
namespace {

using validation::Database;
using validation::Statement;

/// One mean of a codec at one bit width in one panel.
struct CodecPoint {
    std::string panel;
    std::string base;
    double bits = 0;
    Point point;
    std::int64_t n = 0;
};

/// A line in each panel behind the points.
struct Backdrop {
    LegendEntry legend;
    std::map<std::string, std::vector<Point>> lines;
};

Figure codec_figure(Database& store, const std::string& title, const std::vector<CodecPoint>& codecs,
                    const std::string& x_name, const std::string& y_name, const std::string& settings = "",
                    const std::vector<Backdrop>& backdrops = {}) {
    Figure figure;
    figure.title = title;
    figure.columns = {"panel", "method", "#B", "#" + x_name, "#n", "#" + y_name, "#theory"};
    figure.csv = csv_line({"panel", "method", "bits", x_name, "n", "mean", "mcse", "theory"});
    const auto style_of = method_styles(store);
    PanelSeries panels;
    Range x_range;
    Range y_range;
    bool theory_shown = false;
    for (const auto& codec : codecs) {
        figure.rows.push_back({codec.panel, codec.base, fmt::format("{}", codec.bits),
                               fmt::format("{:.4f}", codec.point.x), std::to_string(codec.n),
                               with_error(codec.point.y, codec.point.error),
                               std::isnan(codec.point.theory) ? "" : fmt::format("{:.4g}", codec.point.theory)});
        figure.csv += csv_line({codec.panel, codec.base, fmt::format("{}", codec.bits), exact(codec.point.x),
                                std::to_string(codec.n), exact(codec.point.y), exact(codec.point.error),
                                exact(codec.point.theory)});
        Series* series = panels.find(codec.panel, codec.base, style_of.at(codec.base));
        if (series == nullptr) continue;
        series->points.push_back(codec.point);
        theory_shown = theory_shown || std::isfinite(codec.point.theory);
        x_range.take(codec.point.x);
        y_range.take(codec.point.y);
        y_range.take(codec.point.theory);
    }
    if (panels.left_out > 0)
        figure.problem = fmt::format("{} points are not drawn (at most {} panels and {} series are); the data has them",
                                     panels.left_out, most_panels, most_labels);
    auto [data, drawn] = draw_panels(panels, true, true);
    auto legend = legend_of(panels.styles, theory_shown, true);
    for (std::size_t b = 0, block = codecs.size(); b < backdrops.size(); ++b) {
        legend.push_back(backdrops[b].legend);
        for (auto& panel : drawn)
            if (const auto line = backdrops[b].lines.find(panel.title); line != backdrops[b].lines.end()) {
                for (const auto& point : line->second) y_range.take(point.y);
                data += data_block(block, line->second);
                panel.plots.insert(panel.plots.begin(),
                                   fmt::format("$s{} using 1:2 with {}", block++, backdrops[b].legend.style));
            }
    }
    figure.script =
        panel_script(title, data,
                     fmt::format("set logscale y\nset format y '%g'\n{}{}set xrange {}\nset yrange {}\nset xlabel {} "
                                 "noenhanced\nset ylabel {} noenhanced\n",
                                 settings, y_range.log_tics(), x_range.text(0.05), y_range.log_text(),
                                 gnuplot_quoted(x_name), gnuplot_quoted(y_name)),
                     drawn, legend, {.left = y_range.low < 1e-2 ? 130 : 90});  // room for tic labels such as 0.0001
    draw(figure);
    return figure;
}

/// The smallest error of any code of independent normal entries (Shannon) over the bits of each panel, which is a
/// straight line on a logarithmic axis.
Backdrop shannon_bound(const std::vector<CodecPoint>& codecs) {
    Backdrop bound{{"Shannon bound of normal entries", "lines lw 1.5 dt 3 lc black"}, {}};
    std::map<std::string, Range> ranges;
    for (const auto& codec : codecs) ranges[codec.panel].take(codec.point.x);
    for (const auto& [panel, range] : ranges)
        for (const double bits : {range.low, range.high})
            bound.lines[panel].push_back({bits, std::sqrt(theory::shannon_distortion(bits))});
    return bound;
}

/// The curves of a spec's `references`, one backdrop for each name. Points of a store that are none are left out.
std::vector<Backdrop> references_of(const Json& spec) {
    constexpr std::array styles = {"lines lw 1.5 dt 2 lc black", "lines lw 1.5 dt 4 lc black"};
    std::vector<Backdrop> curves;
    const Json* const list = spec.find("references");
    if (list == nullptr || list->items() == nullptr) return curves;
    for (const Json& point : *list->items()) {
        const std::string name = text_of(point, "name");
        const std::string panel = text_of(point, "side") + "s";
        const Json* const bits = point.find("bits_per_entry");
        const Json* const error = point.find("relative_l2");
        if (name.empty() || bits == nullptr || error == nullptr || !bits->real() || !error->real()) continue;
        const std::string label = name + " of normal rows";
        auto curve = std::ranges::find_if(curves, [&](const Backdrop& other) { return other.legend.label == label; });
        if (curve == curves.end()) {
            if (curves.size() == styles.size()) continue;
            curves.push_back({{label, styles[curves.size()]}, {}});
            curve = std::prev(curves.end());
        }
        if (*error->real() > 0.0) curve->lines[panel].push_back({*bits->real(), *error->real()});
    }
    return curves;
}

/// The convex hull of each panel.
Backdrop hull_of(const std::vector<CodecPoint>& codecs) {
    Backdrop hull{{"convex hull", "linespoints pt 7 ps 1.7 lw 5 lc rgb '#949494'"}, {}};
    std::map<std::string, std::vector<validation::BitsAndError>> panels;
    for (const auto& codec : codecs) panels[codec.panel].push_back({codec.point.x, codec.point.y});
    for (const auto& [panel, points] : panels) {
        const auto on_hull = validation::convex_hull(points);
        auto& line = hull.lines[panel];
        for (std::size_t i = 0; i < points.size(); ++i)
            if (on_hull[i]) line.push_back({points[i].bits, points[i].error});
        std::sort(line.begin(), line.end(), [](const Point& a, const Point& b) { return a.x < b.x; });
    }
    return hull;
}

/// SQL for the mean over cells weighted by their replicates, its standard error, and the number of replicates. The
/// error is NULL where a cell has none.
constexpr const char* pooled_mean =
    "SUM(s.n * s.mean) / SUM(s.n), CASE WHEN COUNT(s.mcse) = COUNT(*) THEN sqrt(SUM(s.n * s.mcse * s.n * s.mcse)) / "
    "SUM(s.n) END, SUM(s.n)";

/// The means of a dump study or a study of a model against stored bits, a panel for each side.
std::vector<CodecPoint> clustered_points(Database& store, const std::string& metric) {
    const validation::KvTable table = validation::kv_table(store);
    std::vector<CodecPoint> points;
    for (const auto& row : table.rows) {
        const auto mean = row.of(metric);
        const auto bits = row.of("bits_per_entry");
        // Values have no rotary embedding, so methods with unrope are left out for them.
        if (std::isnan(mean.mean) || std::isnan(bits.mean) || repeats_without_unrope(table, row)) continue;
        CodecPoint& codec = points.emplace_back();
        codec.panel = row.side + (row.side == "cache" ? "" : "s");
        codec.base = row.method;
        codec.bits = row.bits;
        codec.point = {.x = bits.mean, .y = mean.mean, .error = mean.mcse};
        codec.n = static_cast<std::int64_t>(row.counts.at(metric));
    }
    return points;
}

/// The same for other studies, a panel for each cell or one for all.
std::vector<CodecPoint> pooled_points(Database& store, const std::string& metric, bool by_cell,
                                      const std::map<std::int64_t, std::string>& names) {
    Statement query(
        store, fmt::format(
                   "SELECT {0}, m.base, m.bits, SUM(b.n * b.mean) / SUM(b.n), {1} FROM v_summary s JOIN v_summary b ON "
                   "b.cell_id = s.cell_id AND b.method_id = s.method_id AND b.metric = 'bits_per_entry' JOIN method m "
                   "ON m.method_id = s.method_id WHERE s.metric = ?1 AND m.kind = 'codec' AND s.mean IS NOT NULL GROUP "
                   "BY {0}, m.method_id ORDER BY {0}, m.method_id",
                   by_cell ? "s.cell_id" : "''", pooled_mean));
    query.bind(1, metric);
    std::vector<CodecPoint> points;
    while (query.step()) {
        CodecPoint& codec = points.emplace_back();
        codec.panel = by_cell ? names.at(query.integer(0)) : query.text(0);
        codec.base = query.text(1);
        codec.bits = query.real(2);
        codec.point = {.x = query.real(3), .y = query.real(4), .error = query.real(5)};
        codec.n = query.integer(6);
    }
    return points;
}

}  // namespace

std::vector<Figure> distortion_by_bits(Database& store, const Json& spec) {
    const std::string metric = text_of(spec, "y", "distortion");
    const std::string title = long_name_of(metric) + " of codecs by their bits";
    // The prediction for a codec is stored with its check.
    Statement query(
        store,
        fmt::format("SELECT c.d, m.base, m.bits, {}, AVG(v.expected), COUNT(DISTINCT s.cell_id) "
                    "FROM v_summary s JOIN method m USING(method_id) JOIN cell c USING(cell_id) LEFT JOIN {} v ON "
                    "v.cell_id = s.cell_id AND v.method_id = s.method_id AND v.metric = s.metric AND v.k = s.k WHERE "
                    "s.metric = ?1 AND m.kind = 'codec' AND m.bits IS NOT NULL AND s.mean IS NOT NULL GROUP BY c.d, "
                    "m.base, m.bits ORDER BY c.d, MIN(m.method_id)",
                    pooled_mean, first_expectations));
    query.bind(1, metric);
    std::vector<CodecPoint> codecs;
    double worst = -1.0;
    std::string worst_text;
    std::int64_t cells = 0;
    while (query.step()) {
        CodecPoint codec;
        codec.panel = fmt::format("d = {}", query.integer(0));
        codec.base = query.text(1);
        codec.bits = query.real(2);
        codec.point = {codec.bits, query.real(3), query.real(4), query.real(6)};
        codec.n = query.integer(5);
        cells = std::max(cells, query.integer(7));
        const double deviation = std::abs(codec.point.y / codec.point.theory - 1.0);
        if (std::isfinite(deviation) && deviation > worst) {
            worst = deviation;
            worst_text = fmt::format("{} at {} bits and {}, {} against {:.4g}", codec.base, codec.bits, codec.panel,
                                     with_error(codec.point.y, codec.point.error), codec.point.theory);
        }
        codecs.push_back(std::move(codec));
    }
    if (codecs.empty()) return {without_data(title, fmt::format("the store holds no {} of a codec", metric))};
    Figure figure = codec_figure(store, title, codecs, "index bits B", long_name_of(metric), "set xtics nomirror 1\n");
    figure.description = fmt::format(
        "{} over at most {} each. {}", counted(codecs.size(), "mean"), counted(static_cast<std::size_t>(cells), "cell"),
        worst < 0.0 ? std::string("The store holds no theory for them. Bars are one standard error.")
                    : fmt::format("Farthest from theory: {} ({:.2g} %). Bars are one standard error; dashed "
                                  "lines join theory.",
                                  worst_text, 100.0 * worst));
    return {figure};
}

std::vector<Figure> frontier(Database& store, const Json& spec) {
    const bool dump = is_dump_study(store);
    const std::string metric = text_of(spec, "y", "relative_l2");
    const std::string title = long_name_of(metric) + " against stored bits";
    const auto cells = read_cells(store);
    const bool by_cell = !dump && cells.size() > 1 && cells.size() <= most_panels;
    const auto names = short_names(cells);
    std::vector<CodecPoint> codecs;
    std::vector<std::string> lossless;
    for (auto& codec : dump ? clustered_points(store, metric) : pooled_points(store, metric, by_cell, names)) {
        if (codec.point.y <= 0.0)
            lossless.push_back(fmt::format("{}{} at {:.4f} bits", codec.base,
                                           codec.panel.empty() ? "" : " of " + codec.panel, codec.point.x));
        else if (std::isfinite(codec.point.x) && codec.point.y > 0.0)
            codecs.push_back(std::move(codec));
    }
    const std::string not_drawn =
        lossless.empty() ? ""
                         : fmt::format(
                               "Not drawn on the logarithmic scale, because their mean is not above 0 (no measurable "
                               "loss): {}. ",
                               fmt::join(lossless, ", "));
    if (codecs.empty())
        return {without_data(title, not_drawn.empty() ? fmt::format("the store holds no {} with bits_per_entry", metric)
                                                      : not_drawn.substr(0, not_drawn.size() - 2))};
    std::vector<Backdrop> backdrops = {hull_of(codecs)};
    const auto references = metric == "relative_l2" ? references_of(spec) : std::vector<Backdrop>();
    if (metric == "relative_l2") backdrops.push_back(shannon_bound(codecs));
    backdrops.insert(backdrops.end(), references.begin(), references.end());
    Figure figure = codec_figure(store, title, codecs, "stored bits an entry", long_name_of(metric), "", backdrops);
    std::vector<const CodecPoint*> best;  // of each panel, in their order
    for (const auto& codec : codecs) {
        const auto known = std::find_if(best.begin(), best.end(),
                                        [&](const CodecPoint* other) { return other->panel == codec.panel; });
        if (known == best.end())
            best.push_back(&codec);
        else if (codec.point.y < (*known)->point.y)
            *known = &codec;
    }
    figure.description =
        fmt::format("{} of methods at one bit width each. ", counted(codecs.size(), "mean")) + not_drawn;
    for (const CodecPoint* codec : best)
        figure.description +=
            fmt::format("Smallest{}: {} at {:.4f} bits, {}. ", codec->panel.empty() ? "" : " for " + codec->panel,
                        codec->base, codec->point.x, with_error(codec->point.y, codec->point.error));
    if (!dump && !by_cell && cells.size() > 1)
        figure.description += fmt::format("Means over all {} cells, weighted by their replicates. ", cells.size());
    figure.description +=
        "Lower and further left is better; bars are one standard error. The grey line is the convex hull.";
    if (metric == "relative_l2")
        figure.description +=
            " The dotted line is the smallest error of any code of independent normal entries (Shannon). Only codes "
            "that use what rows have in common can be below it.";
    if (!references.empty())
        figure.description +=
            " Water-filling is an ideal code of normal rows that knows the covariance of each head; with +ar it also "
            "predicts each principal component from the token before.";
    return {figure};
}

}  // namespace spiked::reports

#include "reports/figures/theory_figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "reports/figures/gnuplot.hpp"
#include "reports/tables/csv_text.hpp"
#include "reports/tables/text_table.hpp"

namespace spiked::reports {
namespace {

using theory::Loss;
using theory::SpikePrediction;

/// The columns of the data: strength, observed, left overlap, right overlap, frobenius, operator, nuclear. All but the
/// overlaps are singular values.
using Numbers = std::array<double, 7>;

Numbers numbers(const SpikePrediction& spike) {
    return {spike.strength.value,
            root(spike.outlier).value,
            spike.overlap_left.value,
            spike.overlap_right.value,
            spike.shrunk(Loss::frobenius).value,
            spike.shrunk(Loss::operator_norm).value,
            spike.shrunk(Loss::nuclear).value};
}

/// A line of the script, with singular values divided by `scale`.
std::string line_of(const Numbers& values, double scale) {
    std::string line;
    for (std::size_t i = 0; i < values.size(); ++i)
        line += fmt::format("{}{:.8g}", i == 0 ? "" : " ", i == 2 || i == 3 ? values[i] : values[i] / scale);
    return line + "\n";
}

/// The scale of the axes: very large or small numbers are divided by a power of ten, so that their labels are short.
double scale_of_axes(double right) {
    return right < 0.01 || right >= 1e4 ? std::pow(10.0, std::floor(std::log10(right))) : 1.0;
}

/// The distance of the tics: at most six, so that labels do not touch.
double tic_step(double right) {
    const double power = std::pow(10.0, std::floor(std::log10(right)));
    return power * (right <= 2.5 * power ? 0.5 : right <= 6.0 * power ? 1.0 : 2.0);
}

std::vector<std::string> fields(const Numbers& values, std::string first) {
    std::vector<std::string> texts = {std::move(first)};
    for (const double value : values) texts.push_back(exact(value));
    return texts;
}

/// Strengths above the threshold, close together near it, where the curves bend.
std::vector<SignalStrength> strengths_above(double threshold, double right) {
    constexpr int steps = 300;
    std::vector<SignalStrength> strengths = {{threshold * (1.0 + 1e-6)}};
    for (int i = 1; i <= steps; ++i) {
        const double fraction = static_cast<double>(i) / steps;
        strengths.push_back({threshold + (right - threshold) * fraction * fraction});
    }
    return strengths;
}

/// A column of the data as a curve with marked points and an entry in the legend.
struct Curve {
    int column;
    std::string label;
    std::string color;
    int dash;
    int point;
};

void add(Panel& panel, const Curve& curve, bool marked) {
    const std::string line = fmt::format("lw 2 dt {} lc rgb '{}'", curve.dash, curve.color);
    panel.plots.push_back(fmt::format("$curve using 1:{} with lines {}", curve.column, line));
    const std::string points = fmt::format("pt {} ps 1.1", curve.point);
    if (marked)
        panel.plots.push_back(
            fmt::format("$marked using 1:{} with points {} lc rgb '{}'", curve.column, points, curve.color));
    panel.legend.push_back({curve.label, marked ? fmt::format("linespoints {} {}", line, points) : "lines " + line});
}

/// Outlier, overlaps and shrunk values against the strength. `edge` and `top`, the upper end of the axis, are in units
/// of the axis; `points`: whether strengths are marked.
std::vector<Panel> transition_panels(double edge, double top, const std::string& scale_note, bool points) {
    Panel outlier{
        "outlier", fmt::format("set ylabel 'singular value{}'\nset yrange [0:{:.8g}]\n", scale_note, top), {}};
    outlier.plots.push_back(fmt::format("{:.8g} with lines lw 1.5 dt 3 lc black", edge));
    outlier.plots.push_back("$curve using 1:1 with lines lw 1.5 dt 2 lc rgb '#888888'");
    add(outlier, {2, "observed", series_style(0).color, 1, 6}, points);
    outlier.legend.push_back({"signal strength itself", "lines lw 1.5 dt 2 lc rgb '#888888'"});
    outlier.legend.push_back({"bulk edge", "lines lw 1.5 dt 3 lc black"});

    Panel overlaps{"squared overlaps", "set ylabel 'squared inner product'\nset yrange [0:1.04]\n", {}};
    add(overlaps, {3, "left vectors (length n)", series_style(1).color, 1, 4}, points);
    add(overlaps, {4, "right vectors (length d)", "black", 2, 2}, points);

    Panel shrinkers{"optimal shrunk values", outlier.settings, {}};
    shrinkers.plots.push_back(
        fmt::format("$curve using 1:2 with lines lw 1.5 dt 2 lc rgb '{}'", series_style(0).color));
    shrinkers.legend.push_back(
        {"observed: no shrinkage", fmt::format("lines lw 1.5 dt 2 lc rgb '{}'", series_style(0).color)});
    add(shrinkers, {6, "operator loss", series_style(3).color, 5, 8}, points);
    add(shrinkers, {5, "frobenius loss", series_style(2).color, 1, 6}, points);
    add(shrinkers, {7, "nuclear loss", series_style(4).color, 4, 12}, points);
    return {outlier, overlaps, shrinkers};
}

}  // namespace

Figure phase_transition(const theory::SeparableLaw& law, std::span<const SignalStrength> marked) {
    const double threshold = law.detection_threshold().value;
    const double edge = root(law.bulk_edge()).value;
    double largest = 0.0;
    for (const auto strength : marked) largest = std::max(largest, strength.value);
    const double right = std::max(3.5 * threshold, 1.15 * largest);

    const double scale = scale_of_axes(right);
    const std::string scale_note = scale == 1.0 ? "" : fmt::format(", in {:.0e}", scale);

    Figure figure;
    figure.title = fmt::format(
        "n/d = {:.4g}: bulk edge {:.4g} (singular value {:.4g}), detection threshold {:.4g} (signal strength)",
        law.aspect().value(), law.bulk_edge().value, edge, threshold);
    figure.columns = {"detectable",     "#strength",  "#observed", "#left overlap",
                      "#right overlap", "#frobenius", "#operator", "#nuclear"};
    figure.csv =
        csv_line({"part", "strength", "observed", "overlap_left", "overlap_right", "frobenius", "operator", "nuclear"});

    std::string data = "$curve << END\n";
    const auto add_to_curve = [&](SignalStrength strength) {
        const Numbers values = numbers(law.spike(strength));
        data += line_of(values, scale);
        figure.csv += csv_line(fields(values, "curve"));
        return values;
    };
    add_to_curve({0.0});
    add_to_curve({threshold});
    data += "\n";  // the curve of the operator norm jumps here
    Numbers last{};
    for (const auto strength : strengths_above(threshold, right)) last = add_to_curve(strength);
    data += "END\n$marked << END\n";
    std::size_t detectable = 0;
    for (const auto strength : marked) {
        const SpikePrediction spike = law.spike(strength);
        const Numbers values = numbers(spike);
        data += line_of(values, scale);
        figure.csv += csv_line(fields(values, "marked"));
        figure.rows.push_back({spike.detectable ? "yes" : "no"});
        for (const double value : values) figure.rows.back().push_back(fmt::format("{:.6g}", value));
        detectable += spike.detectable ? 1 : 0;
    }
    data += "END\n";

    const bool points = !marked.empty();
    figure.description = fmt::format(
        "Below the detection threshold {:.4g} the largest singular value stays at the bulk edge {:.4g}, overlaps and "
        "shrunk values are 0; at strength {:.4g} it is {:.4g}, with overlaps {:.4g} (left) and {:.4g} (right).",
        threshold, edge, last[0], last[1], last[2], last[3]);
    if (points)
        figure.description +=
            fmt::format(" Points: {}, {} detectable.", counted(marked.size(), "strength"), detectable);
    figure.script = panel_script(
        figure.title, data,
        fmt::format(
            "set xrange [0:{0:.8g}]\nset xtics {1:.8g}\nset xlabel 'signal strength{2}'\n"
            "set arrow 1 from first {3:.8g}, graph 0 to first {3:.8g}, graph 1 nohead lw 1.5 dt 3 lc rgb '#666666'\n"
            "set label 1 'threshold' at first {3:.8g}, graph 1 center offset 0,0.6 font ',11'\n",
            right / scale, tic_step(right / scale), scale == 1.0 ? " (singular value)" : scale_note, threshold / scale),
        transition_panels(edge / scale, 1.04 * last[1] / scale, scale_note, points), {}, {.heading = figure.title});
    return figure;
}

}  // namespace spiked::reports

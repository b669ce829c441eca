#include "reports/figures/theory_figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "reports/figures/gnuplot.hpp"
#include "reports/tables/csv_text.hpp"
#include "reports/tables/text_table.hpp"
#include "theory/laws/bulk_distribution.hpp"
#include "theory/laws/support_gaps.hpp"

namespace spiked::reports {
namespace {

using theory::Loss;
using theory::PlacedOutlier;
using theory::SpikePrediction;
using theory::SupportGap;
using theory::SupportGaps;

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
std::vector<SignalStrength> strengths_between(double threshold, double right) {
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

/// The curves that are shown besides those of the outlier above the top edge.
struct Shown {
    bool points = false;  ///< marked strengths
    bool gaps = false;    ///< outliers in gaps, as thinner curves
};

void add(Panel& panel, const Curve& curve, Shown shown) {
    const std::string line = fmt::format("lw 2 dt {} lc rgb '{}'", curve.dash, curve.color);
    panel.plots.push_back(fmt::format("$curve using 1:{} with lines {}", curve.column, line));
    if (shown.gaps)
        panel.plots.push_back(
            fmt::format("$gaps using 1:{} with lines lw 0.8 dt {} lc rgb '{}'", curve.column, curve.dash, curve.color));
    const std::string points = fmt::format("pt {} ps 1.1", curve.point);
    if (shown.points)
        panel.plots.push_back(
            fmt::format("$marked using 1:{} with points {} lc rgb '{}'", curve.column, points, curve.color));
    panel.legend.push_back(
        {curve.label, shown.points ? fmt::format("linespoints {} {}", line, points) : "lines " + line});
}

/// Outlier, overlaps and shrunk values against the strength. `edge` and `top`, the upper end of the axis, are in units
/// of the axis.
std::vector<Panel> transition_panels(double edge, double top, const std::string& scale_note, Shown shown) {
    Panel outlier{
        "outlier", fmt::format("set ylabel 'singular value{}'\nset yrange [0:{:.8g}]\n", scale_note, top), {}};
    outlier.plots.push_back(fmt::format("{:.8g} with lines lw 1.5 dt 3 lc black", edge));
    outlier.plots.push_back("$curve using 1:1 with lines lw 1.5 dt 2 lc rgb '#888888'");
    add(outlier, {2, "observed", series_style(0).color, 1, 6}, shown);
    outlier.legend.push_back({"signal strength itself", "lines lw 1.5 dt 2 lc rgb '#888888'"});
    outlier.legend.push_back({"bulk edge", "lines lw 1.5 dt 3 lc black"});

    Panel overlaps{"squared overlaps", "set ylabel 'squared inner product'\nset yrange [0:1.04]\n", {}};
    add(overlaps, {3, "left vectors (length n)", series_style(1).color, 1, 4}, shown);
    add(overlaps, {4, "right vectors (length d)", "black", 2, 2}, shown);

    Panel shrinkers{"optimal shrunk values", outlier.settings, {}};
    shrinkers.plots.push_back(
        fmt::format("$curve using 1:2 with lines lw 1.5 dt 2 lc rgb '{}'", series_style(0).color));
    shrinkers.legend.push_back(
        {"observed: no shrinkage", fmt::format("lines lw 1.5 dt 2 lc rgb '{}'", series_style(0).color)});
    add(shrinkers, {6, "operator loss", series_style(3).color, 5, 8}, shown);
    add(shrinkers, {5, "frobenius loss", series_style(2).color, 1, 6}, shown);
    add(shrinkers, {7, "nuclear loss", series_style(4).color, 4, 12}, shown);
    if (shown.gaps)
        for (Panel* panel : {&outlier, &overlaps, &shrinkers})
            panel->legend.push_back({"thin lines: in a gap", "lines lw 0.8 dt 1 lc rgb '#444444'"});
    return {outlier, overlaps, shrinkers};
}

/// The ends of the components of the bulk as singular values, from the top down.
std::vector<std::pair<double, double>> components(const theory::SeparableLaw& law,
                                                  const std::vector<SupportGap>& gaps) {
    std::vector<std::pair<double, double>> found;
    double high = root(law.bulk_edge()).value;
    for (const SupportGap& gap : gaps) {
        found.emplace_back(root(gap.upper).value, high);
        high = root(gap.lower).value;
    }
    if (gaps.empty() || gaps.back().lower.value > 0.0) found.emplace_back(0.0, high);
    return found;
}

/// The density of the singular values of the noise, with the marked outliers as impulses. `data` gets its data blocks.
Panel density_panel(const theory::SeparableLaw& law, const SupportGaps& outside, std::span<const SignalStrength> marked,
                    double scale, const std::string& scale_note, std::string& data) {
    constexpr int steps = 160;
    const theory::BulkDistribution bulk(law);
    double highest = 0.0;
    double right = root(law.bulk_edge()).value;
    data += "$density << END\n";
    for (const auto& [low, high] : components(law, outside.gaps())) {
        for (int i = 0; i <= steps; ++i) {
            const double cosine = std::cos(std::numbers::pi * i / steps);
            const double value = std::max(0.5 * (low + high) - 0.5 * (high - low) * cosine, 1e-4 * high);
            const double density = 2.0 * value * bulk.density({value * value});
            highest = std::max(highest, density);
            data += fmt::format("{:.8g} {:.8g}\n", value / scale, density * scale);
        }
        data += "\n";
    }
    data += "END\n$outliers << END\n";
    bool any = false;
    for (const auto strength : marked)
        for (const PlacedOutlier& outlier : all_outliers(law.spike(strength), outside)) {
            const double value = root(outlier.prediction.outlier).value;
            data += fmt::format("{:.8g} {:.8g}\n", value / scale, 0.5 * highest * scale);
            right = std::max(right, value);
            any = true;
        }
    data += "END\n";
    right *= 1.05 / scale;
    const std::string style = fmt::format("lines lw 2 lc rgb '{}'", series_style(5).color);
    Panel panel{"density of the noise",
                fmt::format("unset arrow\nunset label\nunset object\nset xrange [0:{:.8g}]\nset xtics {:.8g}\n"
                            "set xlabel 'singular value{}'\nset ylabel 'density'\nset yrange [0:{:.8g}]\n",
                            right, tic_step(right), scale_note, 1.08 * highest * scale),
                {"$density using 1:2 with " + style}};
    panel.legend.push_back({"noise", style});
    if (any) {
        const std::string impulses = fmt::format("impulses lw 2 lc rgb '{}'", series_style(0).color);
        panel.plots.push_back("$outliers using 1:2 with " + impulses);
        panel.legend.push_back(
            {"outliers of the marked strengths", "lines lw 2 dt 1 lc rgb '" + series_style(0).color + "'"});
    }
    return panel;
}

/// Grey bands behind the first panel and the third, where the noise is.
std::string bands(const theory::SeparableLaw& law, const std::vector<SupportGap>& gaps, double scale) {
    std::string script;
    int number = 0;
    for (const auto& [low, high] : components(law, gaps))
        script += fmt::format(
            "set object {} rectangle from graph 0, first {:.8g} to graph 1, first {:.8g} behind fs solid noborder fc "
            "rgb '#e4e4e4'\n",
            ++number, low / scale, high / scale);
    return script;
}

/// The data block of the outliers in gaps, for strengths up to `right`, which are added to the csv.
std::string gap_curves(const SupportGaps& outside, double right, double scale, std::string& csv) {
    std::string data = "$gaps << END\n";
    for (std::size_t gap = 0; gap < outside.gaps().size(); ++gap) {
        const SupportGap& at = outside.gaps()[gap];
        if (!(at.weakest.value < right)) continue;
        for (const auto strength : strengths_between(at.weakest.value, std::min(at.strongest.value, right))) {
            const auto spike = outside.spike(gap, strength);
            if (!spike) continue;
            data += line_of(numbers(*spike), scale);
            csv += csv_line(fields(numbers(*spike), fmt::format("gap {}", gap + 1)));
        }
        data += "\n";
    }
    return data + "END\n";
}

/// Adds the marked strengths to the rows, the csv and the description of the figure; returns their data block.
std::string mark_strengths(Figure& figure, const theory::SeparableLaw& law, const SupportGaps& outside,
                           std::span<const SignalStrength> marked, double scale) {
    std::string data = "$marked << END\n";
    std::size_t above = 0;
    std::size_t in_gaps = 0;
    const auto add_point = [&](const SpikePrediction& spike) {
        data += line_of(numbers(spike), scale);
        figure.csv += csv_line(fields(numbers(spike), "marked"));
    };
    for (const auto strength : marked) {
        const auto found = all_outliers(law.spike(strength), outside);
        const bool detectable = !found.empty() && !found.front().gap;
        const SpikePrediction highest = found.empty() ? law.spike(strength) : found.front().prediction;
        figure.rows.push_back({found.empty() ? "no" : detectable ? "yes" : "in a gap"});
        for (const double value : numbers(highest)) figure.rows.back().push_back(fmt::format("{:.6g}", value));
        if (found.empty()) add_point(highest);
        for (const PlacedOutlier& outlier : found) add_point(outlier.prediction);
        above += detectable ? 1 : 0;
        in_gaps += !detectable && !found.empty() ? 1 : 0;
    }
    if (!marked.empty())
        figure.description +=
            fmt::format(" Points: {}, {} detectable{}.", counted(marked.size(), "strength"), above,
                        in_gaps == 0 ? "" : fmt::format(" above the top edge, {} in a gap only", in_gaps));
    return data + "END\n";
}

}  // namespace

Figure phase_transition(const theory::SeparableLaw& law, std::span<const SignalStrength> marked) {
    const double threshold = law.detection_threshold().value;
    const double edge = root(law.bulk_edge()).value;
    double largest = 0.0;
    for (const auto strength : marked) largest = std::max(largest, strength.value);
    const double right = std::max(3.5 * threshold, 1.15 * largest);
    const SupportGaps outside(law);
    const auto& gaps = outside.gaps();
    const bool shows_gaps =
        std::any_of(gaps.begin(), gaps.end(), [&](const SupportGap& gap) { return gap.weakest.value < right; });

    const double scale = scale_of_axes(right);
    const std::string scale_note = scale == 1.0 ? "" : fmt::format(", in {:.0e}", scale);

    Figure figure;
    figure.title = fmt::format("n/d = {:.4g}: bulk edge {:.4g} (singular value {:.4g}), {} {:.4g} (signal strength)",
                               law.aspect().value(), law.bulk_edge().value, edge,
                               shows_gaps ? "top-edge threshold" : "detection threshold", threshold);
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
    for (const auto strength : strengths_between(threshold, right)) last = add_to_curve(strength);
    data += "END\n";
    if (shows_gaps) data += gap_curves(outside, right, scale, figure.csv);
    figure.description = fmt::format(
        "Below the detection threshold {:.4g} the largest singular value stays at the bulk edge {:.4g}, overlaps and "
        "shrunk values are 0; at strength {:.4g} it is {:.4g}, with overlaps {:.4g} (left) and {:.4g} (right).",
        threshold, edge, last[0], last[1], last[2], last[3]);
    if (shows_gaps) figure.description += " Spikes also leave singular values in gaps of the bulk.";
    data += mark_strengths(figure, law, outside, marked, scale);

    std::vector<Panel> panels =
        transition_panels(edge / scale, 1.04 * last[1] / scale, scale_note, {!marked.empty(), shows_gaps});
    if (shows_gaps) {
        const std::string shaded = bands(law, gaps, scale);
        panels[0].settings += shaded;
        panels[1].settings += "unset object\n";
        panels[2].settings += shaded;
        panels.push_back(density_panel(law, outside, marked, scale, scale_note, data));
    }
    figure.script = panel_script(
        figure.title, data,
        fmt::format(
            "set xrange [0:{0:.8g}]\nset xtics {1:.8g}\nset xlabel 'signal strength{2}'\n"
            "set arrow 1 from first {3:.8g}, graph 0 to first {3:.8g}, graph 1 nohead lw 1.5 dt 3 lc rgb '#666666'\n"
            "set label 1 'threshold' at first {3:.8g}, graph 1 center offset 0,0.6 font ',11'\n",
            right / scale, tic_step(right / scale), scale == 1.0 ? " (singular value)" : scale_note, threshold / scale),
        panels, {}, {.heading = figure.title});
    return figure;
}

}  // namespace spiked::reports

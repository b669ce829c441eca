#include "reports/figures/spectrum_figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "reports/figures/figure_parts.hpp"
#include "reports/tables/csv_text.hpp"
#include "reports/tables/text_table.hpp"

namespace spiked::reports {
namespace {

constexpr std::size_t most_singular_values = 1024;
constexpr int bar_count = 40;

/// The smallest singular value that is drawn, relative to the largest. Repeated tokens give singular values that are
/// rounding errors, dozens of decades smaller: they would squeeze all others into a line.
constexpr double smallest_drawn = 1e-4;

/// The histogram of eigenvalues, without those that count as 0.
struct Bars {
    double high = 0.0;  ///< the right end
    double width = 0.0;
    std::vector<double> counts;
    std::size_t beyond = 0;  ///< eigenvalues beyond the right end
};

Bars bars_of(const validation::FittedSpectrum& of, double edge) {
    // The histogram ends a little beyond the edge, because spikes would squeeze the bulk into one bin.
    const double high =
        std::isfinite(edge) && edge > 0.0 ? 1.6 * edge : 1.02 * of.singular_values.front() * of.singular_values.front();
    Bars bars{.high = high, .width = high / bar_count, .counts = std::vector<double>(bar_count, 0.0)};
    for (const double s : of.singular_values) {
        if (of.noise && s * s <= of.noise->zero) continue;
        const double bin = s * s / bars.width;
        if (bin < bar_count)
            bars.counts[static_cast<std::size_t>(bin)] += 1.0;
        else
            ++bars.beyond;
    }
    return bars;
}

/// Sentences on the fitted noise. `zeros`: the number of eigenvalues that count as 0.
std::string fit_text(const validation::FittedSpectrum& of, std::size_t zeros) {
    const auto& fitted = *of.noise;
    const std::size_t count = of.singular_values.size();
    const bool square = of.long_side == count;
    const std::string falling =
        fmt::format("with variances that fall off as exp(-{:.3g} x), x from 0 to 1{}, to {:.2g} of the largest,",
                    fitted.decay, fitted.at_limit ? " (the fastest decay that is tried)" : "", std::exp(-fitted.decay));
    return fmt::format(
        " The rank rule takes {} of them for signal. The density is fitted to {} of the other {}{}: Gaussian noise, "
        "{}. Kolmogorov distance {:.3g}; the distance of a spectrum to its own law is below {:.3g} in 19 cases of "
        "20, so this noise {}. The bars include the signal{}.",
        of.signal, fitted.count, of.noise_eigenvalues.size(),
        fitted.count < of.noise_eigenvalues.size() ? " (those below 1e-10 of the largest count as 0)" : "",
        fitted.decay == 0.0 ? "white on both sides"
        : square            ? fmt::format("white on one side, {} on the other", falling)
                            : fmt::format("{} on the side of {}, white on the side of {}", falling,
                               fitted.on_long_side ? of.long_side : count, fitted.on_long_side ? count : of.long_side),
        fitted.distance, fitted.chance_distance,
        fitted.distance <= fitted.chance_distance ? "is compatible with the fit"
                                                  : "differs from the fit, and the curve shows its rough shape only",
        zeros > 0 ? ", but not the zeros" : "");
}

/// Fills the table and the CSV of the figure and returns the data of the singular values for the script.
std::string add_values(Figure& figure, const validation::FittedSpectrum& of, double root) {
    const std::vector<double>& singular = of.singular_values;
    const std::vector<double>& noise = of.noise_eigenvalues;
    const std::size_t count = singular.size();
    std::string data = "$values << END\n";
    figure.columns = {"#index", "#singular value", "#eigenvalue", "above the edge", "#noise eigenvalue"};
    figure.csv = csv_line({"index", "singular_value", "eigenvalue", "above_edge", "noise_eigenvalue"});
    for (std::size_t i = 0; i < std::min<std::size_t>(std::max<std::size_t>(count, noise.size()), most_singular_values);
         ++i) {
        const bool has = i < count;
        const double s = has ? singular[i] : std::numeric_limits<double>::quiet_NaN();
        const double law_value = i < noise.size() ? noise[i] : std::numeric_limits<double>::quiet_NaN();
        const auto shown = [](double value) {
            return std::isnan(value) ? std::string() : fmt::format("{:.5g}", value);
        };
        if (has) data += fmt::format("{} {:.8g} {}\n", i + 1, s, s > root ? 1 : 0);
        figure.rows.push_back(
            {std::to_string(i + 1), shown(s), shown(s * s), has && s > root ? "yes" : "", shown(law_value)});
        figure.csv += csv_line(
            {std::to_string(i + 1), exact(s), exact(s * s), has ? (s > root ? "1" : "0") : "", exact(law_value)});
    }
    return data + "END\n";
}

/// The data of the histogram and of the fitted density for the script.
std::string bars_data(const Bars& bars, const validation::FittedSpectrum& of) {
    std::string data = "$bins << END\n";
    for (std::size_t i = 0; i < bars.counts.size(); ++i)
        data += fmt::format("{:.8g} {}\n", (static_cast<double>(i) + 0.5) * bars.width, bars.counts[i]);
    data += "END\n";
    if (of.noise) {
        data += "$density << END\n";
        for (const auto& point : of.noise->curve)
            data += fmt::format("{:.8g} {:.6g}\n", point.x.value,
                                point.density * bars.width * static_cast<double>(of.noise->count));
        data += "END\n";
    }
    return data;
}

std::string edge_line(double at, bool vertical) {
    if (!std::isfinite(at)) return std::string();
    return vertical ? fmt::format(
                          "set arrow 1 from first {0:.8g}, graph 0 to first {0:.8g}, graph 1 nohead lw 1.5 dt 2 lc "
                          "rgb '#A63C00'\n",
                          at)
                    : fmt::format(
                          "set arrow 1 from graph 0, first {0:.8g} to graph 1, first {0:.8g} nohead lw 1.5 dt 2 lc "
                          "rgb '#A63C00'\n",
                          at);
}

/// Singular values by index. `above`: the number above the edge, whose root is `root`.
Panel values_panel(const std::vector<double>& singular, double root, std::size_t above) {
    const std::size_t count = singular.size();
    const double floor = smallest_drawn * singular.front();
    Panel spectrum;
    spectrum.title = singular.back() < floor ? fmt::format("singular values above {:.2g}", floor) : "singular values";
    spectrum.settings =
        fmt::format("set xlabel 'index'\nset ylabel ''\nset xrange [0:{}]\n{}{}", count + 1,
                    floor > 0.0 ? fmt::format("set format y '%g'\nset logscale y\nset yrange [{:.4g}:*]\n",
                                              std::max(floor, 0.97 * singular.back()))
                                : "set yrange [*:*]\n",
                    edge_line(root, false));
    spectrum.plots = {"$values using 1:($3 == 0 ? $2 : NaN) with points pt 7 ps 0.45 lc rgb '#004C7F'",
                      "$values using 1:($3 == 1 ? $2 : NaN) with points pt 9 ps 1 lc rgb '#A63C00'"};
    if (above == 0) spectrum.plots.pop_back();
    if (above == count) spectrum.plots.erase(spectrum.plots.begin());
    return spectrum;
}

Panel bars_panel(const Bars& bars, double edge, std::size_t zeros, bool fitted) {
    Panel histogram;
    histogram.title = "eigenvalues";
    if (bars.beyond > 0) histogram.title += fmt::format("; {} beyond the right end", bars.beyond);
    if (zeros > 0) histogram.title += fmt::format("; {} left out as 0", zeros);
    histogram.settings = fmt::format(
        "unset logscale\nset xlabel 'eigenvalue'\nset ylabel 'count'\nset xrange [0:{:.8g}]\nset yrange "
        "[0:{:.8g}]\nset boxwidth {:.8g}\n{}",
        bars.high, 1.08 * *std::max_element(bars.counts.begin(), bars.counts.end()) + 0.5, 0.92 * bars.width,
        edge_line(edge, true));
    histogram.plots = {"$bins using 1:2 with boxes fill solid 0.8 noborder lc rgb '#1573D1'"};
    if (fitted) histogram.plots.emplace_back("$density using 1:2 with lines lw 1.8 lc black");
    return histogram;
}

}  // namespace

Figure spectrum_figure(const std::string& title, const validation::FittedSpectrum& of) {
    const std::vector<double>& singular = of.singular_values;
    const std::vector<double>& noise = of.noise_eigenvalues;
    const auto& fitted = of.noise;
    // Eigenvalues are drawn too: a square that overflows cannot be drawn, and one that underflows is 0.
    const auto finite = [](double s) { return std::isfinite(s * s); };
    if (!std::all_of(singular.begin(), singular.end(), finite) ||
        !std::all_of(noise.begin(), noise.end(), [](double value) { return std::isfinite(value); }))
        return without_data(title, "its singular values or noise eigenvalues are not all finite numbers");
    if (std::none_of(singular.begin(), singular.end(), [](double s) { return s * s > 0.0; }))
        return without_data(title, "no singular value is above 0");
    Figure figure;
    figure.title = title;
    const std::size_t count = singular.size();
    const double edge = of.bulk_edge ? of.bulk_edge->value : std::numeric_limits<double>::quiet_NaN();
    const double root = std::sqrt(edge);
    const auto above =
        static_cast<std::size_t>(std::count_if(singular.begin(), singular.end(), [&](double s) { return s > root; }));

    figure.description =
        fmt::format("{} singular values from {:.4g} down to {:.4g}.", count, singular.front(), singular.back());
    if (std::isfinite(edge))
        figure.description += fmt::format(" {} above the estimated edge {:.4g} (an eigenvalue of {:.4g}).",
                                          above == 1 ? "1 lies" : fmt::format("{} lie", above), root, edge);

    const auto zeros = static_cast<std::size_t>(
        fitted ? std::count_if(singular.begin(), singular.end(), [&](double s) { return s * s <= fitted->zero; }) : 0);
    if (fitted) figure.description += fit_text(of, zeros);
    if (const double floor = smallest_drawn * singular.front(); singular.back() < floor)
        figure.description +=
            fmt::format(" The left side leaves out {} below {:.2g} of the largest.",
                        counted(static_cast<std::size_t>(std::count_if(singular.begin(), singular.end(),
                                                                       [&](double s) { return s < floor; })),
                                "singular value"),
                        smallest_drawn);

    const Bars bars = bars_of(of, edge);
    const std::string data = add_values(figure, of, root) + bars_data(bars, of);
    std::vector<LegendEntry> legend = {{"within the edge", "points pt 7 ps 0.6 lc rgb '#004C7F'"}};
    if (above > 0) legend.push_back({"above the edge", "points pt 9 ps 1 lc rgb '#A63C00'"});
    if (std::isfinite(edge)) legend.push_back({"estimated edge", "lines lw 1.5 dt 2 lc rgb '#A63C00'"});
    if (fitted) legend.push_back({"fitted density of noise", "lines lw 1.8 lc black"});
    figure.script =
        panel_script(figure.title, data, "",
                     {values_panel(singular, root, above), bars_panel(bars, edge, zeros, fitted.has_value())}, legend);
    return figure;
}

}  // namespace spiked::reports

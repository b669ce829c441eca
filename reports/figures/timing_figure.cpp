#include "reports/figures/timing_figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reports/figures/gnuplot.hpp"
#include "reports/tables/csv_text.hpp"

namespace spiked::reports {
namespace {

constexpr std::size_t bars_in_a_panel = 14;

/// `12.3 k` for 12300.
std::string shortened(double number) {
    const char* units[] = {"", " k", " M", " G"};
    int unit = 0;
    while (number >= 999.5 && unit < 3) {
        number /= 1000.0;
        ++unit;
    }
    return fmt::format("{:.3g}{}", number, units[unit]);
}

}  // namespace

Figure timing_figure(const std::string& title, const std::vector<Timing>& timings) {
    Figure figure;
    figure.title = title;
    figure.columns = {"what", "#median us", "#p10 us", "#a second"};
    figure.csv = csv_line({"what", "median_us", "p10_us", "per_second"});
    if (timings.empty()) {
        figure.problem = "nothing was timed";
        return figure;
    }
    double low = std::numeric_limits<double>::infinity();
    double high = 0.0;
    const Timing* fastest = nullptr;
    for (const auto& timing : timings) {
        low = std::min(low, 1e6 / timing.median);
        high = std::max(high, 1e6 / timing.p10);
        if (fastest == nullptr || timing.median < fastest->median) fastest = &timing;
        figure.rows.push_back({timing.what, fmt::format("{:.4g}", timing.median), fmt::format("{:.4g}", timing.p10),
                               shortened(1e6 / timing.median)});
        figure.csv += csv_line({timing.what, exact(timing.median), exact(timing.p10), exact(1e6 / timing.median)});
    }
    std::size_t longest = 0;
    for (const auto& timing : timings) longest = std::max(longest, timing.what.size());
    const double left = std::pow(10.0, std::floor(std::log10(low) - 0.3));
    std::string data;
    std::vector<Panel> panels;
    const std::size_t count = (timings.size() + bars_in_a_panel - 1) / bars_in_a_panel;
    const std::size_t rows = (timings.size() + count - 1) / count;
    for (std::size_t p = 0; p < count; ++p) {
        data += fmt::format("$t{} << END\n", p);
        std::vector<std::string> names;
        for (std::size_t i = p * rows; i < std::min(timings.size(), (p + 1) * rows); ++i) {
            const double y = static_cast<double>(i - p * rows);
            const double value = 1e6 / timings[i].median;
            data += fmt::format("{:.6g} {} {:.6g} {:.6g} {} {} {:.6g} \"{}\"\n", value, y, left, value, y - 0.38,
                                y + 0.38, 1e6 / timings[i].p10, shortened(value));
            names.push_back(fmt::format("{} {}", gnuplot_quoted(timings[i].what), y));
        }
        data += "END\n";
        Panel panel;
        panel.settings = fmt::format("set ytics nomirror ({})\nset yrange [{}:-0.7]\n", fmt::join(names, ", "),
                                     static_cast<double>(rows) - 0.3);
        panel.plots = {
            fmt::format("$t{} using 1:2:3:4:5:6 with boxxyerror fill solid 0.8 noborder lc rgb '#1573D1'", p),
            fmt::format("$t{} using 7:2 with points pt 9 ps 0.9 lc rgb '#A63C00'", p),
            fmt::format("$t{} using 7:2:8 with labels left offset 0.9,0 font ',11'", p)};
        panels.push_back(std::move(panel));
    }
    figure.description =
        fmt::format("{}: {} benchmarks. Fastest: {}, {} a second ({:.4g} microseconds, median).", title, timings.size(),
                    fastest->what, shortened(1e6 / fastest->median), fastest->median);
    figure.script =
        panel_script(title, data,
                     fmt::format("set logscale x\nset xrange [{:.6g}:{:.6g}]\nset format x '%.0s%c'\nset "
                                 "xlabel 'a second'\nset border 1\nunset grid\nset tics scale 0.5\n",
                                 left, high * std::pow(high / left, 0.3)),
                     panels,
                     {{"median", "points pt 5 ps 1.4 lc rgb '#1573D1'"},
                      {"p10 (quiet machine)", "points pt 9 ps 1 lc rgb '#A63C00'"}},
                     {.heading = title, .columns = count == 1 ? 1 : 2, .left = 30 + 9 * static_cast<int>(longest)});
    return figure;
}

}  // namespace spiked::reports

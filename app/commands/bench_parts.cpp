#include "app/commands/bench_parts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/runtime/error.hpp"
#include "reports/figures/gnuplot.hpp"
#include "reports/figures/timing_figure.hpp"
#include "reports/tables/text_table.hpp"

namespace spiked::app {

Json timing_document(const std::vector<Timing>& timings) {
    Json rows = Json::array();
    for (const auto& timing : timings)
        rows.push(Json::object({{"what", timing.what}, {"median", timing.median}, {"p10", timing.p10}}));
    return Json::object({{"schema", "spiked.bench/1"}, {"unit", "us"}, {"rows", std::move(rows)}});
}

std::string timing_rows(const std::vector<Timing>& timings, int digits) {
    reports::TextTable table({"what", "median", "p10"});
    for (const auto& timing : timings)
        table.add(
            {timing.what, fmt::format("{:.{}f}", timing.median, digits), fmt::format("{:.{}f}", timing.p10, digits)});
    return table.text();
}

std::string timing_table(const std::vector<Timing>& timings) {
    return timing_rows(timings, 1) +
           "microseconds of processor time; p10 is close to the time on a quiet machine: compare ratios within one "
           "run.\n";
}

double seconds_of(const Arguments& arguments) { return arguments.number("--seconds"); }

void plot_timings(const Arguments& arguments, const std::string& title, const std::vector<Timing>& timings) {
    if (arguments.has("--plot"))
        reports::write_picture(reports::timing_figure(title, timings), arguments.text("--plot"));
}

double p10_of(const std::vector<Timing>& timings, std::string_view what) {
    return std::find_if(timings.begin(), timings.end(), [&](const Timing& row) { return row.what == what; })->p10;
}

std::string numpy_line(const Json& numpy) {
    const auto text = [&](const char* key) { return *numpy.find(key)->string(); };
    return fmt::format("NumPy {} of Python {} on {}\n", text("numpy"), text("python"), text("blas"));
}

spiked::cuda::Device device_beside_the_cpu(const Arguments& arguments) {
    auto device = spiked::cuda::choose_device(arguments.text("--device"));
    if (device.backend == spiked::cuda::Backend::cpu)
        throw usage_error("--device {} is the CPU{}: leave --device out, or name cuda:0 or emulated",
                          arguments.text("--device"), device.note.empty() ? "" : " (" + device.note + ")");
    if (device.numbers.size() > 1)
        throw usage_error("--device {}: several devices are named (only one is timed): name one",
                          arguments.text("--device"));
    return device;
}

Json device_document(const validation::DeviceTimings& timed, std::size_t threads) {
    return timing_document(timed.rows)
        .set("threads", threads)
        .set("clock", "wall")
        .set("batch", timed.batch)
        .set("rows_of_block", timed.shape.rows)
        .set("cols_of_block", timed.shape.columns);
}

OptionSpec seconds_option(const std::string& fallback) {
    return {"--seconds", number("S", {.above = 0.0}), "about how many seconds to measure", fallback};
}

OptionSpec bars_option() { return plot_option("bar chart of the rates per second"); }

}  // namespace spiked::app

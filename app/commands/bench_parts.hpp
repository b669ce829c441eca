#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "app/cli/command.hpp"
#include "core/device/device.hpp"
#include "core/timing/stopwatch.hpp"
#include "validation/trials/bench/device_bench.hpp"

// What the commands of `spiked bench` share.
namespace spiked::app {

/// The JSON document of timings, to which a command adds its own keys.
[[nodiscard]] Json timing_document(const std::vector<Timing>& timings);
[[nodiscard]] Json device_document(const validation::DeviceTimings& timed, std::size_t threads);

/// The timings as a table; `timing_table` says what its numbers are.
[[nodiscard]] std::string timing_rows(const std::vector<Timing>& timings, int digits);
[[nodiscard]] std::string timing_table(const std::vector<Timing>& timings);
[[nodiscard]] std::string numpy_line(const Json& numpy);
/// A note on the numbers of timings on a device, with places for the batch and the threads of the CPU.
inline constexpr const char* wall_clock_note =
    "microseconds of wall-clock time a block, in batches of {} in the memory of the device; cpu: {} threads; p10 is "
    "close to the time on a quiet machine.\n";

/// The 10th percentile of a timing.
[[nodiscard]] double p10_of(const std::vector<Timing>& timings, std::string_view what);

/// Writes the bar chart where it is asked for.
void plot_timings(const Arguments& arguments, const std::string& title, const std::vector<Timing>& timings);

/// Returns the seconds to measure, after the other options are checked.
[[nodiscard]] double seconds_of(const Arguments& arguments);
/// Returns the device to be compared with the CPU. Throws usage_error if it is the CPU itself, as when `auto` finds no
/// GPU, or if several are named.
[[nodiscard]] spiked::cuda::Device device_beside_the_cpu(const Arguments& arguments);

[[nodiscard]] OptionSpec seconds_option(const std::string& fallback);
/// `--plot` of benchmarks.
[[nodiscard]] OptionSpec bars_option();

}  // namespace spiked::app

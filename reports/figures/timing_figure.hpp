#pragma once
#include <string>
#include <vector>

#include "core/timing/stopwatch.hpp"
#include "reports/figures/figures.hpp"

namespace spiked::reports {

/// The results of a benchmark as bars: the rate per second from the median time, with a mark at the rate from the 10th
/// percentile. Draw the result with draw or write_picture.
[[nodiscard]] Figure timing_figure(const std::string& title, const std::vector<Timing>& timings);

}  // namespace spiked::reports

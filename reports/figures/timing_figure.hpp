#pragma once
#include <string>
#include <vector>

#include "core/timing/stopwatch.hpp"
#include "reports/figures/figures.hpp"

namespace spiked::reports {

/// What a benchmark found, as bars: how many of each a second by the median time, a mark where p10 puts it. Not drawn
/// yet: see draw and write_picture.
[[nodiscard]] Figure timing_figure(const std::string& title, const std::vector<Timing>& timings);

}  // namespace spiked::reports

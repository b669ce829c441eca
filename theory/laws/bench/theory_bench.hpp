#pragma once
#include <vector>

#include "core/timing/stopwatch.hpp"

namespace spiked::theory {

/// Rows of `spiked bench theory`:
///   solve-1024   edge, threshold and 5 strengths, 1024 distinct atoms a side, nothing kept from the run before
///   density-400  the law with its lower edge and 400 points of density and cdf, 64 atoms a side
[[nodiscard]] std::vector<Job> benchmark_jobs();

}  // namespace spiked::theory

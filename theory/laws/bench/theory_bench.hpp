#pragma once
#include <vector>

#include "core/timing/stopwatch.hpp"

namespace spiked::theory {

/// The entries of `spiked bench theory`:
///   solve-1024   edge, threshold and 5 strengths with 1024 distinct atoms per side; every repetition starts anew
///   density-400  the law with its lower edge and 400 points of density and cdf, with 64 atoms per side
[[nodiscard]] std::vector<Job> benchmark_jobs();

}  // namespace spiked::theory

#pragma once
#include <string>
#include <vector>

#include "theory/base/cuda/device.hpp"
#include "theory/base/stopwatch.hpp"

namespace spiked::validation {

/// Microseconds of the clock on the wall a trial of a study, 128 x 128 in float with two signals, eOptShrink and in
/// `coded` tq-mse at 4 bits with all its metrics, on so many threads: the same studies on the CPU and on the device, in
/// turn, from addresses to observations. Rows are named `dense:cpu`, `dense:cuda`, and so on; a cell that kernels do
/// not compute is a bug. Throws Error as TrialLanes::run does.
[[nodiscard]] std::vector<Timing> time_studies(const spiked::cuda::Device& device, std::size_t threads, double seconds);

}  // namespace spiked::validation

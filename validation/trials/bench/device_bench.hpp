#pragma once
#include <string>
#include <vector>

#include "core/device/device.hpp"
#include "core/timing/stopwatch.hpp"
#include "estimators/svd/shape.hpp"

namespace spiked::validation {

/// Microseconds of the clock on the wall a trial of a study, 128 x 128 in float with two signals, eOptShrink and in
/// `coded` tq-mse at 4 bits with all its metrics, on so many threads: the same studies on the CPU and on the device, in
/// turn, from addresses to observations. Rows are named `dense:cpu`, `dense:cuda`, and so on; a cell that kernels do
/// not compute is a bug. Throws Error as TrialLanes::run does.
[[nodiscard]] std::vector<Timing> time_studies(const spiked::cuda::Device& device, std::size_t threads, double seconds);

struct DeviceTimings {
    std::vector<Timing> rows;
    std::size_t batch = 0;  ///< blocks that lie on the device
    estimators::Shape shape;
    std::string left_out;  ///< why NVIDIA's libraries are not among them; empty when they are
};

/// Microseconds of the clock on the wall a block (noise and four outliers), of the CPU on so many threads and of a
/// batch that lies on the device, in turn:
///   cpu                   all singular values and `wanted` vectors a side, through BatchDecomposition
///   BACKEND               the same by kernels
///   BACKEND-values, BACKEND-bidiagonal   without vectors; only the bidiagonal matrix and its reflectors
///   cusolver-syev-gram, cusolver-gesvda  see LibraryRoute (../cuda/device_passes.hpp)
/// Values that are not those of LAPACK in double are a bug. Throws usage_error for shapes that kernels do not take.
[[nodiscard]] DeviceTimings time_device_decompositions(const spiked::cuda::Device& device, estimators::Shape shape,
                                                       std::size_t wanted, bool in_float, std::size_t threads,
                                                       double seconds);

/// The same of row quantizers on blocks of 128 x 128 (emulated: 32 x 32) normal entries in float, bits packed:
/// METHOD:B:encode and METHOD:B:decode, each on `cpu` and on the device, and METHOD:B:copied, encoding between copies
/// from and to pinned memory. A decoded block with another error than the CPU's is a bug.
[[nodiscard]] DeviceTimings time_device_quantizers(const spiked::cuda::Device& device, std::size_t threads,
                                                   double seconds);

}  // namespace spiked::validation

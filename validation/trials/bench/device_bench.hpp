#pragma once
#include <string>
#include <vector>

#include "core/device/device.hpp"
#include "core/device/device_failure.hpp"
#include "core/runtime/error.hpp"
#include "core/timing/stopwatch.hpp"
#include "estimators/svd/analysed_block.hpp"
#include "estimators/svd/shape.hpp"

namespace spiked::validation {

/// What the studies of a benchmark have in common.
struct BenchmarkTrials {
    estimators::Shape shape = {128, 128};
    estimators::Precision precision = estimators::Precision::float32;
};

/// Times studies on the CPU and on the device in turn, from addresses to observations: two signals, eOptShrink, and in
/// `coded` also tq-mse at 4 bits with all its metrics. Times are wall-clock microseconds per trial on `threads`
/// threads. Entries are named `dense:cpu`, `dense:cuda`, and so on. Throws usage_error if kernels do not support a
/// cell, and Error as TrialSlots::run does.
[[nodiscard]] std::vector<Timing> time_studies(const spiked::cuda::Device& device, const BenchmarkTrials& trials,
                                               std::size_t threads, double seconds);

/// Returns what `work` returns, which computes on the first GPU of a device. A failure of it is thrown as an Error that
/// names this GPU, of the kind memory if it is full, which is no bug of the program.
template <class Work>
auto on_device(const spiked::cuda::Device& device, const Work& work) {
    try {
        return work();
    } catch (const spiked::cuda::DeviceFailure& failure) {
        throw Error(failure.out_of_memory() ? ErrorKind::memory : ErrorKind::internal,
                    spiked::cuda::name_of(device.backend, device.numbers.front()) + ": " + failure.what());
    }
}

struct DeviceTimings {
    std::vector<Timing> rows;
    std::size_t batch = 0;  ///< blocks in one batch on the device
    estimators::Shape shape;
    std::string left_out;  ///< why NVIDIA's libraries were not timed; empty if they were
};

/// Times the decomposition of blocks (noise and four outliers) on `threads` threads of the CPU and of a batch in device
/// memory, in turn, in wall-clock microseconds per block:
///   cpu                   all singular values and `wanted` vectors per side, by BatchDecomposition
///   BACKEND               the same by kernels
///   BACKEND-values        without vectors
///   BACKEND-bidiagonal    only the bidiagonal matrix and its reflectors
///   cusolver-syev-gram, cusolver-gesvda  see LibraryRoute (validation/trials/cuda/device_passes.hpp)
/// Throws postcondition_error if values differ from those of LAPACK in double, usage_error for shapes that kernels do
/// not support.
[[nodiscard]] DeviceTimings time_device_decompositions(const spiked::cuda::Device& device, estimators::Shape shape,
                                                       std::size_t wanted, bool in_float, std::size_t threads,
                                                       double seconds);

/// Times row quantizers in the same way, on blocks of 128 x 128 (emulated: 32 x 32) normal entries in float, with
/// packed bits: METHOD:B:encode and METHOD:B:decode, each on `cpu` and on the device, and METHOD:B:copied, which is
/// encoding with the copies from and to pinned memory. Throws postcondition_error if the error of a decoded block
/// differs from the CPU's.
[[nodiscard]] DeviceTimings time_device_quantizers(const spiked::cuda::Device& device, std::size_t threads,
                                                   double seconds);

}  // namespace spiked::validation

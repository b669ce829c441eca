#pragma once
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "validation/trials/cuda/device_passes.hpp"
#include "validation/trials/cuda/trial_device.hpp"

namespace spiked::validation {

/// The comparison of one stage of trials on a device with the CPU.
struct ParityCheck {
    std::string name;
    bool passed = false;
    std::string detail;  ///< the largest difference and the tolerance
};

/// Runs trials of several shapes, in float and double, through the driver that studies use. Each stage is compared with
/// the CPU's result for the same input: normals, samples, values, vectors, eOptShrink, rotation, quantizer bytes (of
/// one method, those of what a low-rank part leaves), inner products. Whole trials are then compared with the CPU's
/// trials at the same addresses. Shapes with more than `most_entries` entries are skipped. Takes seconds on emulated
/// blocks. Throws cuda::DeviceFailure.
[[nodiscard]] std::vector<ParityCheck> check_parity(cuda::TrialDevice& device,
                                                    std::size_t most_entries = std::numeric_limits<std::size_t>::max());

/// The same for every GPU of a device, which each detail names. A GPU that fails gives one check `kernels` that did not
/// pass. Returns no checks for the CPU.
[[nodiscard]] std::vector<ParityCheck> check_parity(const spiked::cuda::Device& device);

/// What check_under_load computes on.
struct DeviceUnderLoad {
    std::function<std::unique_ptr<cuda::DevicePass>(const cuda::BlocksToDecompose&, std::size_t count)> decompose;
    cuda::TrialDevice& trials;
};
/// Looks for defects that a few blocks do not show. For every tile size, in float and double, it decomposes more blocks
/// than a GPU holds at once: copies of a block must agree bit for bit, and the first block with LAPACK. It then counts
/// the statuses of `trials` random matrices of three shapes, and of some more of two shapes that are also coded, whose
/// errors must be below the energy of their block. Shapes with more than `most_entries` entries are skipped.
[[nodiscard]] std::vector<ParityCheck> check_under_load(
    const DeviceUnderLoad& device, std::size_t blocks, std::size_t trials,
    std::size_t most_entries = std::numeric_limits<std::size_t>::max());

/// The same for every GPU of a device, as check_parity. A million trials take some seconds on a GPU.
[[nodiscard]] std::vector<ParityCheck> check_under_load(const spiked::cuda::Device& device, std::size_t blocks,
                                                        std::size_t trials);

}  // namespace spiked::validation

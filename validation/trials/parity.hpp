#pragma once
#include <limits>
#include <string>
#include <vector>

#include "validation/trials/cuda/trial_device.hpp"

namespace spiked::validation {

/// One stage of trials on a device beside the CPU's own.
struct ParityCheck {
    std::string name;
    bool passed = false;
    std::string detail;  ///< the largest difference, and what is allowed
};

/// Trials of several shapes, in float and double, through the driver that studies use, each stage compared with the
/// CPU's answer to what the stage before it left: normals, samples, values, vectors, eOptShrink, rotation, quantizer
/// bytes, inner products; then whole trials with the CPU's from their addresses on. Shapes with more than
/// `most_entries` are left out. Takes seconds on emulated blocks. Throws cuda::DeviceFailure.
[[nodiscard]] std::vector<ParityCheck> check_parity(cuda::TrialDevice& device,
                                                    std::size_t most_entries = std::numeric_limits<std::size_t>::max());

/// The same of every place of a device, named in each detail. One that fails is a check `kernels` that did not pass;
/// a CPU has none.
[[nodiscard]] std::vector<ParityCheck> check_parity(const spiked::cuda::Device& device);

/// What a few blocks do not show: of every tile, in float and double, more blocks than a GPU holds at once, each found
/// to the bit as its copies are and the first one as LAPACK finds it; then `trials` random matrices of three shapes,
/// whose statuses are counted. On a GPU a million take some seconds.
[[nodiscard]] std::vector<ParityCheck> check_under_load(const spiked::cuda::Device& device, std::size_t blocks,
                                                        std::size_t trials);

}  // namespace spiked::validation

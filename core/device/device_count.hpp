#pragma once
#include <cstddef>
#include <string>

namespace spiked::cuda {

struct DeviceCount {
    int count = 0;
    std::string problem;  ///< why there is no GPU; empty otherwise
};

/// The number of GPUs that the driver reports.
[[nodiscard]] DeviceCount device_count();
/// The reason why this GPU cannot run the kernels of this build; empty when it can.
[[nodiscard]] std::string device_problem(int number);
/// Bytes of memory that are free on this GPU now; 0 when there is no such GPU.
[[nodiscard]] std::size_t free_memory(int number);

}  // namespace spiked::cuda

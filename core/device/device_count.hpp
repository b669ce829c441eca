#pragma once
#include <cstddef>
#include <string>

namespace spiked::cuda {

struct DeviceCount {
    int count = 0;
    std::string problem;  ///< why there is none
};

/// GPUs that the driver shows.
[[nodiscard]] DeviceCount device_count();
/// Why this one runs no kernel of this build; empty when it does.
[[nodiscard]] std::string device_problem(int number);
/// Bytes that can be taken there now; 0 without it.
[[nodiscard]] std::size_t free_memory(int number);

}  // namespace spiked::cuda

#pragma once
#include <string>

namespace spiked::cuda {

struct DeviceCount {
    int count = 0;
    std::string problem;  ///< why there is none
};

/// GPUs that the driver shows. Only in builds with CUDA code.
[[nodiscard]] DeviceCount device_count();

}  // namespace spiked::cuda

#include "theory/base/cuda/device_count.hpp"

#include <cuda_runtime_api.h>

namespace spiked::cuda {

DeviceCount device_count() {
    int count = 0;
    const cudaError_t result = cudaGetDeviceCount(&count);
    if (result != cudaSuccess) {
        cudaGetLastError();  // forgets it
        return {0, cudaGetErrorString(result)};
    }
    return {count, count == 0 ? "the driver shows no GPU" : ""};
}

}  // namespace spiked::cuda

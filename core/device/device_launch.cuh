#pragma once
#include <cuda_runtime_api.h>

#include "core/device/device_failure.hpp"
#include "core/device/team.hpp"

namespace spiked::cuda {

/// Throws DeviceFailure when a call to the CUDA runtime failed.
inline void check(cudaError_t result, const char* doing) {
    if (result == cudaSuccess) return;
    cudaGetLastError();  // clears it, so that the thread does not find it again where it uses another GPU
    throw DeviceFailure(doing, cudaGetErrorString(result), result == cudaErrorMemoryAllocation);
}

template <class Kernel>
__global__ void __launch_bounds__(Kernel::threads, Kernel::resident) run_kernel(const __grid_constant__ Kernel kernel) {
    DeviceTeam team;
    kernel(team, blockIdx.x);
}

/// Launches kernels (team.hpp) on a stream, one after the other; every launch is checked for errors.
class DeviceExecutor {
public:
    explicit DeviceExecutor(cudaStream_t stream) : stream_(stream) {}

    template <class Kernel>
    void launch(const Kernel& kernel, unsigned blocks) const {
        if (blocks == 0) return;
        constexpr std::size_t default_limit = 48 << 10;
        const std::size_t shared = kernel.shared_bytes();
        if (shared > default_limit)
            check(cudaFuncSetAttribute(run_kernel<Kernel>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       static_cast<int>(shared)),
                  "reserving shared memory");
        run_kernel<<<blocks, Kernel::threads, shared, stream_>>>(kernel);
        check(cudaGetLastError(), "starting a kernel");
    }

private:
    cudaStream_t stream_;
};

}  // namespace spiked::cuda

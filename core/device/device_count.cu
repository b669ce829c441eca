#include "core/device/device_count.hpp"

#include <cuda_runtime_api.h>

namespace spiked::cuda {
namespace {

__global__ void empty_kernel() {}

/// The error message of a CUDA call, empty on success; clears the error in the CUDA runtime.
std::string error_text(cudaError_t result) {
    if (result == cudaSuccess) return "";
    cudaGetLastError();
    return cudaGetErrorString(result);
}

}  // namespace

DeviceCount device_count() {
    int count = 0;
    const std::string problem = error_text(cudaGetDeviceCount(&count));
    if (!problem.empty()) return {0, problem};
    return {count, count == 0 ? "the driver shows no GPU" : ""};
}

std::string device_problem(int number) {
    const std::string problem = error_text(cudaSetDevice(number));
    if (!problem.empty()) return problem;
    cudaFuncAttributes attributes{};
    // This fails when the build has no code for the GPU's architecture.
    return error_text(cudaFuncGetAttributes(&attributes, empty_kernel));
}

std::size_t free_memory(int number) {
    std::size_t free = 0;
    std::size_t total = 0;
    if (!error_text(cudaSetDevice(number)).empty() || !error_text(cudaMemGetInfo(&free, &total)).empty()) return 0;
    return free;
}

}  // namespace spiked::cuda

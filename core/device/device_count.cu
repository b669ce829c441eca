#include "core/device/device_count.hpp"

#include <cuda_runtime_api.h>

namespace spiked::cuda {
namespace {

__global__ void nothing() {}

/// What went wrong, forgotten by the runtime.
std::string answer(cudaError_t result) {
    if (result == cudaSuccess) return "";
    cudaGetLastError();
    return cudaGetErrorString(result);
}

}  // namespace

DeviceCount device_count() {
    int count = 0;
    const std::string problem = answer(cudaGetDeviceCount(&count));
    if (!problem.empty()) return {0, problem};
    return {count, count == 0 ? "the driver shows no GPU" : ""};
}

std::string device_problem(int number) {
    const std::string problem = answer(cudaSetDevice(number));
    if (!problem.empty()) return problem;
    cudaFuncAttributes attributes{};
    return answer(cudaFuncGetAttributes(&attributes, nothing));  // asks for code of the GPU's architecture
}

std::size_t free_memory(int number) {
    std::size_t free = 0;
    std::size_t total = 0;
    if (!answer(cudaSetDevice(number)).empty() || !answer(cudaMemGetInfo(&free, &total)).empty()) return 0;
    return free;
}

}  // namespace spiked::cuda

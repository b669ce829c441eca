#pragma once
#include <cstddef>
#include <memory>

#include "core/device/device_launch.cuh"

/// Owning handles for GPU memory, pinned host memory and CUDA streams.
namespace spiked::cuda {

struct FreeDevice {
    void operator()(unsigned char* memory) const { cudaFree(memory); }
};
struct FreePinned {
    void operator()(unsigned char* memory) const { cudaFreeHost(memory); }
};
using DeviceMemory = std::unique_ptr<unsigned char, FreeDevice>;
using PinnedMemory = std::unique_ptr<unsigned char, FreePinned>;

inline DeviceMemory device_memory(std::size_t bytes) {
    void* memory = nullptr;
    check(cudaMalloc(&memory, bytes), "allocating memory");
    return DeviceMemory(static_cast<unsigned char*>(memory));
}
/// Pinned host memory, which the GPU can read and write asynchronously.
inline PinnedMemory pinned_memory(std::size_t bytes) {
    void* memory = nullptr;
    check(cudaMallocHost(&memory, bytes), "allocating pinned host memory");
    return PinnedMemory(static_cast<unsigned char*>(memory));
}

class Stream {
public:
    Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "creating a stream"); }
    ~Stream() { cudaStreamDestroy(stream_); }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    [[nodiscard]] cudaStream_t get() const { return stream_; }
    void wait() const { check(cudaStreamSynchronize(stream_), "waiting for a stream"); }

private:
    cudaStream_t stream_ = nullptr;
};

}  // namespace spiked::cuda

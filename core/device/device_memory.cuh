#pragma once
#include <cstddef>
#include <memory>

#include "core/device/device_launch.cuh"

/// What a batch path holds on a GPU, given back by itself.
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
    check(cudaMalloc(&memory, bytes), "taking memory");
    return DeviceMemory(static_cast<unsigned char*>(memory));
}
/// Of the host, which the GPU reads and writes while the host does something else.
inline PinnedMemory pinned_memory(std::size_t bytes) {
    void* memory = nullptr;
    check(cudaMallocHost(&memory, bytes), "taking pinned host memory");
    return PinnedMemory(static_cast<unsigned char*>(memory));
}

class Stream {
public:
    Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream"); }
    ~Stream() { cudaStreamDestroy(stream_); }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    [[nodiscard]] cudaStream_t get() const { return stream_; }
    void wait() const { check(cudaStreamSynchronize(stream_), "waiting for a stream"); }

private:
    cudaStream_t stream_ = nullptr;
};

}  // namespace spiked::cuda

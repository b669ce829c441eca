#pragma once
#include "core/device/device_memory.cuh"

namespace spiked::cuda {

/// The interface of EmulatedMachine on a GPU: one stream and its memory. Only one host thread may use it at a time;
/// several machines on one GPU copy and compute concurrently.
class DeviceMachine {
public:
    DeviceMachine(int device, std::size_t memory) : device_((choose(device), device)), limit_(memory) {}

    unsigned char* reserve(std::size_t bytes) {
        choose(device_);
        if (bytes <= reserved_) return memory_.get();
        memory_.reset();
        reserved_ = 0;
        memory_ = device_memory(bytes);
        reserved_ = bytes;
        return memory_.get();
    }
    unsigned char* staging(std::size_t bytes) {
        choose(device_);
        if (bytes > staged_) {
            staging_.reset();
            staged_ = 0;
            staging_ = pinned_memory(bytes);
            staged_ = bytes;
        }
        return staging_.get();
    }
    [[nodiscard]] std::size_t memory() const { return limit_; }

    void clear(void* device, std::size_t bytes) {
        if (bytes > 0) check(cudaMemsetAsync(device, 0, bytes, stream_.get()), "clearing memory");
    }
    void upload(void* device, const void* host, std::size_t bytes) {
        if (bytes > 0)
            check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream_.get()), "copying to the device");
    }
    void download(void* host, const void* device, std::size_t bytes) {
        if (bytes > 0)
            check(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream_.get()),
                  "copying from the device");
    }
    template <class Kernel>
    void launch(const Kernel& kernel, unsigned blocks) const {
        DeviceExecutor(stream_.get()).launch(kernel, blocks);
    }
    void wait() const { stream_.wait(); }

private:
    static void choose(int device) { check(cudaSetDevice(device), "choosing the device"); }

    int device_;
    std::size_t limit_;
    Stream stream_;
    DeviceMemory memory_;
    std::size_t reserved_ = 0;
    PinnedMemory staging_;
    std::size_t staged_ = 0;
};

}  // namespace spiked::cuda

#pragma once
#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "core/device/device_failure.hpp"
#include "core/device/emulated_block.hpp"

namespace spiked::cuda {

/// What a driver of kernels computes on: memory, copies, launches. This one is the host, whose "device" memory has a
/// limit; DeviceMachine (device_machine.cuh) is a GPU. What is asked of one happens in order; `wait` ends it.
class EmulatedMachine {
public:
    /// Promises `memory` bytes and has no more than `has`.
    explicit EmulatedMachine(int, std::size_t memory, std::size_t has = std::numeric_limits<std::size_t>::max())
        : limit_(memory), has_(std::min(memory, has)) {}

    /// At least so many bytes of device memory, what was in them before is lost. Throws DeviceFailure.
    unsigned char* reserve(std::size_t bytes) {
        if (bytes > has_) throw DeviceFailure("taking memory", "out of memory", true);
        memory_.assign(bytes, 0xFF);  // NaN: what is read before it is written shows
        return memory_.data();
    }
    /// Host memory for what goes there and comes back.
    unsigned char* staging(std::size_t bytes) {
        if (bytes > has_) throw DeviceFailure("taking pinned host memory", "out of memory", true);
        staging_.resize(bytes);
        return staging_.data();
    }
    /// Bytes that `reserve` may be asked for.
    [[nodiscard]] std::size_t memory() const { return limit_; }

    /// What is copied back has gaps that no kernel writes; a checker of a GPU's memory wants them written. Not here,
    /// where what is read before it is written is to show.
    static void clear(void*, std::size_t) {}
    void upload(void* device, const void* host, std::size_t bytes) {
        if (bytes > 0) std::memcpy(device, host, bytes);
    }
    void download(void* host, const void* device, std::size_t bytes) {
        if (bytes > 0) std::memcpy(host, device, bytes);
    }
    template <class Kernel>
    void launch(const Kernel& kernel, unsigned blocks) const {
        EmulatedExecutor().launch(kernel, blocks);
    }
    void wait() {}

private:
    std::size_t limit_, has_;
    std::vector<unsigned char> memory_, staging_;
};

}  // namespace spiked::cuda

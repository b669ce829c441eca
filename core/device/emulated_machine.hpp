#pragma once
#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "core/device/device_failure.hpp"
#include "core/device/emulated_block.hpp"

namespace spiked::cuda {

/// A failure that an emulated machine is told to have, as a GPU has that lost its driver or is full.
struct InjectedFailure {
    std::size_t after = 0;       ///< operations that succeed before
    bool lasts = true;           ///< whether all later operations fail too
    bool of_memory = false;      ///< whether it is that memory ran out
    std::size_t operations = 0;  ///< counts the operations of all machines that share it
};

/// Memory, copies and kernel launches for the host code that drives kernels. This class emulates a device on the host,
/// with a limit on its "device" memory; DeviceMachine (device_machine.cuh) is a GPU. Operations run in order; `wait`
/// returns when all have finished.
class EmulatedMachine {
public:
    /// Reports `memory` bytes; allocations beyond `available` bytes fail.
    explicit EmulatedMachine(int, std::size_t memory, std::size_t available = std::numeric_limits<std::size_t>::max(),
                             std::shared_ptr<InjectedFailure> failure = nullptr)
        : limit_(memory), available_(std::min(memory, available)), failure_(std::move(failure)) {}

    /// Allocates at least this many bytes of device memory; earlier contents are lost. Throws DeviceFailure.
    unsigned char* reserve(std::size_t bytes) {
        may_fail("allocating memory");
        if (bytes > available_) throw DeviceFailure("allocating memory", "out of memory", true);
        memory_.assign(bytes, 0xFF);  // NaN, so that reads of unwritten memory become visible
        return memory_.data();
    }
    /// Host memory for copies to and from the device.
    unsigned char* staging(std::size_t bytes) {
        may_fail("allocating pinned host memory");
        if (bytes > available_) throw DeviceFailure("allocating pinned host memory", "out of memory", true);
        staging_.resize(bytes);
        return staging_.data();
    }
    /// The number of bytes that the machine reports as available to `reserve`.
    [[nodiscard]] std::size_t memory() const { return limit_; }

    /// On a GPU this zeroes memory, because results that are copied back have gaps that no kernel writes, which a
    /// memory checker would report. Here it does nothing, so that reads of unwritten memory become visible.
    static void clear(void*, std::size_t) {}
    void upload(void* device, const void* host, std::size_t bytes) {
        may_fail("copying to the device");
        if (bytes > 0) std::memcpy(device, host, bytes);
    }
    void download(void* host, const void* device, std::size_t bytes) {
        may_fail("copying from the device");
        if (bytes > 0) std::memcpy(host, device, bytes);
    }
    template <class Kernel>
    void launch(const Kernel& kernel, unsigned blocks) const {
        may_fail("starting a kernel");
        EmulatedExecutor().launch(kernel, blocks);
    }
    void wait() { may_fail("waiting for a stream"); }

private:
    void may_fail(const char* doing) const {
        if (!failure_) return;
        const std::size_t number = std::atomic_ref(failure_->operations)++;
        if (number == failure_->after || (failure_->lasts && number > failure_->after))
            throw DeviceFailure(doing, failure_->of_memory ? "out of memory" : "unspecified launch failure",
                                failure_->of_memory);
    }

    std::size_t limit_, available_;
    std::shared_ptr<InjectedFailure> failure_;
    std::vector<unsigned char> memory_, staging_;
};

}  // namespace spiked::cuda

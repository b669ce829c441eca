#pragma once
#include <atomic>
#include <mutex>

namespace spiked {

/// Runs `make` exactly once; other threads wait until it has finished. When `make` throws, the exception goes to the
/// thread that ran it, and the next call tries again. (std::call_once does the same, but under the thread sanitizer all
/// calls after a failure wait forever.)
class CallOnce {
public:
    template <class Make>
    void operator()(const Make& make) {
        if (made_.load(std::memory_order_acquire)) return;
        const std::lock_guard lock(mutex_);
        if (made_.load(std::memory_order_relaxed)) return;
        make();
        made_.store(true, std::memory_order_release);
    }

private:
    std::atomic<bool> made_{false};
    std::mutex mutex_;
};

}  // namespace spiked

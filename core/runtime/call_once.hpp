#pragma once
#include <atomic>
#include <mutex>

namespace spiked {

/// What the first who asks makes and others wait for. What making throws reaches who asked; the next one tries again.
/// (So does std::call_once, but under the thread sanitizer, where everybody after a failure waits for ever.)
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

#include "validation/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace spiked::validation {

void for_each_parallel(std::size_t count, std::size_t threads, const std::function<void(std::size_t)>& work) {
    if (threads == 0) threads = std::max(1U, std::thread::hardware_concurrency());
    std::atomic<std::size_t> next{0};
    std::mutex guard;
    std::size_t failed_at = count;
    std::exception_ptr failure;
    const auto loop = [&] {
        for (std::size_t i = next++; i < count; i = next++) {
            try {
                work(i);
            } catch (...) {
                next = count;
                const std::lock_guard lock(guard);
                if (i < failed_at) {
                    failed_at = i;
                    failure = std::current_exception();
                }
            }
        }
    };
    std::vector<std::jthread> pool;
    for (std::size_t t = 1; t < std::min(threads, count); ++t) pool.emplace_back(loop);
    loop();
    pool.clear();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace spiked::validation

#include "core/runtime/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "core/runtime/blas_buffers.hpp"
#include "core/runtime/error.hpp"

namespace spiked {

std::size_t thread_count(std::size_t asked) {
    constexpr std::size_t most_threads = 4096;
    if (asked > most_threads)
        throw usage_error(
            "{} threads (at most {} are started): ask for fewer, or for 0 to use all processors of the machine", asked,
            most_threads);
    return asked == 0 ? std::max(1U, std::thread::hardware_concurrency()) : asked;
}

void for_each_parallel(std::size_t count, std::size_t threads, const std::function<void(std::size_t)>& work) {
    threads = thread_count(threads);
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
    threads = std::min(threads, count);
    hold_blas_buffers(threads);
    std::vector<std::jthread> pool;
    try {
        for (std::size_t t = 1; t < threads; ++t) pool.emplace_back(loop);
    } catch (const std::system_error&) {
        // The machine does not start more threads; fewer threads do the work.
    }
    loop();
    pool.clear();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace spiked

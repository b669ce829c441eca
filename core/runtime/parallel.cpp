#include "core/runtime/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "core/runtime/error.hpp"

// Internal functions of OpenBLAS for the work buffer of a call. They are weak symbols, because some builds of OpenBLAS
// do not export them.
extern "C" {
[[gnu::weak]] void* blas_memory_alloc(int procedure);
[[gnu::weak]] void blas_memory_free(void* buffer);
}

namespace spiked {

std::size_t thread_count(std::size_t asked) {
    constexpr std::size_t most_threads = 4096;
    if (asked > most_threads)
        throw usage_error(
            "{} threads (at most {} are started): ask for fewer, or for 0 to use all processors of the machine", asked,
            most_threads);
    return asked == 0 ? std::max(1U, std::thread::hardware_concurrency()) : asked;
}

void hold_blas_buffers(std::size_t threads) {
    constexpr std::size_t buffer_bytes = (std::size_t{128} << 20) + 4096;
    constexpr std::size_t most_buffers = 64;  // OpenBLAS has slots for a fixed number
    static std::mutex guard;
    static std::size_t held = 0;
    const std::lock_guard lock(guard);
    threads = std::min(threads, most_buffers);
    if (threads <= held) return;
    {
        std::vector<std::unique_ptr<void, decltype(&std::free)>> trial_buffers;
        for (std::size_t i = held; i < threads; ++i) {
            trial_buffers.emplace_back(std::malloc(buffer_bytes), &std::free);
            if (trial_buffers.back() == nullptr) throw std::bad_alloc();
        }
    }
    held = threads;
    if (blas_memory_alloc == nullptr || blas_memory_free == nullptr) return;
    std::vector<void*> buffers;
    for (std::size_t i = 0; i < threads; ++i) buffers.push_back(blas_memory_alloc(0));
    for (void* buffer : buffers) blas_memory_free(buffer);
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

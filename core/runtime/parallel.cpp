#include "core/runtime/parallel.hpp"

#include <algorithm>
#include <exception>

#include "core/runtime/blas_buffers.hpp"
#include "core/runtime/error.hpp"

namespace spiked {
namespace {

/// Waits until something is true, but 20 us at most: waking up from sleep takes as long. Returns whether it is. A
/// thread that yielded instead would on a busy machine wait for all that others have to do.
template <class Question>
bool soon(const Question& question) {
    for (int i = 0; i < 400; ++i) {
        if (question()) return true;
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
    return false;
}

}  // namespace

std::size_t thread_count(std::size_t asked) {
    constexpr std::size_t most_threads = 4096;
    if (asked > most_threads)
        throw usage_error(
            "{} threads (at most {} are started): ask for fewer, or for 0 to use all processors of the machine", asked,
            most_threads);
    return asked == 0 ? std::max(1U, std::thread::hardware_concurrency()) : asked;
}

struct ThreadTeam::Job {
    std::size_t count;
    const std::function<void(std::size_t)>& work;
    std::atomic<std::size_t> next{0};
    std::mutex guard;
    std::size_t failed_at = count;
    std::exception_ptr failure;

    void run() {
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
    }
};

ThreadTeam::ThreadTeam(std::size_t threads) {
    threads = thread_count(threads);
    hold_blas_buffers(threads);
    threads_.reserve(threads - 1);
    try {
        for (std::size_t t = 1; t < threads; ++t) threads_.emplace_back([this] { serve(); });
    } catch (const std::exception&) {
        // The machine does not start more threads, or has no memory for them; fewer threads do the work.
    }
}

ThreadTeam::~ThreadTeam() {
    {
        const std::lock_guard lock(guard_);
        closing_ = true;
        ++calls_;
    }
    wake_.notify_all();
    threads_.clear();
}

void ThreadTeam::for_each(std::size_t count, const std::function<void(std::size_t)>& work) {
    Job job{count, work};
    const bool shared = !threads_.empty() && count > 1;
    if (shared) {
        const std::lock_guard lock(guard_);
        job_ = &job;
        ++calls_;
    }
    if (shared) wake_.notify_all();
    job.run();
    if (shared) {
        std::unique_lock lock(guard_);
        job_ = nullptr;  // threads that did not wake up in time have nothing to do any more
        const auto all_left = [this] { return inside_ == 0; };
        lock.unlock();
        (void)soon(all_left);
        lock.lock();
        done_.wait(lock, all_left);
    }
    if (job.failure) std::rethrow_exception(job.failure);
}

void ThreadTeam::serve() {
    std::unique_lock lock(guard_);
    for (std::size_t seen = 0; !closing_;) {
        if (job_ != nullptr && seen != calls_) {
            seen = calls_;
            Job& job = *job_;
            ++inside_;
            lock.unlock();
            job.run();
            lock.lock();
            if (--inside_ == 0) done_.notify_one();
        }
        lock.unlock();
        (void)soon([&] { return seen != calls_; });
        lock.lock();
        wake_.wait(lock, [&] { return closing_ || (job_ != nullptr && seen != calls_); });
    }
}

void Progress::reach(std::size_t point) {
    at_ = point;
    if (sleepers_ == 0) return;
    { const std::lock_guard lock(guard_); }
    reached_.notify_all();
}

void Progress::await(std::size_t point) {
    const auto there = [&] { return at_ >= point; };
    if (soon(there)) return;
    std::unique_lock lock(guard_);
    ++sleepers_;
    reached_.wait(lock, there);
    --sleepers_;
}

void for_each_parallel(std::size_t count, std::size_t threads, const std::function<void(std::size_t)>& work) {
    threads = std::min(thread_count(threads), count);
    if (count > 0) ThreadTeam(threads).for_each(count, work);
}

}  // namespace spiked

#pragma once
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace spiked {

/// The requested number of threads, or the number of processors for 0. Throws usage_error for more than 4096.
[[nodiscard]] std::size_t thread_count(std::size_t asked);

/// Threads that stay ready between calls, for work of many short parts. Another thread than the one that made the team
/// may not use it. Waiting threads take no processor time but for some 20 us after a call.
class ThreadTeam {
public:
    /// `thread_count(threads)` threads with the calling one, or fewer when the machine does not start as many.
    explicit ThreadTeam(std::size_t threads);
    ~ThreadTeam();
    ThreadTeam(const ThreadTeam&) = delete;
    ThreadTeam& operator=(const ThreadTeam&) = delete;

    /// Runs work(0) .. work(count - 1), started in this order by the threads of the team, the calling one among them.
    /// After an exception no further index is started, and the exception of the lowest index that failed is rethrown
    /// here. What a call wrote is seen by all parts of the next one.
    void for_each(std::size_t count, const std::function<void(std::size_t)>& work);

private:
    struct Job;
    void serve();

    std::mutex guard_;
    std::condition_variable wake_, done_;
    Job* job_ = nullptr;  ///< null between calls
    std::atomic<std::size_t> calls_{0};
    std::atomic<std::size_t> inside_{0};  ///< threads that work on the job
    bool closing_ = false;
    std::vector<std::jthread> threads_;
};

/// How far one part of the work has come, for other parts that must stay behind it.
class Progress {
public:
    /// To be called by one thread, with rising numbers.
    void reach(std::size_t point);
    /// Waits until `point` or a later one is reached; what was written before is then seen.
    void await(std::size_t point);

private:
    std::atomic<std::size_t> at_{0}, sleepers_{0};
    std::mutex guard_;
    std::condition_variable reached_;
};

/// The same for one call, on `threads` threads or one for each index where these are fewer.
void for_each_parallel(std::size_t count, std::size_t threads, const std::function<void(std::size_t)>& work);

}  // namespace spiked

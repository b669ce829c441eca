#pragma once
#include <atomic>

namespace spiked {

/// A question whose answer becomes true once work is to stop.
struct StopQuestion {
    bool (*asked)(const void*) = nullptr;  ///< null: nobody asks
    const void* of = nullptr;
};

/// While this object exists, the work of the thread that made it ends at its next stop point once the answer is true.
/// Other threads have questions of their own; the innermost object of a thread counts.
class StopScope {
public:
    explicit StopScope(StopQuestion question);
    explicit StopScope(const std::atomic<bool>& stop);
    ~StopScope();
    StopScope(const StopScope&) = delete;
    StopScope& operator=(const StopScope&) = delete;

private:
    StopQuestion before_;
};

/// Whether somebody has a question for this thread, and whether its answer is true.
[[nodiscard]] bool may_be_stopped();
[[nodiscard]] bool stop_asked();

/// A place at which long work may end: throws Error(ErrorKind::stopped) when its thread is to stop. It changes nothing
/// otherwise and takes 2 ns, so loops have one in every pass of more than some microseconds.
void stop_point();

}  // namespace spiked

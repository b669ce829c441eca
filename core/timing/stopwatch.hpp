#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace spiked {

/// Code to time. `run` does one unit of work and must leave a result that the compiler cannot drop
/// (use_result).
struct Job {
    std::string what;
    std::function<void()> run;
    /// Replaces `run` for work that is timed elsewhere (in another process, or in batches): does this many units and
    /// returns the microseconds of processor time per unit.
    std::function<double(std::size_t units)> measure = {};
};

/// The processor time of this thread in microseconds. Unlike wall-clock time it does not advance while another program
/// uses the processor.
[[nodiscard]] double thread_microseconds();

/// The time of a monotonic clock in microseconds, for work on other threads and devices.
[[nodiscard]] double wall_microseconds();

/// Microseconds per unit of work, over many samples.
struct Timing {
    std::string what;
    double median = 0.0;
    double p10 = 0.0;  ///< 10th percentile, close to the time on a quiet machine; use it for ratios
};

/// A job whose work is done in batches of `units_per_batch` units.
[[nodiscard]] Job batch_job(std::string what, std::size_t units_per_batch, std::function<void()> run_batch,
                            double (*clock)() = thread_microseconds);

/// Times the jobs in rounds, with one sample of each job per round, so that other load on the machine affects all jobs
/// alike. A sample repeats its job until it lasts at least 200 microseconds. Takes about `seconds` in all, and at least
/// 5 samples per job, or 2 of a job that takes longer than that alone.
[[nodiscard]] std::vector<Timing> time_interleaved(const std::vector<Job>& jobs, double seconds);

/// Keeps a result from being optimised away.
inline void use_result(double value) { asm volatile("" : : "g"(&value) : "memory"); }

}  // namespace spiked

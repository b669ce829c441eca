#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace spiked {

/// Something to time. `run` does one unit of work and must leave a result that the compiler cannot drop (use_result).
struct Job {
    std::string what;
    std::function<void()> run;
    /// Instead of `run`, for work with a clock of its own (in another process, or done in batches): microseconds of
    /// processor time a unit, over so many.
    std::function<double(std::size_t units)> measure = {};
};

/// Microseconds of processor time that this thread has had: unlike the clock on the wall they do not run while another
/// program has the processor.
[[nodiscard]] double thread_microseconds();

/// Of a clock that is not set: for work on other threads and devices.
[[nodiscard]] double wall_microseconds();

/// Microseconds a unit, over many samples.
struct Timing {
    std::string what;
    double median = 0.0;
    double p10 = 0.0;  ///< what a quiet machine gives: compare these in ratios
};

/// A job whose work comes in batches of so many units.
[[nodiscard]] Job batch_job(std::string what, std::size_t units_a_batch, std::function<void()> run_batch,
                            double (*clock)() = thread_microseconds);

/// Times the jobs in turn, a sample of each a round, so that a noisy neighbour hits all alike. A sample repeats its job
/// until it lasts at least 200 microseconds. Takes about `seconds` in all, at least 5 samples a job.
[[nodiscard]] std::vector<Timing> time_interleaved(const std::vector<Job>& jobs, double seconds);

/// Keeps a result from being optimised away.
inline void use_result(double value) { asm volatile("" : : "g"(&value) : "memory"); }

}  // namespace spiked

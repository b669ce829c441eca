#include "core/timing/stopwatch.hpp"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace spiked {
namespace {

double microseconds(const Job& job, std::size_t repeats) {
    if (job.measure) return job.measure(repeats) * static_cast<double>(repeats);
    const double begin = thread_microseconds();
    for (std::size_t i = 0; i < repeats; ++i) job.run();
    return thread_microseconds() - begin;
}

}  // namespace

double thread_microseconds() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) * 1e-3;
}

double wall_microseconds() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) * 1e-3;
}

Job batch_job(std::string what, std::size_t units_per_batch, std::function<void()> run_batch, double (*clock)()) {
    return {std::move(what), {}, [units_per_batch, clock, run = std::move(run_batch)](std::size_t units) {
                const std::size_t batches = (units + units_per_batch - 1) / units_per_batch;
                const double begin = clock();
                for (std::size_t i = 0; i < batches; ++i) run();
                return (clock() - begin) / static_cast<double>(batches * units_per_batch);
            }};
}

std::vector<Timing> time_interleaved(const std::vector<Job>& jobs, double seconds) {
    constexpr double shortest_sample = 200.0;
    constexpr std::size_t fewest = 5;
    constexpr std::size_t fewest_of_long = 2;
    std::vector<std::size_t> repeats;
    std::vector<std::vector<double>> samples(jobs.size());
    for (std::size_t j = 0; j < jobs.size(); ++j) {
        double once = microseconds(jobs[j], 1);  // fills caches and tables that are computed at first use
        if (once > 1e6 * seconds)
            samples[j].push_back(once);  // of which they are no part worth mentioning
        else
            once = std::max(1e-3, microseconds(jobs[j], 1));
        repeats.push_back(static_cast<std::size_t>(std::ceil(shortest_sample / once)));
    }
    const double begin = wall_microseconds();
    for (std::size_t rounds = 0; rounds < fewest || wall_microseconds() - begin < 1e6 * seconds; ++rounds)
        for (std::size_t j = 0; j < jobs.size(); ++j) {
            const bool is_long = !samples[j].empty() && samples[j].front() > 1e6 * seconds;
            if (is_long && samples[j].size() >= fewest_of_long) continue;
            samples[j].push_back(microseconds(jobs[j], repeats[j]) / static_cast<double>(repeats[j]));
        }
    std::vector<Timing> result;
    for (std::size_t j = 0; j < jobs.size(); ++j) {
        std::sort(samples[j].begin(), samples[j].end());
        result.push_back({jobs[j].what, samples[j][samples[j].size() / 2], samples[j][samples[j].size() / 10]});
    }
    return result;
}

}  // namespace spiked

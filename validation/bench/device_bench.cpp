#include "validation/bench/device_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "theory/base/error.hpp"
#include "validation/parallel.hpp"
#include "validation/study.hpp"

namespace spiked::validation {
namespace {

constexpr std::string_view frame = R"(spiked = 1
[study]
name = "bench"
seed = "0x5eed"
[model]
kind = "spiked"
n = 128
d = 128
noise = {{ row_cov = {{ kind = "ar1", rho = 0.4 }}, col_cov = {{ kind = "exponential", c = 2.0 }}, colouring = "{}" }}
signal = {{ strength = [4.0, 3.0], unit = "threshold" }}
[run]
precision = "float"
[[estimator]]
name = "eoptshrink"
)";
constexpr std::string_view codec = R"([[codec]]
name = "tq-mse"
bits = [4]
)";

struct Runner {
    std::string what;
    Experiment experiment;
    std::size_t group;  ///< trials of a range that a thread asks for
    std::uint64_t next = 0;
    std::vector<double> samples = {};

    void sample(std::size_t threads) {
        using Clock = std::chrono::steady_clock;
        const auto start = Clock::now();
        for_each_parallel(threads, threads, [&](std::size_t t) {
            const ReplicateRange range{next + t * group, group};
            const auto worker = experiment.worker(0, range);
            for (std::uint64_t r = range.first; r < range.end(); ++r) use_result(worker(r).front().value);
        });
        next += threads * group;
        const double took = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
        samples.push_back(took / static_cast<double>(threads * group));
    }
};

}  // namespace

std::vector<Timing> time_studies(const spiked::cuda::Device& device, std::size_t threads, double seconds) {
    std::vector<Runner> runners;
    const bool emulated = device.backend == spiked::cuda::Backend::emulated;
    for (const auto& [what, text] :
         {std::pair{"dense", fmt::format(fmt::runtime(frame), "dense")},
          std::pair{"eigenbasis", fmt::format(fmt::runtime(frame), "eigenbasis")},
          std::pair{"coded", fmt::format(fmt::runtime(frame), "dense") + std::string(codec)}}) {
        runners.push_back({fmt::format("{}:cpu", what), parse_study(text, "bench").experiment, 16});
        if (device.backend == spiked::cuda::Backend::cpu) continue;
        Experiment moved = parse_study(text, "bench").experiment;
        std::vector<std::string> remarks;
        if (!moved.move_to(device, threads, remarks) || !remarks.empty())
            throw bug("no kernel computes the study of the benchmark: {}", remarks.empty() ? "" : remarks.front());
        runners.push_back({fmt::format("{}:{}", what, name_of(device.backend)), std::move(moved),
                           emulated ? std::size_t{2} : std::size_t{2048}});
    }
    for (Runner& runner : runners) runner.sample(threads);  // takes memory, makes roots
    for (Runner& runner : runners) runner.samples.clear();
    const auto start = std::chrono::steady_clock::now();
    do
        for (Runner& runner : runners) runner.sample(threads);
    while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < seconds);
    std::vector<Timing> rows;
    for (Runner& runner : runners) {
        auto& all = runner.samples;
        std::sort(all.begin(), all.end());
        rows.push_back({runner.what, all[all.size() / 2], all[all.size() / 10]});
    }
    return rows;
}

}  // namespace spiked::validation

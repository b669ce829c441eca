#include "validation/trials/bench/device_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "core/device/device_count.hpp"
#include "core/runtime/error.hpp"
#include "core/runtime/parallel.hpp"
#include "estimators/quantizers/bench/quantize_bench.hpp"
#include "estimators/quantizers/quantizer_table.hpp"
#include "estimators/svd/batch_decomposition.hpp"
#include "estimators/svd/bench/decompose_bench.hpp"
#include "estimators/svd/cuda/decomposition_pipeline.hpp"
#include "estimators/svd/decomposition.hpp"
#include "validation/study/study.hpp"
#include "validation/trials/cuda/device_passes.hpp"
#include "validation/trials/device_trials.hpp"

namespace spiked::validation {
namespace {

constexpr std::string_view study_text = R"(spiked = 1
[study]
name = "bench"
seed = "0x5eed"
[model]
kind = "spiked"
n = {}
d = {}
noise = {{ row_cov = {{ kind = "ar1", rho = 0.4 }}, col_cov = {{ kind = "exponential", c = 2.0 }}, colouring = "{}" }}
signal = {{ strength = [4.0, 3.0], unit = "threshold" }}
[run]
precision = "{}"
[[estimator]]
name = "eoptshrink"
)";
constexpr std::string_view codec_text = R"([[codec]]
name = "tq-mse"
bits = [4]
)";

/// Runs trials of a study; each thread requests ranges of `group` trials, several in a row, so that the host's share of
/// the last ones hardly counts.
Job study_job(std::string what, Experiment experiment, std::uint64_t group, std::size_t threads) {
    auto shared = std::make_shared<Experiment>(std::move(experiment));
    constexpr std::uint64_t rounds = 6;
    const auto run = [shared, group, threads, next = std::uint64_t{0}]() mutable {
        const std::uint64_t first = next;
        next += threads * rounds * group;
        for_each_parallel(threads, threads, [&](std::size_t t) {
            for (std::uint64_t round = 0; round < rounds; ++round) {
                const ReplicateRange range{first + (round * threads + t) * group, group};
                const auto worker = shared->worker(0, range);
                for (std::uint64_t r = range.first; r < range.end(); ++r) use_result(worker(r).front().value);
            }
        });
    };
    return batch_job(std::move(what), threads * rounds * group, run, wall_microseconds);
}

/// Runs `work` on every thread; each thread processes `blocks` blocks.
Job parallel_job(std::string what, std::size_t threads, std::size_t blocks,
                 std::function<void(std::size_t thread)> work) {
    return batch_job(
        std::move(what), threads * blocks,
        [threads, work = std::move(work)] { for_each_parallel(threads, threads, work); }, wall_microseconds);
}

Job pass_job(std::string what, const spiked::cuda::Device& device, std::unique_ptr<cuda::DevicePass> pass) {
    std::shared_ptr<cuda::DevicePass> shared = std::move(pass);
    return batch_job(
        std::move(what), shared->blocks(), [shared, device] { on_device(device, [&] { shared->run(); }); },
        wall_microseconds);
}

/// Memory for one of `passes` batches that are on the device at the same time.
std::size_t memory_of(const spiked::cuda::Device& device, std::size_t passes) {
    constexpr std::size_t emulated = std::size_t{1} << 30;
    return device.backend == spiked::cuda::Backend::cuda
               ? spiked::cuda::free_memory(device.numbers.front()) / 10 * 8 / passes
               : emulated;
}
std::size_t batch_of(const spiked::cuda::Device& device, std::size_t on_a_gpu) {
    return device.backend == spiked::cuda::Backend::cuda ? on_a_gpu : 2;
}

template <class Real>
DeviceTimings time_decompositions_in(const spiked::cuda::Device& device, estimators::Shape shape, std::size_t wanted,
                                     std::size_t threads, double seconds) {
    using Batch = estimators::BatchDecomposition<Real>;
    const auto samples = estimators::benchmark_blocks<Real>(shape, Batch::lanes);
    std::vector<Real> contiguous;
    cuda::BlocksToDecompose blocks{static_cast<std::uint32_t>(shape.rows), static_cast<std::uint32_t>(shape.columns),
                                   static_cast<std::uint32_t>(wanted), sizeof(Real) == sizeof(float)};
    for (const auto& block : samples) {
        contiguous.insert(contiguous.end(), block.begin(), block.end());
        blocks.blocks.insert(blocks.blocks.end(), block.begin(), block.end());
    }
    const auto reference = estimators::singular_values(arma::conv_to<arma::mat>::from(samples.front()));

    struct Worker {
        Batch batch;
        arma::Mat<Real> left, right;
    };
    auto workers = std::make_shared<std::vector<Worker>>();
    for (std::size_t t = 0; t < threads; ++t) workers->push_back({Batch(shape), {}, {}});
    DeviceTimings found;
    found.shape = shape;
    std::vector<Job> jobs;
    constexpr std::size_t rounds = 4;
    jobs.push_back(parallel_job("cpu", threads, rounds * Batch::lanes, [=](std::size_t t) {
        Worker& worker = (*workers)[t];
        for (std::size_t round = 0; round < rounds; ++round) {
            worker.batch.decompose(contiguous);
            for (std::size_t b = 0; b < Batch::lanes; ++b)
                worker.batch.leading_vectors(b, wanted, &worker.left, &worker.right);
        }
    }));
    const auto add = [&](const std::string& what, std::unique_ptr<cuda::DevicePass> pass) {
        pass->run();
        const auto values = pass->outcome();
        found.batch = std::max(found.batch, pass->blocks());
        // By the Gram matrix in float, small values are accurate only to the square root of float's precision.
        const double error =
            values.empty() ? 0.0 : estimators::worst_error(values, reference, std::max<std::size_t>(1, wanted));
        if (!(error < (sizeof(Real) == sizeof(float) ? 2e-3 : 1e-10)))
            throw postcondition_error("{} finds values that are {:.2g} off: unequal work is not compared", what, error);
        jobs.push_back(pass_job(what, device, std::move(pass)));
    };
    // A multiprocessor has room for 32 blocks of short side 256 in the kernel with one thread per block, and for more
    // smaller ones.
    const std::size_t count =
        batch_of(device, gpu_batch_size / 3 * std::clamp<std::size_t>(384 / shape.short_side(), 1, 12));
    const std::size_t memory = memory_of(device, 5);
    const int number = device.numbers.front();
    const std::string backend(name_of(device.backend));
    for (const auto& [what, part] : {std::pair{backend, cuda::DecompositionPart::vectors},
                                     std::pair{backend + "-values", cuda::DecompositionPart::values},
                                     std::pair{backend + "-bidiagonal", cuda::DecompositionPart::bidiagonal}})
        add(what, cuda::decomposition_pass(device.backend, number, memory, blocks, count, part));
    constexpr std::size_t most_of_a_library = 4096;  // cuSOLVER 12 rejects 16384 blocks of 128 x 128
    const std::string unsupported_reason = cuda::library_unsupported_reason(device.backend, blocks);
    found.left_out = unsupported_reason;
    if (unsupported_reason.empty())
        for (const auto& [what, route] : {std::pair{"cusolver-syev-gram", cuda::LibraryRoute::syev_gram},
                                          std::pair{"cusolver-gesvda", cuda::LibraryRoute::gesvda}})
            try {
                on_device(device, [&, what = what, route = route] {
                    add(what, cuda::library_pass(number, blocks, std::min(found.batch, most_of_a_library), route));
                });
            } catch (const Error& error) {  // only the baseline that fails is left out
                found.left_out += fmt::format("{}{}: {}", found.left_out.empty() ? "" : "; ", what, error.what());
            }
    found.rows = time_interleaved(jobs, seconds);
    return found;
}

}  // namespace

std::vector<Timing> time_studies(const spiked::cuda::Device& device, const BenchmarkTrials& trials, std::size_t threads,
                                 double seconds) {
    std::vector<Job> jobs;
    const std::uint64_t group = batch_of(device, gpu_batch_size);
    const auto study = [&](const char* colouring) {
        return fmt::format(study_text, trials.shape.rows, trials.shape.columns, colouring, enum_name(trials.precision));
    };
    for (const auto& [what, text] : {std::pair{"dense", study("dense")}, std::pair{"eigenbasis", study("eigenbasis")},
                                     std::pair{"coded", study("dense") + std::string(codec_text)}}) {
        jobs.push_back(study_job(fmt::format("{}:cpu", what), parse_study(text, "bench").experiment, 16, threads));
        if (device.backend == spiked::cuda::Backend::cpu) continue;
        Experiment moved = parse_study(text, "bench").experiment;
        std::vector<std::string> notes;
        if (!moved.move_to(device, threads, notes) || !notes.empty())
            throw usage_error("{} trials: {}: choose another size", what,
                              notes.empty() ? "no kernel computes them" : notes.front());
        jobs.push_back(
            study_job(fmt::format("{}:{}", what, name_of(device.backend)), std::move(moved), group, threads));
    }
    return time_interleaved(jobs, seconds);
}

DeviceTimings time_device_decompositions(const spiked::cuda::Device& device, estimators::Shape shape,
                                         std::size_t wanted, bool in_float, std::size_t threads, double seconds) {
    if (!estimators::cuda::fits(shape.long_side(), shape.short_side()))
        throw usage_error("blocks of {} x {}: kernels take 256 x 256: leave --device out", shape.rows, shape.columns);
    wanted = std::min(wanted, shape.short_side());
    if (wanted > estimators::cuda::most_vectors)
        throw usage_error("--vectors {}: kernels find {}: ask for fewer, or leave --device out", wanted,
                          estimators::cuda::most_vectors);
    return on_device(device, [&] {
        return in_float ? time_decompositions_in<float>(device, shape, wanted, threads, seconds)
                        : time_decompositions_in<double>(device, shape, wanted, threads, seconds);
    });
}

DeviceTimings time_device_quantizers(const spiked::cuda::Device& device, std::size_t threads, double seconds) {
    const std::size_t side = device.backend == spiked::cuda::Backend::cuda ? 128 : 32;
    constexpr std::size_t blocks = 512;  // 128 tokens of a model with 32 layers and 8 heads, keys and values
    const arma::fmat block = estimators::benchmark_rows(side, 0);
    const auto fill = [&](std::size_t, float* to) { std::copy(block.begin(), block.end(), to); };
    struct Subject {
        estimators::RowQuantizer quantizer;
        estimators::Encoded encoded;
    };
    DeviceTimings found;
    found.shape = {side, side};
    std::vector<Job> jobs;
    const auto& methods = estimators::timed_row_quantizers();
    const std::array<unsigned, 2> widths = {2, 4};
    const std::string backend(name_of(device.backend));
    const std::size_t memory = memory_of(device, 3 * methods.size() * widths.size());
    for (const auto& timed : methods)
        for (const unsigned bits : widths) {
            const estimators::QuantizerOptions options{.rotation = timed.rotation};
            auto quantizer = estimators::row_quantizer(timed.method, side, bits, options);
            auto encoded = quantizer.encode_float(block);
            const auto subject = std::make_shared<Subject>(Subject{std::move(quantizer), std::move(encoded)});
            const arma::mat decoded =
                arma::conv_to<arma::mat>::from(subject->quantizer.decode_float(subject->encoded.bytes, side));
            const arma::mat exact = arma::conv_to<arma::mat>::from(block);
            const double error = arma::accu(arma::square(decoded - exact)) / arma::accu(arma::square(exact));
            const std::string name = fmt::format("{}:{}", timed.what, bits);
            const auto on_cpu = [&](const char* part, auto each) {
                constexpr std::size_t rounds = 16;
                jobs.push_back(parallel_job(fmt::format("{}:{}:cpu", name, part), threads, rounds, [=](std::size_t) {
                    for (std::size_t round = 0; round < rounds; ++round) each();
                }));
            };
            on_cpu("encode", [=] { use_result(subject->quantizer.encode_float(block).bytes.back()); });
            on_cpu("decode", [=] {
                use_result(static_cast<double>(subject->quantizer.decode_float(subject->encoded.bytes, side)(0)));
            });
            const auto coding = row_coding(estimators::quantizer_spec(timed.method), options, {side, side}, bits);
            for (const auto& [what, part] :
                 {std::pair{"encode", cuda::CodingPart::encode}, std::pair{"decode", cuda::CodingPart::decode},
                  std::pair{"copied", cuda::CodingPart::encode_and_copy}})
                on_device(device, [&, what = what, part = part] {
                    auto pass = cuda::coding_pass(device.backend, device.numbers.front(), memory, coding,
                                                  batch_of(device, blocks), fill, part);
                    found.batch = pass->blocks();
                    if (const double theirs = pass->outcome().front(); !(std::abs(theirs / error - 1.0) < 1e-3))
                        throw postcondition_error(
                            "{} on {} loses {:.4g}, {:.4g} on the CPU: unequal work is not compared", name, backend,
                            theirs, error);
                    jobs.push_back(pass_job(fmt::format("{}:{}:{}", name, what, backend), device, std::move(pass)));
                });
        }
    found.rows = time_interleaved(jobs, seconds);
    return found;
}

}  // namespace spiked::validation

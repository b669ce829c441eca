#include "estimators/quantizers/bench/quantize_bench.hpp"

#include <fmt/format.h>

#include <armadillo>
#include <cstring>
#include <deque>

#include "sim/random/normal.hpp"

namespace spiked::estimators {
namespace {

constexpr std::size_t side = 128;

struct Subject {
    RowQuantizer quantizer;
    Encoded encoded;
};

}  // namespace

const std::vector<TimedRowQuantizer>& timed_row_quantizers() {
    static const std::vector<TimedRowQuantizer> timed = {{"tq-mse", "tq-mse", RotationKind::haar},
                                                         {"tq-mse-rht2", "tq-mse", RotationKind::rht2},
                                                         {"tq-prod", "tq-prod", RotationKind::haar},
                                                         {"eden", "eden", RotationKind::haar},
                                                         {"kivi", "kivi", RotationKind::identity}};
    return timed;
}

arma::fmat benchmark_rows(std::size_t size, std::uint64_t replicate) {
    arma::fmat block(size, size);
    stream::fill_normal(
        stream::Stream(stream::StudySeed::parse("0x5eed"), "bench quantize", stream::Role::noise, replicate),
        std::span<float>(block.memptr(), block.n_elem));
    return block;
}

std::vector<Timing> time_row_quantizers(double seconds) {
    const arma::fmat block = benchmark_rows(side, 0);
    const arma::fmat other = benchmark_rows(side, 1);
    std::deque<Subject> subjects;
    std::vector<Job> jobs;
    for (const auto& timed : timed_row_quantizers())
        for (const unsigned bits : {2U, 3U, 4U}) {
            RowQuantizer quantizer = row_quantizer(timed.method, side, bits, {.rotation = timed.rotation});
            Encoded encoded = quantizer.encode_float(block);
            const Subject& subject = subjects.emplace_back(Subject{std::move(quantizer), std::move(encoded)});
            jobs.push_back({fmt::format("{}:{}:encode", timed.what, bits),
                            [&subject, &block] { use_result(subject.quantizer.encode_float(block).bytes.back()); }});
            jobs.push_back({fmt::format("{}:{}:decode", timed.what, bits), [&subject] {
                                const arma::fmat decoded = subject.quantizer.decode_float(subject.encoded.bytes, side);
                                use_result(static_cast<double>(decoded(0)));
                            }});
        }
    arma::fmat product(side, side);
    jobs.push_back({"gemm", [&] {
                        product = block * other;
                        use_result(static_cast<double>(product(0)));
                    }});
    std::vector<float> target(block.n_elem);
    jobs.push_back({"copy", [&] {
                        std::memcpy(target.data(), block.memptr(), block.n_elem * sizeof(float));
                        use_result(static_cast<double>(target[0]));
                    }});
    return time_interleaved(jobs, seconds);
}

}  // namespace spiked::estimators

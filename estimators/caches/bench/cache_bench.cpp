#include "estimators/caches/bench/cache_bench.hpp"

#include <fmt/format.h>

#include <armadillo>
#include <cmath>
#include <deque>
#include <string>

#include "estimators/caches/cache_method.hpp"
#include "estimators/caches/causal_stream.hpp"
#include "estimators/causal/causal_codec.hpp"
#include "estimators/quantizers/quantizer_table.hpp"
#include "sim/random/normal.hpp"

namespace spiked::estimators {
namespace {

arma::mat benchmark_tokens(std::size_t tokens, std::size_t channels) {
    const auto normal = [](std::size_t rows, std::size_t columns, std::uint64_t replicate) {
        arma::mat entries(rows, columns);
        stream::fill_normal(
            stream::Stream(stream::StudySeed::parse("0x5eed"), "bench cache", stream::Role::noise, replicate),
            std::span<double>(entries.memptr(), entries.n_elem));
        return entries;
    };
    constexpr double correlation = 0.5;
    arma::mat rows = normal(tokens, channels, 0);
    for (std::size_t t = 1; t < tokens; ++t) rows.row(t) += correlation * rows.row(t - 1);
    arma::mat rotation, triangle;
    arma::qr(rotation, triangle, normal(channels, channels, 1));
    return rows * arma::diagmat(arma::logspace(0.0, -1.5, channels)) * rotation;
}

/// A causal code of some columns that has passed its freeze, and one block after it.
struct FrozenCode {
    CausalEncoder encoder;
    CausalDecoder decoder;
    arma::mat block;
    std::vector<std::uint8_t> bytes = {};
    double microseconds = 0.0;  ///< to encode a block before the freeze
    double bits = 0.0;          ///< per entry of the block

    FrozenCode(const CausalOptions& options, int step, const arma::mat& rows)
        : encoder({rows.n_cols}, options, {step, {}}, rows.row(0)),
          decoder({rows.n_cols}, options, encoder.header()),
          block(rows.rows(options.freeze, options.freeze + causal_block - 1)) {
        const double begin = thread_microseconds();
        for (std::size_t t = 0; t < options.freeze; t += causal_block)
            learned_.push_back(encoder.encode(rows.rows(t, t + causal_block - 1)));
        microseconds = (thread_microseconds() - begin) / static_cast<double>(learned_.size());
        bytes = encoder.encode(block);
        bits = 8.0 * static_cast<double>(bytes.size()) / static_cast<double>(block.n_elem);
    }
    void prepare_decoder() {
        for (const auto& code : learned_) use_result(decoder.next(code, causal_block)(0));
    }

private:
    std::vector<std::vector<std::uint8_t>> learned_;
};

/// A frozen code of nearly so many bits an entry. The rate falls by about .9 bits when the step doubles.
FrozenCode frozen_code(const CacheMethod& method, double bits, const arma::mat& rows) {
    constexpr int corrections = 3;
    const CausalOptions options = causal_options(method.own, rows.n_cols);
    double octave = std::log2(arma::norm(rows, "fro") / std::sqrt(static_cast<double>(rows.n_elem))) + 1.0 - bits;
    const auto step = [&] { return static_cast<int>(std::lround(256.0 * octave)); };
    for (int i = 0; i < corrections; ++i) octave += (FrozenCode(options, step(), rows).bits - bits) / 0.9;
    FrozenCode code(options, step(), rows);
    code.prepare_decoder();
    return code;
}

struct BlockCode {
    RowQuantizer quantizer;
    Encoded encoded;
};

}  // namespace

CacheTimings time_caches(const BenchmarkLayer& layer, double seconds) {
    const CacheMethod apart = cache_method("causal-klt");
    const CacheMethod joint = cache_method("causal-klt-joint");
    const std::size_t frozen = causal_options(joint.own, layer.channels()).freeze;
    const arma::mat rows = benchmark_tokens(frozen + causal_block, layer.channels());
    const arma::fmat head = arma::conv_to<arma::fmat>::from(rows.submat(0, 0, causal_block - 1, layer.dimension - 1));
    const std::size_t heads = 2 * layer.heads;
    CacheTimings timed;
    std::vector<Job> jobs;

    // The time of a row quantizer does not depend on the head.
    std::deque<BlockCode> blocks;
    for (const char* method : {"tq-mse", "tcq"}) {
        RowQuantizer quantizer = row_quantizer(method, layer.dimension, layer.bits, {});
        Encoded encoded = quantizer.encode_float(head);
        const BlockCode& code = blocks.emplace_back(BlockCode{std::move(quantizer), std::move(encoded)});
        const auto decode = [&code, tokens = head.n_rows] {
            use_result(static_cast<double>(code.quantizer.decode_float(code.encoded.bytes, tokens)(0)));
        };
        jobs.push_back({fmt::format("{}:encode", method), [&code, &head, heads] {
                            for (std::size_t h = 0; h < heads; ++h)
                                use_result(code.quantizer.encode_float(head).bytes.back());
                        }});
        jobs.push_back({fmt::format("{}:decode", method), [decode, heads] {
                            for (std::size_t h = 0; h < heads; ++h) decode();
                        }});
        jobs.push_back({fmt::format("{}:read", method), decode});
    }

    std::deque<std::deque<FrozenCode>> causal(2);
    for (std::size_t h = 0; h < heads; ++h)
        causal[0].push_back(
            frozen_code(apart, layer.bits, rows.cols(h * layer.dimension, (h + 1) * layer.dimension - 1)));
    causal[1].push_back(frozen_code(joint, layer.bits, rows));
    for (std::size_t kind = 0; kind < 2; ++kind) {
        const char* name = kind == 0 ? "causal-klt" : "causal-klt-joint";
        std::deque<FrozenCode>& codes = causal[kind];
        double learn = 0.0;
        std::size_t bytes = 0;
        double bits = 0.0;
        for (const FrozenCode& code : codes) {
            learn += code.microseconds;
            bytes += code.decoder.state_bytes();
            bits += code.bits / static_cast<double>(codes.size());
        }
        timed.rows.push_back({fmt::format("{}:learn", name), learn, learn});
        timed.states.push_back({name, bytes, bits});
        const auto decode = [](const FrozenCode& code) {
            use_result(code.decoder.frozen_block(code.bytes, causal_block)(0));
        };
        jobs.push_back({fmt::format("{}:encode", name), [&codes] {
                            for (FrozenCode& code : codes) use_result(code.encoder.encode(code.block).back());
                        }});
        jobs.push_back({fmt::format("{}:decode", name), [&codes, decode] {
                            for (const FrozenCode& code : codes) decode(code);
                        }});
        jobs.push_back({fmt::format("{}:read", name), [&codes, decode] { decode(codes.front()); }});
    }

    const arma::mat tokens = rows.tail_rows(causal_block);
    const arma::mat square = rows.t() * rows;
    jobs.push_back({"gemm", [&] { use_result(arma::mat(tokens * square)(0)); }});
    for (auto& row : time_interleaved(jobs, seconds)) timed.rows.push_back(std::move(row));
    return timed;
}

}  // namespace spiked::estimators

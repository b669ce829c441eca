#include <algorithm>
#include <cmath>

#include "core/runtime/error.hpp"
#include "estimators/caches/cache_parts.hpp"
#include "estimators/coding/factor_codec.hpp"
#include "estimators/compressors/compressor.hpp"
#include "estimators/svd/analysed_block.hpp"
#include "estimators/transforms/spectral_method.hpp"

// xkv: layers in groups share the token basis of the sequence itself.
namespace spiked::estimators {
namespace {

FactorOptions options_of_factors(const NameOptions& own, double bits, const QuantizerOptions& options) {
    FactorOptions factors = factor_options(options);
    factors.codebook = own.choice_or_default<FactorCodebook>("factors");
    factors.bits = static_cast<unsigned>(bits);
    return factors;
}

void check_shared_tokens(const CacheMethod& method, double bits) {
    if (!(bits >= 1.0 && bits <= 8.0) || bits != std::floor(bits))
        throw usage_error("\"{}\": {} bits are not possible (an entry of a factor takes 1 to 8): choose --bits 1 to 8",
                          method.own.text(), bits);
}

CacheCoder shared_tokens(const CacheMethod& method, const CacheInput& input) {
    const NameOptions& own = method.own;
    const std::size_t channels = input.channels;
    const std::size_t rank = cache_rank(own, channels / 8, std::min<std::size_t>(channels, 0xFFFF));
    const FactorCodec factors(options_of_factors(own, input.bits, input.options));
    const SpectralMethod truncation = spectral_method("svd:" + std::to_string(rank));
    RowQuantizer coder = in_double(
        own.text(),
        [=](const arma::mat& rows) {
            if (rank > rows.n_rows)
                throw usage_error("rank {} is not possible (a sequence has {} tokens): choose a smaller rank", rank,
                                  rows.n_rows);
            AnalysedBlock block(rows);
            BitWriter writer;
            factors.write(writer, truncation.factors(block).signal);
            return finished(writer);
        },
        [=](std::span<const std::uint8_t> bytes, std::size_t rows) {
            const FactorCodec::Read read = factors.read(bytes, rows, channels);
            if (read.bytes != bytes.size())
                throw input_error("coded factors have {} bytes and need {}: the data is damaged", bytes.size(),
                                  read.bytes);
            return read.matrix;
        });
    return {with_kept_tokens(0, 0, channels, std::move(coder)), rank, 0};
}

}  // namespace

CacheMaker xkv_cache() {
    return {
        .entry = {{"xkv",
                   "layers in groups share a token basis, the leading left singular vectors of their joined keys or "
                   "values",
                   {{"rank", whole("R", 1), "rank of a group of layers; default an eighth of its channels"},
                    {"layers", whole("L"), "number of layers in a group; 0: all", "4"},
                    {"factors", one_of({"normal", "fp16"}), "levels for the entries of the factors", "normal"},
                    quantizer_option("--norm")},
                   "Chang et al. 2025 (xKV)"},
                  "bits of an entry of a factor"},
        .check = check_shared_tokens,
        .make = shared_tokens,
    };
}

}  // namespace spiked::estimators

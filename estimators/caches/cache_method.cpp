#include "estimators/caches/cache_method.hpp"

#include <algorithm>
#include <cmath>

#include "core/runtime/error.hpp"
#include "estimators/caches/cache_parts.hpp"
#include "estimators/coding/factor_codec.hpp"
#include "estimators/compressors/compressor.hpp"
#include "estimators/svd/analysed_block.hpp"
#include "estimators/transforms/spectral_method.hpp"

namespace spiked::estimators {
namespace {

FactorOptions options_of_factors(const NameOptions& own, double bits, const QuantizerOptions& options) {
    FactorOptions factors = factor_options(options);
    factors.codebook =
        own.choice("factors", {"normal", "fp16"}) == std::size_t{1} ? FactorCodebook::fp16 : FactorCodebook::normal;
    factors.bits = static_cast<unsigned>(bits);
    return factors;
}

void check_shared_tokens(const CacheMaker&, const NameOptions& own, const ParsedName& parsed, double bits) {
    (void)own.whole("rank");
    (void)own.choice("factors", {"normal", "fp16"});
    if (!(bits >= 1.0 && bits <= 8.0) || bits != std::floor(bits))
        throw usage_error("\"{}\": {} bits are not possible (an entry of a factor takes 1 to 8): choose --bits 1 to 8",
                          parsed.text, bits);
}

CacheCoder shared_tokens(const CacheMaker&, const NameOptions& own, const ParsedName& parsed, const CacheInput& input) {
    const std::size_t channels = input.channels;
    const std::size_t rank = cache_rank(own, channels / 8, std::min<std::size_t>(channels, 0xFFFF));
    const FactorCodec factors(options_of_factors(own, input.bits, input.options));
    const std::string truncation = "svd:" + std::to_string(rank);
    RowQuantizer coder = in_double(
        parsed.text,
        [=](const arma::mat& rows) {
            if (rank > rows.n_rows)
                throw usage_error("rank {} is not possible (a sequence has {} tokens): choose a smaller rank", rank,
                                  rows.n_rows);
            AnalysedBlock block(rows);
            BitWriter writer;
            factors.write(writer, spectral_method(truncation).factors(block).signal);
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

const std::vector<CacheMaker>& makers() {
    static const std::vector<CacheMaker> table = {
        {{"palu",
          "groups of heads projected on a calibrated basis, latent coordinates quantized",
          {"rank=R (of a group; default half its channels)", "heads=G (of a group, default 4; 0: the layer's)",
           "latents=QUANTIZER|fp16 (default rht-uniform)"},
          "Chang et al. 2025 (Palu)",
          "of a latent coordinate"},
         true,
         4,
         1,
         0,
         "rht-uniform",
         {"rank", "heads", "latents"},
         check_cache_projection,
         cache_projection},
        {{"cskv",
          "channels of a layer shrunk by a calibrated basis, a window of last tokens in fp16",
          {"rank=R (default half the channels)", "window=W (tokens, default 32)",
           "latents=QUANTIZER|fp16 (default kivi)"},
          "Wang et al. 2024 (CSKV)",
          "of a latent coordinate"},
         true,
         0,
         1,
         32,
         "kivi",
         {"rank", "window", "latents"},
         check_cache_projection,
         cache_projection},
        {{"ojakv",
          "a calibrated basis that follows the sequence by Oja's rule; first and last tokens in fp16",
          {"rank=R (default half the channels of the layer)", "rate=ETA (default 0.05)",
           "step=S (tokens between updates, default 64)", "sinks=S (default 4)", "window=W (default 32)",
           "latents=QUANTIZER|fp16 (default rht-uniform)"},
          "Zhu et al. 2025 (OjaKV)",
          "of a latent coordinate"},
         true,
         0,
         1,
         32,
         "rht-uniform",
         {"rank", "rate", "step", "sinks", "window", "latents"},
         check_online_projection,
         online_projection},
        {{"xkv",
          "a group of layers shares the leading token basis of the sequence itself",
          {"rank=R (of a group; default an eighth of its channels)", "layers=L (of a group, default 4; 0: all)",
           "factors=normal|fp16 (default normal)"},
          "Chang et al. 2025 (xKV)",
          "of an entry of a factor"},
         false,
         0,
         4,
         0,
         "normal",
         {"rank", "layers", "factors"},
         check_shared_tokens,
         shared_tokens},
        {{"kvtc",
          "principal components of all heads, bits by reverse water-filling, entropy-coded",
          {"layers=L (of a group, default 1; 0: all)", "sinks=S (first tokens in fp16, default 0)",
           "window=W (last tokens in fp16, default 0)"},
          "Staniszewski & Lancucki 2025 (KVTC)",
          "mean rate that the calibration asks for, also fractions: 0.25 to 8"},
         true,
         0,
         1,
         0,
         "",
         {"layers", "sinks", "window"},
         check_cache_transform,
         cache_transform},
    };
    return table;
}

std::string without_unrope(std::string_view text) {
    return std::string(text.starts_with(unrope_prefix) ? text.substr(unrope_prefix.size()) : text);
}

const CacheMaker* find_maker(std::string_view text) {
    const std::string name = parse_name(without_unrope(text)).name;
    const auto found = std::find_if(makers().begin(), makers().end(),
                                    [&](const CacheMaker& maker) { return maker.entry.name == name; });
    return found == makers().end() ? nullptr : &*found;
}

}  // namespace

const std::vector<QuantizerEntry>& cache_methods() {
    static const auto entries = entries_of<QuantizerEntry>(makers());
    return entries;
}

bool is_cache_method(std::string_view text) { return find_maker(text) != nullptr; }

CacheMethod cache_method(std::string_view text, double bits) {
    const CacheMaker* maker = find_maker(text);
    if (maker == nullptr) throw bug("{} is no cache method", text);
    const ParsedName parsed = parse_name(without_unrope(text));
    const NameOptions own(parsed, maker->keys);
    maker->check(*maker, own, parsed, bits);
    return {std::string(text), text.starts_with(unrope_prefix), maker->calibrated,
            own.whole("heads").value_or(maker->heads), own.whole("layers").value_or(maker->layers)};
}

CacheCoder cache_coder(const CacheMethod& method, std::size_t channels, double bits, const QuantizerOptions& options,
                       const arma::mat& calibration) {
    const CacheMaker& maker = *find_maker(method.text);
    if (maker.calibrated && calibration.n_cols != channels)
        throw bug("{} channels calibrated for {}", calibration.n_cols, channels);
    const ParsedName parsed = parse_name(without_unrope(method.text));
    return maker.make(maker, NameOptions(parsed, maker.keys), parsed, {channels, bits, options, calibration});
}

}  // namespace spiked::estimators

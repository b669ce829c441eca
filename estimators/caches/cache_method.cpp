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
    factors.codebook = own.choice_or_default("factors") == "fp16" ? FactorCodebook::fp16 : FactorCodebook::normal;
    factors.bits = static_cast<unsigned>(bits);
    return factors;
}

void check_shared_tokens(const NameOptions& own, double bits) {
    if (!(bits >= 1.0 && bits <= 8.0) || bits != std::floor(bits))
        throw usage_error("\"{}\": {} bits are not possible (an entry of a factor takes 1 to 8): choose --bits 1 to 8",
                          own.text(), bits);
}

CacheCoder shared_tokens(const NameOptions& own, const CacheInput& input) {
    const std::size_t channels = input.channels;
    const std::size_t rank = cache_rank(own, channels / 8, std::min<std::size_t>(channels, 0xFFFF));
    const FactorCodec factors(options_of_factors(own, input.bits, input.options));
    const std::string truncation = "svd:" + std::to_string(rank);
    RowQuantizer coder = in_double(
        own.text(),
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

OptionSpec latents_spec(std::string fallback) {
    return {"latents", names_from({"quantizers"}, one_of_or({"fp16"}, "QUANTIZER")),
            "how latent coordinates are stored", std::move(fallback)};
}

const Registry<CacheMaker>& makers() {
    static const Registry<CacheMaker> table(
        "cache method",
        {
            {{{"palu",
               "groups of heads projected on a calibrated basis, latent coordinates quantized",
               {{"rank", whole("R", 1), "of a group; default half its channels"},
                {"heads", whole("G"), "of a group; 0: the layer's", "4"},
                latents_spec("rht-uniform")},
               "Chang et al. 2025 (Palu)"},
              "of a latent coordinate"},
             true,
             check_cache_projection,
             cache_projection},
            {{{"cskv",
               "channels of a layer shrunk by a calibrated basis, a window of last tokens in fp16",
               {{"rank", whole("R", 1), "default half the channels"},
                {"window", whole("W"), "last tokens in fp16", "32"},
                latents_spec("kivi")},
               "Wang et al. 2024 (CSKV)"},
              "of a latent coordinate"},
             true,
             check_cache_projection,
             cache_projection},
            {{{"ojakv",
               "a calibrated basis that follows the sequence by Oja's rule; first and last tokens in fp16",
               {{"rank", whole("R", 1), "default half the channels of the layer"},
                {"rate", number("ETA", {.least = 0.0}), "of a step of Oja's rule", "0.05"},
                {"step", whole("S", 1), "tokens between updates", "64"},
                {"sinks", whole("S"), "first tokens in fp16", "4"},
                {"window", whole("W"), "last tokens in fp16", "32"},
                latents_spec("rht-uniform")},
               "Zhu et al. 2025 (OjaKV)"},
              "of a latent coordinate"},
             true,
             check_cache_projection,
             online_projection},
            {{{"xkv",
               "a group of layers shares the leading token basis of the sequence itself",
               {{"rank", whole("R", 1), "of a group; default an eighth of its channels"},
                {"layers", whole("L"), "of a group; 0: all", "4"},
                {"factors", one_of({"normal", "fp16"}), "levels of entries of the factors", "normal"},
                quantizer_option("--norm")},
               "Chang et al. 2025 (xKV)"},
              "of an entry of a factor"},
             false,
             check_shared_tokens,
             shared_tokens},
            {{{"kvtc",
               "principal components of all heads, bits by reverse water-filling, entropy-coded",
               {{"layers", whole("L"), "of a group; 0: all", "1"},
                {"sinks", whole("S"), "first tokens in fp16", "0"},
                {"window", whole("W"), "last tokens in fp16", "0"}},
               "Staniszewski & Lancucki 2025 (KVTC)"},
              "mean rate that the calibration asks for, also fractions: 0.25 to 8",
              false,
              true},
             true,
             check_cache_transform,
             cache_transform},
        });
    return table;
}

std::string without_unrope(std::string_view text) {
    return std::string(text.starts_with(unrope_prefix) ? text.substr(unrope_prefix.size()) : text);
}

const CacheMaker* find_maker(std::string_view text) { return makers().find(parse_name(without_unrope(text)).name); }

}  // namespace

const std::vector<QuantizerEntry>& cache_methods() {
    static const auto entries = makers().entries<QuantizerEntry>();
    return entries;
}

bool is_cache_method(std::string_view text) { return find_maker(text) != nullptr; }

std::vector<OptionSpec> cache_options(std::string_view text) {
    const CacheMaker* maker = find_maker(text);
    if (maker == nullptr) throw precondition_error("{} is not a cache method", text);
    std::vector<OptionSpec> all = maker->entry.options;
    const NameOptions own(parse_name(without_unrope(text)), maker->entry.options);
    if (!own.takes("latents")) return all;
    const std::string latents = own.choice_or_default("latents");
    if (latents == "fp16") return all;
    const auto& of_quantizer = quantizer_spec(latents).entry().options;
    all.insert(all.end(), of_quantizer.begin(), of_quantizer.end());
    return all;
}

CacheMethod cache_method(std::string_view text, double bits) {
    const CacheMaker* maker = find_maker(text);
    if (maker == nullptr) throw precondition_error("{} is not a cache method", text);
    const ParsedName parsed = parse_name(without_unrope(text));
    const NameOptions own(parsed, maker->entry.options);
    maker->check(own, bits);
    CacheMethod method{std::string(text), text.starts_with(unrope_prefix), maker->calibrated};
    if (own.takes("heads")) method.heads = own.whole_or_default("heads");
    if (own.takes("layers")) method.layers = own.whole_or_default("layers");
    return method;
}

CacheCoder cache_coder(const CacheMethod& method, std::size_t channels, double bits, const QuantizerOptions& options,
                       const arma::mat& calibration) {
    const CacheMaker& maker = *find_maker(method.text);
    if (maker.calibrated && calibration.n_cols != channels)
        throw precondition_error("{} channels calibrated for {}", calibration.n_cols, channels);
    const ParsedName parsed = parse_name(without_unrope(method.text));
    return maker.make(NameOptions(parsed, maker.entry.options), {channels, bits, options, calibration});
}

}  // namespace spiked::estimators

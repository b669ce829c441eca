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

constexpr const char* latents_in_fp16 = "fp16";

OptionSpec latents_spec(std::string fallback) {
    return {"latents", names_from({"quantizers"}, one_of_or({latents_in_fp16}, "QUANTIZER")),
            "how latent coordinates are stored", std::move(fallback)};
}

/// The options of causal transform coding with these defaults.
std::vector<OptionSpec> causal_specs(const char* freeze, const char* update) {
    const ValueSpec on_or_off = one_of({"on", "off"});
    return {
        {"sink", on_or_off, "whether the first token is stored in fp16", "on"},
        {"weights", one_of({"queries", "none"}),
         "what weights rotary pairs of keys: the queries of the first 128 tokens, where a dump has them", "queries"},
        {"basis", one_of({"past", "none"}), "eigenvectors of past tokens, or the channels as they are", "past"},
        {"ar", on_or_off, "whether each coordinate is predicted from the token before", "on"},
        {"dependent", on_or_off, "dependent quantization with 8 states, or a scalar quantizer", "on"},
        {"adapt", on_or_off, "whether variances and counts follow the tokens within a basis", "on"},
        {"freeze", one_of_or({"never"}, whole("TOKENS", 128)),
         "tokens after which the basis is final, so that later blocks decode alone: a multiple of 128, or never",
         freeze},
        {"update", whole("TOKENS", 8),
         "tokens between two bases: a multiple of 8, at least m^2 / 4096 for m channels, which then is the default",
         update},
        {"lambda", number("L", {.least = 0.0, .most = 10.0}),
         "weight of bits in the encoder's search; default 0.3, with dependent=off 0.12"},
    };
}

std::vector<OptionSpec> causal_head_specs() {
    std::vector<OptionSpec> specs = causal_specs("256", "32");
    specs.push_back({"heads", whole("G"), "number of heads of a side in a basis; 0: all of a layer", "1"});
    return specs;
}

constexpr const char* causal_bits = "stored bits an entry that the step is searched for, also fractions: 0.25 to 8";
constexpr const char* causal_source =
    "backward-adaptive transform coding with dependent quantization (Schwarz et al. 2021)";

const Registry<CacheMaker>& makers() {
    static const Registry<CacheMaker> table(
        "cache method",
        {
            {{{"palu",
               "projects groups of heads on a calibrated basis and quantizes the latent coordinates",
               {{"rank", whole("R", 1), "rank of a group of heads; default half its channels"},
                {"heads", whole("G"), "number of heads in a group; 0: all of a layer", "4"},
                latents_spec("rht-uniform")},
               "Chang et al. 2025 (Palu)"},
              "bits of a latent coordinate"},
             true,
             check_cache_projection,
             cache_projection},
            {{{"cskv",
               "projects the channels of a layer on a calibrated basis; a window of last tokens stays in fp16",
               {{"rank", whole("R", 1), "rank of a layer; default half its channels"},
                {"window", whole("W"), "number of last tokens that stay in fp16", "32"},
                latents_spec("kivi")},
               "Wang et al. 2024 (CSKV)"},
              "bits of a latent coordinate"},
             true,
             check_cache_projection,
             cache_projection},
            {{{"ojakv",
               "projects on a calibrated basis that follows the sequence by Oja's rule; first and last tokens stay in "
               "fp16",
               {{"rank", whole("R", 1), "rank of a layer; default half its channels"},
                {"rate", number("ETA", {.least = 0.0}), "step size of Oja's rule", "0.05"},
                {"step", whole("S", 1), "number of tokens between updates", "64"},
                {"sinks", whole("S"), "number of first tokens that stay in fp16", "4"},
                {"window", whole("W"), "number of last tokens that stay in fp16", "32"},
                latents_spec("rht-uniform")},
               "Zhu et al. 2025 (OjaKV)"},
              "bits of a latent coordinate"},
             true,
             check_cache_projection,
             online_projection},
            {{{"xkv",
               "layers in groups share a token basis, the leading left singular vectors of their joined keys or values",
               {{"rank", whole("R", 1), "rank of a group of layers; default an eighth of its channels"},
                {"layers", whole("L"), "number of layers in a group; 0: all", "4"},
                {"factors", one_of({"normal", "fp16"}), "levels for the entries of the factors", "normal"},
                quantizer_option("--norm")},
               "Chang et al. 2025 (xKV)"},
              "bits of an entry of a factor"},
             false,
             check_shared_tokens,
             shared_tokens},
            {{{"kvtc",
               "calibrated principal components of all heads, with bits by reverse water-filling and entropy coding",
               {{"layers", whole("L"), "number of layers in a group; 0: all", "1"},
                {"sinks", whole("S"), "number of first tokens that stay in fp16", "0"},
                {"window", whole("W"), "number of last tokens that stay in fp16", "0"}},
               "Staniszewski & Lancucki 2025 (KVTC)"},
              "mean bits an entry that the calibration aims at, also fractions: 0.25 to 8",
              false,
              true},
             true,
             check_cache_transform,
             cache_transform},
            {{{"causal-klt",
               "codes each token in the eigenvectors of the decoded tokens before it, keys without their rotary "
               "embedding where it is known",
               causal_head_specs(), causal_source},
              causal_bits,
              false,
              true},
             false,
             check_cache_causal,
             cache_causal,
             true},
            {{{"causal-klt-joint", "causal-klt with one basis for the keys and values of all heads of a layer",
               causal_specs("512", "64"), causal_source},
              causal_bits,
              false,
              true},
             false,
             check_cache_causal,
             cache_causal,
             true,
             true},
        });
    return table;
}

const CacheMaker* find_maker(std::string_view text) { return makers().find(parse_name(without_unrope(text)).name); }

}  // namespace

const std::vector<QuantizerEntry>& cache_methods() {
    static const auto entries = makers().entries<QuantizerEntry>();
    return entries;
}

bool is_cache_method(std::string_view text) { return find_maker(text) != nullptr; }

std::vector<std::string> and_caches(std::vector<std::string> names) {
    for (auto& name : makers().names()) names.push_back(std::move(name));
    return names;
}

std::vector<std::string> and_caches_of_heads(std::vector<std::string> names) {
    for (auto& name : makers().names())
        if (cache_method(name).heads_apart()) names.push_back(std::move(name));
    return names;
}

CacheMethod cache_method(std::string_view text) {
    const CacheMaker* maker = find_maker(text);
    if (maker == nullptr) throw precondition_error("{} is not a cache method", text);
    CacheMethod method{.text = std::string(text),
                       .unrope = without_unrope(text) != text,
                       .maker = maker,
                       .own = NameOptions(parse_name(without_unrope(text)), maker->entry.options),
                       .calibrated = maker->calibrated,
                       .derotates = maker->derotates,
                       .sides = maker->sides};
    if (method.derotates && method.unrope)
        throw usage_error(
            "\"{}\": {} takes the rotary embedding off keys itself, where the dump says what it is: leave unrope+ out",
            text, method.own.name());
    const NameOptions& own = method.own;
    if (own.takes("latents"))
        if (const std::string latents = own.choice_or_default("latents"); latents != latents_in_fp16)
            method.latents = quantizer_spec(latents);
    if (own.takes("heads")) method.heads = own.whole_or_default("heads");
    if (own.takes("layers")) method.layers = own.whole_or_default("layers");
    return method;
}

std::optional<CacheMethod> cache_of_heads(std::string_view text) {
    if (!is_cache_method(text)) return std::nullopt;
    CacheMethod method = cache_method(text);
    return method.heads_apart() ? std::optional(std::move(method)) : std::nullopt;
}

void CacheMethod::check_bits(double bits) const { maker->check(*this, bits); }

std::vector<OptionSpec> cache_options(const CacheMethod& method) {
    std::vector<OptionSpec> all = method.maker->entry.options;
    if (!method.latents) return all;
    const auto& of_quantizer = method.latents->entry().options;
    all.insert(all.end(), of_quantizer.begin(), of_quantizer.end());
    return all;
}

CacheCoder cache_coder(const CacheMethod& method, std::size_t channels, double bits, const QuantizerOptions& options,
                       const arma::mat& calibration, const CacheGroup& group) {
    if (method.calibrated && calibration.n_cols != channels)
        throw precondition_error("{} channels calibrated for {}", calibration.n_cols, channels);
    return method.maker->make(method, {channels, bits, options, calibration, group});
}

}  // namespace spiked::estimators

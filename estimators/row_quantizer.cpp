#include "estimators/row_quantizer.hpp"

#include <algorithm>

#include "estimators/kivi.hpp"
#include "estimators/name_options.hpp"
#include "estimators/sign_sketch.hpp"
#include "estimators/turboquant.hpp"
#include "theory/base/error.hpp"
#include "theory/base/names.hpp"

namespace spiked::estimators {
namespace {

std::size_t whole_number(const ParsedName& parsed, const std::string& key, std::size_t least) {
    const auto number = to_integer(*parsed.option(key));
    if (!number || *number < static_cast<std::int64_t>(least))
        throw usage_error("\"{}\": {} is a whole number of at least {}, not \"{}\"", parsed.text, key, least,
                          *parsed.option(key));
    return static_cast<std::size_t>(*number);
}

ProjectionKind projection_of(const ParsedName& parsed) {
    const auto name = parsed.option("projection");
    return name ? projection_kind(*name) : ProjectionKind::gaussian;
}

template <RowScale scale>
RowQuantizer make_turboquant(const ParsedName&, std::size_t dimension, unsigned bits, const QuantizerOptions& options) {
    return turboquant_mse(dimension, bits, options, scale);
}

RowQuantizer make_prod(const ParsedName& parsed, std::size_t dimension, unsigned bits,
                       const QuantizerOptions& options) {
    return turboquant_prod(dimension, bits, options, projection_of(parsed));
}

RowQuantizer make_qjl(const ParsedName& parsed, std::size_t dimension, unsigned bits, const QuantizerOptions& options) {
    return qjl(dimension, bits, options, projection_of(parsed));
}

QuantizerOptions options_of_kivi(const ParsedName& parsed, const QuantizerOptions& options) {
    QuantizerOptions own = options;
    if (parsed.option("group")) own.group = whole_number(parsed, "group", 1);
    if (parsed.option("residual")) own.residual = whole_number(parsed, "residual", 0);
    if (parsed.option("axis")) own.axis = group_axis(*parsed.option("axis"));
    if (parsed.name == "kivi-hf") own.axis = GroupAxis::key;
    return own;
}

RowQuantizer make_kivi(const ParsedName& parsed, std::size_t dimension, unsigned bits,
                       const QuantizerOptions& options) {
    return kivi(dimension, bits, options_of_kivi(parsed, options));
}

std::size_t tail_of_kivi(const ParsedName& parsed, const QuantizerOptions& options, std::size_t tokens) {
    return kivi_tail(options_of_kivi(parsed, options), tokens);
}

struct Maker {
    QuantizerEntry entry;
    std::vector<std::string> keys;
    RowQuantizer (*make)(const ParsedName&, std::size_t, unsigned, const QuantizerOptions&);
    std::size_t (*tail)(const ParsedName&, const QuantizerOptions&, std::size_t tokens) = nullptr;
};

std::vector<Maker> make_table() {
    const std::vector<std::string> rotated = {"--rotation haar|rht1|rht2|fht-kac|identity (default haar)",
                                              "--codebook sphere|normal (default sphere)",
                                              "--norm fp16|bf16|fp32|fp64|log8 (default fp16)"};
    const std::string projection = "projection=gaussian|orthogonal (default gaussian)";
    std::vector<std::string> rotated_and_projected = rotated;
    rotated_and_projected.push_back(projection);
    return {
        {{"tq-mse", "TurboQuant MSE: row norm, rotation, Lloyd-Max index of every coordinate", rotated, "index bits",
          "Zandieh et al. 2025, Algorithm 1"},
         {},
         make_turboquant<RowScale::norm>},
        {{"tq-prod",
          "TurboQuant for inner products: tq-mse, then norm and signs of a random projection of what it left over",
          rotated_and_projected, "index bits; the sign is one more", "Zandieh et al. 2025, Algorithm 2"},
         {"projection"},
         make_prod},
        {{"eden", "the indices of tq-mse with the scale that makes <x, x^> exact: unbiased over rotations", rotated,
          "index bits", "Vargaftik et al. 2022"},
         {},
         make_turboquant<RowScale::unbiased>},
        {{"eden-mmse", "the same with the least-squares scale", rotated, "index bits", "Vargaftik et al. 2022"},
         {},
         make_turboquant<RowScale::least_squares>},
        {{"eden-norm", "the same with the scale that keeps the norm of a row", rotated, "index bits",
          "norm correction of public TurboQuant ports"},
         {},
         make_turboquant<RowScale::norm_matched>},
        {{"qjl",
          "norm and signs of a random sketch of a row: for inner products, not for reconstruction",
          {projection, "--norm fp16|bf16|fp32|fp64|log8 (default fp16)"},
          "signs an entry: B d of them a row",
          "Zandieh et al. 2024"},
         {"projection"},
         make_qjl},
        {{"kivi",
          "groups with their own minimum and scale; keys along tokens, values along channels",
          {"group=G (default 64)", "axis=key|value", "residual=R (last tokens in fp16)"},
          "code bits",
          "Liu et al. 2024"},
         {"group", "axis", "residual"},
         make_kivi,
         tail_of_kivi},
        {{"kivi-hf",
          "the variant of a widely used library: along tokens for keys and values alike",
          {"group=G (default 64)", "residual=R (last tokens in fp16)"},
          "code bits",
          "its QuantizedCache"},
         {"group", "residual"},
         make_kivi,
         tail_of_kivi},
    };
}

const std::vector<Maker>& makers() {
    static const std::vector<Maker> table = make_table();
    return table;
}

const Maker& maker_of(const ParsedName& parsed) {
    std::vector<std::string> names;
    for (const auto& maker : makers()) {
        names.push_back(maker.entry.name);
        if (maker.entry.name != parsed.name) continue;
        if (!parsed.values.empty())
            throw usage_error("\"{}\": {} takes no value after its name; bits are given by --bits", parsed.text,
                              parsed.name);
        for (const auto& [key, value] : parsed.options)
            if (std::find(maker.keys.begin(), maker.keys.end(), key) == maker.keys.end())
                throw usage_error("\"{}\": {} has no option \"{}\"{}", parsed.text, parsed.name, key,
                                  maker.keys.empty()
                                      ? std::string("; it takes none, see --rotation, --codebook, --norm")
                                      : suggestion(key, maker.keys));
        return maker;
    }
    throw usage_error("unknown quantizer \"{}\"{}", parsed.name, suggestion(parsed.name, names));
}

}  // namespace

CodebookKind codebook_kind(std::string_view name) {
    return static_cast<CodebookKind>(position_of(name, "codebook", {"sphere", "normal"}));
}
FactorCodebook factor_codebook(std::string_view name) {
    return static_cast<FactorCodebook>(position_of(name, "factor codebook", {"normal", "lloyd", "fp16"}));
}
GroupAxis group_axis(std::string_view name) {
    return static_cast<GroupAxis>(position_of(name, "axis", {"key", "value"}));
}

void require_length(std::size_t length, std::size_t dimension) {
    if (length != dimension) throw bug("rows of length {} given to a quantizer for length {}", length, dimension);
}

const std::vector<QuantizerEntry>& row_quantizers() {
    static const std::vector<QuantizerEntry> entries = [] {
        std::vector<QuantizerEntry> all;
        for (const auto& maker : makers()) all.push_back(maker.entry);
        return all;
    }();
    return entries;
}

std::size_t kept_tail(std::string_view name, const QuantizerOptions& options, std::size_t tokens) {
    const ParsedName parsed = parse_name(name);
    const Maker& maker = maker_of(parsed);
    return maker.tail == nullptr ? 0 : maker.tail(parsed, options, tokens);
}

RowQuantizer row_quantizer(std::string_view name, std::size_t dimension, unsigned bits,
                           const QuantizerOptions& options) {
    if (bits < 1 || bits > 8)
        throw usage_error("{} bits are not possible (a quantizer takes 1 to 8): choose --bits 1 to 8", bits);
    const ParsedName parsed = parse_name(name);
    RowQuantizer quantizer = maker_of(parsed).make(parsed, dimension, bits, options);
    quantizer.name = parsed.text;
    return quantizer;
}

}  // namespace spiked::estimators

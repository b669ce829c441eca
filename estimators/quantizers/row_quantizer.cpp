#include "estimators/quantizers/row_quantizer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/runtime/error.hpp"
#include "core/text/name_options.hpp"
#include "core/text/names.hpp"
#include "estimators/quantizers/entropy_coded.hpp"
#include "estimators/quantizers/gear.hpp"
#include "estimators/quantizers/kivi.hpp"
#include "estimators/quantizers/kvquant.hpp"
#include "estimators/quantizers/microscaling.hpp"
#include "estimators/quantizers/polarquant.hpp"
#include "estimators/quantizers/product_quantizer.hpp"
#include "estimators/quantizers/rabitq.hpp"
#include "estimators/quantizers/rht_uniform.hpp"
#include "estimators/quantizers/sign_sketch.hpp"
#include "estimators/quantizers/svdq.hpp"
#include "estimators/quantizers/trellis_quantizer.hpp"
#include "estimators/quantizers/turboquant.hpp"

namespace spiked::estimators {
namespace {

std::optional<std::size_t> whole_number(const NameOptions& named, const std::string& key, std::size_t least) {
    const auto number = named.whole(key);
    if (number && *number < least)
        throw usage_error("\"{}\": {} is a whole number of at least {}, not {}", named.text(), key, least, *number);
    return number;
}

GroupAxis axis_of(const NameOptions& named, const QuantizerOptions& options) {
    const auto axis = named.choice("axis", group_axes());
    return axis ? static_cast<GroupAxis>(*axis) : options.axis;
}

ProjectionKind projection_of(const NameOptions& named) {
    return static_cast<ProjectionKind>(named.choice("projection", {"gaussian", "orthogonal"}).value_or(0));
}

template <RowScale scale>
RowQuantizer make_turboquant(const NameOptions&, std::size_t dimension, unsigned bits,
                             const QuantizerOptions& options) {
    return turboquant_mse(dimension, bits, options, scale);
}

RowQuantizer make_prod(const NameOptions& named, std::size_t dimension, unsigned bits,
                       const QuantizerOptions& options) {
    return turboquant_prod(dimension, bits, options, projection_of(named));
}

RowQuantizer make_qjl(const NameOptions& named, std::size_t dimension, unsigned bits, const QuantizerOptions& options) {
    return qjl(dimension, bits, options, projection_of(named));
}

/// Of quantizers that store minima, means or centres in the format of norms.
void require_signs(const NameOptions& named, const QuantizerOptions& options) {
    if (options.norm == NumberFormat::log8)
        throw usage_error("log8 holds no signs (what \"{}\" stores has some): give --norm fp16", named.text());
}

QuantizerOptions options_of_kivi(const NameOptions& named, const QuantizerOptions& options) {
    QuantizerOptions own = options;
    own.group = whole_number(named, "group", 1).value_or(options.group);
    own.residual = named.whole("residual").value_or(options.residual);
    own.axis = named.name() == "kivi-hf" ? GroupAxis::key : axis_of(named, options);
    return own;
}

RowQuantizer make_kivi(const NameOptions& named, std::size_t dimension, unsigned bits,
                       const QuantizerOptions& options) {
    require_signs(named, options);
    return kivi(dimension, bits, options_of_kivi(named, options));
}

std::size_t tail_of_kivi(const NameOptions& named, const QuantizerOptions& options, std::size_t tokens) {
    return kivi_tail(options_of_kivi(named, options), tokens);
}

RowScale scale_of(const NameOptions& named, const std::vector<std::string>& words, std::vector<RowScale> scales) {
    return scales[named.choice("scale", words).value_or(0)];
}

RowQuantizer make_rht_uniform(const NameOptions& named, std::size_t dimension, unsigned bits,
                              const QuantizerOptions& options) {
    require_signs(named, options);
    QuantizerOptions own = options;
    own.group = whole_number(named, "group", 1).value_or(options.group);
    return rht_uniform(dimension, bits, own);
}

RowQuantizer make_rabitq(const NameOptions& named, std::size_t dimension, unsigned bits,
                         const QuantizerOptions& options) {
    return rabitq(dimension, bits, options,
                  scale_of(named, {"unbiased", "mmse", "norm"},
                           {RowScale::unbiased, RowScale::least_squares, RowScale::norm_matched}));
}

RowQuantizer make_tcq(const NameOptions& named, std::size_t dimension, unsigned bits, const QuantizerOptions& options) {
    const std::size_t state = whole_number(named, "state", 1).value_or(12);
    return trellis_quantizer(dimension, bits, options, static_cast<unsigned>(std::min<std::size_t>(state, 64)),
                             scale_of(named, {"mmse", "unbiased"}, {RowScale::least_squares, RowScale::unbiased}));
}

RowQuantizer make_polarquant(const NameOptions&, std::size_t dimension, unsigned bits,
                             const QuantizerOptions& options) {
    return polarquant(dimension, bits, options);
}

RowQuantizer make_pq(const NameOptions& named, std::size_t dimension, unsigned bits, const QuantizerOptions& options) {
    return product_quantizer(dimension, bits, options, whole_number(named, "length", 1).value_or(0));
}

RowQuantizer make_kvquant(const NameOptions& named, std::size_t dimension, unsigned bits,
                          const QuantizerOptions& options) {
    require_signs(named, options);
    QuantizerOptions own = options;
    own.axis = axis_of(named, options);
    return kvquant(dimension, bits, own, named.number("outliers").value_or(0.01));
}

RowQuantizer make_ecsq(const NameOptions& named, std::size_t dimension, double rate, const QuantizerOptions& options) {
    return entropy_coded(
        dimension, rate, options,
        scale_of(named, {"mmse", "unbiased", "norm"}, {RowScale::least_squares, RowScale::unbiased, RowScale::norm}));
}

RowQuantizer make_gear(const NameOptions& named, std::size_t dimension, unsigned bits,
                       const QuantizerOptions& options) {
    require_signs(named, options);
    QuantizerOptions own = options;
    own.axis = axis_of(named, options);
    own.group = whole_number(named, "group", 1).value_or(options.group);
    return gear(dimension, bits, own, named.whole("rank").value_or(4), named.number("outliers").value_or(0.02));
}

RowQuantizer make_svdq(const NameOptions& named, std::size_t dimension, unsigned bits,
                       const QuantizerOptions& options) {
    require_signs(named, options);
    return svdq(dimension, bits, options);
}

RowQuantizer make_mx(const NameOptions& named, std::size_t dimension, unsigned bits, const QuantizerOptions& options) {
    return microscaling(dimension, bits, options, whole_number(named, "group", 1).value_or(32),
                        static_cast<GroupScale>(named.choice("scale", {"e8m0", "e4m3"}).value_or(0)));
}

struct Maker {
    QuantizerEntry entry;
    RowQuantizer (*make)(const NameOptions&, std::size_t, unsigned, const QuantizerOptions&);
    /// In the place of make: bits are a rate.
    RowQuantizer (*make_at_rate)(const NameOptions&, std::size_t, double, const QuantizerOptions&) = nullptr;
    std::size_t (*tail)(const NameOptions&, const QuantizerOptions&, std::size_t tokens) = nullptr;
};

std::vector<Maker> make_table() {
    const std::string rotation = "--rotation haar|rht1|rht2|fht-kac|identity (default haar)";
    const std::string codebook = "--codebook sphere|normal (default sphere)";
    const std::string norm = "--norm fp16|bf16|fp32|fp64|log8 (default fp16)";
    const std::string signed_norm = "--norm fp16|bf16|fp32|fp64 (default fp16)";
    const std::vector<std::string> rotated = {rotation, codebook, norm};
    const std::string projection = "projection=gaussian|orthogonal (default gaussian)";
    std::vector<std::string> rotated_and_projected = rotated;
    rotated_and_projected.push_back(projection);
    return {
        {{"tq-mse", "TurboQuant MSE: row norm, rotation, Lloyd-Max index of every coordinate", rotated,
          "Zandieh et al. 2025, Algorithm 1", "index bits"},
         make_turboquant<RowScale::norm>},
        {{"tq-prod",
          "TurboQuant for inner products: tq-mse, then norm and signs of a random projection of what it left over",
          rotated_and_projected, "Zandieh et al. 2025, Algorithm 2", "index bits; the sign is one more"},
         make_prod},
        {{"eden", "the indices of tq-mse with the scale that makes <x, x^> exact: unbiased over rotations", rotated,
          "Vargaftik et al. 2022", "index bits"},
         make_turboquant<RowScale::unbiased>},
        {{"eden-mmse", "the indices of tq-mse with the least-squares scale", rotated, "Vargaftik et al. 2022",
          "index bits"},
         make_turboquant<RowScale::least_squares>},
        {{"eden-norm", "the indices of tq-mse with the scale that keeps the norm of a row", rotated,
          "norm correction of public TurboQuant ports", "index bits"},
         make_turboquant<RowScale::norm_matched>},
        {{"qjl",
          "norm and signs of a random sketch of a row: for inner products, not for reconstruction",
          {projection, norm},
          "Zandieh et al. 2024",
          "signs an entry: B d of them a row"},
         make_qjl},
        {{"kivi",
          "groups with their own minimum and scale; keys along tokens (per channel), values along channels (per token)",
          {"group=G or --group G (default 64)", "axis=key|value or --axis",
           "residual=R or --residual R (last tokens in fp16)", signed_norm},
          "Liu et al. 2024",
          "code bits",
          true},
         make_kivi,
         nullptr,
         tail_of_kivi},
        {{"kivi-hf",
          "kivi as Hugging Face transformers has it: groups along tokens for keys and values alike",
          {"group=G or --group G (default 64)", "residual=R or --residual R (last tokens in fp16)", signed_norm},
          "QuantizedCache of Hugging Face transformers",
          "code bits",
          true},
         make_kivi,
         nullptr,
         tail_of_kivi},
        {{"rht-uniform",
          "one randomised Hadamard round, then minimum and scale of groups along the row",
          {"group=G or --group G (default 64)", signed_norm},
          "Ashkboos et al. 2024 (QuaRot)",
          "code bits"},
         make_rht_uniform},
        {{"rabitq",
          "the grid direction nearest in angle to a rotated row, with the length that makes <x, x^> exact",
          {rotation, norm, "scale=unbiased|mmse|norm (default unbiased)"},
          "Gao et al. 2025",
          "index bits"},
         make_rabitq},
        {{"tcq",
          "trellis-coded: the last 12 bits written look up the level of a coordinate",
          {rotation, codebook, norm, "state=L (bits of the state, default 12)", "scale=mmse|unbiased (default mmse)"},
          "Tseng et al. 2024 (QTIP)",
          "index bits"},
         make_tcq},
        {{"polarquant",
          "radius and angles of groups of 16 rotated coordinates",
          {rotation, norm},
          "Han et al. 2025",
          "bits of a first-level angle; later ones have two fewer: 3.875 an entry at 4"},
         make_polarquant},
        {{"pq",
          "sub-vectors coded by centroids that k-means finds on the block",
          {"length=L (entries of a sub-vector, default 8 / B)", norm},
          "Jegou et al. 2011",
          "index bits an entry",
          true},
         make_pq},
        {{"kvquant",
          "levels fitted to the block on lines of their own range, the outermost entries kept in fp16",
          {"axis=key|value or --axis", "outliers=SHARE (default 0.01)", signed_norm},
          "Hooper et al. 2024",
          "code bits",
          true},
         make_kvquant},
        {{"ecsq",
          "uniform levels of a rotated coordinate, indices entropy-coded",
          {rotation, codebook, norm, "scale=mmse|unbiased|norm (default mmse)"},
          "Gish & Pierce 1968",
          "entropy of an index, also fractions: 0.25 to 8"},
         nullptr,
         make_ecsq},
        {{"gear",
          "kivi without outliers, which stay in fp16, and a low-rank part of its error",
          {"axis=key|value or --axis", "group=G or --group G (default 64)", "rank=R (at most, default 4)",
           "outliers=SHARE (default 0.02)", signed_norm},
          "Kang et al. 2024",
          "code bits",
          true},
         make_gear},
        {{"svdq",
          "latent channels of the block's right singular vectors, leading ones at 8 bits, last ones left out",
          {signed_norm},
          "Yankun et al. 2025",
          "mean bits of a latent channel; the vectors, in fp16, come on top",
          true},
         make_svdq},
        {{"mx",
          "small floats under a scale that a group of a row shares, as accelerators compute with them",
          {"group=G (default 32)", "scale=e8m0|e4m3 (default e8m0; with group=16 and 4 bits e4m3 is NVFP4)"},
          "Open Compute Project 2023 (MX)",
          "bits of an element: 4, 6 or 8",
          true,
          {4, 6, 8}},
         make_mx},
    };
}

const std::vector<Maker>& makers() {
    static const std::vector<Maker> table = make_table();
    return table;
}

const Maker& maker_of(const ParsedName& parsed) { return row_named(makers(), parsed.name, "quantizer"); }

/// Of a row's options those that stand in the name: `group=G (default 64)`.
NameOptions options_of(const ParsedName& parsed, const QuantizerEntry& entry) {
    if (!parsed.values.empty())
        throw usage_error("\"{}\": {} takes no value after its name; bits are given by --bits", parsed.text,
                          parsed.name);
    const std::vector<std::string> keys = keys_of(entry.options);
    if (keys.empty() && !parsed.options.empty())
        throw usage_error("\"{}\": {} has no option \"{}\"; it takes none, see --rotation, --codebook, --norm",
                          parsed.text, parsed.name, parsed.options.front().first);
    return {parsed, keys};
}

}  // namespace

void require_length(std::size_t length, std::size_t dimension) {
    if (length != dimension) throw bug("rows of length {} given to a quantizer for length {}", length, dimension);
}

RowRotation row_rotation(const QuantizerOptions& options, std::size_t dimension) {
    return {options.rotation, stream::Stream(options.seed, "quantizer", stream::Role::rotation, options.rotation_index),
            dimension};
}

Encoded finished(BitWriter& writer) {
    writer.align();
    const Ledger ledger = writer.ledger();
    return {writer.take_bytes(), ledger};
}

RowQuantizer in_double(std::string name, std::function<Encoded(const arma::mat& rows)> encode,
                       std::function<arma::mat(std::span<const std::uint8_t> bytes, std::size_t rows)> decode) {
    auto encode_float = [encode](const arma::fmat& rows) { return encode(arma::conv_to<arma::mat>::from(rows)); };
    auto decode_float = [decode](std::span<const std::uint8_t> bytes, std::size_t rows) {
        return arma::conv_to<arma::fmat>::from(decode(bytes, rows));
    };
    return {std::move(name), std::move(encode), std::move(decode), std::move(encode_float), std::move(decode_float)};
}

const std::vector<QuantizerEntry>& row_quantizers() {
    static const auto entries = entries_of<QuantizerEntry>(makers());
    return entries;
}

bool is_row_quantizer(std::string_view name) {
    const auto named = [parsed = parse_name(name)](const Maker& maker) { return maker.entry.name == parsed.name; };
    return std::any_of(makers().begin(), makers().end(), named);
}

const QuantizerEntry& row_quantizer_entry(std::string_view name) { return maker_of(parse_name(name)).entry; }

std::optional<QuantizerOptions> kivi_options(std::string_view name, const QuantizerOptions& options) {
    const ParsedName parsed = parse_name(name);
    if (parsed.name != "kivi" && parsed.name != "kivi-hf") return std::nullopt;
    return options_of_kivi(options_of(parsed, maker_of(parsed).entry), options);
}

std::size_t kept_tail(std::string_view name, const QuantizerOptions& options, std::size_t tokens) {
    const ParsedName parsed = parse_name(name);
    const Maker& maker = maker_of(parsed);
    const NameOptions named = options_of(parsed, maker.entry);
    return maker.tail == nullptr ? 0 : maker.tail(named, options, tokens);
}

void check_row_quantizer(std::string_view name, double bits) {
    const ParsedName parsed = parse_name(name);
    const Maker& maker = maker_of(parsed);
    (void)options_of(parsed, maker.entry);
    const bool rate = maker.make_at_rate != nullptr;
    if (!(bits >= (rate ? 0.25 : 1.0) && bits <= 8.0))
        throw usage_error("{} bits are not possible ({} takes {} to 8): choose --bits {} to 8", bits, maker.entry.name,
                          rate ? 0.25 : 1.0, rate ? 0.25 : 1.0);
    if (!rate && bits != std::floor(bits))
        throw usage_error(
            "{} bits are not possible with {} (an index has whole bits; ecsq takes fractions): choose --bits {} or {}",
            bits, maker.entry.name, std::floor(bits), std::ceil(bits));
    const auto& widths = maker.entry.widths;
    if (!rate && std::find(widths.begin(), widths.end(), bits) == widths.end())
        throw usage_error("{} bits are not possible with {} (it takes {}): choose one of these as --bits", bits,
                          maker.entry.name, fmt::join(widths, ", "));
}

/// A dense rotation of longer ones, d x d, takes a gigabyte and a minute, of a file of a kilobyte.
static constexpr std::size_t longest_row = 4096;

RowQuantizer row_quantizer(std::string_view name, std::size_t dimension, double bits, const QuantizerOptions& options) {
    check_row_quantizer(name, bits);
    if (dimension > longest_row)
        throw input_error(
            "rows of {} entries (at most {} are coded, a dense rotation has the square of it): cut them into shorter "
            "rows",
            dimension, longest_row);
    const ParsedName parsed = parse_name(name);
    const Maker& maker = maker_of(parsed);
    const NameOptions named = options_of(parsed, maker.entry);
    RowQuantizer quantizer = maker.make_at_rate != nullptr
                                 ? maker.make_at_rate(named, dimension, bits, options)
                                 : maker.make(named, dimension, static_cast<unsigned>(bits), options);
    quantizer.name = parsed.text;
    return quantizer;
}

}  // namespace spiked::estimators

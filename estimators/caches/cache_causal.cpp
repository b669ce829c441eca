#include <algorithm>

#include "core/runtime/error.hpp"
#include "estimators/caches/cache_parts.hpp"
#include "estimators/caches/causal_group.hpp"

// causal-klt, causal-klt-joint: causal transform coding as a cache method.
namespace spiked::estimators {
namespace {

void write_bytes(BitWriter& writer, Item item, std::span<const std::uint8_t> bytes) {
    for (const std::uint8_t byte : bytes) writer.write(item, byte, 8);
}

Encoded encode_group(const CausalGroup& group, double bits, const arma::mat& rows) {
    const CausalShape shape = group.shape();
    const CausalCode code =
        encode_causal_at(bits, rows, shape, group.options, {.exponents = group.exponents(rows)}, 0.01, group.ids);
    BitWriter writer;
    writer.write(Item::header, group.scales() ? 1 : 0, 8);
    const std::span<const std::uint8_t> header(code.header);
    write_bytes(writer, Item::header, header.first(2));
    write_bytes(writer, Item::scales, header.subspan(2, shape.scales()));
    write_bytes(writer, Item::outliers, header.subspan(2 + shape.scales()));
    for (const auto& block : code.blocks) {
        writer.write(Item::header, block.size(), 32);
        write_bytes(writer, Item::indices, block);
    }
    return finished(writer);
}

arma::mat decode_group(const CausalGroup& group, std::span<const std::uint8_t> bytes, std::size_t tokens) {
    const auto take = [&](std::size_t count) {
        if (count > bytes.size())
            throw input_error("a causal code ends {} bytes too early: the data is damaged", count - bytes.size());
        const auto part = bytes.first(count);
        bytes = bytes.subspan(count);
        return part;
    };
    const std::uint8_t scaled = take(1).front();
    if (scaled > 1) throw input_error("a causal code begins with {} (0 or 1): the data is damaged", scaled);
    const CausalShape shape = group.shape(scaled == 1);
    const auto header = take(group.header_size(shape));
    CausalCode code{{header.begin(), header.end()}, {}, tokens};
    for (std::size_t t = 0; t < tokens; t += causal_block) {
        BitReader length(take(4));
        const auto block = take(length.read(32));
        code.blocks.emplace_back(block.begin(), block.end());
    }
    if (!bytes.empty())
        throw input_error("{} bytes follow the last block of a causal code: the data is damaged", bytes.size());
    return decode_causal(code, shape, group.options, group.ids);
}

void check_cache_causal(const CacheMethod& method, double bits) {
    check_rate(method, bits);
    // The least number of tokens between two bases is that of the channels, which are not known here.
    spiked::located([&] { return '"' + method.own.text() + '"'; },
                    [&] { check_causal({1}, causal_options(method.own, 1)); });
}

CacheCoder cache_causal(const CacheMethod& method, const CacheInput& input) {
    const NameOptions& own = method.own;
    const CausalGroup group(method, input.channels, input.group);
    spiked::located([&] { return '"' + own.text() + '"'; }, [&] { check_causal({input.channels}, group.options); });
    const double bits = input.bits;
    RowQuantizer coder = in_double(
        own.text(), [=](const arma::mat& rows) { return encode_group(group, bits, rows); },
        [=](std::span<const std::uint8_t> bytes, std::size_t tokens) { return decode_group(group, bytes, tokens); });
    return {with_kept_tokens(0, 0, input.channels, std::move(coder)), input.channels, 0};
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
        {"same", on_or_off,
         "whether a token is also predicted from the last one of the same token id; needs freeze=never and token ids, "
         "which a decoder takes from the text: they are not stored",
         "off"},
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

QuantizerEntry causal_entry(std::string name, std::string summary, std::vector<OptionSpec> options) {
    return rate_entry({std::move(name), std::move(summary), std::move(options),
                       "backward-adaptive transform coding with dependent quantization (Schwarz et al. 2021)"},
                      "stored bits an entry that the step is searched for, also fractions: 0.25 to 8");
}

}  // namespace

CacheMaker causal_klt_cache() {
    return {
        .entry = causal_entry("causal-klt",
                              "codes each token in the eigenvectors of the decoded tokens before it, keys without "
                              "their rotary embedding where it is known",
                              causal_head_specs()),
        .derotates = true,
        .check = check_cache_causal,
        .make = cache_causal,
    };
}

CacheMaker causal_klt_joint_cache() {
    return {
        .entry = causal_entry("causal-klt-joint",
                              "causal-klt with one basis for the keys and values of all heads of a layer",
                              causal_specs("512", "64")),
        .derotates = true,
        .sides = true,
        .check = check_cache_causal,
        .make = cache_causal,
    };
}

}  // namespace spiked::estimators

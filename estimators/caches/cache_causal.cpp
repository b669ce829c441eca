#include <algorithm>

#include "core/runtime/error.hpp"
#include "estimators/caches/cache_parts.hpp"
#include "estimators/caches/causal_stream.hpp"
#include "estimators/causal/causal_codec.hpp"
#include "estimators/causal/causal_scales.hpp"

// causal-klt, causal-klt-joint: causal transform coding as a cache method.
namespace spiked::estimators {
namespace {

/// What the coder of a group of heads knows before it sees the tokens.
struct CausalGroup {
    CausalOptions options;
    JoinedHeads heads;
    std::vector<std::vector<std::int8_t>> weights;  ///< of the heads of keys; empty: none

    [[nodiscard]] bool joins() const { return heads.keys + heads.values > 1; }
    [[nodiscard]] bool scales() const { return joins() || !weights.empty(); }
    [[nodiscard]] CausalShape shape(bool scaled) const {
        return scaled ? joined_shape(heads) : CausalShape{(heads.keys + heads.values) * heads.dimension};
    }
    [[nodiscard]] std::vector<std::int8_t> exponents(const arma::mat& rows) const {
        if (!scales()) return {};
        if (!joins()) return weights.front();
        const std::size_t first = options.sink && rows.n_rows > 1 ? 1 : 0;
        return joined_exponents(rows.rows(first, std::min<std::size_t>(rows.n_rows, causal_block) - 1), heads, weights);
    }
};

void write_bytes(BitWriter& writer, Item item, std::span<const std::uint8_t> bytes) {
    for (const std::uint8_t byte : bytes) writer.write(item, byte, 8);
}

/// The number of bytes of the codec's header: step, exponents, first token.
std::size_t header_size(const CausalShape& shape, const CausalOptions& options) {
    return 2 + shape.scales() + (options.sink ? 2 * shape.columns : 0);
}

Encoded encode_group(const CausalGroup& group, double bits, const arma::mat& rows) {
    const CausalShape shape = group.shape(group.scales());
    const CausalCode code =
        encode_causal_at(bits, rows, shape, group.options, {.exponents = group.exponents(rows)}, 0.01);
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
    const auto header = take(header_size(shape, group.options));
    CausalCode code{{header.begin(), header.end()}, {}, tokens};
    for (std::size_t t = 0; t < tokens; t += causal_block) {
        BitReader length(take(4));
        const auto block = take(length.read(32));
        code.blocks.emplace_back(block.begin(), block.end());
    }
    if (!bytes.empty())
        throw input_error("{} bytes follow the last block of a causal code: the data is damaged", bytes.size());
    return decode_causal(code, shape, group.options);
}

}  // namespace

void check_cache_causal(const CacheMethod& method, double bits) {
    if (!(bits >= 0.25 && bits <= 8.0))
        throw usage_error("\"{}\": {} bits are not possible (a mean rate is 0.25 to 8): choose --bits 0.25 to 8",
                          method.own.text(), bits);
    // The least number of tokens between two bases is that of the channels, which are not known here.
    spiked::located([&] { return '"' + method.own.text() + '"'; },
                    [&] { check_causal({1}, causal_options(method.own, 1)); });
}

CacheCoder cache_causal(const CacheMethod& method, const CacheInput& input) {
    const NameOptions& own = method.own;
    const CacheGroup& given = input.group;
    const std::size_t heads = given.keys + given.values;
    if (heads == 0 || input.channels % heads != 0)
        throw precondition_error("{} channels of {} heads", input.channels, heads);
    CausalGroup group{causal_options(own, input.channels), {given.keys, given.values, input.channels / heads}, {}};
    if (own.choice_or_default("weights") == "queries")
        for (const arma::mat& queries : given.queries) group.weights.push_back(query_exponents(queries));
    spiked::located([&] { return '"' + own.text() + '"'; }, [&] { check_causal({input.channels}, group.options); });
    const double bits = input.bits;
    RowQuantizer coder = in_double(
        own.text(), [=](const arma::mat& rows) { return encode_group(group, bits, rows); },
        [=](std::span<const std::uint8_t> bytes, std::size_t tokens) { return decode_group(group, bytes, tokens); });
    return {with_kept_tokens(0, 0, input.channels, std::move(coder)), input.channels, 0};
}

}  // namespace spiked::estimators

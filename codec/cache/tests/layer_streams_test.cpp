#include "codec/cache/layer_streams.hpp"

#include <gtest/gtest.h>

#include "core/files/tests/scratch.hpp"
#include "estimators/causal/causal_codec.hpp"
#include "sim/kv/rope.hpp"
#include "sim/random/normal.hpp"

namespace spiked::codec {
namespace {

constexpr std::size_t width = 16;
constexpr std::size_t kv_heads = 3;
constexpr std::size_t block = 128;

sim::LlamaConfig three_heads() {
    sim::LlamaConfig config;
    config.layers = 2;
    config.heads = 2 * kv_heads;
    config.kv_heads = kv_heads;
    config.head_dim = width;
    return config;
}

arma::mat normals(std::size_t rows, std::size_t columns, std::uint64_t replicate) {
    arma::mat matrix(rows, columns);
    stream::fill_normal(stream::Stream({}, "streams", stream::Role::noise, replicate),
                        {matrix.memptr(), matrix.n_elem});
    return matrix;
}

/// A layer whose heads share four components, so that a joint basis saves bits: keys before the rotary embedding, and
/// values.
struct Layer {
    explicit Layer(std::size_t tokens, std::uint64_t replicate = 0) {
        const arma::mat common = normals(tokens, 4, 10 * replicate + 1);
        keys = common * normals(4, kv_heads * width, 10 * replicate + 2) +
               0.1 * normals(tokens, kv_heads * width, 10 * replicate + 3);
        values = common * normals(4, kv_heads * width, 10 * replicate + 4) +
                 0.1 * normals(tokens, kv_heads * width, 10 * replicate + 5);
        queries = arma::conv_to<arma::fmat>::from(normals(tokens, 2 * kv_heads * width, 10 * replicate + 6));
    }
    arma::mat keys, values;
    arma::fmat queries;
};

struct Outcome {
    arma::mat keys, values;  ///< as decoded, keys without their rotary embedding
    double bits = 0.0;
    double entries = 0.0;
};

arma::mat rotate_heads(const arma::mat& rows, bool back, std::size_t first) {
    arma::mat all;
    for (std::size_t head = 0; head < kv_heads; ++head) {
        const arma::mat own = rows.cols(head * width, (head + 1) * width - 1);
        const auto position = static_cast<double>(first);
        all = arma::join_rows(all, back ? sim::undo_rope(own, three_heads().rope, position)
                                        : sim::apply_rope(own, three_heads().rope, position));
    }
    return all;
}

Outcome streamed(const std::string& method, const LayerStreams::Bits& bits, const Layer& layer,
                 const std::vector<std::int32_t>& ids = {}) {
    LayerStreams streams(three_heads(), estimators::cache_method(method), layer.keys.n_rows);
    Outcome outcome;
    for (std::size_t t = 0; t < layer.keys.n_rows; t += block) {
        const arma::span rows(t, std::min<std::size_t>(t + block, layer.keys.n_rows) - 1);
        const arma::mat rotated = rotate_heads(layer.keys.rows(rows.a, rows.b), false, t);
        const sim::LayerRows exact{arma::conv_to<arma::fmat>::from(rotated),
                                   arma::conv_to<arma::fmat>::from(layer.values.rows(rows.a, rows.b))};
        const arma::fmat queries = layer.queries.rows(rows.a, rows.b);
        std::span<const std::int32_t> tokens(ids);
        if (!ids.empty()) tokens = tokens.subspan(t, rows.b - rows.a + 1);
        streams.note({1, t, queries, exact.keys, exact.values, tokens});
        const LayerStreams::Coded coded = streams.code(1, t, exact, bits);
        const auto keys = arma::conv_to<arma::mat>::from(coded.rows.keys);
        outcome.keys = arma::join_cols(outcome.keys, rotate_heads(keys, true, t));
        outcome.values = arma::join_cols(outcome.values, arma::conv_to<arma::mat>::from(coded.rows.values));
        outcome.bits += coded.bits;
        outcome.entries += coded.entries;
    }
    return outcome;
}

double error(const arma::mat& decoded, const arma::mat& exact) {
    return arma::norm(decoded - exact, "fro") / arma::norm(exact, "fro");
}

TEST(LayerStreams, JoinedHeadsTakeTheBitsThatAreAskedAndShareABasis) {
    const Layer layer(1024);
    const Outcome apart = streamed("causal-klt", {2.0, 2.0}, layer);
    for (const std::string name : {"causal-klt", "causal-klt:heads=2", "causal-klt:heads=0", "causal-klt-joint"}) {
        const Outcome found = streamed(name, {2.0, 2.0}, layer);
        EXPECT_EQ(found.entries, 2.0 * 1024 * kv_heads * width) << name;
        EXPECT_NEAR(found.bits / found.entries, 2.0, 0.02) << name;
        const bool one_basis = name == "causal-klt:heads=0" || name == "causal-klt-joint";
        EXPECT_LT(error(found.keys, layer.keys), (one_basis ? 0.6 : 1.1) * error(apart.keys, layer.keys)) << name;
        EXPECT_LT(error(found.values, layer.values), (one_basis ? 0.6 : 1.1) * error(apart.values, layer.values))
            << name;
    }
    EXPECT_GT(error(apart.keys, layer.keys), 0.02);
}

TEST(LayerStreams, TakeTheMemoryThatIsForecast) {
    const Layer layer(512);
    constexpr double queries = block * 2 * kv_heads * width * sizeof(float);
    const auto forecast = [](const std::string& name, const LayerStreams::Bits& bits) {
        return LayerStreams(three_heads(), estimators::cache_method(name)).expected_bytes(bits) - queries;
    };
    // What a decoder has learned, of which an encoder has as much, for the numbers of columns that are coded together.
    for (const auto& [name, streams] : {std::pair("causal-klt", 6), std::pair("causal-klt-joint", 1)}) {
        const arma::mat rows = arma::join_rows(layer.keys, layer.values).eval().head_cols(6 * width / streams);
        const estimators::CausalShape shape{.columns = rows.n_cols};
        const auto code = encode_causal(rows, shape, {}, {});
        estimators::CausalDecoder decoder(shape, {}, code.header);
        for (const auto& bytes : code.blocks) (void)decoder.next(bytes, block);
        const double ratio = 2.0 * streams * static_cast<double>(decoder.state_bytes()) / forecast(name, {2.0, 2.0});
        EXPECT_GT(ratio, 0.75) << name;
        EXPECT_LT(ratio, 1.3) << name;
    }
    EXPECT_EQ(forecast("causal-klt", {2.0, std::nullopt}), 0.5 * forecast("causal-klt", {2.0, 2.0}));
}

/// The joint code of keys and values is that of one stream over the channels of all heads, keys first.
TEST(LayerStreams, AJointCodeIsThatOfOneStreamOverAllHeads) {
    const Layer layer(384, 3);
    const Outcome found = streamed("causal-klt-joint", {2.5, 2.5}, layer);
    std::vector<arma::mat> queries;
    for (std::size_t head = 0; head < kv_heads; ++head) {
        arma::mat all;
        for (const std::size_t query : {2 * head, 2 * head + 1}) {
            const arma::fmat own = layer.queries.submat(0, query * width, block - 1, (query + 1) * width - 1);
            all = arma::join_cols(all, sim::undo_rope(arma::conv_to<arma::mat>::from(own), three_heads().rope, 0.0));
        }
        queries.push_back(all);
    }
    // Keys as a cache in float has them.
    arma::mat keys;
    for (std::size_t t = 0; t < 384; t += block) {
        const arma::mat rotated = rotate_heads(layer.keys.rows(t, t + block - 1), false, t);
        const auto rounded = arma::conv_to<arma::mat>::from(arma::conv_to<arma::fmat>::from(rotated));
        keys = arma::join_cols(keys, rotate_heads(rounded, true, t));
    }
    const auto values = arma::conv_to<arma::mat>::from(arma::conv_to<arma::fmat>::from(layer.values));
    const arma::mat rows = arma::join_rows(keys, values);
    estimators::CausalStream stream(estimators::cache_method("causal-klt-joint"), 2.5, rows.head_rows(block),
                                    {kv_heads, kv_heads, queries}, 384);
    double bits = 0.0;
    arma::mat decoded;
    for (std::size_t t = 0; t < 384; t += block)
        decoded = arma::join_cols(decoded, stream.code(rows.rows(t, t + block - 1), bits));
    EXPECT_EQ(found.bits, bits);
    EXPECT_LT(arma::abs(found.keys - decoded.head_cols(kv_heads * width)).max(), 1e-5);
    EXPECT_LT(arma::abs(found.values - decoded.tail_cols(kv_heads * width)).max(), 1e-5);
}

TEST(LayerStreams, ASideWithoutBitsStaysExactAndALaterTokenChangesNoEarlierBlock) {
    const Layer layer(384, 5);
    const Outcome keys = streamed("causal-klt:heads=0", {2.0, std::nullopt}, layer);
    EXPECT_LT(error(keys.values, layer.values), 1e-7);
    EXPECT_GT(error(keys.keys, layer.keys), 1e-3);
    EXPECT_EQ(keys.entries, 384.0 * kv_heads * width);
    Layer other = layer;
    other.keys.tail_rows(1) *= 5.0;
    other.values.tail_rows(1) *= 5.0;
    const Outcome before = streamed("causal-klt-joint", {2.0, 2.0}, layer);
    const Outcome after = streamed("causal-klt-joint", {2.0, 2.0}, other);
    EXPECT_TRUE(arma::approx_equal(before.keys.head_rows(256), after.keys.head_rows(256), "absdiff", 0.0));
    EXPECT_TRUE(arma::approx_equal(before.values.head_rows(256), after.values.head_rows(256), "absdiff", 0.0));
    EXPECT_FALSE(arma::approx_equal(before.values, after.values, "absdiff", 1e-3));
}

TEST(LayerStreams, TokenIdsPredictRowsThatDependOnThem) {
    Layer layer(512, 8);
    const arma::mat vectors = normals(50, kv_heads * width, 99);
    std::vector<std::int32_t> ids;
    for (std::size_t t = 0; t < 512; ++t) {
        ids.push_back(static_cast<std::int32_t>(t * t * 7 % 50));
        layer.keys.row(t) += 3.0 * vectors.row(static_cast<arma::uword>(ids.back()));
        layer.values.row(t) += 3.0 * vectors.row(static_cast<arma::uword>(ids.back()));
    }
    for (const std::string name : {"causal-klt", "causal-klt-joint"}) {
        const Outcome without = streamed(name + ":freeze=never", {2.0, 2.0}, layer, ids);
        const Outcome found = streamed(name + ":freeze=never:same=on", {2.0, 2.0}, layer, ids);
        EXPECT_NEAR(found.bits / found.entries, 2.0, 0.02) << name;
        EXPECT_LT(error(found.keys, layer.keys), 0.9 * error(without.keys, layer.keys)) << name;
        EXPECT_LT(error(found.values, layer.values), 0.9 * error(without.values, layer.values)) << name;
        // A later id changes no earlier block.
        auto other = ids;
        for (std::size_t t = 400; t < 512; ++t) other[t] = 49 - ids[t];
        const Outcome changed = streamed(name + ":freeze=never:same=on", {2.0, 2.0}, layer, other);
        EXPECT_TRUE(arma::approx_equal(changed.keys.head_rows(384), found.keys.head_rows(384), "absdiff", 0.0));
        EXPECT_FALSE(arma::approx_equal(changed.keys, found.keys, "absdiff", 1e-6));
    }
}

TEST(LayerStreams, AnErrorSaysWhichHeadsItConcerns) {
    Layer layer(128, 7);
    layer.values(5, 0) = std::nan("");
    sim::expect_error(ErrorKind::input,
                      [&] {
                          (void)streamed("causal-klt-joint", {2.0, 2.0}, layer);
                      },
                      {"layer 1, key of head 0 and the 5 coded with it, 128 tokens from 0 to 127", "NaN"});
    sim::expect_error(ErrorKind::input,
                      [&] {
                          (void)streamed("causal-klt", {2.0, 2.0}, layer);
                      },
                      {"layer 1, value of head 0, 128 tokens"});
}

}  // namespace
}  // namespace spiked::codec

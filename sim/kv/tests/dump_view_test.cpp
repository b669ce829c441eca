#include "sim/kv/dump_view.hpp"

#include <gtest/gtest.h>

#include "core/files/tests/scratch.hpp"
#include "core/runtime/error.hpp"
#include "sim/kv/kv_like.hpp"
#include "sim/random/permutation.hpp"

namespace spiked::sim {
namespace {

stream::Stream order() { return {{}, "order", stream::Role::token_order, 0}; }

class DumpViewTest : public testing::Test {
protected:
    void SetUp() override {
        options_.tokens = 64;
        options_.head_dim = 32;
        options_.hidden = 64;
        options_.rotary->position_start = 17;
        options_.outliers.place = OutlierPlace::any;  // the same channels with and without an embedding
        write_kv_like(path_, options_, {.layers = 1, .heads = 2, .dtype = DType::f64});
    }
    [[nodiscard]] DumpHead head(const KvDump& dump, Side side, DumpView view) const {
        return {dump, *dump.find(0, side), 1, view, order()};
    }
    const ScratchFolder scratch_;
    const std::string path_ = scratch_.path("cache.safetensors");
    KvLikeOptions options_;
};

TEST_F(DumpViewTest, UndoRotaryReturnsTheKeysBeforeTheEmbedding) {
    const KvDump dump(path_);
    const KvLikeHead source(options_, {}, "kv-like layer 0", 1);
    const arma::mat rotated = source.sample(0).key.observed;
    EXPECT_LT(arma::abs(head(dump, Side::key, {}).read_block(16, 32) - rotated.rows(16, 47)).max(), 1e-14);
    KvLikeOptions plain = options_;
    plain.rotary.reset();
    const arma::mat before = KvLikeHead(plain, {}, "kv-like layer 0", 1).sample(0).key.observed;
    const arma::mat derotated = head(dump, Side::key, {.undo_rotary = true}).read_block(16, 32);
    EXPECT_LT(arma::abs(derotated - before.rows(16, 47)).max(), 1e-13);
    EXPECT_GT(arma::abs(derotated - rotated.rows(16, 47)).max(), 0.01);
    // Values have no rotary embedding.
    const arma::mat values = head(dump, Side::value, {}).read_block(0, 64);
    EXPECT_TRUE(
        arma::approx_equal(head(dump, Side::value, {.undo_rotary = true}).read_block(0, 64), values, "absdiff", 0.0));
}

TEST_F(DumpViewTest, ShufflingPermutesRowsAndDerotatesEachFromItsPosition) {
    const KvDump dump(path_);
    const auto permutation = stream::random_order(order(), 64);
    for (const bool undo : {false, true}) {
        const arma::mat ordered = head(dump, Side::key, {.undo_rotary = undo}).read_block(0, 64);
        const arma::mat shuffled = head(dump, Side::key, {.undo_rotary = undo, .shuffle = true}).read_block(0, 64);
        for (std::size_t i = 0; i < 64; ++i)
            EXPECT_LT(arma::abs(shuffled.row(i) - ordered.row(permutation[i])).max(), 1e-14) << i;
        EXPECT_GT(arma::abs(shuffled - ordered).max(), 0.01);
    }
}

constexpr const char* yarn_text = R"({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32})";

/// A dump of one head of keys, with this metadata in addition to those of a rotary embedding of base 500.
void write_scaled_keys(const std::string& path, const arma::mat& keys, const std::string& scaling) {
    const arma::mat by_rows = keys.t();
    write_safetensors(path,
                      {{"layout", "head,token,dim"},
                       {"keys", "post-rope"},
                       {"rope_base", "500"},
                       {"rope_style", "rotate-half"},
                       {"position_start", "3"},
                       {"rope_scaling", scaling}},
                      {tensor_of("layers.0.key", DType::f64, {1, keys.n_rows, keys.n_cols},
                                 {by_rows.memptr(), by_rows.memptr() + by_rows.n_elem})});
}

TEST_F(DumpViewTest, UndoRotaryFollowsTheScalingOfTheMetadata) {
    const arma::mat keys = KvLikeHead(options_, {}, "kv-like layer 0", 1).sample(0).key.observed;
    const std::string path = scratch_.path("scaled.safetensors");
    for (const char* text : {R"({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                 "original_max_position_embeddings": 64})",
                             R"({"type": "linear", "factor": 4.0, "rope_theta": 500.0})", yarn_text}) {
        const auto scaling = read_rope_scaling(Json::parse(text, "test"), "test");
        ASSERT_TRUE(scaling.has_value());
        write_scaled_keys(path, apply_rope(keys, {500.0, RopeStyle::rotate_half, scaling}, 3.0), text);
        const KvDump dump(path);
        EXPECT_TRUE(has_rotary(dump));
        const arma::mat back =
            DumpHead(dump, *dump.find(0, Side::key), 0, {.undo_rotary = true}, order()).read_block(8, 40);
        EXPECT_LT(arma::abs(back - keys.rows(8, 47)).max(), 1e-13) << text;
        EXPECT_GT(arma::abs(back - undo_rope(dump.read_block(dump.tensors()[0], 0, 8, 40),
                                             {500.0, RopeStyle::rotate_half}, 11.0))
                      .max(),
                  0.01)
            << text << ": control, the scaling makes a difference";
    }
    for (const char* none : {"null", "None", "{}", R"({"rope_type": "default"})"}) {
        write_scaled_keys(path, keys, none);
        EXPECT_FALSE(dump_rotary(KvDump(path)).rope.scaling.has_value()) << none;
    }
}

TEST_F(DumpViewTest, UndoRotaryRejectsScalingsThatItCannotUndo) {
    const std::string path = scratch_.path("other.safetensors");
    const auto rejected = [&](const std::string& text, std::string_view part) {
        write_scaled_keys(path, arma::mat(4, 8, arma::fill::ones), text);
        const KvDump dump(path);
        EXPECT_FALSE(has_rotary(dump)) << text;
        expect_error(ErrorKind::input, [&] { (void)dump_rotary(dump); }, {path, "metadata rope_scaling", part});
    };
    rejected("llama3", "json.dumps(config.rope_scaling)");  // as written by version 1 of this program
    rejected("{'type': 'linear', 'factor': 2.0}", "json.dumps(config.rope_scaling)");
    rejected(R"({"rope_type": "dynamic", "factor": 2.0})", "depend on the length of the sequence");
    rejected(R"({"rope_type": "longrope"})", "a factor for each pair");
    rejected(R"({"rope_type": "linear", "factor": 2.0, "rope_theta": 600.0})", "metadata rope_base is 500");
}

TEST_F(DumpViewTest, UndoRotaryNeedsTheMetadata) {
    KvLikeOptions plain = options_;
    plain.rotary.reset();
    const std::string path = scratch_.path("plain.safetensors");
    write_kv_like(path, plain, {.layers = 1, .heads = 2});
    const KvDump dump(path);
    try {
        (void)head(dump, Side::key, {.undo_rotary = true});
        ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::input);
        EXPECT_NE(std::string(error.what()).find("not post-rope"), std::string::npos) << error.what();
    }
}

// A batch of two sequences of three tokens.
TEST(TokenIds, AreThoseOfTheTokensThatAreRead) {
    const ScratchFolder scratch;
    const auto written = [&](std::vector<std::size_t> shape, std::vector<double> ids, DType dtype = DType::i32) {
        const std::string path = scratch.path("batch.safetensors");
        std::vector<TensorSource> tensors;
        for (const char* name : {"layers.0.key", "layers.0.value"})
            tensors.push_back(tensor_of(name, DType::f32, {2, 1, 3, 2}, std::vector<double>(12, 1.0)));
        if (!ids.empty()) tensors.push_back(tensor_of(token_ids_name, dtype, std::move(shape), std::move(ids)));
        write_safetensors(path, {{"layout", "batch,head,token,dim"}}, tensors);
        return path;
    };
    const auto read = [](const std::string& path, const std::string& tokens = "") {
        const KvDump dump(path, {.tokens = tokens, .batch = 1});
        return token_ids(dump, dump.tensors().front());
    };
    EXPECT_TRUE(read(written({}, {})).empty());
    const std::string good = written({2, 3}, {1, 2, 3, 40, 50, 70000});
    EXPECT_EQ(read(good), (std::vector<std::int32_t>{40, 50, 70000}));
    EXPECT_EQ(read(good, "1:3"), (std::vector<std::int32_t>{50, 70000}));
    expect_error(ErrorKind::input, [&] { (void)read(written({3}, {1, 2, 3})); }, {"token_ids", "[3]", "sequence"});
    expect_error(ErrorKind::input, [&] { (void)read(written({2, 2}, {1, 2, 3, 4})); }, {"token_ids", "3 tokens"});
    expect_error(ErrorKind::input, [&] { (void)read(written({2, 3}, {1, 2, 3, 4, 5, 6}, DType::f32)); }, {"F32"});
    expect_error(ErrorKind::input, [&] { (void)read(written({2, 3}, {1, 2, 3, 4, -5, 6})); }, {"-5", "token 1"});
}

}  // namespace
}  // namespace spiked::sim

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

}  // namespace
}  // namespace spiked::sim

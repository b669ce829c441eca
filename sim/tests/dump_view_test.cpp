#include "sim/dump_view.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sim/kv_like.hpp"
#include "sim/tests/scratch.hpp"
#include "theory/base/error.hpp"

namespace spiked::sim {
namespace {

stream::Stream order(std::uint64_t replicate = 0) { return {{}, "order", stream::Role::token_order, replicate}; }

TEST(RandomOrder, IsAPermutationAndEveryPlaceIsAsLikely) {
    constexpr std::size_t count = 6;
    constexpr std::uint64_t draws = 12000;
    arma::mat seen(count, count);
    for (std::uint64_t r = 0; r < draws; ++r) {
        auto found = random_order(order(r), count);
        for (std::size_t i = 0; i < count; ++i) seen(i, found[i]) += 1.0;
        std::sort(found.begin(), found.end());
        for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(found[i], i);
    }
    // 36 binomial counts; five standard deviations of one are 5.7e-7 two-sided, 2e-5 over all.
    const double expected = static_cast<double>(draws) / count;
    const double limit = 5.0 * std::sqrt(expected * (1.0 - 1.0 / count));
    EXPECT_LT(arma::abs(seen - expected).max(), limit);
    EXPECT_TRUE(random_order(order(), 0).empty());
    EXPECT_EQ(random_order(order(), 100), random_order(order(), 100));
}

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

TEST_F(DumpViewTest, UndoneKeysAreTheKeysBeforeTheEmbedding) {
    const KvDump dump(path_);
    const KvLikeHead source(options_, {}, "kv-like layer 0", 1);
    const arma::mat turned = source.sample(0).key.observed;
    EXPECT_LT(arma::abs(head(dump, Side::key, {}).read_block(16, 32) - turned.rows(16, 47)).max(), 1e-14);
    KvLikeOptions plain = options_;
    plain.rotary.reset();
    const arma::mat before = KvLikeHead(plain, {}, "kv-like layer 0", 1).sample(0).key.observed;
    const arma::mat undone = head(dump, Side::key, {.undo_rotary = true}).read_block(16, 32);
    EXPECT_LT(arma::abs(undone - before.rows(16, 47)).max(), 1e-13);
    EXPECT_GT(arma::abs(undone - turned.rows(16, 47)).max(), 0.01);
    // Values were never turned.
    const arma::mat values = head(dump, Side::value, {}).read_block(0, 64);
    EXPECT_TRUE(
        arma::approx_equal(head(dump, Side::value, {.undo_rotary = true}).read_block(0, 64), values, "absdiff", 0.0));
}

TEST_F(DumpViewTest, ShufflingMovesRowsAndUndoesEachAtItsOwnPosition) {
    const KvDump dump(path_);
    const auto places = random_order(order(), 64);
    for (const bool undo : {false, true}) {
        const arma::mat still = head(dump, Side::key, {.undo_rotary = undo}).read_block(0, 64);
        const arma::mat moved = head(dump, Side::key, {.undo_rotary = undo, .shuffle = true}).read_block(0, 64);
        for (std::size_t i = 0; i < 64; ++i)
            EXPECT_LT(arma::abs(moved.row(i) - still.row(places[i])).max(), 1e-14) << i;
        EXPECT_GT(arma::abs(moved - still).max(), 0.01);
    }
}

TEST_F(DumpViewTest, WhatTheMetadataDoNotSayIsNotUndone) {
    KvLikeOptions plain = options_;
    plain.rotary.reset();
    const std::string path = scratch_.path("plain.safetensors");
    write_kv_like(path, plain, {.layers = 1, .heads = 2});
    const KvDump dump(path);
    try {
        (void)head(dump, Side::key, {.undo_rotary = true});
        ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::unusable_input);
        EXPECT_NE(std::string(error.what()).find("not post-rope"), std::string::npos) << error.what();
    }
}

}  // namespace
}  // namespace spiked::sim

#include "sim/llama/head_cache.hpp"

#include <gtest/gtest.h>

#include <set>

namespace spiked::sim {
namespace {

arma::fmat numbered_rows(std::size_t first, std::size_t count, float offset) {
    arma::fmat rows(count, 3);
    for (std::size_t t = 0; t < count; ++t)
        for (std::size_t i = 0; i < 3; ++i)
            rows(t, i) = offset + static_cast<float>(10 * (first + t)) + static_cast<float>(i);
    return rows;
}

void expect_rows(const HeadCache& cache, const std::vector<std::size_t>& tokens) {
    ASSERT_EQ(cache.tokens(), tokens);
    ASSERT_EQ(cache.rows(), tokens.size());
    for (const Side side : {Side::key, Side::value}) {
        const arma::fmat rows = cache.view(side);
        ASSERT_EQ(rows.n_rows, 3U);
        ASSERT_EQ(rows.n_cols, tokens.size());
        for (std::size_t r = 0; r < tokens.size(); ++r)
            for (std::size_t i = 0; i < 3; ++i)
                ASSERT_EQ(rows(i, r), (side == Side::key ? 0.0F : 0.5F) + static_cast<float>(10 * tokens[r]) +
                                          static_cast<float>(i));
    }
}

TEST(HeadCacheReference, HoldsWhatWasAppendedOverwrittenAndAssigned) {
    HeadCache cache;
    std::vector<std::size_t> tokens;
    for (const std::size_t count : {1U, 1U, 4U, 1U, 30U}) {
        cache.append(numbered_rows(tokens.size(), count, 0.0F), numbered_rows(tokens.size(), count, 0.5F),
                     tokens.size());
        for (std::size_t t = 0; t < count; ++t) tokens.push_back(tokens.size());
        expect_rows(cache, tokens);
    }
    EXPECT_TRUE(arma::approx_equal(cache.copied(Side::value, 5, 7), numbered_rows(5, 7, 0.5F), "absdiff", 0.0));
    cache.overwrite(Side::key, 35, numbered_rows(7, 2, 0.0F));
    EXPECT_TRUE(arma::approx_equal(cache.copied(Side::key, 34, 1), numbered_rows(34, 1, 0.0F), "absdiff", 0.0));
    EXPECT_TRUE(arma::approx_equal(cache.copied(Side::key, 35, 2), numbered_rows(7, 2, 0.0F), "absdiff", 0.0));
    EXPECT_TRUE(arma::approx_equal(cache.copied(Side::value, 35, 2), numbered_rows(35, 2, 0.5F), "absdiff", 0.0));

    cache.assign({numbered_rows(4, 2, 0.0F), numbered_rows(4, 2, 0.5F), {4, 5}});
    expect_rows(cache, {4, 5});
    cache.append(numbered_rows(37, 1, 0.0F), numbered_rows(37, 1, 0.5F), 37);
    expect_rows(cache, {4, 5, 37});
}

TEST(HeadCacheReference, MovesRowsRarelyHoweverManyAreAppended) {
    HeadCache cache;
    std::set<const float*> places;
    for (std::size_t t = 0; t < 1000; ++t) {
        cache.append(numbered_rows(t, 1, 0.0F), numbered_rows(t, 1, 0.5F), t);
        places.insert(cache.view(Side::key).memptr());
    }
    EXPECT_LE(places.size(), 11U);  // 1, 2, 4, ..., 1024 rows
    HeadCache reserved;
    reserved.reserve(1000, 3);
    places.clear();
    for (std::size_t t = 0; t < 1000; ++t) {
        reserved.append(numbered_rows(t, 1, 0.0F), numbered_rows(t, 1, 0.5F), t);
        places.insert(reserved.view(Side::key).memptr());
    }
    EXPECT_EQ(places.size(), 1U);
}

}  // namespace
}  // namespace spiked::sim

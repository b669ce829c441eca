#include "estimators/caches/eviction.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "core/runtime/error.hpp"
#include "estimators/caches/method_name.hpp"

namespace spiked::estimators {
namespace {

const Eviction& rule(const std::string& name) {
    for (const auto& eviction : evictions())
        if (eviction.entry.name == name) return eviction;
    throw precondition_error("no eviction {}", name);
}

/// The rows that are kept of a cache of `rows` tokens.
std::vector<std::size_t> kept(const std::string& name, std::size_t count, const arma::fmat& keys,
                              const arma::fvec& accumulated, const arma::fmat& observed) {
    const arma::uvec rows = rule(name).kept({keys, accumulated, observed, count}, count);
    return {rows.begin(), rows.end()};
}

using Rows = std::vector<std::size_t>;

TEST(Eviction, StreamingKeepsSinksAndTheLastTokens) {
    const arma::fmat keys(20, 2, arma::fill::ones);
    const arma::fvec none(20, arma::fill::zeros);
    const arma::fmat observed(32, 20, arma::fill::zeros);
    EXPECT_EQ(kept("streaming", 10, keys, none, observed), (Rows{0, 1, 2, 3, 14, 15, 16, 17, 18, 19}));
    EXPECT_EQ(kept("streaming", 5, keys, none, observed), (Rows{0, 1, 17, 18, 19}));
    EXPECT_EQ(kept("streaming", 1, keys, none, observed), (Rows{19}));
}

TEST(Eviction, H2oKeepsHalfByAttentionSoFar) {
    const arma::fmat keys(10, 2, arma::fill::ones);
    const arma::fvec attention = {0.1F, 5.0F, 0.2F, 3.0F, 4.0F, 0.0F, 0.0F, 0.0F, 9.0F, 9.0F};
    const arma::fmat observed(32, 10, arma::fill::zeros);
    EXPECT_EQ(kept("h2o", 4, keys, attention, observed), (Rows{1, 4, 8, 9}));
    EXPECT_EQ(kept("h2o", 5, keys, attention, observed), (Rows{1, 4, 7, 8, 9}));
    EXPECT_EQ(kept("h2o", 6, keys, attention, observed), (Rows{1, 3, 4, 7, 8, 9}));
}

TEST(Eviction, SnapkvKeepsNeighboursOfAttendedTokens) {
    const arma::fmat keys(40, 2, arma::fill::ones);
    const arma::fvec misleading = arma::regspace<arma::fvec>(40.0F, -1.0F, 1.0F);
    arma::fmat observed(32, 40, arma::fill::zeros);
    observed(5, 20) = 0.5F;
    observed(31, 20) = 0.25F;
    observed(7, 8) = 0.6F;
    // 14 rows: the last 7, and the 7 around token 20, whose attention has a larger sum than that of token 8.
    EXPECT_EQ(kept("snapkv", 14, keys, misleading, observed),
              (Rows{17, 18, 19, 20, 21, 22, 23, 33, 34, 35, 36, 37, 38, 39}));
    EXPECT_EQ(kept("snapkv", 15, keys, misleading, observed),
              (Rows{17, 18, 19, 20, 21, 22, 23, 32, 33, 34, 35, 36, 37, 38, 39}));
    // The first of equal ones is kept.
    EXPECT_EQ(kept("snapkv", 2, keys, misleading, observed), (Rows{17, 39}));
    // In every layer pyramidkv keeps as many of the last tokens as snapkv does where all layers keep the mean.
    const auto layer = [&](std::size_t mean, std::size_t count) -> Rows {
        const arma::uvec rows = rule("pyramidkv").kept({keys, misleading, observed, mean}, count);
        return {rows.begin(), rows.end()};
    };
    EXPECT_EQ(layer(14, 14), kept("snapkv", 14, keys, misleading, observed));
    EXPECT_EQ(layer(14, 9), (Rows{17, 18, 33, 34, 35, 36, 37, 38, 39}));
    EXPECT_EQ(layer(14, 7), (Rows{33, 34, 35, 36, 37, 38, 39}));
    EXPECT_EQ(layer(14, 6), (Rows{34, 35, 36, 37, 38, 39}));
}

TEST(Eviction, DmcBeginsRunsWhereKeysChange) {
    const arma::fmat keys = {{1, 0}, {2, 0}, {0, 1}, {0.1F, 3}, {-1, 0}, {-1, 0.5F}};
    const arma::fvec none(6, arma::fill::zeros);
    const arma::fmat observed(32, 6, arma::fill::zeros);
    EXPECT_EQ(kept("dmc", 3, keys, none, observed), (Rows{0, 2, 4}));
    EXPECT_EQ(kept("dmc", 4, keys, none, observed), (Rows{0, 2, 4, 5}));
    EXPECT_EQ(kept("dmc", 1, keys, none, observed), (Rows{0}));
    EXPECT_TRUE(rule("dmc").merges);
}

TEST(Eviction, EveryRuleKeepsTheRequestedNumber) {
    const std::size_t rows = 50;
    arma::arma_rng::set_seed(3);
    const arma::fmat keys(rows, 4, arma::fill::randn);
    const arma::fvec attention(rows, arma::fill::randu);
    const arma::fmat observed(32, rows, arma::fill::randu);
    for (const auto& eviction : evictions())
        for (std::size_t count = 1; count <= rows; ++count) {
            const auto some = kept(eviction.entry.name, count, keys, attention, observed);
            EXPECT_EQ(some.size(), count) << eviction.entry.name;
            EXPECT_TRUE(std::is_sorted(some.begin(), some.end())) << eviction.entry.name;
            EXPECT_EQ(std::set<std::size_t>(some.begin(), some.end()).size(), count) << eviction.entry.name;
            EXPECT_LT(some.back(), rows);
        }
}

TEST(Eviction, RowsOfLayersAverageToTheMean) {
    const auto of = [](std::size_t mean, std::size_t seen, std::size_t layers) {
        Rows rows;
        for (std::size_t layer = 0; layer < layers; ++layer)
            rows.push_back(rule("pyramidkv").rows_of_layer(mean, seen, layer, layers));
        return rows;
    };
    for (const std::size_t layers : {1UL, 2UL, 4UL, 5UL, 32UL})
        for (const std::size_t seen : {1UL, 2UL, 33UL, 64UL, 100UL, 1000UL})
            for (std::size_t mean = 1; mean <= seen; ++mean) {
                const Rows rows = of(mean, seen, layers);
                EXPECT_EQ(std::accumulate(rows.begin(), rows.end(), 0UL), mean * layers) << mean << " of " << seen;
                EXPECT_TRUE(std::is_sorted(rows.rbegin(), rows.rend()));
                EXPECT_LE(rows.front(), seen);
                // The observation window is kept in every layer, or half of the mean where the window is more than
                // half.
                EXPECT_GE(rows.back(), std::min(32UL, (mean + 1) / 2));
            }
    // The authors' pyramidkv_utils.py: (capacity - window) // 20 rows beyond the window in the last layer, the rest of
    // two means in the first.
    EXPECT_EQ(of(232, 1000, 5), (Rows{32 + 390, 32 + 295, 32 + 200, 32 + 105, 32 + 10}));
    EXPECT_EQ(of(71, 1024, 4), (Rows{32 + 77, 32 + 52, 32 + 26, 32 + 1}));
    // The first layer has no more rows.
    EXPECT_EQ(of(232, 332, 3), (Rows{332, 232, 132}));
    // A budget below the window: half of it is used for the last tokens.
    EXPECT_EQ(of(20, 1000, 2), (Rows{10 + 20, 10 + 0}));
    EXPECT_EQ(of(1, 1000, 3), (Rows{1, 1, 1}));
    EXPECT_EQ(of(64, 64, 3), (Rows{64, 64, 64}));
    for (const auto& eviction : evictions())
        EXPECT_EQ(eviction.rows_of_layer == nullptr, eviction.entry.name != "pyramidkv");
}

TEST(Eviction, NamesPrecedeMethods) {
    const auto alone = parse_kept_and_coded("snapkv");
    EXPECT_EQ(alone.eviction->entry.name, "snapkv");
    EXPECT_FALSE(alone.method);
    const auto both = parse_kept_and_coded("h2o+unrope+svd:1+tq-mse");
    EXPECT_EQ(both.eviction->entry.name, "h2o");
    EXPECT_TRUE(both.method->unrope);
    EXPECT_EQ(both.method->quantizer.text, "tq-mse");
    EXPECT_EQ(both.text, "h2o+unrope+svd:1+tq-mse");
    EXPECT_EQ(parse_kept_and_coded("tq-mse").eviction, nullptr);
    EXPECT_THROW((void)parse_kept_and_coded("snapkv+"), Error);
    EXPECT_THROW((void)parse_kept_and_coded("snapkv+h2o+tq-mse"), Error);
    EXPECT_THROW((void)parse_kept_and_coded("snapvk"), Error);
    EXPECT_THROW((void)method_named("snapkv+tq-mse"), Error);
}

}  // namespace
}  // namespace spiked::estimators

#include "estimators/eviction.hpp"

#include <gtest/gtest.h>

#include <set>

#include "theory/base/error.hpp"

namespace spiked::estimators {
namespace {

const Eviction& rule(const std::string& name) {
    for (const auto& entry : evictions())
        if (entry.name == name) return entry;
    throw bug("no eviction {}", name);
}

/// Rows of a cache of `rows` tokens that stay.
std::vector<std::size_t> kept(const std::string& name, std::size_t count, const arma::fmat& keys,
                              const arma::fvec& accumulated, const arma::fmat& observed) {
    const arma::uvec rows = rule(name).kept({keys, accumulated, observed}, count);
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

TEST(Eviction, SnapkvKeepsNeighboursOfWhatTheLastQueriesSee) {
    const arma::fmat keys(40, 2, arma::fill::ones);
    const arma::fvec misleading = arma::regspace<arma::fvec>(40.0F, -1.0F, 1.0F);
    arma::fmat observed(32, 40, arma::fill::zeros);
    observed(5, 20) = 0.5F;
    observed(31, 20) = 0.25F;
    observed(7, 8) = 0.6F;
    // 14 rows: the last 7; the 7 around token 20, whose queries sum to more than those of token 8.
    EXPECT_EQ(kept("snapkv", 14, keys, misleading, observed),
              (Rows{17, 18, 19, 20, 21, 22, 23, 33, 34, 35, 36, 37, 38, 39}));
    EXPECT_EQ(kept("snapkv", 15, keys, misleading, observed),
              (Rows{17, 18, 19, 20, 21, 22, 23, 32, 33, 34, 35, 36, 37, 38, 39}));
    // Of equal ones the first.
    EXPECT_EQ(kept("snapkv", 2, keys, misleading, observed), (Rows{17, 39}));
    EXPECT_EQ(kept("pyramidkv", 14, keys, misleading, observed), kept("snapkv", 14, keys, misleading, observed));
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

TEST(Eviction, EveryRuleKeepsAsManyAsItIsTold) {
    const std::size_t rows = 50;
    arma::arma_rng::set_seed(3);
    const arma::fmat keys(rows, 4, arma::fill::randn);
    const arma::fvec attention(rows, arma::fill::randu);
    const arma::fmat observed(32, rows, arma::fill::randu);
    for (const auto& entry : evictions())
        for (std::size_t count = 1; count <= rows; ++count) {
            const auto some = kept(entry.name, count, keys, attention, observed);
            EXPECT_EQ(some.size(), count) << entry.name;
            EXPECT_TRUE(std::is_sorted(some.begin(), some.end())) << entry.name;
            EXPECT_EQ(std::set<std::size_t>(some.begin(), some.end()).size(), count) << entry.name;
            EXPECT_LT(some.back(), rows);
        }
}

TEST(Eviction, SharesOfLayersAverageToTheBudget) {
    for (const auto& entry : evictions())
        for (const std::size_t layers : {1UL, 2UL, 5UL, 32UL})
            for (const double share : {0.01, 0.3, 0.5, 0.6, 0.99, 1.0})
                for (const double least : {0.0, 0.008, 0.02}) {
                    double sum = 0.0;
                    for (std::size_t layer = 0; layer < layers; ++layer) {
                        const double own = entry.share_of_layer(share, least, layer, layers);
                        EXPECT_GT(own, 0.0);
                        EXPECT_GE(own + 1e-12, std::min(least, share));
                        EXPECT_LE(own, 1.0);
                        sum += own;
                    }
                    EXPECT_NEAR(sum / static_cast<double>(layers), share, 1e-12) << entry.name;
                }
    // A 20th of the mean in the last layer, where the first has room.
    EXPECT_NEAR(rule("pyramidkv").share_of_layer(0.2, 0.0, 3, 4), 0.01, 1e-12);
    EXPECT_NEAR(rule("pyramidkv").share_of_layer(0.2, 0.0, 0, 4), 0.39, 1e-12);
    EXPECT_NEAR(rule("pyramidkv").share_of_layer(0.8, 0.0, 3, 4), 0.6, 1e-12);
}

TEST(Eviction, NamesStandInFrontOfMethods) {
    const auto alone = parse_kept_and_coded("snapkv");
    EXPECT_EQ(alone.eviction->name, "snapkv");
    EXPECT_FALSE(alone.method);
    const auto both = parse_kept_and_coded("h2o+unrope+svd:1+tq-mse");
    EXPECT_EQ(both.eviction->name, "h2o");
    EXPECT_TRUE(both.method->unrope);
    EXPECT_EQ(both.method->quantizer, "tq-mse");
    EXPECT_EQ(both.text, "h2o+unrope+svd:1+tq-mse");
    EXPECT_EQ(parse_kept_and_coded("tq-mse").eviction, nullptr);
    EXPECT_THROW((void)parse_kept_and_coded("snapkv+"), Error);
    EXPECT_THROW((void)parse_kept_and_coded("snapkv+h2o+tq-mse"), Error);
    EXPECT_THROW((void)parse_kept_and_coded("snapvk"), Error);
    EXPECT_THROW((void)parse_method("snapkv+tq-mse"), Error);
}

}  // namespace
}  // namespace spiked::estimators

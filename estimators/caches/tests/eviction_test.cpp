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

/// Kept by the authors' own programs: SnapKVCluster(32, 64, 7, "maxpool").update_kv of FasterDecoding/SnapKV e216ddc
/// (snapkv/monkeypatch/snapkv_utils.py) for random queries and keys of 112 tokens, and H2OKVCache_LayerWise(5, 5) of
/// FMInference/H2O ac75c2a (h2o_hf/utils_real_drop/modify_llama.py) for 24. The attention is the sum over the last 32
/// queries, and over all. Tokens 77 to 79 are near the window, to which queries attend most: it must not lift them.
TEST(EvictionStability, KeepsWhatTheProgramsOfTheAuthorsKeep) {
    arma::fmat observed(32, 112, arma::fill::zeros);
    observed.row(31) = arma::frowvec{
        0.336F, 0.163F, 0.614F, 0.173F, 0.198F, 0.11F,  0.099F, 0.285F, 0.39F,  0.173F, 0.127F, 0.507F, 1.149F, 0.313F,
        0.226F, 0.234F, 0.092F, 1.412F, 0.082F, 0.281F, 0.231F, 0.126F, 0.104F, 1.48F,  0.539F, 0.104F, 0.259F, 0.085F,
        0.155F, 0.11F,  0.198F, 0.371F, 0.119F, 0.201F, 0.199F, 0.257F, 0.918F, 0.327F, 0.12F,  0.26F,  0.104F, 0.154F,
        0.125F, 0.147F, 0.112F, 0.385F, 0.102F, 0.304F, 0.426F, 0.186F, 0.369F, 0.107F, 0.112F, 0.135F, 0.572F, 0.122F,
        0.138F, 0.242F, 0.08F,  0.418F, 3.051F, 0.458F, 1.128F, 0.118F, 0.121F, 0.105F, 0.296F, 0.651F, 1.221F, 0.786F,
        0.272F, 0.109F, 0.112F, 0.145F, 0.115F, 0.099F, 0.16F,  0.254F, 0.386F, 0.14F,  1.222F, 0.135F, 0.371F, 0.165F,
        0.101F, 0.121F, 0.084F, 0.094F, 0.06F,  0.313F, 0.074F, 0.2F,   0.165F, 0.056F, 0.077F, 0.268F, 0.086F, 0.548F,
        0.109F, 0.027F, 0.124F, 0.175F, 0.021F, 0.041F, 0.103F, 0.015F, 0.015F, 0.016F, 0.008F, 0.008F, 0.007F, 0.0F};
    EXPECT_EQ(kept("snapkv", 64, arma::fmat(112, 2, arma::fill::ones), arma::fvec(112, arma::fill::zeros), observed),
              (Rows{9,  10, 11, 12, 13, 14, 15, 16, 17,  18,  19,  20,  21,  22,  23,  24,  25,  26,  57,  58, 59, 60,
                    61, 62, 63, 65, 66, 67, 68, 69, 70,  71,  80,  81,  82,  83,  84,  85,  86,  87,  88,  89, 90, 91,
                    92, 93, 94, 95, 96, 97, 98, 99, 100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111}));
    const arma::fvec attention = {5.451F, 1.111F, 3.749F, 0.771F, 0.89F,  1.918F, 1.307F, 0.44F,
                                  0.292F, 1.327F, 0.143F, 2.202F, 0.118F, 0.143F, 0.662F, 0.343F,
                                  1.564F, 0.711F, 0.444F, 0.309F, 0.04F,  0.039F, 0.012F, 0.011F};
    EXPECT_EQ(kept("h2o", 10, arma::fmat(24, 2, arma::fill::ones), attention, arma::fmat(32, 24, arma::fill::zeros)),
              (Rows{0, 2, 5, 11, 16, 19, 20, 21, 22, 23}));
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
    // PyramidKVCluster of Zefan-Cai/KVCache-Factory c97f9d7 with 32 tokens of window, where its step is a whole number.
    EXPECT_EQ(of(132, 1000, 6), (Rows{227, 189, 151, 113, 75, 37}));
    EXPECT_EQ(of(132, 220, 3), (Rows{220, 132, 44}));
    EXPECT_EQ(of(132, 199, 3), (Rows{132, 132, 132}));
    // The first layer has no more rows.
    EXPECT_EQ(of(232, 410, 3), (Rows{410, 232, 32 + 22}));
    // Fewer tokens than two means without the window: the same number in every layer.
    EXPECT_EQ(of(232, 400, 3), (Rows{400, 232, 64}));
    EXPECT_EQ(of(232, 399, 3), (Rows{232, 232, 232}));
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

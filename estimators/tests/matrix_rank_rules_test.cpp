#include "estimators/matrix_rank_rules.hpp"

#include <gtest/gtest.h>

#include "estimators/spectral_estimator.hpp"
#include "estimators/tests/spectra.hpp"
#include "theory/base/error.hpp"

namespace spiked::estimators {
namespace {

const ResamplingAddress address{stream::StudySeed::parse("0x5eed0000000000000000000000000033"), "rank rules", 0};

TEST(ParallelAnalysis, FindsSignalsAndNoneInNoise) {
    for (const NullBlock null : {NullBlock::signflip, NullBlock::permutation})
        for (const bool against_top : {false, true}) {
            const ParallelAnalysisOptions options{.null = null, .quantile = 1.0, .against_top = against_top};
            std::size_t noise = 0;
            for (std::uint64_t i = 0; i < 7; ++i)
                noise += parallel_analysis(white_block(60, 40, i, "pa"), address, options) > 0;
            // Each of 7 blocks beats the largest of 20 draws with probability 1/21: more than 5 of them, 8e-8.
            EXPECT_LE(noise, 5U);
            // Vectors spread over all entries: a signal in a single entry stays there when its column is permuted.
            arma::vec u(60, arma::fill::value(1.0 / std::sqrt(60.0)));
            for (arma::uword i = 0; i < 60; i += 2) u(i) = -u(i);
            const arma::vec v(40, arma::fill::value(1.0 / std::sqrt(40.0)));
            const arma::mat block = white_block(60, 40, 9, "pa") + 8.0 * u * v.t();
            EXPECT_EQ(parallel_analysis(block, address, options), 1U);
        }
}

TEST(ParallelAnalysis, SignFlipsKeepTheVarianceProfile) {
    // Uneven noise without signal: a white-noise threshold finds components, sign flips none beyond chance.
    const arma::mat block = arma::diagmat(arma::exp10(arma::linspace(-0.7, 0.7, 80))) * white_block(80, 60, 2, "pa");
    EXPECT_GE(spectral_estimator("gd-hard").estimate(singular_values(block), {80, 60}).rank, 3U);
    EXPECT_LE(parallel_analysis(block, address, {.quantile = 1.0, .against_top = true}), 1U);
}

TEST(ParallelAnalysis, AComponentIsComparedWithItsOwnPlaceOrWithTheTop) {
    // Components that stand out from those of their place in the null blocks and not from the largest there.
    const arma::mat block = spiked_block(60, 40, std::vector<double>(12, 3.0), 3);
    const std::size_t by_place = parallel_analysis(block, address, {.quantile = 1.0});
    const std::size_t by_top = parallel_analysis(block, address, {.quantile = 1.0, .against_top = true});
    EXPECT_GE(by_place, 10U);
    EXPECT_LT(by_top, by_place);
}

TEST(ParallelAnalysis, IsAFunctionOfItsAddress) {
    const arma::mat block = spiked_block(30, 30, {2.2}, 3);
    EXPECT_EQ(parallel_analysis(block, address), parallel_analysis(block, address));
    EXPECT_THROW((void)parallel_analysis(block, address, {.draws = 0}), Error);
    EXPECT_THROW((void)parallel_analysis(block, address, {.quantile = 0.0}), Error);
    EXPECT_EQ(parallel_analysis(arma::mat(5, 5), address), 0U);
}

TEST(BiCrossValidation, FindsStrongSignalsAndNoneInNoise) {
    std::size_t noise = 0;
    for (std::uint64_t i = 0; i < 5; ++i) noise += bi_cross_validation(white_block(60, 40, i, "bcv"), address, 10) > 0;
    EXPECT_EQ(noise, 0U);
    const arma::mat u = arma::orth(white_block(60, 3, 1, "bcv vectors"));
    const arma::mat v = arma::orth(white_block(40, 3, 2, "bcv vectors"));
    const arma::mat signal = u * arma::diagmat(arma::vec{12.0, 10.0, 8.0}) * v.t();
    for (const std::size_t folds : {std::size_t{2}, std::size_t{3}, std::size_t{5}})
        EXPECT_EQ(bi_cross_validation(white_block(60, 40, 7, "bcv") + signal, address, 10, folds), 3U) << folds;
}

TEST(BiCrossValidation, AnExactLowRankIsFoundAndEdgesAreDefined) {
    const arma::mat u = arma::orth(white_block(30, 2, 1, "bcv vectors"));
    const arma::mat v = arma::orth(white_block(20, 2, 2, "bcv vectors"));
    EXPECT_EQ(bi_cross_validation(u * arma::diagmat(arma::vec{2.0, 1.0}) * v.t(), address, 5), 2U);
    EXPECT_EQ(bi_cross_validation(arma::mat(6, 6), address, 3), 0U);
    EXPECT_EQ(bi_cross_validation(white_block(6, 6, 1), address, 0), 0U);
    EXPECT_THROW((void)bi_cross_validation(white_block(6, 6, 1), address, 3, 1), Error);
    EXPECT_THROW((void)bi_cross_validation(white_block(6, 6, 1), address, 3, 7), Error);
}

}  // namespace
}  // namespace spiked::estimators

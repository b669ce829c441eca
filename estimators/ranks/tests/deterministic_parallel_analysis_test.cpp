// Deflated deterministic parallel analysis: its limit against SciPy, its level and what it finds.
#include "estimators/ranks/deterministic_parallel_analysis.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/math/distributions/binomial.hpp>
#include <cmath>
#include <iostream>

#include "estimators/spectral/spectral_estimator.hpp"
#include "estimators/tests/quantizer_samples.hpp"
#include "sim/spiked/spiked_sampler.hpp"

namespace spiked::estimators {
namespace {

TEST(DeterministicParallelAnalysisReference, ItsLimitIsThatOfSciPy) {
    // The edge as the minimum of z(e1), the two equations of the law solved by Brent's method, the scale by differences
    // of z and of the Stieltjes transform at the edge, the quantile from SciPy's Airy function (independent of the
    // library).
    arma::mat unequal(24, 36), equal(24, 36);
    for (arma::uword i = 0; i < 24; ++i)
        for (arma::uword j = 0; j < 36; ++j) {
            equal(i, j) = std::cos(static_cast<double>(3 * i * i + 5 * j * j + 7 * i * j + 1));
            unequal(i, j) =
                (1.0 + 0.2 * static_cast<double>(i % 5)) * (1.0 + 0.5 * static_cast<double>(j % 3)) * equal(i, j);
        }
    using enum NoiseVariances;
    EXPECT_NEAR(largest_of_noise(unequal, 0, 0.05, both), 374.363832155, 1e-4);
    EXPECT_NEAR(largest_of_noise(unequal, 2, 0.01, both), 441.722590389, 1e-4);
    EXPECT_NEAR(largest_of_noise(unequal, 0, 0.05, columns), 336.972210114, 1e-4);
    EXPECT_NEAR(largest_of_noise(unequal, 3, 0.005, columns), 420.129592566, 1e-4);
    // Here the spread of mean squares is below that of chance, and the law that of white noise.
    EXPECT_NEAR(largest_of_noise(equal, 0, 0.05, both), 62.7847339839, 1e-5);
}

TEST(DeterministicParallelAnalysisLaw, NeverPassesItsLevelWhereVariancesOrTailsDiffer) {
    constexpr int blocks = 300;
    constexpr double level = 0.05;
    const SpectralEstimator rule = spectral_estimator("svd:ddpa:alpha=0.05");
    const SpectralEstimator columns_only = spectral_estimator("svd:ddpa:alpha=0.05:variances=columns");
    const double most = boost::math::quantile(boost::math::complement(boost::math::binomial(blocks, level), 1e-6));
    const auto seed = stream::StudySeed::parse("0x5eed0000000000000000000000000049");
    for (const char* entries : {"gaussian", "student:5"})
        for (const bool unequal : {false, true}) {
            const sim::SpikedModel model{
                sim::Covariance::identity(40), sim::Covariance::identity(60), {}, sim::EntryLaw::parse(entries)};
            int alarms = 0, control = 0;
            for (int r = 0; r < blocks; ++r) {
                arma::mat noise = sim::sample(model, seed, entries, static_cast<std::uint64_t>(r)).noise;
                if (unequal) noise.head_rows(10) *= 4.0, noise.head_cols(30) *= 1.5;
                AnalysedBlock block(std::move(noise));
                alarms += rule.of(block).rank > 0 ? 1 : 0;
                if (unequal) control += columns_only.of(block).rank > 0 ? 1 : 0;
            }
            std::cout << fmt::format("{}{}: {} of {} blocks of noise at level {}, at most {} (exact, 1e-6)\n", entries,
                                     unequal ? ", unequal rows and columns" : "", alarms, blocks, level, most);
            EXPECT_LE(alarms, most) << entries;
            if (unequal) {
                EXPECT_GT(control, most) << "the control, without row variances, passes";
            }
        }
}

TEST(DeterministicParallelAnalysis, CountsComponentsInTurnUnderUnequalRows) {
    for (std::uint64_t r = 1; r <= 10; ++r) {
        arma::mat matrix = gaussian(60, 80, 20 * r) / std::sqrt(80.0);
        matrix.head_rows(30) *= 2.0;
        matrix += 12.0 * arma::normalise(arma::vec(gaussian(60, 1, 20 * r + 1))) *
                  arma::normalise(arma::vec(gaussian(80, 1, 20 * r + 2))).t();
        matrix += 6.0 * arma::normalise(arma::vec(gaussian(60, 1, 20 * r + 3))) *
                  arma::normalise(arma::vec(gaussian(80, 1, 20 * r + 4))).t();
        AnalysedBlock block(matrix);
        EXPECT_EQ(deflated_deterministic_rank(block, 0.001, NoiseVariances::both), 2U) << r;
        // Zero rows and columns are no noise, and count for nothing.
        arma::mat padded(90, 90, arma::fill::zeros);
        padded.submat(10, 5, 69, 84) = matrix;
        AnalysedBlock with_zeros(padded);
        EXPECT_EQ(deflated_deterministic_rank(with_zeros, 0.001, NoiseVariances::both), 2U) << r;
        for (const double scale : {1e-150, 1e150}) {
            AnalysedBlock scaled(arma::mat(scale * matrix));
            EXPECT_EQ(spectral_estimator("eoptshrink:rank=ddpa:alpha=0.001").of(scaled).rank, 2U) << scale;
        }
    }
}

TEST(DeterministicParallelAnalysis, HandlesExactAndZeroBlocksAndBadOptions) {
    AnalysedBlock zero(arma::mat(8, 8, arma::fill::zeros));
    EXPECT_EQ(deflated_deterministic_rank(zero, 0.05, NoiseVariances::both), 0U);
    AnalysedBlock exact(gaussian(30, 2, 1) * gaussian(40, 2, 2).t());
    EXPECT_EQ(deflated_deterministic_rank(exact, 0.05, NoiseVariances::both), 2U);
    for (const char* name : {"svd:ddpa:alpha=0", "svd:ddpa:variances=rows", "svd:ddpa:draws=9", "svd:ddpa:level=0.1",
                             "svd:kn:variances=both", "svd:3:alpha=0.1"})
        message_of([&] { (void)spectral_estimator(name); }, ErrorKind::usage);
}

}  // namespace
}  // namespace spiked::estimators

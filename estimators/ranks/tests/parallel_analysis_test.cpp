// The level and the power of the sign-flip null of tw-test under entries with heavy tails.
#include "estimators/ranks/parallel_analysis.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>
#include <iostream>
#include <random>

#include "estimators/spectral/spectral_estimator.hpp"
#include "estimators/tests/quantizer_samples.hpp"
#include "estimators/transforms/spectral_method.hpp"
#include "sim/spiked/spiked_sampler.hpp"

namespace spiked::estimators {
namespace {

const stream::StudySeed flip_seed = stream::StudySeed::parse("0x5eed0000000000000000000000000062");
constexpr double flip_false_alarm = 1e-6;  // of each comparison below, exact

sim::SpikedModel heavy_tailed(const char* entries, std::size_t side, std::vector<SignalStrength> strengths) {
    return {sim::Covariance::identity(side), sim::Covariance::identity(side), std::move(strengths),
            sim::EntryLaw::parse(entries)};
}

/// In how many blocks the method finds rank 1 or more.
int found_in(const SpectralMethod& method, const sim::SpikedModel& model, const char* name, int blocks) {
    int found = 0;
    for (int r = 0; r < blocks; ++r) {
        AnalysedBlock block(sim::sample(model, flip_seed, name, static_cast<std::uint64_t>(r)).observed);
        found += method.estimate(block).rank > 0 ? 1 : 0;
    }
    return found;
}

TEST(SignFlipsLaw, KeepTheirLevelUnderHeavyTailsWhereTracyWidomDoesNot) {
    constexpr double level = 0.05;
    constexpr int blocks = 1500;
    constexpr std::size_t side = 64;
    const auto flips = spectral_method("tw-test:level=0.05:null=signflip");
    const auto tracy_widom = spectral_method(fmt::format("tw-test:level=0.05:sigma={}", 1.0 / std::sqrt(side)));
    const boost::math::binomial law(blocks, level);
    const double least = boost::math::quantile(law, flip_false_alarm / 2.0);
    const double most = boost::math::quantile(boost::math::complement(law, flip_false_alarm / 2.0));
    // The smallest rate at which the upper limit is passed with probability .99.
    const double seen = boost::math::binomial::find_lower_bound_on_p(blocks, most + 1.0, 0.99);
    for (const char* entries : {"student:5", "sparse:0.05", "gaussian"}) {
        const auto noise = heavy_tailed(entries, side, {});
        const int found = found_in(flips, noise, entries, blocks);
        const int control = found_in(tracy_widom, noise, entries, blocks);
        std::cout << fmt::format(
            "{}: sign flips {:.4f}, Tracy-Widom {:.4f} of {} blocks at level {}, allowed {:.4f} to {:.4f} (exact, "
            "{:g}); a level of {:.3f} would be seen\n",
            entries, static_cast<double>(found) / blocks, static_cast<double>(control) / blocks, blocks, level,
            least / blocks, most / blocks, flip_false_alarm, seen);
        EXPECT_GE(found, least) << entries;
        EXPECT_LE(found, most) << entries;
        // Control: the Tracy-Widom quantile breaks the level on the same blocks.
        if (std::string_view(entries) != "gaussian") {
            EXPECT_GT(control, most) << "the control passes: " << entries;
        }
    }
}

TEST(SignFlipsLaw, FindASpikeOfTwoThresholdsUnderHeavyTails) {
    constexpr int blocks = 100;
    constexpr std::size_t side = 128;
    const auto flips = spectral_method("tw-test:null=signflip");
    // Below this count a method that finds it in 90 % of blocks falls with probability 1e-6.
    const double least = boost::math::quantile(boost::math::binomial(blocks, 0.9), flip_false_alarm);
    for (const char* entries : {"student:5", "sparse:0.05"}) {
        const int found = found_in(flips, heavy_tailed(entries, side, {{2.0}}), entries, blocks);
        // Control: pure noise is not taken for the spike.
        const int control = found_in(flips, heavy_tailed(entries, side, {}), entries, blocks);
        std::cout << fmt::format(
            "{}: a spike of 2 thresholds is found in {} of {} blocks, in pure noise in {}; at least {}\n", entries,
            found, blocks, control, least);
        EXPECT_GE(found, least) << entries;
        EXPECT_LT(control, least) << entries;
    }
}

TEST(SignFlips, AreAFunctionOfTheBlockAndCountComponentsInTurn) {
    arma::mat matrix = gaussian(40, 60, 5) / std::sqrt(60.0);
    matrix += 6.0 * arma::normalise(gaussian(40, 1, 6)) * arma::normalise(gaussian(60, 1, 7)).t();
    matrix += 4.0 * arma::normalise(gaussian(40, 1, 8)) * arma::normalise(gaussian(60, 1, 9)).t();
    const auto method = spectral_method("tw-test:null=signflip");
    for (const double scale : {1.0, 1e-150, 1e150}) {
        AnalysedBlock block(arma::mat(scale * matrix));
        const Shrinkage found = method.estimate(block);
        EXPECT_EQ(found.rank, 2U) << scale;
        AnalysedBlock again(arma::mat(scale * matrix));
        EXPECT_EQ(method.estimate(again).shrunk, found.shrunk);
    }
    AnalysedBlock zero(arma::mat(8, 8, arma::fill::zeros));
    EXPECT_EQ(method.estimate(zero).rank, 0U);
    AnalysedBlock whitened(matrix);
    EXPECT_GE(spectral_method("whiten+tw-test:null=signflip").estimate(whitened).rank, 1U);
    EXPECT_EQ(ParallelAnalysis::least_draws(0.01), 99U);
    EXPECT_EQ(ParallelAnalysis::least_draws(0.05), 19U);
    EXPECT_EQ(ParallelAnalysis::least_draws(0.3), 3U);
}

/// Buja and Eyuboglu's steps on a residual: the largest singular values of copies whose columns are shuffled, by LAPACK
/// and the library's generator.
double fraction_of_larger_copies(const arma::mat& residual, int copies) {
    std::mt19937 generator(48);
    const double largest = arma::svd(residual).max();
    int larger = 0;
    for (int k = 0; k < copies; ++k) {
        arma::mat copy = residual;
        for (arma::uword j = 0; j < copy.n_cols; ++j) std::shuffle(copy.begin_col(j), copy.end_col(j), generator);
        larger += arma::svd(copy).max() >= largest ? 1 : 0;
    }
    return static_cast<double>(larger) / copies;
}

TEST(PermutationsReference, AgreeWithShuffledCopies) {
    // Components that are clear for one are clear for the other; the two draw different copies.
    int compared = 0;
    for (std::uint64_t r = 0; r < 40; ++r) {
        arma::mat matrix = gaussian(30, 20, 900 + r);
        matrix += 0.3 * static_cast<double>(r % 8) * 5.0 * arma::normalise(arma::vec(gaussian(30, 1, 2000 + r))) *
                  arma::normalise(arma::vec(gaussian(20, 1, 3000 + r))).t();
        const double share = fraction_of_larger_copies(matrix, 199);
        if (share > 0.02 && share < 0.1) continue;
        AnalysedBlock block(matrix);
        const ParallelAnalysis analysis(block, 0.05, 199, ResidualCopies::permutations);
        EXPECT_EQ(analysis.significant(0), share < 0.05) << r << ": " << share;
        ++compared;
    }
    EXPECT_GE(compared, 25);
}

TEST(PermutationsLaw, KeepTheirLevelForSkewedColumnsOfAnyVariance) {
    constexpr int blocks = 600;
    const SpectralEstimator permuted = spectral_estimator("svd:pa");
    const SpectralEstimator white = spectral_estimator("svd:kn:alpha=0.05");
    int alarms = 0;
    int control = 0;
    for (int r = 0; r < blocks; ++r) {
        arma::mat matrix =
            sim::sample(heavy_tailed("two-point:0.05", 48, {}), flip_seed, "permuted", static_cast<std::uint64_t>(r))
                .noise;
        for (arma::uword j = 0; j < matrix.n_cols; ++j) matrix.col(j) *= j % 4 == 0 ? 3.0 : 1.0;
        AnalysedBlock block(matrix);
        alarms += permuted.of(block).rank > 0 ? 1 : 0;
        control += white.of(block).rank > 0 ? 1 : 0;
    }
    const boost::math::binomial law(blocks, 0.05);
    const double most = boost::math::quantile(boost::math::complement(law, flip_false_alarm / 2.0));
    EXPECT_GE(alarms, boost::math::quantile(law, flip_false_alarm / 2.0));
    EXPECT_LE(alarms, most);
    EXPECT_GT(control, most) << "the control, a rule for white noise, passes";
}

// The mean of a column of large variance is large by chance. Copies without means let it stand out in .16 to .44 of the
// blocks.
TEST(PermutationsLaw, KeepTheirLevelWhereMeansOfColumnsDifferInVariance) {
    constexpr int blocks = 800;
    const SpectralEstimator permuted = spectral_estimator("svd:pa");
    const boost::math::binomial law(blocks, 0.05);
    const double least = boost::math::quantile(law, flip_false_alarm / 4.0);
    const double most = boost::math::quantile(boost::math::complement(law, flip_false_alarm / 4.0));
    for (const bool one_column : {false, true}) {
        int alarms = 0;
        int control = 0;
        for (std::uint64_t r = 0; r < blocks; ++r) {
            arma::mat matrix = gaussian(30, 60, 20000 + 3 * r);
            const arma::mat logarithms = gaussian(1, 60, 20001 + 3 * r);
            for (arma::uword j = 0; j < 60; ++j)
                matrix.col(j) *= one_column ? (j == 0 ? 30.0 : 1.0) : std::exp(logarithms(0, j));
            AnalysedBlock block(matrix);
            alarms += permuted.of(block).rank > 0 ? 1 : 0;
            // Control: the mean of each column is that of a component of a fourth of its standard deviation.
            AnalysedBlock with_means(
                arma::mat(matrix.each_row() +
                          0.25 * arma::stddev(matrix) % arma::sign(arma::rowvec(gaussian(1, 60, 20002 + 3 * r)))));
            control += permuted.of(with_means).rank > 0 ? 1 : 0;
        }
        std::cout << fmt::format("{} of {} false alarms, {} with means; {} to {} are allowed\n", alarms, blocks,
                                 control, least, most);
        EXPECT_GE(alarms, least);
        EXPECT_LE(alarms, most);
        EXPECT_GT(control, most) << "the control passes";
    }
}

TEST(ParallelAnalysisLaw, KeepsItsLevelBehindComponentsSoThatItsRankIsALowerLimit) {
    constexpr int blocks = 250;
    const SpectralEstimator permuted = spectral_estimator("svd:pa");
    const SpectralEstimator flipped = spectral_estimator("svd:pa:copies=signs");
    int by_permutation = 0, by_signs = 0, above_weak = 0, control = 0;
    for (std::uint64_t r = 0; r < blocks; ++r) {
        arma::mat matrix = gaussian(30, 40, 5000 + 9 * r) / std::sqrt(40.0);
        for (std::uint64_t i = 0; i < 4; ++i)
            matrix += (8.0 - static_cast<double>(i)) *
                      arma::normalise(arma::vec(gaussian(30, 1, 5001 + 9 * r + 2 * i))) *
                      arma::normalise(arma::vec(gaussian(40, 1, 5002 + 9 * r + 2 * i))).t();
        AnalysedBlock block(matrix);
        by_permutation += permuted.of(block).rank > 4 ? 1 : 0;
        by_signs += flipped.of(block).rank > 4 ? 1 : 0;
        // Control: the residual against its shuffled copies, whose energy fills four rows and four columns more.
        const std::span four(block.singular_values().data(), 4);
        control += fraction_of_larger_copies(block.residual(four), 19) == 0.0 ? 1 : 0;
        // A lower limit holds for components of any strength.
        const arma::vec weak = arma::normalise(arma::vec(gaussian(30, 1, 5001 + 9 * r)));
        AnalysedBlock with_weak(arma::mat(gaussian(30, 40, 5000 + 9 * r) / std::sqrt(40.0) +
                                          1.1 * weak * arma::normalise(arma::vec(gaussian(40, 1, 5002 + 9 * r))).t()));
        above_weak += flipped.of(with_weak).rank > 1 ? 1 : 0;
    }
    const boost::math::binomial law(blocks, 0.05);
    const double most = boost::math::quantile(boost::math::complement(law, flip_false_alarm / 2.0));
    std::cout << fmt::format(
        "a fifth component in {} by permutations, {} by signs and {} without a factor, of {}; {} to {} are allowed at "
        ".05\n",
        by_permutation, by_signs, control, blocks, boost::math::quantile(law, flip_false_alarm / 2.0), most);
    for (const int alarms : {by_permutation, by_signs}) {
        EXPECT_GE(alarms, boost::math::quantile(law, flip_false_alarm / 2.0));
        EXPECT_LE(alarms, most);
    }
    EXPECT_LE(above_weak, most);
    EXPECT_GT(control, most) << "the control passes";
}

TEST(Permutations, CountColumnMeansOnlyWhereTheseAreNotCentred) {
    for (std::uint64_t r = 0; r < 6; ++r) {
        const arma::mat noise = gaussian(50, 40, 8000 + 10 * r) / std::sqrt(40.0);
        const arma::mat means =
            arma::vec(50, arma::fill::ones) * arma::rowvec(gaussian(1, 40, 8001 + 10 * r)) * (8.0 / std::sqrt(2000.0));
        const arma::mat spike = 4.0 * arma::normalise(arma::vec(gaussian(50, 1, 8002 + 10 * r))) *
                                arma::normalise(arma::vec(gaussian(40, 1, 8003 + 10 * r))).t();
        const auto rank = [](const char* name, const arma::mat& matrix) {
            AnalysedBlock block(matrix);
            return spectral_estimator(name).of(block).rank;
        };
        EXPECT_EQ(rank("svd:pa:level=0.002", noise + means), 1U) << r;
        EXPECT_EQ(rank("svd:pa:level=0.002:center=yes", noise + means), 0U) << r;
        // A large mean does not hide the component below it.
        EXPECT_EQ(rank("svd:pa:level=0.002", noise + means + spike), 2U) << r;
        EXPECT_EQ(rank("svd:pa:level=0.002:center=yes", noise + means + spike), 1U) << r;
        arma::mat centred = noise + means + spike;
        centred.each_row() -= arma::rowvec(arma::mean(centred, 0));
        EXPECT_EQ(rank("svd:pa:level=0.002", centred), 1U) << r;
        // Zero rows, which no noise has, do not make the others stand out.
        arma::mat padded(150, 40, arma::fill::zeros);
        padded.rows(40, 89) = noise;
        EXPECT_EQ(rank("svd:pa:level=0.002", padded), 0U) << r;
    }
}

TEST(Permutations, CountComponentsInTurnWhereverARankIsTaken) {
    arma::mat matrix = gaussian(60, 40, 5) / std::sqrt(40.0);
    matrix += 6.0 * arma::normalise(arma::vec(gaussian(60, 1, 6))) * arma::normalise(arma::vec(gaussian(40, 1, 7))).t();
    matrix += 4.0 * arma::normalise(arma::vec(gaussian(60, 1, 8))) * arma::normalise(arma::vec(gaussian(40, 1, 9))).t();
    for (const char* method : {"svd:", "optshrink:", "eoptshrink:rank="})
        for (const char* rule : {"pa", "pa:copies=signs", "pa:level=0.01:draws=120"}) {
            AnalysedBlock block(matrix);
            EXPECT_EQ(spectral_estimator(std::string(method) + rule).of(block).rank, 2U) << method << rule;
        }
    AnalysedBlock zero(arma::mat(8, 8, arma::fill::zeros));
    EXPECT_EQ(spectral_estimator("svd:pa").of(zero).rank, 0U);
    for (const char* name : {"svd:pa:draws=18", "svd:pa:copies=flip", "svd:pa:level=1", "svd:2:draws=30",
                             "svd:pa:center=maybe", "svd:kn:center=yes"})
        message_of([&] { (void)spectral_estimator(name); }, ErrorKind::usage);
}

TEST(SignFlips, RejectOptionsWithoutEffectAndDrawsThatCannotReachTheLevel) {
    for (const char* name : {"tw-test:draws=99", "tw-test:null=tw:draws=99", "tw-test:null=signflip:draws=98",
                             "tw-test:null=flip", "tw-test:null=signflip:draws=65536"})
        message_of([&] { (void)spectral_estimator(name); }, ErrorKind::usage);
    const std::vector<double> values(8, 1.0);
    message_of([&] { (void)spectral_estimator("tw-test:null=signflip").estimate(values, {8, 8}); }, ErrorKind::usage);
}

}  // namespace
}  // namespace spiked::estimators

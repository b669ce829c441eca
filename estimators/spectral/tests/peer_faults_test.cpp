// Defects of public implementations of these methods, each with an input that shows it: our code must not have them.
// "Elsewhere" means in such an implementation.
#include <gtest/gtest.h>

#include <cmath>

#include "estimators/spectral/gavish_donoho.hpp"
#include "estimators/spectral/optshrink.hpp"
#include "estimators/spectral/screenot.hpp"
#include "estimators/spectral/spectral_estimator.hpp"
#include "estimators/svd/analysed_block.hpp"
#include "estimators/tests/spectra.hpp"

namespace spiked::estimators {
namespace {

std::vector<double> times(std::vector<double> s, double c) {
    for (double& value : s) value *= c;
    return s;
}

TEST(ScreeNotPeers, AnyScaleTerminatesWithTheRightThreshold) {
    // Elsewhere: no termination at 1e11, and a threshold four times too high at 1e-6.
    const auto s = singular_values(spiked_block(64, 64, {5.0}, 1));
    const double threshold = screenot_threshold(s, {64, 64}, 5);
    for (const double c : {1e-300, 1e-12, 1e-6, 1e11, 1e12, 1e300})
        EXPECT_NEAR(screenot_threshold(times(s, c), {64, 64}, 5) / c, threshold, 1e-12 * threshold);
    EXPECT_EQ(screenot(times(s, 1e-6), {64, 64}, 5).rank, 1U);
}

TEST(ScreeNotPeers, ABoundBelowTheTrueRankGivesANote) {
    const auto five = singular_values(spiked_block(128, 128, {5.0, 5.1, 5.2, 5.3, 5.4}, 2));
    EXPECT_NE(screenot(five, {128, 128}, 4).note, "");
    EXPECT_EQ(screenot(five, {128, 128}, 8).note, "");
    EXPECT_EQ(screenot(five, {128, 128}, 8).rank, 5U);
    std::vector<double> sixteen;
    for (int i = 0; i < 16; ++i) sixteen.push_back(3.0 + 7.0 * i / 15.0);
    EXPECT_NE(screenot(singular_values(spiked_block(128, 128, sixteen, 3)), {128, 128}, 10).note, "");
}

TEST(ScreeNotPeers, ABoundAboveTheTrueRankGivesNoNote) {
    const auto thirty = singular_values(spiked_block(128, 128, std::vector<double>(30, 6.0), 4));
    EXPECT_NE(screenot(thirty, {128, 128}, 25).note, "");
    EXPECT_EQ(screenot(thirty, {128, 128}, 35).note, "");
    EXPECT_EQ(screenot(thirty, {128, 128}, 35).rank, 30U);
}

TEST(ScreeNotPeers, TwiceTheBoundPlusOneMayEqualTheSide) {
    std::vector<double> s;
    for (int i = 11; i > 0; --i) s.push_back(static_cast<double>(i));
    EXPECT_EQ(screenot(s, {11, 11}, 5).note, "");
    EXPECT_GT(screenot_threshold(s, {11, 11}, 5), 0.0);
    EXPECT_NE(screenot(s, {11, 11}, 6).note, "") << "a bound that leaves too few values is lowered, with a note";
    EXPECT_EQ(screenot_threshold(s, {11, 11}, 6), screenot_threshold(s, {11, 11}, 5));
}

TEST(ScreeNotPeers, AZeroMatrixHasNoThreshold) {
    EXPECT_EQ(screenot_threshold(std::vector<double>(9, 0.0), {9, 9}, 2), 0.0);
    EXPECT_EQ(screenot(std::vector<double>(9, 0.0), {9, 9}, 2).rank, 0U);
}

TEST(HardThresholdPeers, RankZeroIsPossible) {
    for (const Shape shape : {Shape{100, 100}, Shape{100, 400}, Shape{400, 100}})
        EXPECT_EQ(gavish_donoho_hard(singular_values(white_block(shape.rows, shape.columns, 4)), shape).rank, 0U);
}

TEST(HardThresholdPeers, AKnownLevelIsScaledByTheLongSide) {
    // Elsewhere 60 of 100, 100 of 100 and 77 of 128 components of pure noise are kept.
    for (const Shape shape : {Shape{100, 400}, Shape{100, 1000}, Shape{128, 512}, Shape{512, 128}}) {
        const double sigma = 1.0 / std::sqrt(static_cast<double>(shape.columns));
        const auto s = singular_values(white_block(shape.rows, shape.columns, 5));
        EXPECT_EQ(gavish_donoho_hard(s, shape, {.noise_level = sigma}).rank, 0U);
    }
}

TEST(HardThresholdPeers, AnExactRankOneBlockHasRankOne) {
    const arma::mat block = arma::vec(30, arma::fill::randu) * arma::rowvec(20, arma::fill::randu);
    for (const char* name : {"gd-hard", "gd-shrink", "eoptshrink", "screenot:4", "tw-test"})
        EXPECT_EQ(spectral_estimator(name).estimate(singular_values(block), {30, 20}).rank, 1U) << name;
}

TEST(HardThresholdPeers, TheMedianCoefficientIsExact) {
    // Elsewhere off by 1e-5 to 1e-4, from a bracket of width 1e-3.
    EXPECT_NEAR(median_threshold_coefficient(1.0), 2.858362424069533, 1e-12);
}

TEST(HardThresholdPeers, PaddingWithZerosDoesNotKeepEverything) {
    // 128 x 40 of noise in a 128 x 128 block: the median is 0, and elsewhere all 40 components stay.
    arma::mat padded(128, 128);
    padded.head_cols(40) = white_block(128, 40, 6);
    AnalysedBlock block(padded);
    EXPECT_EQ(block.shape().columns, 40U);
    EXPECT_EQ(gavish_donoho_hard(block.singular_values(), block.shape()).rank, 0U);
}

TEST(ShrinkerPeers, TheNuclearShrinkerUsesTheStrengthNotTheObservation) {
    // Elsewhere 3.306, above the observed value itself.
    const std::vector<double> s = {2.5, 0.0};
    const Shrinkage found =
        gavish_donoho_shrink(s, {2, 2}, {.loss = theory::Loss::nuclear, .noise_level = 1.0 / std::sqrt(2.0)});
    EXPECT_NEAR(found.shrunk[0], 1.0, 1e-13);
}

TEST(ShrinkerPeers, SignalsFarAboveTheNoiseAreNotShrunk) {
    // With squares of eigenvalues overlaps were NaN from 1e77 times the noise on.
    const std::vector<double> s = {1e140, 0.5};
    for (const auto loss : {theory::Loss::frobenius, theory::Loss::operator_norm, theory::Loss::nuclear}) {
        const Shrinkage found = gavish_donoho_shrink(s, {2, 5}, {.loss = loss, .noise_level = 0.7});
        ASSERT_EQ(found.rank, 1U);
        EXPECT_DOUBLE_EQ(found.overlap_left[0], 1.0);
        EXPECT_DOUBLE_EQ(found.overlap_right[0], 1.0);
        EXPECT_NEAR(found.shrunk[0] / 1e140, 1.0, 1e-12);
    }
}

TEST(ShrinkerPeers, TheOperatorShrinkerIsRightForAnyShape) {
    // Elsewhere the strength, 2.1546, which is right for square blocks only.
    const std::vector<double> s = {2.5, 0.0};
    const Shrinkage found = gavish_donoho_shrink(s, {2, 4}, {.loss = theory::Loss::operator_norm, .noise_level = 0.5});
    EXPECT_NEAR(found.shrunk[0], 2.056917857360853, 1e-13);
}

TEST(ShrinkerPeers, OptShrinkKnowsTheShape) {
    // Elsewhere only the square part of the residual is kept, and n != d changes nothing.
    const auto s = point_a();
    EXPECT_NE(optshrink(s, {12, 12}, 2).shrunk, optshrink(s, {12, 24}, 2).shrunk);
}

TEST(ShrinkerPeers, BelowTheEdgeThereIsNoStrength) {
    // Elsewhere the inverse of the outlier map returns the edge itself below it.
    const std::vector<double> s = {1.49, 0.2};
    EXPECT_EQ(gavish_donoho_shrink(s, {2, 8}, {.noise_level = 1.0 / std::sqrt(8.0)}).rank, 0U);
    const std::vector<double> above = {std::sqrt(2.2501), 0.2};
    const Shrinkage found = gavish_donoho_shrink(above, {2, 8}, {.noise_level = 1.0 / std::sqrt(8.0)});
    ASSERT_EQ(found.rank, 1U);
    EXPECT_NEAR(found.strengths[0], std::pow(0.25, 0.25), 0.01);
}

TEST(LevelPeers, SignalsDoNotBiasTheQuantile) {
    // The level from the median is 1.05 with 10 signals and 1.24 with 30.
    const auto s = singular_values(spiked_block(100, 100, std::vector<double>(30, 8.0), 7));
    EXPECT_NEAR(white_noise_level(s, {100, 100}, NoiseLevelRule::quantile) * 10.0, 1.0, 0.05);
}

TEST(EOptShrinkPeers, MoreSignalsThanThePilotGiveANote) {
    // Elsewhere a rank rule with the bound k = 11 finds almost nothing in a block with 16 huge signals and gives no
    // note.
    for (const std::size_t signals :
         {std::size_t{12}, std::size_t{16}, std::size_t{22}, std::size_t{30}, std::size_t{50}}) {
        std::vector<double> strengths;
        for (std::size_t i = 0; i < signals; ++i)
            strengths.push_back(8.0 - 5.0 * static_cast<double>(i) / static_cast<double>(signals));
        const auto s = singular_values(spiked_block(128, 128, strengths, 8));
        const Shrinkage found = spectral_estimator("eoptshrink").estimate(s, {128, 128});
        EXPECT_LE(found.rank, 11U);
        EXPECT_NE(found.note, "") << signals;
        const Shrinkage fit = spectral_estimator("eoptshrink:edgefit").estimate(s, {128, 128});
        if (signals <= 22) {
            EXPECT_EQ(fit.rank, signals);
            EXPECT_EQ(fit.note, "");
        } else {
            EXPECT_NE(fit.note, "") << signals;
        }
    }
    for (const std::size_t signals : {std::size_t{0}, std::size_t{1}, std::size_t{8}}) {
        const auto s = singular_values(spiked_block(128, 128, std::vector<double>(signals, 5.0), 8));
        EXPECT_EQ(spectral_estimator("eoptshrink").estimate(s, {128, 128}).note, "") << signals;
    }
}

}  // namespace
}  // namespace spiked::estimators

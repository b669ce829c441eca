#include "estimators/spectral/fitted_noise.hpp"

#include <gtest/gtest.h>

#include "estimators/tests/noise_eigenvalues.hpp"

namespace spiked::estimators {
namespace {

TEST(FittedNoiseLaw, FindsTheDecayWithinTheChanceDistance) {
    for (const double decay : {0.0, 3.0})
        for (const std::size_t rows : {64U, 128U}) {
            int beyond = 0;
            double mean = 0.0;
            constexpr int draws = 20;
            for (std::uint64_t draw = 0; draw < draws; ++draw) {
                const auto fitted = fit_noise(noise_eigenvalues(rows, 128, decay, draw), 128);
                ASSERT_TRUE(fitted);
                EXPECT_EQ(fitted->count, rows);
                EXPECT_NEAR(fitted->curve.back().cdf, 1.0, 1e-9);
                EXPECT_EQ(fitted->chance_distance, 3.0 / static_cast<double>(rows));
                mean += fitted->decay / draws;
                if (fitted->distance > fitted->chance_distance) ++beyond;
            }
            EXPECT_NEAR(mean, decay, 0.6) << rows;
            EXPECT_LE(beyond, 8) << rows << " rows, decay "
                                 << decay;  // of 20, each with probability 1/20: more than 8 has 1e-6
        }
}

TEST(FittedNoiseLaw, FindsTheSideOfTheDecay) {
    for (const std::size_t rows : {32U, 64U}) {
        double mean = 0.0;
        int on_the_other_side = 0;
        constexpr int draws = 10;
        for (std::uint64_t draw = 0; draw < draws; ++draw) {
            const auto fitted = fit_noise(noise_eigenvalues(rows, 128, 5.0, draw, true), 128);
            ASSERT_TRUE(fitted);
            if (fitted->on_long_side)
                ++on_the_other_side;
            else
                mean += fitted->decay;
        }
        EXPECT_LE(on_the_other_side, 1) << rows;
        EXPECT_NEAR(mean / (draws - on_the_other_side), 5.0, 0.6) << rows;
    }
}

TEST(FittedNoiseControl, RejectsNoiseOfTwoVariances) {
    // Half of the eigenvalues are a thousand times smaller, which is not an exponential decay.
    std::vector<double> values = noise_eigenvalues(64, 128, 0.0, 1);
    for (const double weak : noise_eigenvalues(64, 128, 0.0, 2)) values.push_back(1e-3 * weak);
    const auto fitted = fit_noise(values, 128);
    ASSERT_TRUE(fitted);
    EXPECT_GT(fitted->distance, 2.0 * fitted->chance_distance);
}

TEST(FittedNoise, LeavesZerosOutAndNeedsEightEigenvalues) {
    // Repeated tokens cause zeros.
    std::vector<double> zeros = noise_eigenvalues(64, 128, 0.0, 1);
    const double largest = zeros.front();
    zeros.resize(128, 1e-13);
    const auto fitted = fit_noise(zeros, 128);
    ASSERT_TRUE(fitted);
    EXPECT_EQ(fitted->count, 64U);
    EXPECT_EQ(fitted->zero, 1e-10 * largest);
    EXPECT_FALSE(fit_noise({3.0, 2.0, 1.0}, 128));
    EXPECT_FALSE(fit_noise({}, 128));
}

}  // namespace
}  // namespace spiked::estimators

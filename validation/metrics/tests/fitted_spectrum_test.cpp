#include "validation/metrics/fitted_spectrum.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "estimators/tests/noise_eigenvalues.hpp"

namespace spiked::validation {
namespace {

TEST(FittedSpectrum, SortsAndFitsTheNoiseOfABlockWithoutItsSignal) {
    // 3 signals and the noise of the other 61 x 125 dimensions, in ascending order.
    std::vector<double> noise = estimators::noise_eigenvalues(61, 125, 4.0, 1);
    std::reverse(noise.begin(), noise.end());
    std::vector<double> singular;
    for (const double value : noise) singular.push_back(std::sqrt(value));
    for (const double signal : {80.0, 90.0, 100.0}) singular.push_back(signal);
    const FittedSpectrum found = fit_spectrum(singular, Eigenvalue{3000.0}, noise, 128);
    EXPECT_EQ(found.signal, 3U);
    EXPECT_EQ(found.singular_values.front(), 100.0);
    EXPECT_TRUE(std::is_sorted(found.singular_values.rbegin(), found.singular_values.rend()));
    EXPECT_TRUE(std::is_sorted(found.noise_eigenvalues.rbegin(), found.noise_eigenvalues.rend()));
    const auto direct = estimators::fit_noise(noise, 125);
    ASSERT_TRUE(found.noise && direct);
    EXPECT_EQ(found.noise->decay, direct->decay);
    EXPECT_EQ(found.noise->distance, direct->distance);
    EXPECT_EQ(found.noise->count, 61U);
}

TEST(FittedSpectrum, HasNoLawWithoutNoiseOrForNumbersThatAreNotFinite) {
    const std::vector<double> noise = estimators::noise_eigenvalues(64, 128, 0.0, 1);
    const std::vector<double> singular(64, 1.0);
    EXPECT_TRUE(fit_spectrum(singular, std::nullopt, noise, 128).noise);
    EXPECT_FALSE(fit_spectrum(singular, std::nullopt, {}, 128).noise);
    for (const double value : {std::nan(""), std::numeric_limits<double>::infinity()}) {
        std::vector<double> of_noise = noise;
        of_noise[5] = value;
        EXPECT_FALSE(fit_spectrum(singular, std::nullopt, of_noise, 128).noise);
        std::vector<double> of_block = singular;
        of_block[5] = value;
        EXPECT_FALSE(fit_spectrum(of_block, std::nullopt, noise, 128).noise);
    }
    EXPECT_EQ(fit_spectrum({}, std::nullopt, {}, 128).signal, 0U);
}

}  // namespace
}  // namespace spiked::validation

#include "estimators/causal/exact_functions.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>

namespace spiked::estimators {
namespace {

TEST(ExactFunctionsReference, AgreeWithTheMathematicalLibrary) {
    for (double x = -690.0; x < 690.0; x += 0.37) EXPECT_NEAR(exact_exp(x) / std::exp(x), 1.0, 4e-15) << x;
    for (double x = 1e-300; x < 1e300; x *= 3.7)
        EXPECT_NEAR(exact_log2(x), std::log2(x), 1e-15 + 4e-16 * std::abs(std::log2(x))) << x;
    for (std::int32_t n = -5000; n < 5000; n += 7)
        EXPECT_NEAR(exact_power_of_two(n, 256) / std::exp2(n / 256.0), 1.0, 4e-15) << n;
    for (double x = 1e-200; x < 1e200; x *= 1.9)
        EXPECT_EQ(half_octave(x), static_cast<int>(std::floor(2.0 * std::log2(x)))) << x;
}

TEST(ExactFunctionsIdentity, PowersOfTwoAreExact) {
    for (int n = -900; n < 900; n += 11) {
        EXPECT_EQ(exact_power_of_two(16 * n, 16), std::ldexp(1.0, n));
        EXPECT_EQ(exact_log2(std::ldexp(1.0, n)), n);
        EXPECT_EQ(half_octave(std::ldexp(1.0, n)), 2 * n);
    }
    EXPECT_EQ(exact_exp(0.0), 1.0);
    // The square root of two lies between the first two of these.
    EXPECT_EQ(half_octave(0x1.6a09e667f3bccp+0), 0);
    EXPECT_EQ(half_octave(0x1.6a09e667f3bcdp+0), 1);
}

/// FNV-1a of 64-bit words.
void mix_bits(std::uint64_t& digest, double value) {
    digest = (digest ^ std::bit_cast<std::uint64_t>(value)) * 1099511628211ULL;
}

TEST(ExactFunctionsStability, GiveTheSameBitsOnEveryMachine) {
    std::uint64_t digest = 14695981039346656037ULL;
    for (int i = 1; i < 2000; ++i) {
        mix_bits(digest, exact_exp(-0.013 * i));
        mix_bits(digest, exact_log2(0.37 * i));
        mix_bits(digest, exact_power_of_two(i - 1000, 256));
    }
    EXPECT_EQ(digest, 3697199936243638700ULL);
}

}  // namespace
}  // namespace spiked::estimators

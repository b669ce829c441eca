// Gaps of noise with a variance profile: against the solution of the equation and of its singular points in 40 digits
// (mpmath, findroot), against two independent blocks of white noise, and against SupportGaps where the profile is of
// rank one.
#include "theory/profiles/profile_gaps.hpp"

#include <cmath>
#include <random>

#include "theory/tests/reference.hpp"

namespace spiked::theory {
namespace {

using test::expect_relative;

/// 2 x 2 classes far from rank one, n/d = 0.2, with one gap.
ProfileLaw coupled_law(double scale = 1.0) {
    return {{2, 2, {scale, 0.2 * scale, 0.3 * scale, 40.0 * scale}, {0.6, 0.4}, {0.7, 0.3}}, AspectRatio(0.2)};
}

TEST(ProfileGapsReference, EndsStrengthsAndOutliersAreThoseOfTheEquation) {
    const ProfileLaw law = coupled_law();
    const ProfileGaps outside(law);
    ASSERT_EQ(outside.gaps().size(), 2U);
    const SupportGap& gap = outside.gaps()[0];
    expect_relative(gap.upper.value, 3.0558789776807257303, 1e-10, "upper end");
    expect_relative(gap.lower.value, 1.4395225170546622451, 1e-10, "lower end");
    expect_relative(gap.mass_above, 0.4, 1e-12, "mass");
    expect_relative(gap.weakest.value, 0.76618217744675584944, 1e-5, "weakest");
    expect_relative(gap.strongest.value, 2.9628509446003660502, 1e-5, "strongest");
    const auto even = outside.spike(0, {1.5});
    ASSERT_TRUE(even);
    expect_relative(even->outlier.value, 1.9788282989389245974, 1e-11, "outlier");
    expect_relative(even->overlap_left.value, 0.37061799050582341491, 1e-10, "left overlap");
    expect_relative(even->overlap_right.value, 0.40435947106991894815, 1e-10, "right overlap");
    EXPECT_FALSE(outside.spike(0, {0.76}));
    EXPECT_FALSE(outside.spike(0, {2.97}));

    const SpikeDirection local{{1.0, 0.0}, {0.9, 0.1}};
    const ProfileGaps there(law, local);
    const auto outlier = there.spike(0, {1.5});
    ASSERT_TRUE(outlier);
    expect_relative(outlier->outlier.value, 3.0103969589644569509, 1e-10, "outlier");
    expect_relative(outlier->overlap_left.value, 0.80568212100834645409, 1e-9, "left overlap");
    expect_relative(outlier->overlap_right.value, 0.59902725561692430584, 1e-9, "right overlap");

    // Below the bulk, where no strength has one.
    const SupportGap& below = outside.gaps()[1];
    EXPECT_EQ(below.lower.value, 0.0);
    expect_relative(below.mass_above, 1.0, 1e-12, "mass");
    EXPECT_FALSE(std::isfinite(below.weakest.value));
    EXPECT_EQ(law.spike({1.5}).detectable, false);
    EXPECT_EQ(all_outliers(law.spike({1.5}), outside).size(), 1U);
}

TEST(ProfileGapsReference, TwoIndependentBlocksAreTwoLawsOfWhiteNoise) {
    // Half of the rows and columns each, of variances 1 and 25: white noise with 1/2 and 25/2, and n/d = 0.1 in both.
    const ProfileLaw law({2, 2, {1.0, 0.0, 0.0, 25.0}, {}, {}}, AspectRatio(0.1));
    const SpikeDirection first{{1.0, 0.0}, {1.0, 0.0}};
    const ProfileGaps outside(law, first);
    ASSERT_EQ(outside.gaps().size(), 2U);
    const SupportGap& gap = outside.gaps()[0];
    const double root = std::sqrt(0.1);
    expect_relative(gap.lower.value, 0.5 * (1.0 + root) * (1.0 + root), 1e-10, "lower end");
    expect_relative(gap.upper.value, 12.5 * (1.0 - root) * (1.0 - root), 1e-10, "upper end");
    expect_relative(gap.mass_above, 0.5, 1e-12, "mass");
    expect_relative(gap.weakest.value, std::sqrt(0.5 * root), 1e-5, "weakest");
    const double s = 2.0 / 0.5;  // strength^2 / variance of strength sqrt(2)
    const auto outlier = outside.spike(0, {std::sqrt(2.0)});
    ASSERT_TRUE(outlier);
    expect_relative(outlier->outlier.value, 0.5 * (1.0 + s) * (0.1 + s) / s, 1e-11, "outlier");
    expect_relative(outlier->overlap_left.value, 1.0 - 0.1 * (1.0 + s) / (s * (s + 0.1)), 1e-10, "left overlap");
    expect_relative(outlier->overlap_right.value, 1.0 - (0.1 + s) / (s * (s + 1.0)), 1e-10, "right overlap");
}

TEST(ProfileGaps, OfRankOneAreThoseOfTheSeparableLaw) {
    std::mt19937_64 random(5);
    std::uniform_real_distribution<double> unit(0.0, 1.0);
    std::size_t found = 0;
    for (int trial = 0; trial < 20; ++trial) {
        const double beta = std::pow(10.0, 2.0 * unit(random) - 1.5);
        const std::vector<double> a{1.0, 5.0 + 40.0 * unit(random)};
        const std::vector<double> b{1.0, 1.0 + 20.0 * unit(random)};
        const std::vector<double> rows{0.2 + 0.6 * unit(random)};
        const std::vector<double> columns{0.2 + 0.6 * unit(random)};
        const std::vector<double> row_weights{rows[0], 1.0 - rows[0]};
        const std::vector<double> column_weights{columns[0], 1.0 - columns[0]};
        const ProfileLaw law({2, 2, {a[0] * b[0], a[0] * b[1], a[1] * b[0], a[1] * b[1]}, row_weights, column_weights},
                             AspectRatio(beta));
        const SeparableLaw separable(Spectrum({{a[0], rows[0]}, {a[1], 1.0 - rows[0]}}),
                                     Spectrum({{b[0], columns[0]}, {b[1], 1.0 - columns[0]}}), AspectRatio(beta));
        const ProfileGaps outside(law);
        const SupportGaps expected(separable);
        // Every gap that is wide and high enough is found, and no other interval is.
        std::size_t i = 0;
        for (std::size_t j = 0; j < expected.gaps().size(); ++j) {
            const SupportGap& other = expected.gaps()[j];
            const bool missing =
                i == outside.gaps().size() || std::abs(outside.gaps()[i].upper.value / other.upper.value - 1.0) > 1e-6;
            if (missing) {
                EXPECT_TRUE(other.upper.value < 1e-5 * law.bulk_edge().value ||
                            other.upper.value < 1.01 * other.lower.value)
                    << trial << ": " << other.lower.value << " to " << other.upper.value;
                continue;
            }
            const SupportGap& gap = outside.gaps()[i];
            expect_relative(gap.upper.value, other.upper.value, 1e-9, "upper end");
            if (other.lower.value > 0.0) expect_relative(gap.lower.value, other.lower.value, 1e-9, "lower end");
            expect_relative(gap.mass_above, other.mass_above, 1e-10, "mass");
            ASSERT_EQ(std::isfinite(gap.weakest.value), std::isfinite(other.weakest.value)) << trial;
            ++i;
            if (!std::isfinite(other.weakest.value)) continue;
            const double most =
                std::isfinite(other.strongest.value) ? other.strongest.value : 4.0 * other.weakest.value;
            const SignalStrength strength{0.5 * (other.weakest.value + most)};
            const auto here = outside.spike(i - 1, strength);
            const auto there = expected.spike(j, strength);
            ASSERT_TRUE(here && there) << trial;
            expect_relative(here->outlier.value, there->outlier.value, 1e-9, "outlier");
            expect_relative(here->overlap_left.value, there->overlap_left.value, 1e-7, "left overlap");
            expect_relative(here->overlap_right.value, there->overlap_right.value, 1e-7, "right overlap");
            ++found;
        }
        EXPECT_EQ(i, outside.gaps().size()) << trial;
    }
    EXPECT_GE(found, 5U);
}

TEST(ProfileGaps, ScaleWithTheVariances) {
    const ProfileLaw law = coupled_law();
    const ProfileLaw scaled = coupled_law(1e-100);
    const ProfileGaps one(law);
    const ProfileGaps other(scaled);
    ASSERT_EQ(one.gaps().size(), other.gaps().size());
    expect_relative(other.gaps()[0].lower.value, 1e-100 * one.gaps()[0].lower.value, 1e-10, "lower end");
    expect_relative(other.gaps()[0].weakest.value, 1e-50 * one.gaps()[0].weakest.value, 1e-5, "weakest");
    expect_relative(other.spike(0, {1.5e-50})->outlier.value, 1e-100 * one.spike(0, {1.5})->outlier.value, 1e-10,
                    "outlier");
}

}  // namespace
}  // namespace spiked::theory

#include "theory/laws/support_gaps.hpp"

#include <cmath>
#include <complex>
#include <limits>
#include <random>

#include "theory/laws/bulk_distribution.hpp"
#include "theory/laws/marchenko_pastur.hpp"
#include "theory/tests/reference.hpp"

namespace spiked::theory {
namespace {

using test::expect_relative;

/// A few clusters of atoms far apart, so that most laws have gaps; sometimes with zeros.
Spectrum clustered_spectrum(std::mt19937_64& random) {
    std::uniform_real_distribution<double> unit(0.0, 1.0);
    std::vector<Atom> atoms;
    double sum = 0.0;
    double level = 1.0;
    for (int cluster = 1 + static_cast<int>(random() % 3); cluster > 0; --cluster, level *= 5.0 + 40.0 * unit(random)) {
        const double cluster_weight = std::pow(10.0, -1.5 * unit(random));
        for (int i = 1 + static_cast<int>(random() % 3); i > 0; --i) {
            atoms.push_back({level * (1.0 + 0.3 * unit(random)), cluster_weight * (0.2 + unit(random))});
            sum += atoms.back().weight;
        }
    }
    if (unit(random) < 0.2) {
        atoms.push_back({0.0, 0.3 * sum});
        sum += atoms.back().weight;
    }
    for (Atom& atom : atoms) atom.weight /= sum;
    return Spectrum(std::move(atoms));
}

SeparableLaw clustered_law(std::mt19937_64& random) {
    const double beta = std::pow(10.0, std::uniform_real_distribution<double>(-1.3, 1.3)(random));
    return {clustered_spectrum(random), clustered_spectrum(random), AspectRatio(beta)};
}

/// T(z) from the solution of the self-consistent equations just above the real axis.
double d_transform(const BulkDistribution& bulk, double z) {
    const StieltjesPair pair = bulk.stieltjes({z, 1e-13 * z});
    return z * pair.left.real() * pair.right.real();
}

TEST(SupportGaps, AgreeWithTheDensityOfRandomLaws) {
    std::mt19937_64 random(3);
    std::size_t between_components = 0;
    std::size_t both_inside = 0;  // gaps with atoms of both sides above them
    for (int trial = 0; trial < 300; ++trial) {
        const SeparableLaw law = clustered_law(random);
        const BulkDistribution bulk(law);
        const SupportGaps outside(law);
        double above = law.bulk_edge().value;
        for (const SupportGap& gap : outside.gaps()) {
            ASSERT_LT(gap.lower.value, gap.upper.value);
            ASSERT_LT(gap.upper.value, above) << "gaps are disjoint and in order";
            above = gap.lower.value;
            if (gap.lower.value > 0.0) ++between_components;
            if (gap.lower.value > 0.0 && gap.mass_above > law.row().atoms().front().weight * 1.0001 &&
                std::abs(gap.mass_above - law.column().atoms().front().weight / law.aspect().value()) > 1e-6)
                ++both_inside;
            const double width = gap.upper.value - gap.lower.value;
            for (const double fraction : {0.01, 0.2, 0.5, 0.8, 0.99}) {
                const Eigenvalue x{gap.lower.value + fraction * width};
                EXPECT_EQ(bulk.density(x), 0.0) << "trial " << trial << " at " << x.value;
                EXPECT_NEAR(bulk.survival(x), gap.mass_above, 1e-12) << "trial " << trial << " at " << x.value;
            }
            const double step = std::min(1e-3 * gap.upper.value, 1e-2 * width);
            EXPECT_GT(bulk.density({gap.upper.value + step}), 0.0) << "trial " << trial;
            if (gap.lower.value > 0.0) {
                EXPECT_GT(bulk.density({gap.lower.value - step}), 0.0) << "trial " << trial;
            }
        }
        // No gap is missed: wherever the density is zero on a fine grid, there is one.
        const double low = std::max(bulk.lower_edge().value, 1e-9 * law.bulk_edge().value);
        const double factor = std::pow(law.bulk_edge().value / low, 1.0 / 600.0);
        for (double x = low * factor; x < law.bulk_edge().value / factor; x *= factor) {
            if (bulk.density({x}) > 0.0) continue;
            bool listed = false;
            for (const SupportGap& gap : outside.gaps())
                listed = listed || (x >= gap.lower.value * (1.0 - 1e-9) && x <= gap.upper.value * (1.0 + 1e-9));
            EXPECT_TRUE(listed) << "trial " << trial << ": the density at " << x << " is zero";
        }
    }
    EXPECT_GT(between_components, 200U);
    EXPECT_GT(both_inside, 20U);
}

TEST(SupportGaps, OutliersSolveTheEquationOfTheSpikeAndOverlapsFollowFromItsSlope) {
    std::mt19937_64 random(4);
    std::size_t checked = 0;
    for (int trial = 0; trial < 200; ++trial) {
        const SeparableLaw law = clustered_law(random);
        const BulkDistribution bulk(law);
        const SupportGaps outside(law);
        for (std::size_t i = 0; i < outside.gaps().size(); ++i) {
            const SupportGap& gap = outside.gaps()[i];
            if (!std::isfinite(gap.weakest.value)) continue;
            const double most =
                std::isfinite(gap.strongest.value) ? gap.strongest.value : 8.0 * gap.weakest.value + 1.0;
            for (const double fraction : {0.1, 0.5, 0.9}) {
                const double d = gap.weakest.value + fraction * (most - gap.weakest.value);
                const auto spike = outside.spike(i, {d});
                ASSERT_TRUE(spike) << "trial " << trial << " strength " << d;
                const double z = spike->outlier.value;
                ASSERT_GT(z, gap.lower.value);
                ASSERT_LT(z, gap.upper.value);
                const double room = std::min(z - gap.lower.value, gap.upper.value - z);
                if (room < 1e-4 * z) continue;
                ++checked;
                const std::string who = "trial " + std::to_string(trial) + " d=" + std::to_string(d);
                expect_relative(d_transform(bulk, z), 1.0 / (d * d), 1e-9, who + " T");
                const double step = 1e-3 * room;
                const double slope = (d_transform(bulk, z - 2 * step) - 8 * d_transform(bulk, z - step) +
                                      8 * d_transform(bulk, z + step) - d_transform(bulk, z + 2 * step)) /
                                     (12.0 * step);
                expect_relative(spike->d_transform_derivative, slope, 1e-5, who + " T'");
                const StieltjesPair pair = bulk.stieltjes({z, 1e-13 * z});
                expect_relative(spike->overlap_left.value, pair.left.real() / (d * d * slope), 1e-5, who + " a1");
                expect_relative(spike->overlap_right.value, pair.right.real() / (d * d * slope), 1e-5, who + " a2");
            }
            EXPECT_FALSE(outside.spike(i, {0.999 * gap.weakest.value}));
            if (std::isfinite(gap.strongest.value)) {
                EXPECT_FALSE(outside.spike(i, {1.001 * gap.strongest.value}));
            }
        }
    }
    EXPECT_GT(checked, 200U);
}

// A = (delta_1 + delta_25) / 2, B = I, n/d = 0.1; the numbers are those of another program.
TEST(SupportGaps, ASpikeBelowTheTopThresholdHasItsOutlierInTheGap) {
    const SeparableLaw law(Spectrum({{1.0, 0.5}, {25.0, 0.5}}), identity_spectrum(), AspectRatio(0.1));
    EXPECT_NEAR(law.detection_threshold().value, 3.0666, 5e-5);
    const SupportGaps outside(law);
    ASSERT_EQ(outside.gaps().size(), 2U);
    const SupportGap& gap = outside.gaps().front();
    EXPECT_NEAR(gap.lower.value, 1.4327, 5e-5);
    EXPECT_NEAR(gap.upper.value, 15.1224, 5e-5);
    EXPECT_NEAR(gap.mass_above, 0.5, 1e-14);
    EXPECT_NEAR(gap.weakest.value, 0.6816, 5e-5);
    EXPECT_EQ(gap.strongest.value, std::numeric_limits<double>::infinity());
    const auto spike = outside.spike(0, {1.67});
    ASSERT_TRUE(spike);
    EXPECT_NEAR(spike->outlier.value, 2.274, 5e-4);
    EXPECT_NEAR(spike->overlap_left.value, 0.410, 5e-4);
    EXPECT_NEAR(spike->overlap_right.value, 0.485, 5e-4);
    // Noise without zero rows has no outlier below its bulk.
    EXPECT_EQ(outside.gaps().back().lower.value, 0.0);
    EXPECT_EQ(outside.gaps().back().weakest.value, std::numeric_limits<double>::infinity());
}

// Half of the rows carry no noise, so that every spike, however weak, is seen below the bulk. There the law is the one
// of white noise on the other rows with the aspect b/2, and its gap ends at the Marchenko-Pastur edge.
TEST(SupportGaps, RowsWithoutNoiseShowEverySpikeBelowTheBulk) {
    const SeparableLaw law(Spectrum({{1.0, 0.5}, {0.0, 0.5}}), identity_spectrum(), AspectRatio(0.5));
    const SupportGaps outside(law);
    ASSERT_EQ(outside.gaps().size(), 1U);
    EXPECT_EQ(outside.gaps().front().lower.value, 0.0);
    expect_relative(outside.gaps().front().upper.value, MarchenkoPastur(AspectRatio(0.25)).lower_edge().value, 1e-14,
                    "edge");
    EXPECT_EQ(outside.gaps().front().weakest.value, 0.0);
    const auto weak = outside.spike(0, {1e-3});
    ASSERT_TRUE(weak);
    // A weak spike is seen as if there were no other rows: half of its left vector lies in rows without noise.
    EXPECT_NEAR(weak->overlap_left.value, 0.5, 1e-5);
    EXPECT_NEAR(weak->overlap_right.value, 0.75, 1e-5);
}

// Of the vectors of one spike, those of all outliers together hold at most the whole.
TEST(SupportGaps, AllOutliersOfAStrengthAreListedFromTheTopDown) {
    std::mt19937_64 random(5);
    std::size_t in_gaps_only = 0;
    std::size_t several = 0;
    for (int trial = 0; trial < 200; ++trial) {
        const SeparableLaw law = clustered_law(random);
        const SupportGaps outside(law);
        for (const double ratio : {0.1, 0.5, 0.9, 1.5, 4.0}) {
            const SignalStrength strength{ratio * law.detection_threshold().value};
            const auto found = all_outliers(law.spike(strength), outside);
            double left = 0.0;
            double right = 0.0;
            double above = std::numeric_limits<double>::infinity();
            for (const PlacedOutlier& outlier : found) {
                const double z = outlier.prediction.outlier.value;
                EXPECT_LT(z, above);
                above = z;
                left += outlier.prediction.overlap_left.value;
                right += outlier.prediction.overlap_right.value;
                if (!outlier.gap) {
                    EXPECT_EQ(z, law.spike(strength).outlier.value);
                    continue;
                }
                EXPECT_GT(z, outside.gaps()[*outlier.gap].lower.value);
                EXPECT_LT(z, outside.gaps()[*outlier.gap].upper.value);
                EXPECT_LT(outlier.prediction.stieltjes_left, 0.0) << "both overlaps have the same sign";
                EXPECT_LT(outlier.prediction.stieltjes_right, 0.0);
            }
            EXPECT_LE(left, 1.0 + 1e-9) << "trial " << trial;
            EXPECT_LE(right, 1.0 + 1e-9) << "trial " << trial;
            const bool top = !found.empty() && !found.front().gap;
            EXPECT_EQ(top, ratio > 1.0);
            if (!top && !found.empty()) ++in_gaps_only;
            if (found.size() > 1) ++several;
        }
    }
    EXPECT_GT(in_gaps_only, 100U);
    EXPECT_GT(several, 100U);
}

TEST(SupportGaps, ConnectedBulksHaveNone) {
    std::vector<Atom> close;
    for (int i = 0; i < 1000; ++i) close.push_back({1.0 + 1e-3 * i, 1e-3});
    const SupportGaps outside(SeparableLaw(Spectrum(close), identity_spectrum(), AspectRatio(1.0)));
    EXPECT_TRUE(outside.gaps().empty());
    const SupportGaps flat(SeparableLaw(Spectrum(close), identity_spectrum(), AspectRatio(0.5)));
    ASSERT_EQ(flat.gaps().size(), 1U);
    EXPECT_EQ(flat.gaps().front().lower.value, 0.0);
}

TEST(SupportGaps, TheGapBelowTheBulkAloneIsTheLastOfAll) {
    std::mt19937_64 random(11);
    std::size_t with = 0;
    std::size_t among_others = 0;
    std::size_t without = 0;
    const auto compare = [&](const SeparableLaw& law) {
        const SupportGaps outside(law);
        const std::vector<SupportGap>& all = outside.gaps();
        const SupportGaps below(law, SupportGaps::Which::below_bulk);
        if (all.empty() || all.back().lower.value > 0.0) {
            EXPECT_TRUE(below.gaps().empty());
            ++without;
            return;
        }
        ASSERT_EQ(below.gaps().size(), 1U);
        const SupportGap& alone = below.gaps().front();
        EXPECT_EQ(alone.lower.value, 0.0);
        EXPECT_EQ(alone.upper.value, all.back().upper.value);
        EXPECT_EQ(alone.mass_above, all.back().mass_above);
        EXPECT_EQ(alone.weakest.value, all.back().weakest.value);
        EXPECT_EQ(alone.strongest.value, all.back().strongest.value);
        EXPECT_DOUBLE_EQ(BulkDistribution(law).lower_edge().value, alone.upper.value);
        ++with;
        among_others += all.size() > 1 ? 1 : 0;
    };
    for (int trial = 0; trial < 100; ++trial) compare(clustered_law(random));
    compare(SeparableLaw(two_atom_spectrum(1.0, 40.0, 0.3), identity_spectrum(), AspectRatio(1.0)));
    EXPECT_GT(with, 50U);
    EXPECT_GT(among_others, 20U);
    EXPECT_GT(without, 0U);
}

}  // namespace
}  // namespace spiked::theory

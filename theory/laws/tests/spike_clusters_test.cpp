#include "theory/laws/spike_clusters.hpp"

#include <cmath>
#include <string>

#include "theory/laws/finite_size.hpp"
#include "theory/tests/reference.hpp"

namespace spiked::theory {
namespace {

/// The numbers of spikes of the clusters, with a minus sign where one of them is not detectable.
std::vector<int> sizes(const SeparableLaw& law, const std::vector<double>& thresholds, std::size_t rows,
                       std::size_t columns) {
    std::vector<SignalStrength> strengths;
    for (const double multiple : thresholds) strengths.push_back({multiple * law.detection_threshold().value});
    std::vector<int> found;
    std::size_t next = 0;
    for (const SpikeCluster& cluster : spike_clusters(law, strengths, rows, columns)) {
        EXPECT_EQ(cluster.first, next);
        next += cluster.count;
        found.push_back((cluster.detectable ? 1 : -1) * static_cast<int>(cluster.count));
    }
    EXPECT_EQ(next, strengths.size());
    return found;
}

using Sizes = std::vector<int>;

TEST(SpikeClusters, EqualAndCloseSpikesAreTogetherAndDistantOnesAlone) {
    const SeparableLaw law(identity_spectrum(), identity_spectrum(), AspectRatio(1.0));
    EXPECT_EQ(sizes(law, {}, 128, 128), Sizes{});
    EXPECT_EQ(sizes(law, {2.0}, 128, 128), Sizes{1});
    EXPECT_EQ(sizes(law, {2.0, 2.0}, 128, 128), Sizes{2});
    EXPECT_EQ(sizes(law, {2.1, 2.0}, 128, 128), Sizes{2});
    EXPECT_EQ(sizes(law, {4.0, 2.2, 2.1, 2.0}, 128, 128), (Sizes{1, 3}));
    EXPECT_EQ(sizes(law, {2.6, 2.0}, 128, 128), (Sizes{1, 1}));
    EXPECT_EQ(sizes(law, {2.6, 2.0}, 64, 64), Sizes{2}) << "a smaller block fluctuates more";
    EXPECT_EQ(sizes(law, {2.1, 2.0}, 8192, 8192), (Sizes{1, 1}));
}

TEST(SpikeClusters, SpikesBelowTheThresholdDisturbThoseCloseAboveIt) {
    const SeparableLaw law(identity_spectrum(), identity_spectrum(), AspectRatio(1.0));
    EXPECT_EQ(sizes(law, {1.5, 0.95}, 128, 128), Sizes{-2});
    EXPECT_EQ(sizes(law, {2.0, 0.95}, 128, 128), (Sizes{1, -1}));
    EXPECT_EQ(sizes(law, {2.0, 0.5, 0.5, 0.49}, 128, 128), (Sizes{1, -1, -1, -1})) << "none of them is seen";
    EXPECT_EQ(sizes(law, {1.0}, 128, 128), Sizes{-1});
    EXPECT_EQ(sizes(law, {1.0 + 1e-12, 0.5}, 128, 128), Sizes{-2}) << "at the threshold everything mixes";
}

// Two atoms, 1 and 25: the threshold of the top edge is 3.07, and every strength above .68 has an outlier in the gap
// 1.43 to 15.1. That of 3.6 above the edge is at 38.3, that of 1.67 in the gap at 2.27: GapNeighbourLaw simulates both.
TEST(SpikeClusters, ASpikeInAGapIsSeparateFromOneAboveTheTopEdgeUnlessItsStrengthIsClose) {
    const auto clusters = [](const SeparableLaw& law, const std::vector<SignalStrength>& strengths) {
        return spike_clusters(law, strengths, 100, 1000).size();
    };
    const SeparableLaw law(two_atom_spectrum(1.0, 25.0, 0.5), identity_spectrum(), AspectRatio(0.1));
    EXPECT_EQ(clusters(law, {{3.6}, {1.67}}), 2U);
    EXPECT_EQ(clusters(law, {{3.6}, {1.67}, {1.6}}), 3U);
    EXPECT_EQ(clusters(law, {{3.6}, {3.02}}), 1U) << "has an outlier in the gap, and disturbs the one above the edge";
    EXPECT_EQ(clusters(law, {{3.6}, {3.5}}), 1U) << "both are above the edge";
    // Control: without a gap, the same strengths in thresholds are together.
    const SeparableLaw one_component(two_atom_spectrum(20.0, 25.0, 0.5), identity_spectrum(), AspectRatio(0.1));
    const double scale = one_component.detection_threshold().value / law.detection_threshold().value;
    EXPECT_EQ(clusters(one_component, {{3.6 * scale}, {1.67 * scale}}), 1U);
}

TEST(CloseNeighbour, IsJudgedByTheErrorOfTheLargerOfTheTwo) {
    const double values[] = {10.0, 7.0, 6.0, 1.0}, errors[] = {1.0, 0.25, 2.0, 9.0};
    EXPECT_EQ(close_neighbour(values, errors, 0, 2.9), std::nullopt);
    EXPECT_EQ(close_neighbour(values, errors, 0, 3.0), 1U);
    EXPECT_EQ(close_neighbour(values, errors, 1, 3.0), 0U) << "the larger neighbour is named first";
    EXPECT_EQ(close_neighbour(values, errors, 1, 2.9), std::nullopt);
    EXPECT_EQ(close_neighbour(values, errors, 2, 2.5), 3U);
    EXPECT_EQ(close_neighbour(values, errors, 3, 2.4), std::nullopt);
}

/// The strength at which a spike separates from a weaker one, against the fluctuation of the outlier and the slope of
/// its curve by differences.
TEST(SpikeClusters, SeparateAtTheStatedMultipleOfTheFluctuationOfTheStrongerSpike) {
    const SeparableLaw laws[] = {{identity_spectrum(), identity_spectrum(), AspectRatio(0.5)},
                                 {ar1_symbol_spectrum(0.5, 64), exponential_spectrum(2.0, 128), AspectRatio(0.5)}};
    for (const SeparableLaw& law : laws)
        for (const double thresholds : {1.3, 2.0, 5.0}) {
            const double strength = thresholds * law.detection_threshold().value;
            const double step = 1e-5 * strength;
            const double slope =
                (law.spike({strength + step}).outlier.value - law.spike({strength - step}).outlier.value) /
                (2.0 * step);
            const double distance = separation_of_spikes * spike_fluctuation(law, {strength}, 256, 512).outlier / slope;
            const auto clusters = [&](double factor) {
                const SignalStrength pair[] = {{strength}, {strength - factor * distance}};
                return spike_clusters(law, pair, 256, 512).size();
            };
            EXPECT_EQ(clusters(1.0 - 1e-6), 1U) << thresholds;
            EXPECT_EQ(clusters(1.0 + 1e-6), 2U) << thresholds;
        }
}

/// The outliers in gaps of the law with two atoms, in blocks of 100 x 1000.
std::vector<GapOutlier> in_gaps(const std::vector<SignalStrength>& strengths) {
    const SeparableLaw law(two_atom_spectrum(1.0, 25.0, 0.5), identity_spectrum(), AspectRatio(0.1));
    return gap_outliers(law, SupportGaps(law), strengths, 100, 1000);
}

TEST(GapOutliers, AreThoseOfSpikesWithoutOneAboveTheTopEdgeAndCountEveryStrongerSpike) {
    const auto found = in_gaps({{12.0}, {1.67}, {0.9}, {0.5}});
    ASSERT_EQ(found.size(), 2U) << "12 has an outlier above the edge, 0.5 has none";
    EXPECT_EQ(found[0].spike, 1U);
    EXPECT_EQ(found[0].index, 51U) << "50 eigenvalues are above the gap without spikes, and 12 has left one more";
    EXPECT_NEAR(found[0].prediction.outlier.value, 2.274, 0.001);
    EXPECT_EQ(found[1].spike, 2U);
    EXPECT_EQ(found[1].index, 52U);
    EXPECT_TRUE(in_gaps({}).empty());
    // No gap, no outliers in it.
    const SeparableLaw white(identity_spectrum(), identity_spectrum(), AspectRatio(0.1));
    const SignalStrength weak[] = {{0.4}};
    EXPECT_TRUE(gap_outliers(white, SupportGaps(white), weak, 100, 1000).empty());
}

TEST(GapOutliers, AreSeparateUnlessAnotherSpikeIsClose) {
    const auto separate = [](double other) {
        std::vector<SignalStrength> strengths = {{1.67}};
        strengths.insert(other > 1.67 ? strengths.begin() : strengths.end(), {other});
        for (const GapOutlier& one : in_gaps(strengths))
            if (one.prediction.strength.value == 1.67) return one.separate;
        ADD_FAILURE() << "1.67 has its outlier in the gap";
        return false;
    };
    EXPECT_TRUE(in_gaps({{1.67}}).front().separate);
    for (const double other : {0.3, 1.0, 3.6, 12.0}) EXPECT_TRUE(separate(other)) << other;
    for (const double other : {1.5, 1.6699, 1.8, 2.2}) EXPECT_FALSE(separate(other)) << other;
    for (const GapOutlier& one : in_gaps({{1.67}, {1.67}})) EXPECT_FALSE(one.separate) << "equal strengths";
}

/// Above the top edge the deviation of the three forms is that of spike_fluctuation, which has another derivation.
TEST(GapOutliers, TheirDeviationIsThatOfSpikeFluctuationAboveTheTopEdge) {
    const SeparableLaw laws[] = {{identity_spectrum(), identity_spectrum(), AspectRatio(0.5)},
                                 {ar1_symbol_spectrum(0.5, 64), exponential_spectrum(2.0, 128), AspectRatio(0.5)},
                                 {two_atom_spectrum(1.0, 25.0, 0.5), identity_spectrum(), AspectRatio(0.5)}};
    for (const SeparableLaw& law : laws)
        for (const double thresholds : {1.3, 2.0, 5.0}) {
            const double strength = thresholds * law.detection_threshold().value;
            const auto at = [&](double factor) { return law.spike({factor * strength}); };
            const double expected = spike_fluctuation(law, {strength}, 256, 512).outlier;
            EXPECT_NEAR(outlier_deviation(at(1.0), at(1.0 - 1e-4), at(1.0 + 1e-4), 256, 512) / expected, 1.0, 1e-5)
                << thresholds;
            // Control: the sides exchanged.
            EXPECT_GT(std::abs(outlier_deviation(at(1.0), at(1.0 - 1e-4), at(1.0 + 1e-4), 512, 256) / expected - 1.0),
                      0.01);
        }
}

TEST(SpikeClusters, UnusableArgumentsAreRejected) {
    const SeparableLaw law(identity_spectrum(), identity_spectrum(), AspectRatio(1.0));
    const auto of = [&](const std::vector<SignalStrength>& strengths, std::size_t rows) {
        return [&law, strengths, rows] { (void)spike_clusters(law, strengths, rows, 128); };
    };
    test::expect_rejected(of({{2.0}, {3.0}}, 128), "largest first");
    test::expect_rejected(of({{3.0}, {2.0}}, 64), "64x128");
    test::expect_rejected(of({{3.0}, {-2.0}}, 128), "-2");
}

}  // namespace
}  // namespace spiked::theory

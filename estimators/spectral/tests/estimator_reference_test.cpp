// Gavish-Donoho thresholds and shrinkers, ScreeNOT, OptShrink, Tracy-Widom tests: test points and definitions.
#include <gtest/gtest.h>

#include <cmath>

#include "core/runtime/error.hpp"
#include "estimators/spectral/gavish_donoho.hpp"
#include "estimators/spectral/optshrink.hpp"
#include "estimators/spectral/screenot.hpp"
#include "estimators/spectral/tracy_widom_rank.hpp"
#include "estimators/tests/spectra.hpp"
#include "theory/laws/marchenko_pastur.hpp"
#include "theory/laws/separable_law.hpp"

namespace spiked::estimators {
namespace {

using theory::Loss;

TEST(GavishDonohoReference, ThresholdCoefficients) {
    // 40-digit values of lambda* and omega; the last two from double quadrature.
    const double table[][3] = {
        {0.10, 1.581648395319685, 1.608771557394749}, {0.25, 1.758029377139715, 1.836865791119678},
        {0.50, 1.978599053753103, 2.171185348453828}, {0.75, 2.156093844179400, 2.501429736383895},
        {1.00, 2.309401076758503, 2.858362424069533}, {0.01, 1.434748445655613, 1.437146401841380},
        {0.99, 2.303614885548269, 2.843219598425461}};
    for (const auto& [beta, lambda, omega] : table) {
        EXPECT_NEAR(hard_threshold_coefficient(beta), lambda, 1e-14 * lambda);
        EXPECT_NEAR(median_threshold_coefficient(beta), omega, 1e-12 * omega);
    }
}

TEST(GavishDonohoReference, ShrinkersAtTheTestPoints) {
    // The value y and a shape with that aspect, then the shrunk values for Frobenius, operator (Leeb), strength,
    // nuclear.
    struct Point {
        double y;
        Shape shape;
        double frobenius, operator_norm, strength, nuclear;
    };
    const Point points[] = {{2.5, {2, 2}, 1.5, 2.0, 2.0, 1.0},
                            {3.0, {2, 2}, 2.23606797749979, 2.618033988749895, 2.618033988749895, 1.854101966249685},
                            {5.0, {2, 2}, 4.58257569495584, 4.79128784747792, 4.79128784747792, 4.37386354243376},
                            {1.8, {2, 4}, .5631700398877416, 1.042696131054982, 1.173393811087722, 0.0},
                            {2.5, {2, 4}, 1.813835714721705, 2.056917857360853, 2.15459848774711, 1.48565077204781},
                            {4.0, {4, 2}, 3.607717422415453, 3.741358711207726, 3.803345217677578, 3.421800357117256},
                            {1.6, {1, 4}, .5288918249510007, .8300709124755004, 1.038322425820034, .04734583541396865},
                            {2.0, {4, 1}, 1.2808688457449497, 1.452934422872475, 1.629683664318002, .9740608369592432},
                            {1.5, {1, 10}, .6403124237432849, .7701562118716424, 1.027245986999932, .3324720719494754}};
    for (const Point& point : points) {
        std::vector<double> s(point.shape.short_side(), 0.0);
        s[0] = point.y;
        const double sigma = 1.0 / std::sqrt(static_cast<double>(point.shape.long_side()));
        const auto shrunk = [&](Loss loss) {
            return gavish_donoho_shrink(s, point.shape, {.loss = loss, .noise_level = sigma});
        };
        EXPECT_NEAR(shrunk(Loss::frobenius).shrunk[0], point.frobenius, 1e-13);
        EXPECT_NEAR(shrunk(Loss::operator_norm).shrunk[0], point.operator_norm, 1e-13);
        EXPECT_NEAR(shrunk(Loss::nuclear).shrunk[0], point.nuclear, 1e-13);
        EXPECT_NEAR(shrunk(Loss::frobenius).strengths[0], point.strength, 1e-13);
    }
    EXPECT_EQ(gavish_donoho_shrink(std::vector<double>{2.0, 1.0}, {2, 2}, {.noise_level = 1.0 / std::sqrt(2.0)}).rank,
              0U);
}

TEST(GavishDonohoReference, TestPointAWithUnknownNoise) {
    const auto s = point_a();
    const auto expect = [&](Shape shape, double sigma, double threshold, std::vector<std::vector<double>> shrunk) {
        EXPECT_NEAR(white_noise_level(s, shape, NoiseLevelRule::median), sigma, 1e-12);
        const double coefficient = median_threshold_coefficient(12.0 / static_cast<double>(shape.long_side()));
        EXPECT_NEAR(coefficient * 2.060660171780, threshold, 1e-11);
        std::size_t above = 0;
        while (above < 12 && s[above] > threshold) ++above;
        const Shrinkage hard = gavish_donoho_hard(s, shape);
        EXPECT_EQ(hard.rank, above);
        for (std::size_t i = 0; i < above; ++i) EXPECT_EQ(hard.shrunk[i], s[i]);
        for (const Loss loss : {Loss::frobenius, Loss::operator_norm, Loss::nuclear}) {
            const Shrinkage found = gavish_donoho_shrink(s, shape, {.loss = loss});
            for (std::size_t i = 0; i < 2; ++i)
                EXPECT_NEAR(i < found.rank ? found.shrunk[i] : 0.0, shrunk[static_cast<std::size_t>(loss)][i], 5e-9);
        }
    };
    expect({12, 12}, .736264200474, 5.890113603792, {{3.7389733, 0.0}, {5.03176431, 0.0}, {2.44618228, 0.0}});
    expect({12, 24}, .461572428574, 4.474075173111,
           {{4.98235567, 2.23322004}, {5.45133937, 3.06684263}, {4.34241501, 1.15086878}});
    expect({24, 12}, .461572428574, 4.474075173111,
           {{4.98235567, 2.23322004}, {5.45133937, 3.06684263}, {4.34241501, 1.15086878}});
}

TEST(GavishDonoho, TheEdgeFollowsTheNoiseLevelAndNames) {
    const Shrinkage found = spectral_estimator("gd-hard:sigma=0.5").estimate(point_a(), {12, 24});
    EXPECT_NEAR(found.bulk_edge->value, 0.25 * std::pow(std::sqrt(12.0) + std::sqrt(24.0), 2), 1e-12);
    const Shrinkage again = spectral_estimator("gd-shrink:sigma=0.5").estimate(point_a(), {12, 24});
    EXPECT_EQ(again.bulk_edge->value, found.bulk_edge->value);
}

TEST(GavishDonoho, TheQuantileIsRobustToManySignals) {
    // The level from the median of all values is known to be 1.24 with 30 signals in 100 x 100, 1.14 in 100 x 300.
    for (const std::size_t columns : {std::size_t{100}, std::size_t{300}})
        for (const std::size_t rank : {std::size_t{0}, std::size_t{10}, std::size_t{30}}) {
            double median = 0.0;
            double quantile = 0.0;
            for (std::uint64_t replicate = 0; replicate < 4; ++replicate) {
                const auto s = singular_values(spiked_block(100, columns, std::vector<double>(rank, 6.0), replicate));
                const double root = std::sqrt(static_cast<double>(columns)) / 4.0;
                median += white_noise_level(s, {100, columns}, NoiseLevelRule::median) * root;
                quantile += white_noise_level(s, {100, columns}, NoiseLevelRule::quantile) * root;
            }
            EXPECT_NEAR(quantile, 1.0, 0.03) << columns << " columns, rank " << rank;
            if (rank == 30) {
                EXPECT_GT(median, 1.1);
            }
        }
}

TEST(ScreeNotReference, TestPointA) {
    const auto s = point_a();
    const double square[] = {3.897117366049, 3.989088764879, 4.135863799050};
    const double wide[] = {3.685684662022, 3.780998478587, 3.930737933189};
    for (std::size_t k = 2; k <= 4; ++k) {
        EXPECT_NEAR(screenot_threshold(s, {12, 12}, k), square[k - 2], 1e-11);
        EXPECT_NEAR(screenot_threshold(s, {12, 24}, k), wide[k - 2], 1e-11);
        EXPECT_NEAR(screenot_threshold(s, {24, 12}, k), wide[k - 2], 1e-11);
    }
    EXPECT_EQ(spectral_estimator("screenot:3").estimate(s, {12, 24}).rank, 2U);
}

TEST(ScreeNotReference, TheLimitUnderWhiteNoiseIsGavishDonohosThreshold) {
    constexpr std::size_t p = 4000;
    for (const double beta : {0.5, 1.0}) {
        const theory::MarchenkoPastur law{AspectRatio(beta)};
        std::vector<double> s(p);
        for (std::size_t i = 0; i < p; ++i)
            s[i] = std::sqrt(law.quantile(1.0 - (static_cast<double>(i) + 0.5) / p).value);
        const std::size_t q = static_cast<std::size_t>(p / beta);
        EXPECT_NEAR(screenot_threshold(s, {p, q}, 0), beta == 0.5 ? 1.97860 : 2.30940, 5e-6);
        EXPECT_NEAR(screenot_threshold(s, {p, q}, 0), hard_threshold_coefficient(beta), 1e-4);
    }
}

// The defining equation in long double, with sums computed here.
TEST(ScreeNotIdentity, TheThresholdSolvesItsEquation) {
    const auto s = point_a();
    for (const ScreeNotFill fill : {ScreeNotFill::winsorize, ScreeNotFill::zero})
        for (const double gamma : {1.0, 0.5}) {
            const Shape shape{12, static_cast<std::size_t>(12.0 / gamma)};
            std::vector<double> f = s;
            f[0] = f[1] = fill == ScreeNotFill::zero ? 0.0 : s[2];
            const auto log_D = [&](long double y) {
                long double phi = 0.0L;
                for (const double value : f) phi += y / (y * y - (long double)value * value) / 12.0L;
                return std::log(phi * (gamma * phi + (1.0L - gamma) / y));
            };
            const long double y = screenot_threshold(s, shape, 2, fill);
            const long double h = 1e-5L;
            EXPECT_NEAR(static_cast<double>((log_D(y * (1 + h)) - log_D(y * (1 - h))) / (2 * h)), -4.0, 1e-8);
        }
}

TEST(OptShrinkReference, TestPointA) {
    const auto s = point_a();
    const Shrinkage square = optshrink(s, {12, 12}, 2);
    EXPECT_NEAR(square.shrunk[0], 5.210317788803302, 1e-11);
    EXPECT_NEAR(square.shrunk[1], 2.979887407265217, 1e-11);
    for (const Shape shape : {Shape{12, 24}, Shape{24, 12}}) {
        const Shrinkage found = optshrink(s, shape, 2);
        EXPECT_NEAR(found.shrunk[0], 5.460723017058164, 1e-11);
        EXPECT_NEAR(found.shrunk[1], 3.246185968127147, 1e-11);
    }
}

TEST(OptShrinkReference, TheStatedError) {
    const auto s = point_a();
    double inverse = 0.0;
    double weights = 0.0;
    const Shrinkage found = optshrink(s, {12, 12}, 2);
    for (std::size_t i = 0; i < 2; ++i) {
        double m = 0.0;
        for (std::size_t j = 2; j < 12; ++j) m += 1.0 / (s[j] * s[j] - s[i] * s[i]) / 10.0;
        inverse += 1.0 / (s[i] * s[i] * m * m);
        weights += found.shrunk[i] * found.shrunk[i];
    }
    ASSERT_TRUE(found.expected_error.has_value());
    EXPECT_NEAR(found.expected_error->squared, inverse - weights, 1e-10);
    EXPECT_NEAR(found.expected_error->relative, (inverse - weights) / inverse, 1e-12);
}

TEST(OptShrink, StatesAnErrorOnlyForTheLossItMinimises) {
    for (const Loss loss : {Loss::operator_norm, Loss::nuclear})
        EXPECT_FALSE(optshrink(point_a(), {12, 12}, 2, loss).expected_error.has_value());
}

TEST(OptShrink, TheStatedErrorIsTheActualError) {
    constexpr int replicates = 40;
    double stated = 0.0;
    double stated_square = 0.0;
    arma::mat signal(64, 96);
    signal(0, 0) = 3.0;
    signal(1, 1) = 2.0;
    for (int replicate = 0; replicate < replicates; ++replicate) {
        const arma::mat block = white_block(64, 96, static_cast<std::uint64_t>(replicate)) + signal;
        const Shrinkage found = optshrink(singular_values(block), {64, 96}, 2);
        const auto vectors = leading_vectors(block, 2);
        const arma::mat estimate = vectors.left * arma::diagmat(arma::vec(found.shrunk)) * vectors.right.t();
        const double ratio = found.expected_error->squared / arma::accu(arma::square(estimate - signal));
        stated += ratio;
        stated_square += ratio * ratio;
    }
    const double mean = stated / replicates;
    const double error = std::sqrt((stated_square / replicates - mean * mean) / (replicates - 1));
    // False-alarm rate 1e-6; the first-order bias of the estimate itself is of order 1/sqrt(n d) and within 5 %.
    EXPECT_NEAR(mean, 1.0, 0.05 + 4.9 * error);
}

TEST(TracyWidomTest, UnderAKnownLawItCountsValuesAboveTheQuantile) {
    // The upper 5 % quantile of Tracy-Widom 1 is 0.97932; the edge of 40 x 60 white noise of variance 1/60 is known.
    const double root = std::sqrt(40.0) + std::sqrt(60.0);
    const double width = root * std::cbrt(1.0 / std::sqrt(40.0) + 1.0 / std::sqrt(60.0));
    const double cutoff = (root * root + 0.97932 * width) / 60.0;
    std::vector<double> s(40, 1.0);
    s[0] = 3.0;
    s[1] = std::sqrt(cutoff * (1.0 + 1e-4));
    const double level = 1.0 / std::sqrt(60.0);
    const KnownLaw white{theory::identity_spectrum(), theory::identity_spectrum()};
    for (const bool as_law : {false, true}) {
        TracyWidomOptions options{.level = 0.05};
        if (as_law)
            options.law = white;
        else
            options.noise_level = level;
        const Shrinkage found = TracyWidomTest(options)(s, {40, 60});
        // With a known level every step tests a block with one row and column fewer, so the threshold is slightly
        // lower.
        EXPECT_EQ(found.rank, 2U);
        EXPECT_NEAR(found.bulk_edge->value, root * root / 60.0, 1e-12);
    }
    s[1] = std::sqrt(cutoff * (1.0 - 1e-4));
    EXPECT_EQ(TracyWidomTest({.level = 0.05, .law = white})(s, {40, 60}).rank, 1U);
    EXPECT_EQ(TracyWidomTest({.level = 0.06, .law = white})(s, {40, 60}).rank, 2U);
}

TEST(TracyWidomTest, TheDefaultLevelIsOnePercent) {
    // Between the upper 5 % and 1 % quantiles, 0.97932 and 2.02345.
    const double root = std::sqrt(40.0) + std::sqrt(60.0);
    const double width = root * std::cbrt(1.0 / std::sqrt(40.0) + 1.0 / std::sqrt(60.0));
    std::vector<double> s(40, 1.0);
    s[0] = std::sqrt(root * root + 1.5 * width);
    EXPECT_EQ(spectral_estimator("tw-test:sigma=1").estimate(s, {40, 60}).rank, 0U);
    EXPECT_EQ(spectral_estimator("tw-test:sigma=1:level=0.05").estimate(s, {40, 60}).rank, 1U);
    s[0] = std::sqrt(root * root + 2.1 * width);
    EXPECT_EQ(spectral_estimator("tw-test:sigma=1").estimate(s, {40, 60}).rank, 1U);
}

TEST(TracyWidomTest, EverySignalRemovesARowAndAColumn) {
    // The cutoff is that of 39 x 59, after one signal was counted; entries have the known variance 1/60.
    const double root = std::sqrt(39.0) + std::sqrt(59.0);
    const double width = root * std::cbrt(1.0 / std::sqrt(39.0) + 1.0 / std::sqrt(59.0));
    const double cutoff = (root * root + 0.97932 * width) / 60.0;
    std::vector<double> s(40, 1.0);
    s[0] = 3.0;
    for (const auto& [factor, rank] : {std::pair{1.0 + 1e-4, 2U}, std::pair{1.0 - 1e-4, 1U}}) {
        s[1] = std::sqrt(cutoff * factor);
        EXPECT_EQ(TracyWidomTest({.level = 0.05, .noise_level = 1.0 / std::sqrt(60.0)})(s, {40, 60}).rank, rank);
    }
}

TEST(TracyWidomTest, UnderAColouredLawItGivesTheResultOfTheLaw) {
    const KnownLaw law{theory::two_atom_spectrum(1.0, 3.0, 0.5), theory::exponential_spectrum(2.0, 64)};
    const theory::SeparableLaw exact(*law.row, *law.column, AspectRatio(0.5));
    const auto spike = exact.spike({2.0 * exact.detection_threshold().value});
    std::vector<double> s(50, 0.1);
    s[0] = std::sqrt(spike.outlier.value);
    for (const Loss loss : {Loss::frobenius, Loss::operator_norm, Loss::nuclear})
        for (const double scale : {1e-150, 1.0, 1e150}) {
            auto scaled = s;
            for (double& value : scaled) value *= scale;
            const Shrinkage found =
                TracyWidomTest({.loss = loss, .noise_level = scale / std::sqrt(100.0), .law = law})(scaled, {50, 100});
            ASSERT_EQ(found.rank, 1U);
            EXPECT_NEAR(found.strengths[0] / scale, spike.strength.value, 1e-10);
            EXPECT_NEAR(found.overlap_left[0], spike.overlap_left.value, 1e-10);
            EXPECT_NEAR(found.shrunk[0] / scale, spike.shrunk(loss).value, 1e-10);
        }
}

TEST(TracyWidomTestLaw, FalseAlarmsOccurAtTheDeclaredLevel) {
    // Binomial: 200 blocks at level 0.05 give 10 false alarms on average and more than 28 with probability 1e-6. The
    // estimated level adds a variance of first order 1/n, which the same limit covers.
    constexpr int replicates = 200;
    int known = 0;
    int median = 0;
    const auto with_sigma = spectral_estimator("tw-test:level=0.05:sigma=0.1");
    const auto without = spectral_estimator("tw-test:level=0.05");
    for (int i = 0; i < replicates; ++i) {
        const auto s = singular_values(white_block(60, 100, static_cast<std::uint64_t>(i), "tw null"));
        known += with_sigma.estimate(s, {60, 100}).rank > 0;
        median += without.estimate(s, {60, 100}).rank > 0;
    }
    EXPECT_LE(known, 28);
    EXPECT_LE(median, 28);
    RecordProperty("known", known);
    RecordProperty("median", median);
}

}  // namespace
}  // namespace spiked::estimators

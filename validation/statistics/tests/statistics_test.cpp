#include "validation/statistics/statistics.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "validation/statistics/moments.hpp"

namespace spiked::validation {
namespace {

// Reference values were computed by mpmath with 30 digits.

TEST(Statistics, MeanIntervalIsStudents) {
    const std::vector<double> values = {1.0, 2.0, 3.0, 4.0, 5.0};
    const Interval interval = mean_interval(values, 0.05);
    EXPECT_DOUBLE_EQ(interval.estimate, 3.0);
    EXPECT_NEAR(interval.error, std::sqrt(0.5), 1e-15);
    EXPECT_NEAR(interval.low, 3.0 - 2.7764451051977987 * std::sqrt(0.5), 1e-12);
    EXPECT_NEAR(interval.high, 3.0 + 2.7764451051977987 * std::sqrt(0.5), 1e-12);
    EXPECT_EQ(interval.count, 5U);
}

// Hall's transformation of Student's t for three values 0 and one 4: mean 1, standard error 1, skewness 2 / sqrt(3).
TEST(Statistics, TheLimitsOfSkewedMeansAreStudentsOrHallsWhicheverIsFarther) {
    const std::vector<double> values = {0.0, 0.0, 0.0, 4.0};
    const Interval interval = mean_interval(values, 0.2);
    constexpr double quantile = 1.6377443536962102;  // of Student's law with three degrees of freedom, .9
    const double a = 1.0 / std::sqrt(3.0);
    EXPECT_NEAR(interval.low, 1.0 - quantile, 1e-12) << "on the short side Student's limit is farther out";
    // The upper limit is where the transformed t equals minus the quantile.
    const double t = 1.0 - interval.high;
    EXPECT_GT(interval.high, 1.0 + quantile + 0.1);
    EXPECT_NEAR(t + a * t * t / 3.0 + a * a * t * t * t / 27.0 + a / 6.0, -quantile, 1e-12);
    std::vector<double> mirrored = values;
    for (double& value : mirrored) value = -value;
    EXPECT_NEAR(mean_interval(mirrored, 0.2).low, -interval.high, 1e-12);
}

TEST(Statistics, TheLimitsOfAnExponentCombineThoseOfTheMeans) {
    const auto moments_of = [](std::vector<double> values) {
        Moments moments;
        for (const double value : values) moments.add(value);
        return moments;
    };
    const std::vector<SizeMoments> two = {{8.0, moments_of({3.8, 4.0, 4.2, 4.1, 3.9})},
                                          {32.0, moments_of({0.9, 1.1, 1.0, 0.95, 1.05})}};
    const Interval found = exponent_interval(two, 0.05);
    EXPECT_NEAR(found.estimate, -1.0, 1e-12) << "4 to 1 over a factor of 4";
    EXPECT_EQ(found.count, 10U);
    const double steps = std::log(4.0);
    const double first = std::sqrt(0.025 / 5.0) / 4.0;
    const double second = std::sqrt(0.00625 / 5.0) / 1.0;
    EXPECT_NEAR(found.error, std::hypot(first, second) / steps, 1e-12);
    // Student's limits, because the values have no skewness: 2.776 standard errors.
    constexpr double quantile = 2.7764451051977987;
    const auto log_limit = [&](double relative, double side) { return std::log(1.0 + side * quantile * relative); };
    EXPECT_NEAR(found.low, -1.0 - std::hypot(log_limit(first, 1.0), log_limit(second, -1.0)) / steps, 1e-12);
    EXPECT_NEAR(found.high, -1.0 + std::hypot(log_limit(first, -1.0), log_limit(second, 1.0)) / steps, 1e-12);
    // Three sizes with equal relative errors, whose means are 1, 2 and 8 at 1, e and e^2: the slope of an unweighted
    // line, which the middle size does not move.
    const auto scaled = [&](double mean) { return moments_of({0.9 * mean, mean, 1.1 * mean}); };
    EXPECT_NEAR(
        exponent_interval(
            std::vector<SizeMoments>{{1.0, scaled(1.0)}, {std::exp(1.0), scaled(2.0)}, {std::exp(2.0), scaled(8.0)}},
            0.05)
            .estimate,
        0.5 * std::log(8.0), 1e-12);
    // Without an end: a mean that may be 0; without any: one that is negative, equal values, few values, one size.
    auto other = two;
    other[1].moments = moments_of({-0.1, 0.3, 0.1});
    EXPECT_EQ(exponent_interval(other, 0.05).low, -std::numeric_limits<double>::infinity());
    EXPECT_TRUE(std::isfinite(exponent_interval(other, 0.05).high));
    for (const std::vector<double>& values :
         {std::vector{-1.0, -1.1, -0.9}, std::vector{1.0, 1.0, 1.0}, std::vector{1.0, 1.1}, std::vector<double>{}}) {
        other[1].moments = moments_of(values);
        const Interval open = exponent_interval(other, 0.05);
        EXPECT_FALSE(std::isfinite(open.low) || std::isfinite(open.high));
    }
    EXPECT_FALSE(std::isfinite(exponent_interval(std::vector<SizeMoments>{two[0]}, 0.05).low));
    EXPECT_FALSE(std::isfinite(exponent_interval(std::vector<SizeMoments>{two[0], two[0]}, 0.05).low));
}

TEST(Statistics, AnIntervalMovedToANumberIsJudgedThere) {
    const Interval interval{.estimate = 5.0, .error = 0.1, .low = 4.7, .high = 5.1, .count = 9};
    const AcceptanceRegion region = between(0.0, 6.0);
    EXPECT_EQ(region.predicted, 3.0);
    EXPECT_EQ(region.margin, 3.0);
    EXPECT_EQ(judge_at(6.31, interval, region), Verdict::fail) << "its lower arm is .3 long";
    EXPECT_EQ(judge_at(6.29, interval, region), Verdict::inconclusive);
    EXPECT_EQ(judge_at(5.89, interval, region), Verdict::pass) << "its upper arm is .1 long";
    EXPECT_EQ(judge_at(-0.11, interval, region), Verdict::fail);
    EXPECT_EQ(judge_at(5.0, interval, region), judge(interval, region));
}

// Values that are all equal say nothing about rare others, unless a bound for those is known.
TEST(Statistics, EqualValuesDecideOnlyWithABoundForRareOthers) {
    const std::vector<double> equal(400, 0.3);
    const Interval open = mean_interval(equal, 0.05);
    EXPECT_EQ(open.estimate, 0.3);
    EXPECT_EQ(open.error, 0.0);
    EXPECT_EQ(judge(open, around(0.3, 1e300)), Verdict::inconclusive);
    EXPECT_TRUE(all_equal(open.estimate, open.error));
    EXPECT_FALSE(all_equal(0.3, 1e-9));
    Moments moments;
    for (const double value : equal) moments.add(value);
    EXPECT_EQ(compare(moments, 0.3, 0.1, 0.05).verdict, Verdict::inconclusive);
    // None of 400 are others: at most 1 - .025^(1/400) of all, each at most 2 away.
    const Interval bounded = equal_values_interval(0.3, 400, 2.0, 0.05);
    const double others = 1.0 - std::pow(0.025, 1.0 / 400.0);
    EXPECT_NEAR(bounded.low, 0.3 - 2.0 * others, 1e-12);
    EXPECT_NEAR(bounded.high, 0.3 + 2.0 * others, 1e-12);
    EXPECT_NEAR(bounded.error, 2.0 * fraction_error(0, 400), 1e-15);
    EXPECT_EQ(equal_values_interval(0.3, 400, 0.0, 0.05).high, 0.3);
    const double unknown = std::numeric_limits<double>::infinity();
    EXPECT_EQ(judge(equal_values_interval(0.3, 400, unknown, 0.05), around(0.3, 1e300)), Verdict::inconclusive);
    EXPECT_EQ(judge(equal_values_interval(0.3, 1, 0.0, 0.05), around(0.3, 1.0)), Verdict::inconclusive);
}

// One of 200 values is 3, the others are 1: the upper limit is that of Clopper and Pearson, where Hall's is nearer.
TEST(Statistics, RareValuesOfTwoKindsHaveTheLimitsOfTheirFraction) {
    std::vector<double> values(200, 1.0);
    values[17] = 3.0;
    const Interval fraction = fraction_interval(1, 200, 5e-7);
    const Interval interval = mean_interval(values, 5e-7);
    EXPECT_NEAR(interval.high, 1.0 + 2.0 * fraction.high, 1e-12);
    EXPECT_LT(interval.low, 1.0 + 2.0 * fraction.low);
    values[18] = 2.9;
    EXPECT_LT(mean_interval(values, 5e-7).high, interval.high) << "three kinds";
    for (double& value : values) value = -value;
    values[18] = -1.0;
    EXPECT_NEAR(mean_interval(values, 5e-7).low, -interval.high, 1e-12);
}

// Exact probability that the interval for the mean of rare 0/1 values misses, over alpha.
TEST(Statistics, MeansOfRareOnesMissAtMostAsOftenAsStated) {
    for (const double alpha : {1e-3, 5e-7})
        for (const std::uint64_t count : {200U, 600U})
            for (const double expected_ones : {0.5, 2.0, 4.0, 9.0, 20.0}) {
                const double p = expected_ones / static_cast<double>(count);
                double missed = 0.0;
                for (std::uint64_t ones = 0; ones <= 80; ++ones) {
                    std::vector<double> values(count, 0.0);
                    std::fill_n(values.begin(), ones, 1.0);
                    const Interval interval = mean_interval(values, alpha);
                    if (interval.low <= p && interval.high >= p) continue;
                    const double n = static_cast<double>(count);
                    const double k = static_cast<double>(ones);
                    missed += std::exp(std::lgamma(n + 1.0) - std::lgamma(k + 1.0) - std::lgamma(n - k + 1.0) +
                                       k * std::log(p) + (n - k) * std::log1p(-p));
                }
                EXPECT_LE(missed, alpha) << count << " " << p << " " << alpha;
            }
}

/// Moments of this many values with the mean, the standard deviation and the skewness of others.
Moments with_count(const Moments& like, std::uint64_t count) {
    const double ratio = static_cast<double>(count) / static_cast<double>(like.count);
    Moments moments = like;
    moments.count = count;
    moments.m2 = like.m2 * static_cast<double>(count - 1) / static_cast<double>(like.count - 1);
    moments.m3 = like.m3 * std::pow(moments.m2 / like.m2, 1.5) / std::sqrt(ratio);
    return moments;
}

// Exponential quantiles, whose long side is above the mean. The limit on that side is farther out, so that a margin
// there needs more values than one as far away on the other side.
TEST(Statistics, TheCountThatDecidesAComparisonFollowsTheSkewness) {
    Moments moments;
    Moments mirrored;
    for (int i = 0; i < 200; ++i) {
        moments.add(-std::log((i + 0.5) / 200.0));
        mirrored.add(std::log((i + 0.5) / 200.0));
    }
    const double alpha = 1e-6;
    const auto needed_at = [&](double off, double margin) {
        const double expected = moments.mean - off;
        const std::uint64_t needed = compare(moments, expected, margin, alpha).needed;
        EXPECT_EQ(compare(moments, expected, margin, alpha).verdict, Verdict::inconclusive);
        EXPECT_GT(needed, moments.count);
        EXPECT_NE(compare(with_count(moments, needed), expected, margin, alpha).verdict, Verdict::inconclusive);
        EXPECT_EQ(compare(with_count(moments, needed - 1), expected, margin, alpha).verdict, Verdict::inconclusive);
        EXPECT_EQ(compare(mirrored, -expected, margin, alpha).needed, needed);
        return needed;
    };
    // .05 from the margin: inside it above and below the prediction, outside it above and below.
    const std::uint64_t symmetric = compare(0.0, moments.standard_error(), moments.count, 0.45, 0.5, alpha).needed;
    const std::uint64_t long_side = needed_at(0.45, 0.5);
    EXPECT_GT(static_cast<double>(long_side), 1.05 * static_cast<double>(symmetric));
    EXPECT_EQ(needed_at(-0.45, 0.5), symmetric);
    EXPECT_EQ(needed_at(0.55, 0.5), symmetric);
    EXPECT_EQ(needed_at(-0.55, 0.5), long_side);
    // Just below the middle of the region its lower end is nearer, but the upper limit, which lies farther out,
    // decides.
    EXPECT_GT(needed_at(-0.001, 0.2), compare(0.0, moments.standard_error(), moments.count, 0.001, 0.2, alpha).needed);
}

TEST(Statistics, TooFewOrMissingValuesAreInconclusive) {
    const double nan = std::nan("");
    for (const auto& values : std::vector<std::vector<double>>{{}, {1.0}, {1.0, 2.0, nan}}) {
        const Interval interval = mean_interval(values, 0.05);
        EXPECT_EQ(interval.low, -std::numeric_limits<double>::infinity());
        EXPECT_EQ(judge(interval, around(1.0, 1e300)), Verdict::inconclusive);
    }
    EXPECT_EQ(judge(fraction_interval(0, 0, 0.05), at_most(0.9)), Verdict::inconclusive);
    const std::vector<SizeDraws> one_size = {{64, {1.0, 2.0, 3.0, 4.0}}};
    EXPECT_EQ(judge(rate_interval(one_size, 0.05), at_most(0.0)), Verdict::inconclusive);
    EXPECT_EQ(judge(growth_interval(one_size, 0.5, 0.05), at_most(0.0)), Verdict::inconclusive);
}

TEST(Statistics, FractionIntervalIsThatOfClopperAndPearson) {
    const Interval inner = fraction_interval(3, 20, 0.05);
    EXPECT_NEAR(inner.low, 0.0320709371854637, 1e-14);
    EXPECT_NEAR(inner.high, 0.3789268265453139, 1e-13);
    const Interval none = fraction_interval(0, 20, 0.05);
    EXPECT_EQ(none.low, 0.0);
    EXPECT_NEAR(none.high, 1.0 - std::pow(0.025, 1.0 / 20.0), 1e-13);
    const Interval all = fraction_interval(20, 20, 0.05);
    EXPECT_EQ(all.high, 1.0);
    EXPECT_NEAR(all.low, std::pow(0.025, 1.0 / 20.0), 1e-13);
    // At a tiny alpha both ends still lie strictly inside (0, 1).
    const Interval tiny = fraction_interval(3, 20, 1e-12);
    EXPECT_GT(tiny.low, 0.0);
    EXPECT_LT(tiny.high, 1.0);
}

TEST(Statistics, TheErrorOfAFractionIsNeverZero) {
    for (const std::uint64_t trials : {1U, 10U, 95U, 10000U}) {
        const double n = static_cast<double>(trials);
        const double limit = 1.0 - std::pow(0.025, 1.0 / n);
        EXPECT_NEAR(fraction_error(0, trials), limit / 1.959963984540054, 1e-12);
        EXPECT_NEAR(fraction_error(trials, trials), limit / 1.959963984540054, 1e-12);
        EXPECT_EQ(fraction_interval(0, trials, 1e-3).error, fraction_error(0, trials));
        // A fraction so small that it is often missed has at most this standard error.
        EXPECT_LE(std::sqrt(limit * (1.0 - limit) / n), 1.05 * fraction_error(0, trials) + (trials < 2 ? 1.0 : 0.0));
    }
    EXPECT_NEAR(fraction_error(5000, 10000), 0.005, 1e-4) << "many trials: the standard error";
    EXPECT_EQ(fraction_interval(3, 20, 0.05).error, std::sqrt(0.15 * 0.85 / 20.0));
}

// The exact coverage, by summing the binomial law: each tail misses with probability alpha / 2 at most.
TEST(Statistics, FractionIntervalCoversInBothTails) {
    constexpr std::uint64_t trials = 30;
    constexpr double alpha = 0.1;
    for (double p = 0.02; p < 1.0; p += 0.07) {
        double above = 0.0;
        double below = 0.0;
        double probability = std::pow(1.0 - p, trials);
        for (std::uint64_t k = 0; k <= trials; ++k) {
            const Interval interval = fraction_interval(k, trials, alpha);
            if (interval.low > p) above += probability;
            if (interval.high < p) below += probability;
            probability *= static_cast<double>(trials - k) / static_cast<double>(k + 1) * p / (1.0 - p);
        }
        EXPECT_LE(above, alpha / 2.0) << p;
        EXPECT_LE(below, alpha / 2.0) << p;
    }
}

// Kolmogorov's law: Q(1.3580986) = .05, Q(.5196103) = .95; at finite size within Stephens' accuracy of exact values.
TEST(Statistics, KolmogorovTail) {
    const auto limit = [](double x) { return kolmogorov_p_value(x / 1000.0, 1000000); };
    EXPECT_NEAR(limit(1.3580986393225505), 0.05, 2e-4);
    EXPECT_NEAR(limit(0.5196103791686224), 0.95, 5e-4);
    EXPECT_NEAR(limit(2.5), 2.0 * std::exp(-12.5), 1e-7);
    EXPECT_EQ(kolmogorov_p_value(0.0, 100), 1.0);
    // Both series, next to the point where the code switches between them.
    EXPECT_NEAR(limit(0.99), 0.28087383922554892, 3e-4);
    EXPECT_NEAR(limit(1.01), 0.25943416909359744, 3e-4);
    // Exact: P(D_20 > .29408) = .05, P(D_100 > .13403) = .05 (tables of Miller 1956).
    EXPECT_NEAR(kolmogorov_p_value(0.29408, 20), 0.05, 0.001);
    EXPECT_NEAR(kolmogorov_p_value(0.13403, 100), 0.05, 0.001);
}

// The randomised p-value is uniform: its exact law at each u is averaged over u.
TEST(Statistics, RandomisedBinomialIsUniform) {
    constexpr std::uint64_t trials = 12;
    constexpr double p = 0.3;
    constexpr int grid = 2000;
    for (const double level : {0.01, 0.05, 0.3, 0.8}) {
        double below = 0.0;
        double probability = std::pow(1.0 - p, trials);
        for (std::uint64_t k = 0; k <= trials; ++k) {
            int count = 0;
            for (int i = 0; i < grid; ++i) count += binomial_p_value(k, trials, p, (i + 0.5) / grid) <= level ? 1 : 0;
            below += probability * count / grid;
            probability *= static_cast<double>(trials - k) / static_cast<double>(k + 1) * p / (1.0 - p);
        }
        EXPECT_NEAR(below, level, 1e-3) << level;
    }
}

TEST(Statistics, DistanceIntervalAgainstTheUniformLaw) {
    const std::vector<double> values = {0.1, 0.4, 0.7};
    const Interval interval = distance_interval(
        values, [](double x) { return x; }, 0.05);
    EXPECT_NEAR(interval.estimate, 0.3, 1e-15);
    const double width = std::sqrt(std::log(40.0) / 6.0);
    EXPECT_NEAR(interval.high, 0.3 + width, 1e-15);
    EXPECT_EQ(interval.low, 0.0);
}

// The values are exact powers of the size times the same normal draws, so the weights do not matter.
TEST(Statistics, SlopesOfExactPowers) {
    std::mt19937_64 engine(7);
    std::normal_distribution<double> normal;
    std::vector<SizeDraws> sweep;
    std::vector<double> base(4000);
    for (double& value : base) value = normal(engine);
    for (const std::size_t size : {64, 128, 256, 512}) {
        SizeDraws at{size, base};
        for (double& value : at.values) value = std::abs(value) * std::pow(static_cast<double>(size), -0.7);
        sweep.push_back(std::move(at));
    }
    const Interval rate = rate_interval(sweep, 1e-6);
    EXPECT_NEAR(rate.estimate, -0.7, 1e-10);
    // Four sizes a factor 2 apart: sum of squares 5 log(2)^2; a root mean square of n normals has error 1/sqrt(2n).
    EXPECT_NEAR(rate.error, 1.0 / std::sqrt(2.0 * 4000.0 * 5.0) / std::log(2.0), 0.03 * rate.error);
    const Interval growth = growth_interval(sweep, 0.9, 1e-6);
    EXPECT_NEAR(growth.estimate, -0.7, 1e-10);
    EXPECT_GT(growth.error, 0.0);
    EXPECT_EQ(judge(rate, around(-0.7, 0.1)), Verdict::pass);
    EXPECT_EQ(judge(rate, at_most(-0.5)), Verdict::pass);
    EXPECT_EQ(judge(rate, at_most(-0.9)), Verdict::fail);
    EXPECT_EQ(judge(rate, at_least(-0.9)), Verdict::pass);
    EXPECT_EQ(judge(rate, at_least(-0.5)), Verdict::fail);
    EXPECT_EQ(judge(rate, at_most(-0.7)), Verdict::inconclusive);
}

// Three draws leave two degrees of freedom, where Student's quantile has a closed form. Their squares have no skewness,
// so the limits at each size are Student's for the mean of the squares.
TEST(Statistics, SlopesOfFewDrawsHaveStudentsLimits) {
    const std::vector<double> three = {std::sqrt(0.8), 1.0, std::sqrt(1.2)};
    std::vector<double> halves = three;
    for (double& value : halves) value *= 0.5;
    const std::vector<SizeDraws> sweep = {{64, three}, {256, halves}};
    constexpr double tail = 0.025;
    const double quantile = (1.0 - 2.0 * tail) / std::sqrt(2.0 * tail * (1.0 - tail));
    const double reach = quantile * 0.2 / std::sqrt(3.0);  // of the mean of the squares, in parts of that mean
    const double down = 0.5 * std::log(1.0 - reach);
    const double up = 0.5 * std::log(1.0 + reach);
    const double width = std::sqrt(down * down + up * up) / std::log(4.0);
    const Interval rate = rate_interval(sweep, 2.0 * tail);
    EXPECT_NEAR(rate.estimate, -0.5, 1e-12);
    EXPECT_NEAR(rate.high, -0.5 + width, 1e-9);
    EXPECT_NEAR(rate.low, -0.5 - width, 1e-9);
    // At a smaller alpha the mean of the squares could be zero.
    const Interval unknown = rate_interval(sweep, 1e-6);
    EXPECT_EQ(unknown.low, -std::numeric_limits<double>::infinity());
    EXPECT_EQ(unknown.high, std::numeric_limits<double>::infinity());
}

// Slopes of the .9 quantile of exponential values whose law does not depend on the size, so that the true slope is 0. A
// correct interval fails this test with probability 1e-9.
TEST(Statistics, GrowthIntervalsMissAtMostAtTheirNominalRate) {
    std::mt19937_64 engine(5);
    std::exponential_distribution<double> exponential;
    constexpr std::uint64_t sweeps = 4000;
    constexpr double alpha = 0.01;
    std::uint64_t misses = 0;
    std::uint64_t misses_of_another = 0;  // negative control: slope .15
    for (std::uint64_t i = 0; i < sweeps; ++i) {
        std::vector<SizeDraws> sweep = {{32, std::vector<double>(600)}, {64, std::vector<double>(400)}, {128, {}}};
        sweep.back().values.resize(200);
        for (auto& at : sweep)
            for (double& value : at.values) value = exponential(engine);
        const Interval growth = growth_interval(sweep, 0.9, alpha);
        misses += growth.low > 0.0 || growth.high < 0.0 ? 1 : 0;
        misses_of_another += growth.low > 0.15 || growth.high < 0.15 ? 1 : 0;
    }
    const auto allowed = [](std::uint64_t count) { return fraction_interval(count, sweeps, 2e-9).low <= alpha; };
    EXPECT_TRUE(allowed(misses)) << misses << " of " << sweeps;
    EXPECT_FALSE(allowed(misses_of_another)) << misses_of_another;
}

// Limits that are far from symmetric: on the logarithmic scale these values jump by 1 just above their .9 quantile and
// vary by a hundredth below it. The jump must widen the upper limit of the slope if it is at the larger size, and the
// lower limit if it is at the smaller size.
TEST(Statistics, AsymmetricGrowthLimitsLieOnTheRightSides) {
    std::vector<double> values;
    for (int i = 0; i < 1000; ++i) values.push_back(i < 900 ? std::exp(-0.01 + 1e-5 * i) : std::exp(1.0 + 1e-5 * i));
    // The jump is at the larger size first.
    std::vector<double> flat(1000, 1.0);
    const Interval up = growth_interval(std::vector<SizeDraws>{{64, flat}, {128, values}}, 0.9, 1e-6);
    ASSERT_EQ(up.count, 2000U);
    EXPECT_GT(up.high - up.estimate, 0.9 / std::log(2.0));
    EXPECT_LT(up.estimate - up.low, 0.1);
    const Interval down = growth_interval(std::vector<SizeDraws>{{64, values}, {128, flat}}, 0.9, 1e-6);
    EXPECT_GT(down.estimate - down.low, 0.9 / std::log(2.0));
    EXPECT_LT(down.high - down.estimate, 0.1);
}

TEST(Statistics, SmallestDetectableFailsWithItsProbability) {
    // By the normal law: margin + (z_(alpha/2) + z_.01) standard errors.
    const Interval interval = mean_interval(0.0, 0.01, 100000000, 0.05);
    EXPECT_NEAR(smallest_detectable(interval, around(0.0, 0.3)), 0.3 + (1.959963984540054 + 2.326347874040841) * 0.01,
                1e-8);
}

// At the detectable deviation a proportion fails with probability .99, by the exact binomial law.
TEST(Statistics, SmallestDetectableFractionFailsWithItsProbability) {
    constexpr std::uint64_t trials = 300;
    constexpr double alpha = 1e-6;
    for (const AcceptanceRegion& region : {at_least(1.0, 0.05), at_most(0.0, 0.05), at_most(0.2, 0.1)}) {
        const double detectable = smallest_detectable_fraction(trials, region, alpha);
        const double p = region.predicted + (std::isfinite(region.high) ? detectable : -detectable);
        ASSERT_TRUE(p > 0.0 && p < 1.0) << detectable;
        double fails = 0.0;
        for (std::uint64_t k = 0; k <= trials; ++k) {
            const double n = static_cast<double>(trials);
            const double i = static_cast<double>(k);
            const double probability = std::exp(std::lgamma(n + 1.0) - std::lgamma(i + 1.0) - std::lgamma(n - i + 1.0) +
                                                i * std::log(p) + (n - i) * std::log1p(-p));
            if (judge(fraction_interval(k, trials, alpha), region) == Verdict::fail) fails += probability;
        }
        EXPECT_NEAR(fails, 0.99, 1e-9);
    }
    EXPECT_TRUE(std::isinf(smallest_detectable_fraction(4, at_least(1.0, 0.05), alpha)));
    const AcceptanceRegion two_sided = around(0.5, 0.1);
    EXPECT_NEAR(smallest_detectable_fraction(trials, two_sided, alpha),
                smallest_detectable_fraction(trials, at_most(0.5, 0.1), alpha), 1e-12);
}

// For a distance near 0 the lower limit of the interval is clipped at 0; the detectable deviation uses the full width.
TEST(Statistics, SmallestDetectableDistanceCountsTheWholeWidth) {
    std::vector<double> values;
    for (int i = 0; i < 1000; ++i) values.push_back((i + 0.5) / 1000.0);
    const Interval interval = distance_interval(
        values, [](double x) { return x; }, 1e-6);
    EXPECT_EQ(interval.low, 0.0);
    EXPECT_GE(smallest_detectable(interval, at_most(0.0, 0.02)), 0.02 + std::sqrt(std::log(2e6) / 2000.0));
}

TEST(Statistics, KolmogorovDistanceOfTwoSamples) {
    const std::vector<double> a = {5.0, 3.0, 3.0, 1.0};
    EXPECT_EQ(kolmogorov_distance(a, a), 0.0);
    EXPECT_EQ(kolmogorov_distance(a, std::vector{9.0, 8.0}), 1.0);
    // Equal values count together, and the sizes may differ: at 3 the fractions are 3/4 and 1/2.
    EXPECT_EQ(kolmogorov_distance(a, std::vector{4.0, 1.0}), 0.25);
}

}  // namespace
}  // namespace spiked::validation

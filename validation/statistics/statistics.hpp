#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "validation/statistics/moments.hpp"
#include "validation/statistics/verdict.hpp"

namespace spiked::validation {

// Confidence intervals, and acceptance regions to judge them against. They are two-sided, alpha / 2 in each tail; alpha
// in (0, 1), 1e-12 and smaller included. With too few values an interval is infinite.

/// How far the stated probability of an interval holds. Exact: it covers the true value with probability 1 - alpha or
/// more, whatever the law of the independent values. Nominal: it does so in the limit of many values; no interval for
/// the mean of values without known bounds can do more (Bahadur and Savage 1956).
enum class Rate { exact, nominal };
[[nodiscard]] std::string_view name_of(Rate rate);

/// An estimate, its standard error and its confidence interval.
struct Interval {
    double estimate = std::numeric_limits<double>::quiet_NaN();
    double error = std::numeric_limits<double>::quiet_NaN();
    double low = -std::numeric_limits<double>::infinity();
    double high = std::numeric_limits<double>::infinity();
    std::uint64_t count = 0;  ///< independent values behind it
};

/// The acceptance region of a number: the interval in which it must lie, ends included.
struct AcceptanceRegion {
    double low = -std::numeric_limits<double>::infinity();
    double high = std::numeric_limits<double>::infinity();
    double predicted = 0.0;
    double margin = 0.0;
};
[[nodiscard]] AcceptanceRegion around(double predicted, double margin);
[[nodiscard]] AcceptanceRegion at_most(double bound, double margin = 0.0);
[[nodiscard]] AcceptanceRegion at_least(double bound, double margin = 0.0);
/// Between two numbers: its prediction is their middle. With one infinite end it is at_most or at_least.
[[nodiscard]] AcceptanceRegion between(double low, double high);

/// Pass if the interval lies inside the region, fail if it lies outside, otherwise inconclusive.
[[nodiscard]] Verdict judge(const Interval& interval, const AcceptanceRegion& region);
/// The same for a number whose estimate is `value`, with an interval that reaches as far to either side: whether this
/// interval can tell that number from the region.
[[nodiscard]] Verdict judge_at(double value, const Interval& interval, const AcceptanceRegion& region);
/// The smallest deviation from the prediction that fails with probability 0.99 at this sample size, in the normal
/// approximation: the margin, plus the longer arm of the interval, plus the 0.99 quantile of the normal law times the
/// standard error.
[[nodiscard]] double smallest_detectable(const Interval& interval, const AcceptanceRegion& region);
/// The same for a proportion, by the binomial law. (The width of the interval at the observed proportion says little
/// about its width at a proportion that fails.) Infinite if no proportion fails.
[[nodiscard]] double smallest_detectable_fraction(std::uint64_t trials, const AcceptanceRegion& region, double alpha);

/// Interval for a mean, nominal. Each limit is Student's or, where that lies farther out, the one corrected for the
/// skewness of the values (the cubic transformation of Hall 1992). For normal values it covers with probability
/// 1 - alpha or more. Measured for 200, 600 and 2000 values at alpha = 5e-7 by importance sampling
/// (interval_rate_test): misses over alpha are 0.8, 0.9 and 1.0 for normal values, 1.2, 0.6 and 0.6 for exponential
/// ones, 1.3, 0.7 and 0.5 for chi-square with one degree of freedom, 13, 4 and 1.6 for lognormal(0, 1); those of
/// Student's limits 55, 11 and 2.7 for exponential ones. The price is the limit on the long side: 1.5, 1.2 and 1.1
/// times as far out as Student's for exponential values, 2.5, 1.3 and 1.1 times for chi-square, 3.1, 2.3 and 1.5 times
/// for lognormal. A NaN among the values makes the interval infinite: missing values are not dropped. Where all values
/// are equal (all_equal) it is infinite too: they say nothing about the size of rare other values. Where they are of
/// two kinds, it also holds the limits of their fraction (fraction_interval): the mean of rare 0/1 values misses less
/// often than stated. Where few values differ from all others and from each other, it misses far more often than
/// stated.
[[nodiscard]] Interval mean_interval(std::span<const double> values, double alpha);
/// The same from the count, the mean and the second and third moment, and the extremes, without which values of two
/// kinds are not recognised; `missing` is ignored.
[[nodiscard]] Interval mean_interval(const Moments& moments, double alpha);
/// The same for a mean whose values have no skewness: Student's limits, exact for normal values.
[[nodiscard]] Interval mean_interval(double mean, double error, std::uint64_t count, double alpha);

/// Whether values with this mean and standard error of the mean are equal, up to rounding.
[[nodiscard]] bool all_equal(double mean, double error);
/// Interval for the mean of values that were `count` times this one, where the mean of all others is at most `reach`
/// away from it, exact: at most the upper limit of fraction_interval for none of `count` of the values are others. With
/// a reach of 0 it has no width, with an infinite one it is infinite.
[[nodiscard]] Interval equal_values_interval(double value, std::uint64_t count, double reach, double alpha);

/// Distance from the mean to the upper limit of mean_interval for `count` values with that standard deviation and
/// skewness: without skewness, half the length. The distance to the lower limit is that of the opposite skewness.
[[nodiscard]] double mean_half_width(double deviation, double count, double alpha, double skewness = 0.0);
/// The least count at which that distance is less than `bound`; 0 beyond 1e15.
[[nodiscard]] std::uint64_t count_for_half_width(double bound, double deviation, double alpha, double skewness = 0.0);

/// Two-sided p-value of Student's t with the given degrees of freedom.
[[nodiscard]] double student_p_value(double t, double degrees);

/// Interval for a probability, from `successes` in `trials` (Clopper and Pearson 1934): exact, conservative. The error
/// is the standard error, and fraction_error where there is no success or no failure.
[[nodiscard]] Interval fraction_interval(std::uint64_t successes, std::uint64_t trials, double alpha);

/// The error of that probability, never zero: the longer arm of its 95 % interval over the 1.96 standard errors that it
/// would be for many trials. With none of n successes it is about 1.88 / n. The true standard error is at most so large
/// with probability 0.97 or more.
[[nodiscard]] double fraction_error(std::uint64_t successes, std::uint64_t trials);

/// One size of a sweep and the values drawn at that size.
struct SizeDraws {
    std::size_t size = 0;
    std::vector<double> values;
};

/// Slope of log(root mean square) against log(size), by least squares weighted with the inverse variances of the
/// logarithms (delta method); nominal. The limits at each size are those of the mean of the squares at alpha; the
/// limits of the slope combine them (Zou and Donner 2008), which misses less often than stated: where the squares are
/// exponential, chi-square or lognormal, 0.02 to 0.2 of alpha at 5e-7, up to 0.6 at 1e-3 and up to 0.9 at .05. Needs at
/// least two sizes and three values at each.
[[nodiscard]] Interval rate_interval(std::span<const SizeDraws> sweep, double alpha);
/// One size of a sweep and the moments of the values drawn at that size.
struct SizeMoments {
    double size = 0.0;
    Moments moments;
};

/// Slope of log(mean) against log(size), by least squares weighted with the inverse variances of the logarithms (delta
/// method); nominal. The limits at each size are those of mean_interval at alpha, and are combined like those of
/// rate_interval. Infinite where a mean is not positive, or has fewer than three values or only equal ones. Needs at
/// least two sizes.
[[nodiscard]] Interval exponent_interval(std::span<const SizeMoments> sweep, double alpha);
/// Slope of the log of the quantile of that level against log(size), weighted by the numbers of values; nominal. The
/// limits at each size are order statistics, exact at alpha by the binomial law, and are combined in the same way. (A
/// standard error from a few neighbouring order statistics is too uncertain for a small alpha.)
[[nodiscard]] Interval growth_interval(std::span<const SizeDraws> sweep, double level, double alpha);

/// Half the width of the band around the empirical distribution function of `count` values that holds their whole
/// distribution function with probability 1 - alpha; exact (Dvoretzky, Kiefer and Wolfowitz 1956; constant of Massart
/// 1990).
[[nodiscard]] double band_half_width(std::uint64_t count, double alpha);
/// Kolmogorov distance between the empirical distribution of the values and `cdf`, with an interval for the distance of
/// their true law from `cdf`, which is that band. cdf must be continuous.
[[nodiscard]] Interval distance_interval(std::span<const double> values, const std::function<double(double)>& cdf,
                                         double alpha);

// p-values: probability of a value at least as extreme under the null law.

/// Upper p-value of the Kolmogorov distance of `count` values from a continuous null law: Kolmogorov's limit with
/// Stephens' correction (1970). Over the exact one it is 1.00 to 1.03 at tails of .5 to .01 for 20 values or more. In
/// smaller tails it is larger for few values: 1.05, 1.17 and 1.7 times at 1e-3, 1e-4 and 1e-6 for 20, 1.12 times at
/// 1e-6 for 50; for 100 values or more it is 0.96 to 1.02 of the exact one down to 1e-6.
[[nodiscard]] double kolmogorov_p_value(double distance, std::uint64_t count);
/// Two-sided binomial p-value, randomised by `u` uniform in (0, 1) so that it is uniform under the null law.
[[nodiscard]] double binomial_p_value(std::uint64_t successes, std::uint64_t trials, double probability, double u);

// Descriptive statistics.

/// Kolmogorov distance between the empirical distributions of two samples, each sorted in descending order.
[[nodiscard]] double kolmogorov_distance(std::span<const double> a, std::span<const double> b);

}  // namespace spiked::validation

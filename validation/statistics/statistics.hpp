#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "validation/statistics/verdict.hpp"

namespace spiked::validation {

// Intervals for what a sample says of a number, and where that number must lie. Every interval covers the truth with
// probability 1 - alpha or more; two-sided, alpha / 2 in each tail; alpha in (0, 1), 1e-12 and smaller included. With
// too few values to say anything an interval is infinite.

/// A number, its standard error and the interval around it.
struct Interval {
    double estimate = std::numeric_limits<double>::quiet_NaN();
    double error = std::numeric_limits<double>::quiet_NaN();
    double low = -std::numeric_limits<double>::infinity();
    double high = std::numeric_limits<double>::infinity();
    std::uint64_t count = 0;  ///< independent values behind it
};

/// Where a number must lie, ends included.
struct Region {
    double low = -std::numeric_limits<double>::infinity();
    double high = std::numeric_limits<double>::infinity();
    double predicted = 0.0;
    double margin = 0.0;
};
[[nodiscard]] Region around(double predicted, double margin);
[[nodiscard]] Region at_most(double bound, double margin = 0.0);
[[nodiscard]] Region at_least(double bound, double margin = 0.0);

/// Pass when the interval lies inside the region, fail when it lies outside, otherwise inconclusive.
[[nodiscard]] Verdict judge(const Interval& interval, const Region& region);
/// The smallest distance from what is predicted that fails with probability 0.99 at this sample size, by the normal
/// law: margin, the longer arm of the interval, and one more 0.99 quantile of the standard error.
[[nodiscard]] double smallest_detectable(const Interval& interval, const Region& region);
/// The same of a share, by the binomial law: its interval at the share seen says little of the one at a share that
/// fails. Infinite when no share fails.
[[nodiscard]] double smallest_detectable_fraction(std::uint64_t trials, const Region& region, double alpha);

/// Of a mean, Student's law. Exact for normal values; for others the error of the normal limit. NaN values make it
/// infinite: a missing value is not left out.
[[nodiscard]] Interval mean_interval(std::span<const double> values, double alpha);
[[nodiscard]] Interval mean_interval(double mean, double error, std::uint64_t count, double alpha);

/// Half the length of mean_interval, of `count` values with that standard deviation.
[[nodiscard]] double mean_half_width(double deviation, double count, double alpha);
/// The least count at which that is less than `room`; 0 beyond 1e15.
[[nodiscard]] std::uint64_t count_for_half_width(double room, double deviation, double alpha);

/// The probability that Student's t with so many degrees of freedom lies as far from 0 as this one.
[[nodiscard]] double student_p_value(double t, double degrees);

/// Of a probability, from `successes` in `trials` (Clopper and Pearson 1934): exact, conservative.
[[nodiscard]] Interval share_interval(std::uint64_t successes, std::uint64_t trials, double alpha);

/// One size of a sweep and what was drawn there.
struct SizeDraws {
    std::size_t size = 0;
    std::vector<double> values;
};

/// Slope of log(root mean square) against log(size), least squares weighted by the inverse variances of the logarithms
/// (delta method). Two sizes at least.
[[nodiscard]] Interval rate_interval(std::span<const SizeDraws> sweep, double alpha);
/// The same of a quantile, weighted by the numbers of values. The limits of each size are order statistics, exact at
/// alpha by the binomial law; those of the slope are put together from them (Zou and Donner 2008), as an error taken
/// from a few neighbouring order statistics is too uncertain for a small alpha.
[[nodiscard]] Interval growth_interval(std::span<const SizeDraws> sweep, double level, double alpha);

/// Largest distance between the empirical distribution of the values and `cdf`, and an interval for the distance of
/// their true law from it (Dvoretzky, Kiefer and Wolfowitz 1956; constant of Massart 1990). cdf must be continuous.
[[nodiscard]] Interval distance_interval(std::span<const double> values, const std::function<double(double)>& cdf,
                                         double alpha);

// p-values: probability of a value at least as extreme, given the null law.

/// Upper, of the Kolmogorov distance of `count` values from their own continuous law: Kolmogorov's limit with Stephens'
/// correction (1970), within 2 % of the exact tail from 20 values on.
[[nodiscard]] double kolmogorov_p_value(double distance, std::uint64_t count);
/// Two-sided and randomised, so that it is uniform under the null law: `u` uniform in (0, 1).
[[nodiscard]] double binomial_p_value(std::uint64_t successes, std::uint64_t trials, double probability, double u);

}  // namespace spiked::validation

#include "validation/statistics/statistics.hpp"

#include <algorithm>
#include <boost/math/distributions/beta.hpp>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <numbers>

#include "theory/laws/line_fit.hpp"
#include "validation/statistics/moments.hpp"

namespace spiked::validation {
namespace {

namespace law = boost::math;

constexpr double missed = 0.01;  // probability that a deviation called detectable does not fail
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double rounding_level = 1e-12;  // of a mean: values that differ less are equal

double upper_normal(double tail) { return law::quantile(law::complement(law::normal(), tail)); }
double upper_student(double degrees, double tail) {
    return law::quantile(law::complement(law::students_t(degrees), tail));
}

/// The t whose transform by Hall is x. The transformation is monotone and removes the skewness of Student's t: with
/// a = skewness / sqrt(count), t + a t^2 / 3 + a^2 t^3 / 27 + a / 6 is nearer to Student's law than t.
double hall_inverse(double x, double a) {
    return std::abs(a) < 1e-6 ? x : 3.0 / a * (std::cbrt(1.0 + a * x - a * a / 6.0) - 1.0);
}

/// Limits of a mean by Student's law, and by Hall's transformation. The farther limit counts on either side.
Interval skewed_interval(double mean, double error, double a, std::uint64_t count, double alpha) {
    if (count < 2 || !std::isfinite(mean) || !std::isfinite(error) || all_equal(mean, error))
        return {.estimate = mean, .error = error, .count = count};
    const double quantile = upper_student(static_cast<double>(count - 1), alpha / 2.0);
    return {mean, error, mean - error * std::max(quantile, hall_inverse(quantile, a)),
            mean - error * std::min(-quantile, hall_inverse(-quantile, a)), count};
}

/// The limits of Clopper and Pearson for the probability of a success.
std::pair<double, double> fraction_limits(std::uint64_t successes, std::uint64_t trials, double alpha) {
    const double n = static_cast<double>(trials);
    const double k = static_cast<double>(successes);
    return {
        successes > 0 ? law::quantile(law::beta_distribution(k, n - k + 1.0), alpha / 2.0) : 0.0,
        successes < trials ? law::quantile(law::complement(law::beta_distribution(k + 1.0, n - k), alpha / 2.0)) : 1.0};
}

/// Whether every value is the lowest or the highest one, up to rounding. The difference of the two numbers is the sum
/// of (x - low) (high - x) over the values x.
bool of_two_values(const Moments& moments) {
    const double most =
        static_cast<double>(moments.count) * (moments.mean - moments.low) * (moments.high - moments.mean);
    return moments.m2 > 0.0 && most > 0.0 && std::isfinite(most) && most - moments.m2 <= 1e-9 * moments.m2;
}

/// A logarithm at each size with its limits, and its weight in the line.
struct LogPoint {
    double size = 0.0;
    double value = 0.0;
    double low = 0.0;
    double high = 0.0;
    double weight = 0.0;
};

/// The slope of the line through the points. Its limits are as far from it as the root of the sum of squares of what
/// the limits of the points contribute (Zou and Donner 2008).
struct Slope {
    double value = std::numeric_limits<double>::quiet_NaN();
    double error = std::numeric_limits<double>::quiet_NaN();  ///< if the weights are inverse variances
    double low = -infinity;
    double high = infinity;
};

Slope slope_of(const std::vector<LogPoint>& points) {
    std::vector<double> sizes, values, weights;
    for (const auto& point : points) {
        sizes.push_back(point.size);
        values.push_back(point.value);
        weights.push_back(point.weight);
    }
    const theory::LineFit line = theory::fit_line(sizes, values, weights);
    if (!(line.x_squares > 0.0)) return {};
    double below = 0.0;
    double above = 0.0;
    for (const auto& point : points) {
        const double coefficient = point.weight * (point.size - line.x_mean) / line.x_squares;
        if (coefficient == 0.0) continue;
        const double down = coefficient * (point.value - (coefficient > 0.0 ? point.low : point.high));
        const double up = coefficient * ((coefficient > 0.0 ? point.high : point.low) - point.value);
        below += down * down;
        above += up * up;
    }
    return {line.slope, 1.0 / std::sqrt(line.x_squares), line.slope - std::sqrt(below), line.slope + std::sqrt(above)};
}

/// Largest deviation of a binomial count from its mean, up to a probability of `tail` in each tail of the exact law;
/// plus one for the rounding of ranks.
double binomial_reach(std::size_t trials, double level, double tail) {
    const double n = static_cast<double>(trials);
    const law::binomial counts(n, level);
    const double low = std::floor(law::quantile(counts, tail));
    const double high = std::ceil(law::quantile(law::complement(counts, tail)));
    return std::max(n * level - low, high - n * level) + 1.0;
}

}  // namespace

bool all_equal(double mean, double error) { return error <= rounding_level * std::abs(mean); }

Interval equal_values_interval(double value, std::uint64_t count, double reach, double alpha) {
    if (count < 2) return {.estimate = value, .count = count};
    if (reach == 0.0) return {value, 0.0, value, value, count};
    const double others = fraction_interval(0, count, alpha).high;
    return {value, reach * fraction_error(0, count), value - reach * others, value + reach * others, count};
}

std::string_view name_of(Rate rate) { return rate == Rate::exact ? "exact" : "nominal"; }

AcceptanceRegion around(double predicted, double margin) {
    return {predicted - margin, predicted + margin, predicted, margin};
}
AcceptanceRegion at_most(double bound, double margin) { return {-infinity, bound + margin, bound, margin}; }
AcceptanceRegion at_least(double bound, double margin) { return {bound - margin, infinity, bound, margin}; }

AcceptanceRegion between(double low, double high) {
    if (std::isinf(low)) return at_most(high);
    if (std::isinf(high)) return at_least(low);
    return {low, high, 0.5 * (low + high), 0.5 * (high - low)};
}

Verdict judge_at(double value, const Interval& interval, const AcceptanceRegion& region) {
    Interval moved = interval;
    moved.low = value - (interval.estimate - interval.low);
    moved.high = value + (interval.high - interval.estimate);
    return judge(moved, region);
}

Verdict judge(const Interval& interval, const AcceptanceRegion& region) {
    if (interval.low >= region.low && interval.high <= region.high) return Verdict::pass;
    if (interval.low > region.high || interval.high < region.low) return Verdict::fail;
    return Verdict::inconclusive;
}

double smallest_detectable(const Interval& interval, const AcceptanceRegion& region) {
    const double reach = std::max(interval.high - interval.estimate, interval.estimate - interval.low);
    return region.margin + reach + upper_normal(missed) * interval.error;
}

double smallest_detectable_fraction(std::uint64_t trials, const AcceptanceRegion& region, double alpha) {
    const double n = static_cast<double>(trials);
    // A proportion is too small if the number of successes is at most a threshold; by symmetry also if it is too large.
    const auto failing_fraction = [&](double low, const auto& high_of) {
        if (!(low > 0.0) || high_of(0) >= low) return -infinity;
        std::uint64_t fails = 0;
        std::uint64_t passes = trials;
        while (passes - fails > 1) {
            const std::uint64_t middle = fails + (passes - fails) / 2;
            (high_of(middle) < low ? fails : passes) = middle;
        }
        const double k = static_cast<double>(fails);
        return law::quantile(law::beta_distribution(k + 1.0, n - k), missed);
    };
    if (trials < 1) return infinity;
    double detectable = 0.0;
    if (std::isfinite(region.low))
        detectable = region.predicted -
                     failing_fraction(region.low, [&](auto k) { return fraction_interval(k, trials, alpha).high; });
    if (std::isfinite(region.high))
        detectable = std::max(detectable, 1.0 - region.predicted - failing_fraction(1.0 - region.high, [&](auto k) {
                                              return 1.0 - fraction_interval(trials - k, trials, alpha).low;
                                          }));
    return detectable;
}

Interval mean_interval(double mean, double error, std::uint64_t count, double alpha) {
    return skewed_interval(mean, error, 0.0, count, alpha);
}

Interval mean_interval(const Moments& moments, double alpha) {
    // The skewness over sqrt(count) lies between -1 and 1.
    const double a = moments.m2 > 0.0 ? moments.m3 / std::pow(moments.m2, 1.5) : 0.0;
    Interval interval = skewed_interval(moments.mean, moments.standard_error(), a, moments.count, alpha);
    if (of_two_values(moments)) {
        const double range = moments.high - moments.low;
        const double high_ones = (moments.mean - moments.low) / range * static_cast<double>(moments.count);
        const auto [low, high] =
            fraction_limits(static_cast<std::uint64_t>(std::llround(high_ones)), moments.count, alpha);
        interval.low = std::min(interval.low, moments.low + range * low);
        interval.high = std::max(interval.high, moments.low + range * high);
    }
    return interval;
}

Interval mean_interval(std::span<const double> values, double alpha) {
    Moments moments;
    for (const double value : values) moments.add(value);
    if (moments.missing > 0) return {.count = values.size()};
    return mean_interval(moments, alpha);
}

double mean_half_width(double deviation, double count, double alpha, double skewness) {
    const double quantile = upper_student(count - 1.0, alpha / 2.0);
    const double farther = std::max(quantile, -hall_inverse(-quantile, skewness / std::sqrt(count)));
    return farther * deviation / std::sqrt(count);
}

double student_p_value(double t, double degrees) {
    return 2.0 * law::cdf(law::complement(law::students_t(degrees), std::abs(t)));
}

std::uint64_t count_for_half_width(double bound, double deviation, double alpha, double skewness) {
    double low = 2.0;
    double high = 2.0;
    while (mean_half_width(deviation, high, alpha, skewness) >= bound) {
        low = high;
        high *= 2.0;
        if (high > 1e15) return 0;
    }
    while (high - low > 0.5) {
        const double middle = std::floor(0.5 * (low + high));
        if (middle == low) break;
        (mean_half_width(deviation, middle, alpha, skewness) < bound ? high : low) = middle;
    }
    return static_cast<std::uint64_t>(high);
}

Interval fraction_interval(std::uint64_t successes, std::uint64_t trials, double alpha) {
    if (trials == 0) return {};
    const double n = static_cast<double>(trials);
    const double fraction = static_cast<double>(successes) / n;
    const auto [low, high] = fraction_limits(successes, trials, alpha);
    const double error = successes == 0 || successes == trials ? fraction_error(successes, trials)
                                                               : std::sqrt(fraction * (1.0 - fraction) / n);
    return {fraction, error, low, high, trials};
}

double fraction_error(std::uint64_t successes, std::uint64_t trials) {
    if (trials == 0) return std::numeric_limits<double>::quiet_NaN();
    const double fraction = static_cast<double>(successes) / static_cast<double>(trials);
    const auto [low, high] = fraction_limits(successes, trials, 0.05);
    return std::max(fraction - low, high - fraction) / upper_normal(0.025);
}

Interval rate_interval(std::span<const SizeDraws> sweep, double alpha) {
    std::vector<LogPoint> points;
    std::uint64_t count = 0;
    for (const auto& [size, values] : sweep) {
        Moments squares;
        for (const double value : values) squares.add(value * value);
        if (squares.missing > 0 || squares.count < 3 || !(squares.mean > 0.0)) return {.count = values.size()};
        const Interval mean = mean_interval(squares, alpha);
        const double relative = mean.error / mean.estimate;
        const auto half_log = [](double square) { return square > 0.0 ? 0.5 * std::log(square) : -infinity; };
        points.push_back({std::log(static_cast<double>(size)), half_log(mean.estimate), half_log(mean.low),
                          half_log(mean.high), 4.0 / (relative * relative)});
        count += squares.count;
    }
    const Slope slope = slope_of(points);
    return {slope.value, slope.error, slope.low, slope.high, count};
}

Interval exponent_interval(std::span<const SizeMoments> sweep, double alpha) {
    std::vector<LogPoint> points;
    std::uint64_t count = 0;
    for (const auto& [size, moments] : sweep) count += moments.count;
    for (const auto& [size, moments] : sweep) {
        if (moments.count < 3 || !(moments.mean > 0.0)) return {.count = count};
        const Interval mean = mean_interval(moments, alpha);
        if (all_equal(mean.estimate, mean.error)) return {.count = count};
        const double relative = mean.error / mean.estimate;
        const auto log_of = [](double value) { return value > 0.0 ? std::log(value) : -infinity; };
        points.push_back({std::log(size), std::log(mean.estimate), log_of(mean.low), log_of(mean.high),
                          1.0 / (relative * relative)});
    }
    const Slope slope = slope_of(points);
    return {slope.value, slope.error, slope.low, slope.high, count};
}

Interval growth_interval(std::span<const SizeDraws> sweep, double level, double alpha) {
    std::vector<LogPoint> points;
    std::uint64_t count = 0;
    for (const auto& [size, values] : sweep) {
        std::vector<double> sorted(values);
        if (std::any_of(sorted.begin(), sorted.end(), [](double value) { return !(value > 0.0); }))
            return {.count = values.size()};
        std::sort(sorted.begin(), sorted.end());
        const double n = static_cast<double>(sorted.size());
        const double steps = binomial_reach(sorted.size(), level, alpha / 2.0);
        const double centre = level * (n - 1.0);
        if (!(centre - steps >= 0.0 && centre + steps <= n - 1.0)) return {.count = values.size()};
        const auto at = [&](double rank) { return std::log(sorted[static_cast<std::size_t>(rank)]); };
        points.push_back({std::log(static_cast<double>(size)), at(std::round(centre)), at(std::floor(centre - steps)),
                          at(std::ceil(centre + steps)), n});
        count += values.size();
    }
    const Slope slope = slope_of(points);
    return {slope.value, (slope.high - slope.low) / (2.0 * upper_normal(alpha / 2.0)), slope.low, slope.high, count};
}

double band_half_width(std::uint64_t count, double alpha) {
    return std::sqrt(std::log(2.0 / alpha) / (2.0 * static_cast<double>(count)));
}

Interval distance_interval(std::span<const double> values, const std::function<double(double)>& cdf, double alpha) {
    if (values.empty()) return {};
    std::vector<double> sorted(values.begin(), values.end());
    std::sort(sorted.begin(), sorted.end());
    const double n = static_cast<double>(sorted.size());
    double distance = 0.0;
    for (std::size_t i = 0; i < sorted.size(); ++i) {
        const double at = cdf(sorted[i]);
        if (std::isnan(at)) return {.count = values.size()};
        distance = std::max({distance, static_cast<double>(i + 1) / n - at, at - static_cast<double>(i) / n});
    }
    const double width = band_half_width(sorted.size(), alpha);
    // Kolmogorov's law has standard deviation 0.2603 / sqrt(n).
    return {distance, 0.2603 / std::sqrt(n), std::max(0.0, distance - width), distance + width, values.size()};
}

double kolmogorov_p_value(double distance, std::uint64_t count) {
    const double root = std::sqrt(static_cast<double>(count));
    const double x = (root + 0.12 + 0.11 / root) * distance;
    if (x < 0.2) return 1.0;
    if (x < 1.0) {
        // The theta-function form, because the alternating series suffers from cancellation here.
        double sum = 0.0;
        for (int k = 1; k <= 7; k += 2) sum += std::exp(-k * k * std::numbers::pi * std::numbers::pi / (8.0 * x * x));
        return 1.0 - std::sqrt(2.0 * std::numbers::pi) / x * sum;
    }
    double sum = 0.0;
    for (int k = 1; k <= 6; ++k) sum += (k % 2 == 1 ? 1.0 : -1.0) * std::exp(-2.0 * k * k * x * x);
    return 2.0 * sum;
}

double binomial_p_value(std::uint64_t successes, std::uint64_t trials, double probability, double u) {
    const law::binomial counts(static_cast<double>(trials), probability);
    const double k = static_cast<double>(successes);
    const double here = law::pdf(counts, k);
    const double below = law::cdf(counts, k) - here;
    const double above = law::cdf(law::complement(counts, k));
    const double lower = below + u * here;
    const double upper = above + (1.0 - u) * here;
    return std::min(1.0, 2.0 * std::min(lower, upper));
}

double kolmogorov_distance(std::span<const double> a, std::span<const double> b) {
    double largest = 0.0;
    std::size_t i = 0;
    std::size_t j = 0;
    while (i < a.size() && j < b.size()) {
        const double at = std::max(a[i], b[j]);
        while (i < a.size() && a[i] >= at) ++i;
        while (j < b.size() && b[j] >= at) ++j;
        largest = std::max(largest, std::abs(static_cast<double>(i) / static_cast<double>(a.size()) -
                                             static_cast<double>(j) / static_cast<double>(b.size())));
    }
    return largest;
}

}  // namespace spiked::validation

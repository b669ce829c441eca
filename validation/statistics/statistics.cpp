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

double upper_normal(double tail) { return law::quantile(law::complement(law::normal(), tail)); }
double upper_student(double degrees, double tail) {
    return law::quantile(law::complement(law::students_t(degrees), tail));
}

Interval with_limits(double estimate, double error, std::uint64_t count, double z) {
    if (!std::isfinite(estimate) || !std::isfinite(error)) return {.estimate = estimate, .count = count};
    return {estimate, error, estimate - z * error, estimate + z * error, count};
}

/// A logarithm at each size and its variance.
struct LogPoint {
    double size = 0.0;
    double value = 0.0;
    double variance = 0.0;
    std::uint64_t count = 0;
};

Interval slope(const std::vector<LogPoint>& points, double alpha) {
    std::vector<double> sizes, values, weights;
    std::uint64_t fewest = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t count = 0;
    for (const auto& point : points) {
        sizes.push_back(point.size);
        values.push_back(point.value);
        weights.push_back(1.0 / point.variance);
        fewest = std::min(fewest, point.count);
        count += point.count;
    }
    const theory::LineFit line = theory::fit_line(sizes, values, weights);
    if (fewest < 3 || !(line.x_squares > 0.0)) return {.count = count};
    const double degrees = static_cast<double>(fewest - 1);
    return with_limits(line.slope, 1.0 / std::sqrt(line.x_squares), count, upper_student(degrees, alpha / 2.0));
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

AcceptanceRegion around(double predicted, double margin) {
    return {predicted - margin, predicted + margin, predicted, margin};
}
AcceptanceRegion at_most(double bound, double margin) { return {-infinity, bound + margin, bound, margin}; }
AcceptanceRegion at_least(double bound, double margin) { return {bound - margin, infinity, bound, margin}; }

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
    if (count < 2) return {.estimate = mean, .error = error, .count = count};
    return with_limits(mean, error, count, upper_student(static_cast<double>(count - 1), alpha / 2.0));
}

Interval mean_interval(std::span<const double> values, double alpha) {
    Moments moments;
    for (const double value : values) moments.add(value);
    if (moments.missing > 0) return {.count = values.size()};
    return mean_interval(moments.mean, moments.standard_error(), moments.count, alpha);
}

double mean_half_width(double deviation, double count, double alpha) {
    return upper_student(count - 1.0, alpha / 2.0) * deviation / std::sqrt(count);
}

double student_p_value(double t, double degrees) {
    return 2.0 * law::cdf(law::complement(law::students_t(degrees), std::abs(t)));
}

std::uint64_t count_for_half_width(double bound, double deviation, double alpha) {
    double low = 2.0;
    double high = 2.0;
    while (mean_half_width(deviation, high, alpha) >= bound) {
        low = high;
        high *= 2.0;
        if (high > 1e15) return 0;
    }
    while (high - low > 0.5) {
        const double middle = std::floor(0.5 * (low + high));
        if (middle == low) break;
        (mean_half_width(deviation, middle, alpha) < bound ? high : low) = middle;
    }
    return static_cast<std::uint64_t>(high);
}

Interval fraction_interval(std::uint64_t successes, std::uint64_t trials, double alpha) {
    if (trials == 0) return {};
    const double n = static_cast<double>(trials);
    const double k = static_cast<double>(successes);
    const double fraction = k / n;
    Interval interval{fraction, std::sqrt(fraction * (1.0 - fraction) / n), 0.0, 1.0, trials};
    if (successes > 0) interval.low = law::quantile(law::beta_distribution(k, n - k + 1.0), alpha / 2.0);
    if (successes < trials)
        interval.high = law::quantile(law::complement(law::beta_distribution(k + 1.0, n - k), alpha / 2.0));
    return interval;
}

Interval rate_interval(std::span<const SizeDraws> sweep, double alpha) {
    std::vector<LogPoint> points;
    for (const auto& [size, values] : sweep) {
        Moments squares;
        for (const double value : values) squares.add(value * value);
        if (squares.missing > 0 || !(squares.mean > 0.0)) return {.count = values.size()};
        const double relative = squares.standard_error() / squares.mean;
        points.push_back({std::log(static_cast<double>(size)), 0.5 * std::log(squares.mean), 0.25 * relative * relative,
                          squares.count});
    }
    return slope(points, alpha);
}

Interval growth_interval(std::span<const SizeDraws> sweep, double level, double alpha) {
    std::vector<double> sizes, quantiles, lows, highs, weights;
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
        sizes.push_back(std::log(static_cast<double>(size)));
        quantiles.push_back(at(std::round(centre)));
        lows.push_back(at(std::floor(centre - steps)));
        highs.push_back(at(std::ceil(centre + steps)));
        weights.push_back(n);
        count += values.size();
    }
    const theory::LineFit line = theory::fit_line(sizes, quantiles, weights);
    if (!(line.x_squares > 0.0)) return {.count = count};
    double slope = 0.0;
    double below = 0.0;
    double above = 0.0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        const double coefficient = weights[i] * (sizes[i] - line.x_mean) / line.x_squares;
        slope += coefficient * quantiles[i];
        const double down = coefficient * (quantiles[i] - (coefficient > 0.0 ? lows[i] : highs[i]));
        const double up = coefficient * ((coefficient > 0.0 ? highs[i] : lows[i]) - quantiles[i]);
        below += down * down;
        above += up * up;
    }
    const double low = slope - std::sqrt(below);
    const double high = slope + std::sqrt(above);
    return {slope, (high - low) / (2.0 * upper_normal(alpha / 2.0)), low, high, count};
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

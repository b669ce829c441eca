#include "validation/statistics/paired.hpp"

#include <algorithm>
#include <cmath>

#include "validation/statistics/statistics.hpp"

namespace spiked::validation {

double PartEstimate::error() const {
    if (influence.size() < 2 || !(degrees > 0.0)) return std::numeric_limits<double>::quiet_NaN();
    double squares = 0.0;
    for (const auto& [part, moved] : influence) squares += moved * moved;
    return std::sqrt(squares);
}

MeanAndError PartEstimate::mean_and_error() const {
    const double sigma = error();
    return {value, sigma, std::isnan(sigma) ? sigma : degrees};
}

bool PartEstimate::beyond_noise() const {
    const double sigma = error();
    if (!std::isfinite(sigma)) return false;
    const double outside = std::erfc(std::sqrt(2.0));  // two standard errors of the normal law
    const bool equal = !(sigma > 1e-9 * std::abs(value));
    return value != 0.0 && (equal ? std::exp2(-degrees) : student_p_value(value / sigma, degrees)) < outside;
}

PartEstimate combined(const PartEstimate& a, double weight_a, const PartEstimate& b, double weight_b) {
    PartEstimate sum{weight_a * a.value + weight_b * b.value};
    for (const auto& [part, moved] : a.influence) sum.influence[part] += weight_a * moved;
    for (const auto& [part, moved] : b.influence) sum.influence[part] += weight_b * moved;
    sum.degrees = std::min(a.degrees, b.degrees);
    return sum;
}

PartEstimate Parts::mean() const {
    double count = 0.0;
    double sum = 0.0;
    for (const auto& [part, one] : sums) {
        count += one.count;
        sum += one.sum;
    }
    PartEstimate mean{sum / count};
    // Under the working model the influences e have the covariances r_g r_h (w_g [g = h] - w_g w_h), r = (1 -
    // w)^(-1/2), of trace 1, so that the degrees of freedom are 1 over the sum of their squares.
    double squares = 0.0;
    double before = 0.0;
    std::size_t parts = 0;
    for (const auto& [part, one] : sums) {
        const double weight = one.count / count;
        const double others = (count - one.count) / count;
        const double moved = (one.sum - one.count * mean.value) / count;
        mean.influence.emplace_hint(mean.influence.end(), part, others > 0.0 ? moved / std::sqrt(others) : 0.0);
        if (!(one.count > 0.0)) continue;
        ++parts;
        const double ratio = others > 0.0 ? weight * weight / others : 0.0;
        squares += weight * weight + 2.0 * ratio * before;
        before += ratio;
    }
    if (parts < 2) squares = std::numeric_limits<double>::infinity();
    mean.degrees = 1.0 / squares;
    const double whole = std::round(mean.degrees);  // that of equal parts, up to rounding
    if (std::abs(mean.degrees - whole) < 1e-9 * whole) mean.degrees = whole;
    return mean;
}

PartEstimate paired_difference(const Parts& a, const Parts& b) { return combined(a.mean(), 1.0, b.mean(), -1.0); }

PartEstimate paired_ratio(const Parts& a, const Parts& b) {
    const PartEstimate over = a.mean();
    const PartEstimate under = b.mean();
    const double ratio = over.value / under.value;
    PartEstimate estimate = combined(over, 1.0 / under.value, under, -ratio / under.value);
    estimate.value = ratio;
    return estimate;
}

}  // namespace spiked::validation

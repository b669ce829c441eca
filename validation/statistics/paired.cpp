#include "validation/statistics/paired.hpp"

#include <cmath>

#include "validation/statistics/statistics.hpp"

namespace spiked::validation {

double PartEstimate::error() const {
    if (influence.size() < 2) return std::numeric_limits<double>::quiet_NaN();
    double squares = 0.0;
    for (const auto& [part, moved] : influence) squares += moved * moved;
    const auto parts = static_cast<double>(influence.size());
    return std::sqrt(parts / (parts - 1.0) * squares);
}

bool PartEstimate::beyond_noise() const {
    const double sigma = error();
    if (!std::isfinite(sigma)) return false;
    const double outside = std::erfc(std::sqrt(2.0));  // two standard errors of the normal law
    const double freedom = static_cast<double>(influence.size()) - 1.0;
    return sigma > 0.0 ? student_p_value(value / sigma, freedom) < outside : value != 0.0;
}

PartEstimate combined(const PartEstimate& a, double weight_a, const PartEstimate& b, double weight_b) {
    PartEstimate sum{weight_a * a.value + weight_b * b.value};
    for (const auto& [part, moved] : a.influence) sum.influence[part] += weight_a * moved;
    for (const auto& [part, moved] : b.influence) sum.influence[part] += weight_b * moved;
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
    for (const auto& [part, one] : sums)
        mean.influence.emplace_hint(mean.influence.end(), part, (one.sum - one.count * mean.value) / count);
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

#include "validation/paired.hpp"

#include <cmath>
#include <limits>
#include <set>

#include "validation/statistics.hpp"

namespace spiked::validation {
namespace {

struct Total {
    double count = 0.0;
    double mean = 0.0;
};

Total total_of(const Parts& parts) {
    Total total;
    double sum = 0.0;
    for (const auto& [part, one] : parts.sums) {
        total.count += one.count;
        sum += one.sum;
    }
    total.mean = sum / total.count;
    return total;
}

/// By how much a mean moves with the weight of one part.
double influence(const Parts& parts, const Total& total, std::int64_t part) {
    const auto found = parts.sums.find(part);
    return found == parts.sums.end() ? 0.0 : (found->second.sum - found->second.count * total.mean) / total.count;
}

/// An estimate that moves with the mean of a by `slope_a` and with that of b by `slope_b`.
PairedEstimate estimate(double value, const Parts& a, double slope_a, const Parts& b, double slope_b) {
    const Total total_a = total_of(a);
    const Total total_b = total_of(b);
    std::set<std::int64_t> parts;
    for (const auto& [part, one] : a.sums) parts.insert(part);
    for (const auto& [part, one] : b.sums) parts.insert(part);
    double squares = 0.0;
    for (const auto part : parts) {
        const double moved = slope_a * influence(a, total_a, part) + slope_b * influence(b, total_b, part);
        squares += moved * moved;
    }
    const auto count = static_cast<double>(parts.size());
    return {value,
            parts.size() > 1 ? std::sqrt(count / (count - 1.0) * squares) : std::numeric_limits<double>::quiet_NaN(),
            parts.size()};
}

}  // namespace

double Parts::mean() const { return total_of(*this).mean; }

double Parts::error() const { return estimate(0.0, *this, 1.0, {}, 0.0).error; }

bool PairedEstimate::beyond_noise() const {
    if (parts < 2 || !std::isfinite(error)) return false;
    const double outside = std::erfc(std::sqrt(2.0));  // of two standard errors in the normal law
    return error > 0.0 ? student_chance(value / error, static_cast<double>(parts) - 1.0) < outside : value != 0.0;
}

PairedEstimate paired_difference(const Parts& a, const Parts& b) {
    return estimate(a.mean() - b.mean(), a, 1.0, b, -1.0);
}

PairedEstimate paired_ratio(const Parts& a, const Parts& b) {
    const double ratio = a.mean() / b.mean();
    return estimate(ratio, a, 1.0 / b.mean(), b, -ratio / b.mean());
}

}  // namespace spiked::validation

#include "validation/statistics/moments.hpp"

#include <algorithm>
#include <cmath>

namespace spiked::validation {

void Moments::add(double value) {
    if (std::isnan(value)) {
        ++missing;
        return;
    }
    Moments one;
    one.count = 1;
    one.mean = one.low = one.high = value;
    merge(one);
}

void Moments::merge(const Moments& other) {
    missing += other.missing;
    if (other.count == 0) return;
    const double a = static_cast<double>(count);
    const double b = static_cast<double>(other.count);
    const double n = a + b;
    const double delta = other.mean - mean;
    const double step = delta / n;
    m4 += other.m4 + delta * step * step * step * a * b * (a * a - a * b + b * b) +
          6.0 * step * step * (a * a * other.m2 + b * b * m2) + 4.0 * step * (a * other.m3 - b * m3);
    m3 += other.m3 + delta * step * step * a * b * (a - b) + 3.0 * step * (a * other.m2 - b * m2);
    m2 += other.m2 + delta * step * a * b;
    mean += b * step;
    count += other.count;
    low = std::min(low, other.low);
    high = std::max(high, other.high);
}

double Moments::standard_error() const {
    if (count < 2) return std::numeric_limits<double>::quiet_NaN();
    const double n = static_cast<double>(count);
    return std::sqrt(m2 / (n - 1.0) / n);
}

}  // namespace spiked::validation

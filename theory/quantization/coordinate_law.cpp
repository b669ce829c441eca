#include "theory/quantization/coordinate_law.hpp"

#include <boost/math/distributions/normal.hpp>
#include <boost/math/special_functions/beta.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <numbers>

namespace spiked::theory {

// On the sphere z^2 / d has the law Beta(1/2, (d-1)/2), and the density of z is proportional to
// (1 - z^2/d)^((d-3)/2), whose first moment has an elementary integral.

CoordinateLaw::CoordinateLaw(theory::CodebookLaw law, std::size_t dimension)
    : normal_(law == theory::CodebookLaw::normal), d_(static_cast<double>(dimension)) {}

double CoordinateLaw::tail(double x) const {
    if (normal_) return 0.5 * std::erfc(x / std::numbers::sqrt2);
    const double fraction = x * x / d_;
    if (fraction >= 1.0) return 0.0;
    if (d_ == 1.0) return 0.5;
    return 0.5 * boost::math::ibetac(0.5, 0.5 * (d_ - 1.0), fraction);
}

double CoordinateLaw::tail_mean(double x) const {
    if (normal_) return std::exp(-0.5 * x * x) / std::sqrt(2.0 * std::numbers::pi);
    const double fraction = x * x / d_;
    if (fraction >= 1.0) return 0.0;
    if (d_ == 1.0) return 0.5;
    // Half of E |z|, times the fraction of it beyond x.
    const double half = 0.5 * std::sqrt(d_ / std::numbers::pi) * boost::math::tgamma_delta_ratio(0.5 * d_, 0.5);
    return half * std::pow(1.0 - fraction, 0.5 * (d_ - 1.0));
}

double CoordinateLaw::quantile(double p) const {
    if (normal_) return boost::math::quantile(boost::math::normal(), p);
    const double sign = p < 0.5 ? -1.0 : 1.0;
    if (d_ == 1.0) return sign;
    return sign * std::sqrt(d_ * boost::math::ibeta_inv(0.5, 0.5 * (d_ - 1.0), std::abs(2.0 * p - 1.0)));
}

}  // namespace spiked::theory

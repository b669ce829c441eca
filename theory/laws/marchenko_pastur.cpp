#include "theory/laws/marchenko_pastur.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace spiked::theory {
namespace {

/// (arg(1 + c e^{ia}) - c sin a) / c^2, computed by its series where the difference would cancel.
double scaled_argument(double c, double a) {
    if (c > 0.2) {
        const double half = std::sin(a / 2.0);
        const double real = (1.0 - c) + 2.0 * c * (1.0 - half * half);  // 1 + c cos a
        return (std::atan2(c * std::sin(a), real) - c * std::sin(a)) / (c * c);
    }
    double sum = 0.0;
    double power = -1.0;
    for (int k = 2; k < 30; ++k) {
        sum += power * std::sin(k * a) / k;
        power *= -c;
        if (std::abs(power) < 1e-18) break;
    }
    return sum;
}

}  // namespace

MarchenkoPastur::MarchenkoPastur(AspectRatio aspect) : beta_(aspect.value()) {
    const double root_beta = std::sqrt(beta_);
    ratio_ = std::min(root_beta, 1.0 / root_beta);
    lower_ = (1.0 - root_beta) * (1.0 - root_beta);
    upper_ = (1.0 + root_beta) * (1.0 + root_beta);
    mass_at_zero_ = beta_ > 1.0 ? 1.0 - 1.0 / beta_ : 0.0;
}

double MarchenkoPastur::density(Eigenvalue x) const {
    const double v = x.value;
    if (!(v >= lower_ && v <= upper_)) return 0.0;
    if (v == 0.0) return std::numeric_limits<double>::infinity();
    return std::sqrt((upper_ - v) * (v - lower_)) / (2.0 * std::numbers::pi * beta_ * v);
}

// The angle a of x = 1 + beta + 2 sqrt(beta) cos a runs from 0 at the upper edge to pi at the lower one. In it the
// continuous part, scaled to mass 1, is (2/pi) sin^2 a / (1 + c^2 + 2 c cos a) with c = min(sqrt beta, 1/sqrt beta).
// The same formula holds for beta and 1/beta, and it is smooth at both edges.
double MarchenkoPastur::angle_of(double x) const {
    return 2.0 * std::atan2(std::sqrt(std::max(0.0, upper_ - x)), std::sqrt(std::max(0.0, x - lower_)));
}

double MarchenkoPastur::upper_mass(double a) const {
    const double c = ratio_;
    const double mass = (a + (1.0 - c * c) * scaled_argument(c, a) - c * std::sin(a)) / std::numbers::pi;
    return std::clamp(mass, 0.0, 1.0);
}

double MarchenkoPastur::survival(Eigenvalue x) const {
    if (!(x.value >= 0.0)) return 1.0;
    return (1.0 - mass_at_zero_) * upper_mass(angle_of(x.value));
}

double MarchenkoPastur::cdf(Eigenvalue x) const {
    if (!(x.value >= 0.0)) return 0.0;
    return 1.0 - survival(x);
}

Eigenvalue MarchenkoPastur::quantile(double probability) const {
    if (!(probability >= 0.0 && probability <= 1.0))
        throw usage_error("probability {} is not usable (outside 0 to 1): give a number from 0 to 1", probability);
    if (probability <= mass_at_zero_) return {mass_at_zero_ > 0.0 ? 0.0 : lower_};
    const double target = (1.0 - probability) / (1.0 - mass_at_zero_);
    const double c = ratio_;
    double low = 0.0;
    double high = std::numbers::pi;
    double a = std::numbers::pi * target;
    for (int iteration = 0; iteration < 200; ++iteration) {
        const double miss = upper_mass(a) - target;
        if (miss == 0.0) break;
        (miss < 0.0 ? low : high) = a;
        const double half_sine = std::sin(a / 2.0);
        const double half_cosine = std::cos(a / 2.0);
        const double modulus = (1.0 - c) * (1.0 - c) + 4.0 * c * half_cosine * half_cosine;
        const double slope =
            modulus > 0.0 ? 8.0 / std::numbers::pi * half_sine * half_sine * half_cosine * half_cosine / modulus : 0.0;
        double next = slope > 0.0 ? a - miss / slope : low - 1.0;
        if (!(next > low && next < high)) next = 0.5 * (low + high);
        const double step = std::abs(next - a);
        a = next;
        if (step <= 4e-16) break;
    }
    const double half_sine = std::sin(a / 2.0);
    const double half_cosine = std::cos(a / 2.0);
    return {half_sine < half_cosine ? upper_ - (upper_ - lower_) * half_sine * half_sine
                                    : lower_ + (upper_ - lower_) * half_cosine * half_cosine};
}

}  // namespace spiked::theory

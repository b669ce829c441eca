#include "theory/laws/spiked_covariance.hpp"

#include <algorithm>
#include <cmath>

namespace spiked::theory {

SpikedCovariance::SpikedCovariance(AspectRatio samples_over_features, double noise_level)
    : gamma_(1.0 / samples_over_features.value()), root_gamma_(std::sqrt(gamma_)), noise_level_(noise_level) {
    if (!(noise_level > 0.0 && std::isfinite(noise_level)))
        throw usage_error(
            "noise level {} is not usable (a variance, positive and finite): give the variance of the noise",
            noise_level);
}

Eigenvalue SpikedCovariance::upper_edge() const { return {noise_level_ * (1.0 + root_gamma_) * (1.0 + root_gamma_)}; }

Eigenvalue SpikedCovariance::lower_edge() const {
    const double root = std::max(0.0, 1.0 - root_gamma_);
    return {noise_level_ * root * root};
}

Eigenvalue SpikedCovariance::detection_threshold() const { return {noise_level_ * (1.0 + root_gamma_)}; }

double SpikedCovariance::relative(Eigenvalue population) const {
    if (!(population.value >= 0.0 && std::isfinite(population.value)))
        throw usage_error(
            "population eigenvalue {} is not usable (0 or more, finite): give an eigenvalue of a covariance",
            population.value);
    return population.value / noise_level_;
}

bool SpikedCovariance::detectable(Eigenvalue population) const {
    return std::abs(relative(population) - 1.0) > root_gamma_;
}

Eigenvalue SpikedCovariance::sample_eigenvalue(Eigenvalue population) const {
    const double spike = relative(population);
    if (!detectable(population)) return spike >= 1.0 ? upper_edge() : lower_edge();
    return {noise_level_ * spike * (1.0 + gamma_ / (spike - 1.0))};
}

std::optional<Eigenvalue> SpikedCovariance::population_eigenvalue(Eigenvalue sample) const {
    if (!(sample.value >= 0.0)) return std::nullopt;
    const double value = sample.value / noise_level_;
    const double upper = (1.0 + root_gamma_) * (1.0 + root_gamma_);
    const double lower = (1.0 - root_gamma_) * (1.0 - root_gamma_);
    // The roots l of l^2 - (value + 1 - gamma) l + value = 0: the larger belongs to a spike above the bulk, the smaller
    // to one below it. Both are written as their distance from the threshold, which is exact there, and two separate
    // roots avoid overflow.
    if (value > upper) {
        const double above = value - upper;
        return Eigenvalue{noise_level_ *
                          (1.0 + root_gamma_ + 0.5 * (above + std::sqrt(above) * std::sqrt(value - lower)))};
    }
    if (gamma_ < 1.0 && value < lower) {
        const double sum = value + 1.0 - gamma_;
        const double larger = 0.5 * (sum + std::sqrt(lower - value) * std::sqrt(upper - value));
        return Eigenvalue{noise_level_ * (value / larger)};
    }
    return std::nullopt;
}

Overlap SpikedCovariance::squared_cosine(Eigenvalue population) const {
    if (!detectable(population)) return {0.0};
    const double excess = relative(population) - 1.0;
    // 1 - gamma / excess^2, factored so that it is exact at the threshold.
    const double numerator = (1.0 - root_gamma_ / std::abs(excess)) * (1.0 + root_gamma_ / std::abs(excess));
    return {std::clamp(numerator / (1.0 + gamma_ / excess), 0.0, 1.0)};
}

std::optional<SpikedCovariance::Spread> SpikedCovariance::spread(Eigenvalue population, double score_cumulant) const {
    if (!detectable(population)) return std::nullopt;
    const double spike = relative(population);
    const double excess = spike - 1.0;
    // Derivatives of the sample eigenvalue with respect to the spike; those of m follow, because m(sample) = 1/spike.
    // Everything is multiplied by powers of the spike, so that it stays finite for a spike of 0.
    const double first = (1.0 - root_gamma_ / std::abs(excess)) * (1.0 + root_gamma_ / std::abs(excess));
    const double second = 2.0 * gamma_ * spike / (excess * excess * excess);
    const double third = -6.0 * gamma_ * spike * spike / (excess * excess * excess * excess);
    const double curvature = -(2.0 + second / first) / first;  // spike m''/m'
    const double turn = (6.0 + (6.0 * second - third + 3.0 * second * second / first) / first) / (first * first);
    const double slope = 1.0 / (1.0 + gamma_ / excess) + curvature;
    const double of_eigenvalue = first * (2.0 + score_cumulant * first);
    const double of_logarithm = 2.0 * slope * slope * first - 2.0 * slope * curvature * first + first * turn / 3.0 +
                                score_cumulant * (slope * first + 1.0) * (slope * first + 1.0);
    const double deviation = noise_level_ * spike * std::sqrt(std::max(0.0, of_eigenvalue));
    // The log of the estimate moves by -(slope + 1/first) where that of the true cosine moves by -slope, so that the
    // variance of the difference is of_logarithm with -1/first in place of the slope. Most terms cancel.
    const double of_error = 2.0 * gamma_ * (1.0 + gamma_ / (excess * excess)) / (first * first * first);
    const double cosine = squared_cosine(population).value;
    return Spread{deviation, deviation / first, cosine * std::sqrt(std::max(0.0, of_logarithm)),
                  cosine * spike / (excess * excess) * std::sqrt(of_error)};
}

}  // namespace spiked::theory

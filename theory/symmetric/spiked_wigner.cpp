#include "theory/symmetric/spiked_wigner.hpp"

#include <cmath>

namespace spiked::theory {
namespace {

/// 1 - q, exact at the threshold; `relative` is the modulus of the strength in units of the noise level, above 1.
double cleared(double relative) { return (1.0 - 1.0 / relative) * (1.0 + 1.0 / relative); }

}  // namespace

SpikedWigner::SpikedWigner(double noise_level, Field field) : level_(noise_level), field_(field) {
    if (!(noise_level > 0.0 && std::isfinite(noise_level)))
        throw usage_error(
            "noise level {} is not usable (sigma, positive and finite): give that of entries of variance sigma^2/n",
            noise_level);
}

bool SpikedWigner::detectable(double strength) const {
    if (!std::isfinite(strength))
        throw usage_error("strength {} is not usable (an eigenvalue of the clean matrix, finite): correct it",
                          strength);
    return std::abs(strength) > level_;
}

double SpikedWigner::outlier(double strength) const {
    if (!detectable(strength)) return strength < 0.0 ? -edge() : edge();
    return strength + level_ * (level_ / strength);
}

std::optional<double> SpikedWigner::strength_of(double eigenvalue) const {
    const double modulus = std::abs(eigenvalue);
    if (!(modulus > edge())) return std::nullopt;
    // Half of y + sqrt(y^2 - 4 sigma^2), written as the distance from the threshold.
    const double above = modulus - edge();
    return std::copysign(level_ + 0.5 * (above + std::sqrt(above) * std::sqrt(modulus + edge())), eigenvalue);
}

Overlap SpikedWigner::squared_overlap(double strength) const {
    if (!detectable(strength)) return {0.0};
    return {cleared(std::abs(strength) / level_)};
}

double SpikedWigner::shrunk(double eigenvalue, Loss loss) const {
    const auto strength = strength_of(eigenvalue);
    if (!strength) return 0.0;
    const double overlap = squared_overlap(*strength).value;
    return std::copysign(shrink(std::abs(*strength), overlap, overlap, loss), eigenvalue);
}

std::optional<SpikedWigner::Spread> SpikedWigner::spread(double strength, const WignerEntries& entries) const {
    if (!detectable(strength)) return std::nullopt;
    const double c = gaussian_diagonal(field_);
    const double k = entries.excess_kurtosis;
    const double f = entries.fourth_powers;
    const double of_diagonal = entries.diagonal_variance.value_or(c) - c;
    const double q = std::pow(level_ / strength, 2);
    const double rest = cleared(std::abs(strength) / level_);
    const double outlier = rest * (c + f * rest * (of_diagonal + k * q));
    const double gaussian = c * q * q * (1.0 + q) / (rest * rest * rest);
    const double of_entries =
        f * (4.0 * of_diagonal * q * q * q + k * q * q * (1.0 - 3.0 * q) * (1.0 - 3.0 * q)) / (rest * rest);
    const auto root = [](double variance) { return std::sqrt(std::fmax(0.0, variance)); };
    return Spread{level_ * root(outlier), level_ * root(outlier) / rest, rest * root(gaussian + of_entries),
                  rest * root(gaussian + f * k * q * q)};
}

double SpikedWigner::edge_at(std::size_t size, const WignerEntries& entries) const {
    const double c = gaussian_diagonal(field_);
    const double shift = entries.diagonal_variance.value_or(c) - c + entries.excess_kurtosis;
    const double centring = field_ == Field::real ? 0.5 : 0.0;
    return level_ * (2.0 + (shift - centring) / static_cast<double>(size));
}

double SpikedWigner::edge_unit(std::size_t size) const {
    return level_ * std::pow(static_cast<double>(size), -2.0 / 3.0);
}

double SpikedWigner::p_value(double modulus, std::size_t size, const WignerEntries& entries) const {
    const double survival = tracy_widom_survival((modulus - edge_at(size, entries)) / edge_unit(size), field_);
    return survival * (2.0 - survival);
}

double SpikedWigner::critical_modulus(double level, std::size_t size, const WignerEntries& entries) const {
    // One end: 1 - sqrt(1 - level), without cancellation.
    const double tail = level / (1.0 + std::sqrt(1.0 - level));
    return edge_at(size, entries) + edge_unit(size) * tracy_widom_upper_quantile(tail, field_);
}

}  // namespace spiked::theory

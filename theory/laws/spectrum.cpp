#include "theory/laws/spectrum.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "theory/laws/marchenko_pastur.hpp"

namespace spiked::theory {
namespace {

void require_count(std::size_t count) {
    if (count == 0) throw usage_error("spectrum of 0 points (a law needs at least one eigenvalue): give N >= 1");
}

void require_correlation(double rho) {
    if (!(std::abs(rho) < 1.0))
        throw usage_error(
            "AR(1) correlation {} is not usable (rho^|i-j| is a covariance only for -1 < rho < 1): give rho inside "
            "(-1, 1)",
            rho);
}

void require_finite(double value, const char* what) {
    if (!std::isfinite(value))
        throw usage_error("{} {} is not usable (not a finite number): give a number", what, value);
}

/// (1 - rho^2) / (1 - 2 rho cos(angle) + rho^2), with the denominator as a sum of squares for accuracy as rho -> 1.
double ar1_symbol(double rho, double angle) {
    const double near = 1.0 - rho;
    const double half = std::sin(angle / 2.0);
    return near * (1.0 + rho) / (near * near + 4.0 * rho * half * half);
}

}  // namespace

Spectrum::Spectrum(std::vector<Atom> atoms) : atoms_(std::move(atoms)) {
    if (atoms_.empty()) throw usage_error("empty spectrum (a law needs at least one atom): give value,weight pairs");
    long double sum = 0.0L;
    for (std::size_t i = 0; i < atoms_.size(); ++i) {
        const auto [value, weight] = atoms_[i];
        if (!(value >= 0.0) || !std::isfinite(value))
            throw usage_error(
                "atom {} of the spectrum has value {} (eigenvalues of a covariance are finite and not negative): "
                "correct it",
                i + 1, value);
        if (!(weight > 0.0) || !std::isfinite(weight))
            throw usage_error(
                "atom {} of the spectrum has weight {} (weights are positive and finite): correct it or leave the atom "
                "out",
                i + 1, weight);
        sum += weight;
    }
    if (std::abs(static_cast<double>(sum - 1.0L)) > 1e-9)
        throw usage_error("weights of the spectrum sum to {} (they must sum to 1): divide them by their sum",
                          static_cast<double>(sum));
    std::sort(atoms_.begin(), atoms_.end(), [](const Atom& a, const Atom& b) { return a.value > b.value; });
    std::size_t kept = 0;
    for (std::size_t i = 1; i < atoms_.size(); ++i) {
        if (atoms_[i].value == atoms_[kept].value)
            atoms_[kept].weight += atoms_[i].weight;
        else
            atoms_[++kept] = atoms_[i];
    }
    atoms_.resize(kept + 1);
    if (largest() == 0.0)
        throw usage_error("all-zero spectrum (noise without variance has no edge): give at least one positive value");
    for (Atom& atom : atoms_) atom.weight = static_cast<double>(atom.weight / sum);
}

Spectrum Spectrum::of_values(std::span<const double> values) {
    const double weight = 1.0 / static_cast<double>(values.size());
    std::vector<Atom> atoms;
    atoms.reserve(values.size());
    for (const double value : values) atoms.push_back({value, weight});
    return Spectrum(std::move(atoms));
}

double Spectrum::mean() const {
    long double sum = 0.0L;
    for (const Atom& atom : atoms_) sum += static_cast<long double>(atom.weight) * atom.value;
    return static_cast<double>(sum);
}

double Spectrum::mean_square() const {
    long double sum = 0.0L;
    for (const Atom& atom : atoms_) sum += static_cast<long double>(atom.weight) * atom.value * atom.value;
    return static_cast<double>(sum);
}

RelativeAtoms::RelativeAtoms(const Spectrum& spectrum) : largest(spectrum.largest()) {
    value.reserve(spectrum.atoms().size());
    weight.reserve(spectrum.atoms().size());
    long double zero = 0.0L;
    for (const Atom& atom : spectrum.atoms()) {
        value.push_back(atom.value / largest);
        weight.push_back(atom.weight);
        if (atom.value == 0.0) zero += atom.weight;
    }
    positive_weight = static_cast<double>(1.0L - zero);
}

Spectrum identity_spectrum() { return Spectrum({{1.0, 1.0}}); }

Spectrum ar1_symbol_spectrum(double rho, std::size_t count) {
    require_correlation(rho);
    require_count(count);
    std::vector<double> values(count);
    for (std::size_t k = 0; k < count; ++k)
        values[k] = ar1_symbol(
            rho, std::numbers::pi * (2.0 * static_cast<double>(k) + 1.0) / (2.0 * static_cast<double>(count)));
    return Spectrum::of_values(values);
}

Spectrum toeplitz_ar1_spectrum(double rho, std::size_t count) {
    require_correlation(rho);
    require_count(count);
    // The eigenvalues are the symbol at the angles where the phase (N+1) x + 2 arg(1 - rho e^{-ix}) is k pi, k = 1..N.
    // The phase increases from 0 to (N+1) pi with slope at least N, so each k has one angle, and Newton's method is
    // safe inside its bracket. The argument is computed as pi/2 minus itself, because for rho near 1 the first angle is
    // tiny and would be lost in the rounding of pi. A diagonal similarity with alternating signs maps -rho to rho, so
    // |rho| is sufficient.
    const double r = std::abs(rho);
    const double size = static_cast<double>(count);
    std::vector<double> values(count);
    for (std::size_t k = 1; k <= count; ++k) {
        const double target = std::numbers::pi * static_cast<double>(k - 1);
        double low = target / (size + 1.0);
        double high = std::numbers::pi * static_cast<double>(k) / (size + 1.0);
        double angle = 0.5 * (low + high);
        for (int iteration = 0; iteration < 100; ++iteration) {
            const double half = std::sin(angle / 2.0);
            const double real = (1.0 - r) + 2.0 * r * half * half;  // 1 - r cos(angle)
            const double lead = std::atan2(real, r * std::sin(angle));
            const double residual = (size + 1.0) * angle - 2.0 * lead - target;
            const double squared_modulus = (1.0 - r) * (1.0 - r) + 4.0 * r * half * half;
            const double slope = size + 1.0 + 2.0 * r * (std::cos(angle) - r) / squared_modulus;
            (residual < 0.0 ? low : high) = angle;
            double next = angle - residual / slope;
            if (!(next >= low && next <= high)) next = 0.5 * (low + high);
            const bool settled = std::abs(next - angle) <= 2e-16 * angle;
            angle = next;
            if (settled) break;
        }
        values[k - 1] = ar1_symbol(r, angle);
    }
    return Spectrum::of_values(values);
}

Spectrum two_atom_spectrum(double low, double high, double weight_of_high) {
    if (!(weight_of_high > 0.0 && weight_of_high < 1.0))
        throw usage_error(
            "weight {} of the upper atom is not usable (it must lie strictly between 0 and 1): change it, or use "
            "identity",
            weight_of_high);
    return Spectrum({{low, 1.0 - weight_of_high}, {high, weight_of_high}});
}

Spectrum uniform_spectrum(double low, double high, std::size_t count) {
    require_count(count);
    if (!(low >= 0.0) || !(high >= low) || !std::isfinite(high))
        throw usage_error(
            "uniform spectrum from {} to {} is not usable (0 <= low <= high, finite): swap or correct the ends", low,
            high);
    std::vector<double> values(count);
    for (std::size_t j = 0; j < count; ++j)
        values[j] = low + (high - low) * (2.0 * static_cast<double>(j) + 1.0) / (2.0 * static_cast<double>(count));
    return Spectrum::of_values(values);
}

Spectrum exponential_spectrum(double decay, std::size_t count) {
    require_count(count);
    require_finite(decay, "decay");
    std::vector<double> values(count);
    for (std::size_t j = 0; j < count; ++j)
        values[j] = std::exp(-decay * (2.0 * static_cast<double>(j) + 1.0) / (2.0 * static_cast<double>(count)));
    return Spectrum::of_values(values);
}

Spectrum power_spectrum(double exponent, std::size_t count) {
    require_count(count);
    require_finite(exponent, "exponent");
    std::vector<double> values(count);
    for (std::size_t j = 0; j < count; ++j) values[j] = std::pow(static_cast<double>(j + 1), -exponent);
    return Spectrum::of_values(values);
}

Spectrum wishart_spectrum(AspectRatio aspect, std::size_t count) {
    require_count(count);
    const MarchenkoPastur law(aspect);
    std::vector<double> values(count);
    for (std::size_t j = 0; j < count; ++j)
        values[j] = law.quantile((2.0 * static_cast<double>(j) + 1.0) / (2.0 * static_cast<double>(count))).value;
    return Spectrum::of_values(values);
}

}  // namespace spiked::theory

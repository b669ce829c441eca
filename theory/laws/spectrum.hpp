#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "theory/laws/quantities.hpp"

namespace spiked::theory {

/// One point of a population spectrum: an eigenvalue of a covariance and the fraction of eigenvalues equal to it.
struct Atom {
    double value = 0.0;
    double weight = 0.0;
};

/// The eigenvalue law of a row covariance A or a column covariance B, as finitely many atoms.
/// Values are eigenvalues (variances), finite, not negative, not all zero; weights are positive and sum to 1.
class Spectrum {
public:
    /// Sorts by value, largest first, merges equal values, and divides the weights by their sum.
    /// Throws usage_error, naming the atom (counted from 1), for an empty list, a value that is negative or not finite,
    /// a weight that is not positive and finite, weights whose sum differs from 1 by more than 1e-9, and a spectrum of
    /// zeros.
    explicit Spectrum(std::vector<Atom> atoms);

    /// The law of a list of eigenvalues, each with the same weight.
    [[nodiscard]] static Spectrum of_values(std::span<const double> values);

    /// Largest value first; values are distinct.
    [[nodiscard]] const std::vector<Atom>& atoms() const { return atoms_; }
    [[nodiscard]] double largest() const { return atoms_.front().value; }
    [[nodiscard]] double mean() const;         ///< tr A / n
    [[nodiscard]] double mean_square() const;  ///< tr A^2 / n

private:
    std::vector<Atom> atoms_;
};

/// The atoms of a spectrum in two arrays, for sums over them, with values divided by the largest so that no product of
/// values of two spectra can overflow.
struct RelativeAtoms {
    std::vector<double> value;  ///< from 1 down
    std::vector<double> weight;
    double largest = 0.0;          ///< what the values are divided by
    double positive_weight = 0.0;  ///< exactly 1 if no value is 0, whatever the rounding of the weights

    explicit RelativeAtoms(const Spectrum& spectrum);
};

/// The builders below implement the SPEC names of `spiked theory`. All throw usage_error for parameters outside the
/// stated range and for count = 0.

/// All eigenvalues 1, the spectrum of white noise.
[[nodiscard]] Spectrum identity_spectrum();

/// The spectral density of an AR(1) process of unit variance, rho in (-1, 1), at `count` midpoints of (0, pi):
/// (1 - rho^2) / (1 - 2 rho cos(pi (2k-1) / (2 count)) + rho^2), k = 1..count, the convention of
/// tests/data/theory_reference.csv. It approaches toeplitz_ar1_spectrum as count grows.
[[nodiscard]] Spectrum ar1_symbol_spectrum(double rho, std::size_t count);

/// The eigenvalues of the count x count matrix rho^|i-j|, rho in (-1, 1), from the trigonometric equation of Kac,
/// Murdock and Szego (1953); no matrix is formed. The mean is 1 up to rounding. Cost: about 5 Newton steps per
/// eigenvalue.
[[nodiscard]] Spectrum toeplitz_ar1_spectrum(double rho, std::size_t count);

/// `high` with weight weight_of_high in (0, 1), and `low` with the remaining weight.
[[nodiscard]] Spectrum two_atom_spectrum(double low, double high, double weight_of_high);

/// low + (high - low) (j - 1/2) / count, j = 1..count.
[[nodiscard]] Spectrum uniform_spectrum(double low, double high, std::size_t count);

/// exp(-decay (j - 1/2) / count), j = 1..count.
[[nodiscard]] Spectrum exponential_spectrum(double decay, std::size_t count);

/// j^(-exponent), j = 1..count.
[[nodiscard]] Spectrum power_spectrum(double exponent, std::size_t count);

/// Quantiles of the Marchenko-Pastur law of that aspect at (j - 1/2) / count, which is the spectrum of a sample
/// covariance with `aspect` variables per observation.
[[nodiscard]] Spectrum wishart_spectrum(AspectRatio aspect, std::size_t count);

}  // namespace spiked::theory

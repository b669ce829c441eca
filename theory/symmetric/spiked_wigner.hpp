#pragma once
#include <cstddef>
#include <optional>

#include "theory/laws/quantities.hpp"
#include "theory/laws/shrinkers.hpp"
#include "theory/laws/tracy_widom.hpp"

namespace spiked::theory {

/// Variance of the diagonal over that of the other entries in the Gaussian ensembles.
[[nodiscard]] constexpr double gaussian_diagonal(Field field) { return field == Field::real ? 2.0 : 1.0; }

/// What finite size and fluctuations of a spiked Wigner matrix depend on beside the noise level.
struct WignerEntries {
    /// Of the entries above the diagonal: E x^4 / (E x^2)^2 - 3 of real ones, E |x|^4 / (E |x|^2)^2 - 2 of complex
    /// ones.
    double excess_kurtosis = 0.0;
    /// Variance of the diagonal over that of the other entries; by default gaussian_diagonal.
    std::optional<double> diagonal_variance = {};
    /// sum |v_i|^4 of the eigenvector of a spike, from 1/n to 1; 0 for one that is spread over many coordinates.
    double fourth_powers = 0.0;
};

/// The spiked Wigner model: a symmetric n x n matrix W + sum_k s_k v_k v_k^T, or a Hermitian one, where the entries of
/// W on and above the diagonal are independent with mean 0, those above it of variance sigma^2 / n. The eigenvalues of
/// W fill [-2 sigma, 2 sigma] (the semicircle law), and a spike of strength s, of either sign, leaves it when |s| >
/// sigma. With q = sigma^2 / s^2,
///     eigenvalue        s + sigma^2 / s
///     squared overlap   1 - q,  between the eigenvectors of signal and observation.
/// All numbers are eigenvalues of the matrix itself, signed, in the unit of sigma = `noise_level`; the limits are the
/// same for real and complex entries.
/// Source: Peche 2006; Capitaine, Donati-Martin and Feral 2009; Benaych-Georges and Nadakuditi 2011.
/// Accuracy: a few ulp, for overlaps relative to the distance from the threshold. Cost: nanoseconds.
class SpikedWigner {
public:
    /// Throws usage_error for a noise level that is not positive and finite.
    explicit SpikedWigner(double noise_level = 1.0, Field field = Field::real);

    [[nodiscard]] double edge() const { return 2.0 * level_; }
    [[nodiscard]] double detection_threshold() const { return level_; }
    [[nodiscard]] bool detectable(double strength) const;
    /// The limit of the eigenvalue that belongs to a spike: an edge where it is not detectable, the upper one for 0.
    [[nodiscard]] double outlier(double strength) const;
    /// Its inverse: the strength behind an eigenvalue; nothing within the bulk and at its edges.
    [[nodiscard]] std::optional<double> strength_of(double eigenvalue) const;
    /// 0 where the spike is not detectable.
    [[nodiscard]] Overlap squared_overlap(double strength) const;
    /// The eigenvalue of the estimated signal that minimises the loss, by the observed eigenvalue; 0 within the bulk.
    /// With one basis for rows and columns the optima are those of singular values with equal overlaps: the loss of one
    /// spike is that of a 2 x 2 matrix, whose eigenvalues have the sum s - x and the product -x s (1 - overlap).
    [[nodiscard]] double shrunk(double eigenvalue, Loss loss = Loss::frobenius) const;

    /// Limits of sqrt(n) times standard deviations.
    struct Spread {
        double outlier = 0.0;            ///< of the observed eigenvalue
        double strength = 0.0;           ///< of the strength computed from it, noise level known
        double squared_overlap = 0.0;    ///< of the true one of that matrix, around its limit
        double estimated_overlap = 0.0;  ///< the estimate from the eigenvalue minus the true one of that matrix
    };
    /// Nothing where the spike is not detectable. v^T (z - W)^(-1) v is sum_k m(z)^(k+1) x_k with m(z) = 1/s at the
    /// outlier and x_k = v^T U_k(W) v for Chebyshev polynomials U_k. In the limit the x_k are independent, x_0 = 1 and
    /// the others of variance c/n, where c = 2 for real entries and 1 for complex ones. With f = sum |v_i|^4, the
    /// diagonal's variance w and the excess kurtosis k, the variance of x_1 is (c + f (w - c)) / n and that of x_2 is
    /// (c + f k) / n. Hence, times n and in units of sigma,
    ///     eigenvalue                 c (1 - q) + f (1 - q)^2 (w - c + k q)
    ///     strength                   the same over (1 - q)^2
    ///     log overlap                c q^2 (1 + q) / (1 - q)^3 + f (4 (w - c) q^3 + k q^2 (1 - 3 q)^2) / (1 - q)^2
    ///     log overlap minus its estimate    c q^2 (1 + q) / (1 - q)^3 + f k q^2.
    /// The first is that of Capitaine, Donati-Martin and Feral 2009 for v = e_1 (f = 1), where the law is that of the
    /// diagonal entry added to a Gaussian one, and of Knowles and Yin 2013, 2014. Their term with the third moment of
    /// the entries is left out: it needs a vector with both a few large entries and a sum of order sqrt(n).
    [[nodiscard]] std::optional<Spread> spread(double strength, const WignerEntries& entries = {}) const;

    /// Where the largest eigenvalue of the noise lies at size n, but for the fluctuation: to first order in 1/n,
    /// sigma (2 + (w - c + k) / n), and for real entries less sigma / (2 n) (Johnstone and Ma 2012 for Gaussian ones;
    /// the kurtosis as in Lee and Schnelli 2018). The fluctuation is sigma n^(-2/3) times the Tracy-Widom law of the
    /// field (Lee and Yin 2014: for entries with P(|x| > t) = o(t^-4)), and so for minus the smallest eigenvalue,
    /// independent of it in the limit.
    [[nodiscard]] double edge_at(std::size_t size, const WignerEntries& entries = {}) const;
    [[nodiscard]] double edge_unit(std::size_t size) const;  ///< sigma n^(-2/3)
    /// The probability that the largest modulus of an eigenvalue of noise of this size is at least this large.
    [[nodiscard]] double p_value(double modulus, std::size_t size, const WignerEntries& entries = {}) const;
    /// The modulus that has this p-value.
    [[nodiscard]] double critical_modulus(double level, std::size_t size, const WignerEntries& entries = {}) const;

private:
    double level_;
    Field field_;
};

/// The median of |x| under the semicircle law on [-2, 2].
inline constexpr double semicircle_median_modulus = 0.80794550659903437;

}  // namespace spiked::theory

#pragma once
#include <complex>
#include <cstddef>
#include <vector>

#include "theory/laws/quantities.hpp"
#include "theory/laws/separable_law.hpp"

namespace spiked::theory {

/// Both Stieltjes transforms, int 1/(x - z), at one point off the real axis.
struct StieltjesPair {
    std::complex<double> left;   ///< of the law of Z Z^T (mass over n eigenvalues)
    std::complex<double> right;  ///< of the law of Z^T Z (over d)
};

/// One point of the curve of density and distribution function, for plots.
struct BulkPoint {
    Eigenvalue x;
    double density = 0.0;
    double cdf = 0.0;
};

/// The whole eigenvalue distribution of Z Z^T under a SeparableLaw, which generalises MarchenkoPastur to any A and B.
/// Arguments are eigenvalues. The law may have an atom at zero, gaps, and an infinite density at a lower edge of 0.
///
/// Source: research note theory.md 1.1 and 1.4 for the self-consistent equations. Their solution is the stationary
/// point of a potential whose imaginary part is the cdf, so the cdf is a closed form in the solution, without
/// quadrature.
/// Accuracy: cdf and survival 1e-14 absolute, also where the support reaches zero; density 1e-13 times edge / distance
/// to the nearest end of the support, relative; lower edge 1e-14 times 1 / |1 - n/d|; quantile inverts the cdf to
/// 1e-14. Cost: about 50 passes over the atoms for a single point, 5 per point of `curve`; a quantile costs about 10
/// points.
class BulkDistribution {
public:
    explicit BulkDistribution(const SeparableLaw& law);

    /// Left end of the continuous part; 0 when it reaches zero (n/d = 1 with invertible A and B).
    [[nodiscard]] Eigenvalue lower_edge() const { return {lower_ * scale_}; }
    [[nodiscard]] Eigenvalue upper_edge() const { return {upper_ * scale_}; }
    /// The fraction of the n eigenvalues that are exactly zero.
    [[nodiscard]] double mass_at_zero() const { return mass_at_zero_; }
    /// tr A / n times tr B / d.
    [[nodiscard]] double mean() const { return mean_; }

    /// Density of the continuous part; 0 outside the edges; infinite at a lower edge of 0.
    [[nodiscard]] double density(Eigenvalue x) const;
    /// P(eigenvalue <= x), atom included.
    [[nodiscard]] double cdf(Eigenvalue x) const;
    /// P(eigenvalue > x), without the cancellation of 1 - cdf.
    [[nodiscard]] double survival(Eigenvalue x) const;
    /// The smallest x with cdf(x) >= probability. Throws usage_error unless the probability lies in [0, 1].
    [[nodiscard]] Eigenvalue quantile(double probability) const;
    [[nodiscard]] Eigenvalue median() const { return quantile(0.5); }

    /// `count` >= 2 points from edge to edge, closer together near the edges (the cosine of equal angles). At a lower
    /// edge of 0 the first point is moved inside, where the density is finite.
    [[nodiscard]] std::vector<BulkPoint> curve(std::size_t count) const;

    /// Throws usage_error unless Im z > 0 and |z| lies within 1e-250 to 1e250 of the product of the largest atoms.
    [[nodiscard]] StieltjesPair stieltjes(std::complex<double> z) const;

private:
    using Complex = std::complex<double>;

    /// The solution of the self-consistent equations at one z, scaled by the largest atoms.
    struct Solution {
        Complex column;  ///< M1, which enters the sums over B
        Complex row;     ///< M2, which enters the sums over A
        Complex plain;   ///< sum v / (1 + y M1) over positive atoms, which is -z m2 without the atoms at zero
    };

    /// Sums over the positive atoms of a side, with m = 1 / (1 + x M).
    struct Sums {
        Complex plain;   ///< sum w m
        Complex first;   ///< sum w x m
        Complex mixed;   ///< sum w x m^2
        Complex second;  ///< sum w x^2 m^2
    };

    /// One round M1 -> M2 -> M1 through both equations, with its derivative and Newton's step.
    struct Round {
        Complex column;
        Complex slope;
        Complex step;
        Complex row;
        Complex plain;  ///< sum v / (1 + y M1)
    };

    [[nodiscard]] static Sums sums(const RelativeAtoms& side, Complex m);
    [[nodiscard]] Round round(Complex z, Complex column) const;
    [[nodiscard]] bool newton(Complex z, Complex& column) const;
    [[nodiscard]] Solution solve(Complex z, const Complex* near) const;
    [[nodiscard]] double survival_of(const Solution& at) const;
    [[nodiscard]] double density_of(double x, const Solution& at) const;
    [[nodiscard]] bool inside(double x) const { return x > lower_ && x < upper_; }

    RelativeAtoms row_;
    RelativeAtoms column_;
    double beta_;
    double rank_gap_;  ///< (rank of B - rank of A) / d; exactly 0 when they agree
    double scale_;     ///< largest atom of A times largest atom of B; eigenvalues are stored divided by it
    double mass_at_zero_;
    double mean_;
    double lower_;
    double upper_;
};

}  // namespace spiked::theory

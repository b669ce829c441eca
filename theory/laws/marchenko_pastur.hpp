#pragma once
#include "theory/laws/quantities.hpp"

namespace spiked::theory {

/// The limiting law of the eigenvalues of X X^T for an n x d matrix X with independent entries of variance 1/d and
/// n/d -> aspect (Marchenko and Pastur 1967). All arguments are eigenvalues, not singular values. For aspect > 1 the
/// law has an atom of mass 1 - 1/aspect at zero. Accuracy: edges, density and moments to a few ulp; cdf to 1e-15
/// absolute; quantile inverts the cdf to 1e-15. Cost: under a microsecond; a quantile costs about ten times that.
class MarchenkoPastur {
public:
    explicit MarchenkoPastur(AspectRatio aspect);

    [[nodiscard]] Eigenvalue lower_edge() const { return {lower_}; }
    [[nodiscard]] Eigenvalue upper_edge() const { return {upper_}; }
    [[nodiscard]] double mass_at_zero() const { return mass_at_zero_; }

    /// Density of the continuous part; 0 outside the edges (at a lower edge of 0, aspect = 1, it is infinite).
    [[nodiscard]] double density(Eigenvalue x) const;
    /// P(eigenvalue <= x), atom included.
    [[nodiscard]] double cdf(Eigenvalue x) const;
    /// P(eigenvalue > x), without the cancellation of 1 - cdf.
    [[nodiscard]] double survival(Eigenvalue x) const;
    /// The smallest x with cdf(x) >= probability. Throws usage_error unless the probability lies in [0, 1].
    [[nodiscard]] Eigenvalue quantile(double probability) const;
    [[nodiscard]] Eigenvalue median() const { return quantile(0.5); }

private:
    [[nodiscard]] double upper_mass(double angle) const;
    [[nodiscard]] double angle_of(double x) const;

    double beta_;
    double ratio_;  ///< min(sqrt beta, 1 / sqrt beta), the parameter c of the angle form (see angle_of)
    double lower_;
    double upper_;
    double mass_at_zero_;
};

}  // namespace spiked::theory

#pragma once
#include <cstddef>
#include <optional>

#include "theory/laws/quantities.hpp"
#include "theory/laws/separable_law.hpp"
#include "theory/laws/tracy_widom.hpp"

namespace spiked::theory {

/// What the finite-size theory has to know of the entries of X, and of the signal vectors beside them. The default is
/// Gaussian entries.
struct NoiseEntries {
    double excess_kurtosis = 0.0;  ///< E x^4 - 3 for entries x of mean 0 and variance 1
    /// sum_i u_i^4 of the spike's left unit vector, and the same of its right one: 1 for a vector with one nonzero
    /// coordinate. Empty: 3/n and 3/d, those of Haar vectors.
    std::optional<double> left_fourth_powers = {};
    std::optional<double> right_fourth_powers = {};
    /// Complex: entries with E |x|^2 = 1 and E x^2 = 0, such as circular Gaussian ones. Their kurtosis is not taken
    /// into account: finite_size throws usage_error where it is not 0.
    Field field = Field::real;
};

/// Whether A and B are multiples of the identity, the only noise for which the functions below hold.
[[nodiscard]] bool is_white(const SeparableLaw& law);

/// The shift of the edge, k (1 + sqrt(beta))^2 / (sqrt(beta) d) for unit noise, k the
/// excess kurtosis. Source: the limit of `outlier_shift` below at the threshold; for beta = 1 and sparse entries the
/// first term of Hwang, Lee and Yang 2019. It is of order 1/d, the Tracy-Widom scale of order d^(-2/3): the level of a
/// test at the Gaussian edge is wrong by a factor that tends to 1 as d^(-1/3) only. Throws usage_error unless the law
/// is white.
[[nodiscard]] double kurtosis_edge_shift(const SeparableLaw& law, std::size_t columns, const NoiseEntries& entries);

/// The shift of the noise eigenvalues near `at`, a place inside the bulk: that of the edge times
/// at (2 at - edge - lower edge) / (edge (edge - lower edge)), which is 1 at the edge, falls to 0 at the middle of the
/// bulk and is the edge's beyond the edge. Source: the fourth cumulant adds a multiple of cos 2 phi dphi to the mean
/// density of eigenvalues at middle + (edge - lower edge) / 2 cos phi (Pan and Zhou 2008 have the mean of a linear
/// statistic), which moves the eigenvalue there by its integral over the density. Measured over predicted for laplace
/// at 64 x 160, 2500 blocks: eigenvalues 1, 3, 5, 9 .892(38), .602(26), .412(22), .213(18) of the shift of the edge,
/// predicted .88, .61, .45, .24. Throws usage_error unless the law is white.
[[nodiscard]] double kurtosis_shift_at(const SeparableLaw& law, std::size_t columns, const NoiseEntries& entries,
                                       Eigenvalue at);

/// Variances of the logarithms of one spike's outlier and overlaps under Gaussian entries, to first order in 1/d, and
/// their covariances.
struct LogVariances {
    double outlier = 0.0;
    double overlap_left = 0.0;
    double overlap_right = 0.0;
    double outlier_with_left = 0.0;
    double outlier_with_right = 0.0;
};

/// What the fourth cumulant of the entries adds for one spike, to the variances and covariances of the logarithms and
/// to the means, in units of the limits of outlier and overlaps. The shifts of the means are those for Haar vectors,
/// whatever the fourth powers.
struct KurtosisEffect {
    double outlier_variance = 0.0;
    double overlap_left_variance = 0.0;
    double overlap_right_variance = 0.0;
    double outlier_with_left = 0.0;
    double outlier_with_right = 0.0;
    double outlier_shift = 0.0;
    double overlap_left_shift = 0.0;
    double overlap_right_shift = 0.0;
};

/// The effect for a detectable spike in white noise, all terms of order k/d^2 in the variances and k/d in the means.
/// With sum u_i^4 of order 1/n, as for Haar vectors, the variances change by a factor 1 + O(k/d); for vectors with
/// sum u_i^4 of order 1 by a factor 1 + O(k), of which this is the leading term for symmetric entries. (Skewness then
/// adds a term of relative order d^(-1/2), or 1 if the other vector has a mean of order 1/sqrt(d).)
///
/// Derivation: changing the fourth cumulant of every entry by k/d^2 changes E f(X) by k / (24 d^2) sum_ij E f_ijij, so
/// Var F changes by k/d^2 sum_ij E[F''^2 / 4 + F' F''' / 3 + (F - E F) F'''' / 12], derivatives by entry ij. For the
/// top singular value s with unit vectors u^, v^, perturbation theory and the isotropic law of the resolvent give, for
/// delocalised noise, s' = u^_i v^_j, s'' = -s (m1 v^_j^2 + m2 u^_i^2), s''' = 6 s^2 m1 m2 u^_i v^_j and
/// s'''' = -12 s^3 m1 m2 (m2 u^_i^2 + m1 v^_j^2), m1 and m2 at s^2. The overlap is the derivative of s^2 by e for the
/// matrix with the extra column sqrt(e) u, so the same formulas, differentiated by e, give its effect; they need the
/// length of the derivative of u^, which is a coefficient of the Laurent series of u' (Y Y' - x)^(-1) u at the outlier.
/// Cov(F, G) changes by k/d^2 sum_ij E[F''G''/4 + F'G'''/6 + G'F'''/6 + (F - EF) G''''/24 + (G - EG) F''''/24].
/// Throws usage_error unless the law is white and the strength above its threshold.
[[nodiscard]] KurtosisEffect kurtosis_effect(const SeparableLaw& law, SignalStrength strength, std::size_t rows,
                                             std::size_t columns, const NoiseEntries& entries,
                                             const LogVariances& gaussian);

/// The same at the point of the curve of outliers with this t = -1 - z m2(z), in (0, sqrt(beta)) for n/d = beta.
[[nodiscard]] KurtosisEffect kurtosis_effect(double t, std::size_t rows, std::size_t columns,
                                             const NoiseEntries& entries, const LogVariances& gaussian);

}  // namespace spiked::theory

#pragma once
#include <span>
#include <vector>

#include "theory/laws/separable_law.hpp"
#include "theory/laws/spectrum.hpp"

namespace spiked::theory {

/// The noise of a matrix of which entries are missing, n x d.
///
/// Of S + Z, Z = A^{1/2} X B^{1/2} with entries of X of variance 1/d, each entry is seen with probability p,
/// independently of everything else; M_ij = 1 where it is seen. Entries seen are divided by p, the others are 0:
///     M o (S + Z) / p = S + N,   N = M o Z / p + (M / p - 1) o S.
/// N has mean 0 and
///     E N_ik N_jl = A_ij B_kl / d + (1/p - 1) (A_ii B_kk / d + S_ik^2)  where i = j and k = l, else A_ij B_kl / d.
/// If A is diagonal, the part of Z is separable again, with A and B_p = B + (1/p - 1) diag(B); likewise with the sides
/// exchanged. Singular values and vectors of S + N then have the limits of the separable law of A and B_p, because
/// these depend on the covariance of the entries only (sim/spiked/tests/missing_simulation_test.cpp). If both are
/// correlated, the covariance is a sum of two products, which no separable law describes.

/// One side of the noise.
struct SeenSide {
    Spectrum spectrum;
    bool diagonal = true;  ///< otherwise the diagonal of the covariance is taken as constant, as of a Toeplitz matrix
};

struct SeenSpectra {
    Spectrum row;
    Spectrum column;
};

/// The spectra of A and B_p, or of A_p and B where A is the one that is not diagonal. On a diagonal side eigenvalues
/// are divided by p, otherwise (1/p - 1) times their mean is added to each.
///
/// `signal_square` is ||S||_F^2 / n (strengths are singular values, so it is their sum of squares over n): the part of
/// (M / p - 1) o S, which is of first order in 1/n, for a signal that is spread over all entries. It is added as the
/// variance (1/p - 1) signal_square / d of every entry, exactly where the other side is white, and otherwise by its
/// mean.
/// Throws usage_error unless 0 < share <= 1, and where both sides are correlated and share < 1.
[[nodiscard]] SeenSpectra seen_spectra(const SeenSide& row, const SeenSide& column, double share,
                                       double signal_square = 0.0);

/// The kurtosis E x^4 / (E x^2)^2 of the entries of white noise that are seen, from that of all: kurtosis / p.
[[nodiscard]] double seen_kurtosis(double kurtosis, double share);

/// ||S^ - S||_F^2 / ||S||_F^2 in the limit, of the estimate that keeps the observed vectors and has the singular values
/// optimal for this loss: sum of d_i^2 (1 - a_i b_i) over the sum of d_i^2, where a_i and b_i are the overlaps, 0 for
/// components that are not detectable. NaN without a strength above 0.
[[nodiscard]] double relative_error(const SeparableLaw& law, std::span<const SignalStrength> strengths);

/// What is left where this fraction of the entries is seen; `signal_square` as in seen_spectra. First order: in 100 x 100
/// white noise, with strengths of 4 and 2 thresholds of what is seen, the error is .234 at .4 seen (measured .31) and .31
/// at .2 (.57).
struct LossAtShare {
    double share = 1.0;
    SignalStrength detection_threshold;
    double relative_error = 1.0;
};
[[nodiscard]] std::vector<LossAtShare> loss_against_share(const SeenSide& row, const SeenSide& column,
                                                          AspectRatio aspect, std::span<const SignalStrength> strengths,
                                                          std::span<const double> shares, double signal_square = 0.0);

}  // namespace spiked::theory

#pragma once
#include <cstddef>
#include <span>

#include "estimators/svd/relative_spectrum.hpp"

namespace spiked::estimators {

/// The noise variance of Kritchman and Nadler for `rank` components: the fixed point of
///   v = (sum_{j > rank} l_j + sum_{j <= rank} max(0, l_j - r_j)) / (p - rank),
/// l the eigenvalues over n, p the short and n the long side, r_j the larger root of
///   r^2 - r (l_j + v - v (p - rank) / n) + l_j v = 0,
/// the population value whose sample value is l_j: the energy that noise adds to the components is counted as noise. It
/// starts at the mean of the rest over 1 - rank / n, and ends where a root would be complex, when v changes by less
/// than 1e-5 of itself, or after 30 rounds. Needs rank < p; eigenvalues descend, are divided by n and on any scale.
[[nodiscard]] double kritchman_nadler_variance(std::span<const double> eigenvalues, std::size_t long_side,
                                               std::size_t rank);

/// The number of components under white noise of unknown level: k = 1, 2, .. are counted while
/// l_k > v(k) (mu + s sigma), v(k) the variance above for rank k, mu = (sqrt(n - 1/2) + sqrt(m - 1/2))^2 / n with
/// m = p - k, sigma = sqrt(mu / n) (1 / sqrt(n - 1/2) + 1 / sqrt(m - 1/2))^(1/3), and s the upper `level` quantile of
/// Tracy-Widom 1.
///
/// Source: Kritchman and Nadler, "Non-parametric detection of the number of signals: hypothesis testing and random
/// matrix theory", IEEE Transactions on Signal Processing 57, 2009; centring of Ma 2012. The rule is symmetric in rows
/// and columns. White noise only: under colour it counts noise (docs/METHODS.md). A block that is exactly of low rank
/// has that rank. Cost: O(p) for each component, and a quantile (30 ms) once for each level.
[[nodiscard]] std::size_t kritchman_nadler_rank(const RelativeSpectrum& spectrum, double level);

}  // namespace spiked::estimators

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

/// The number of components under white Gaussian noise of unknown level: component r + 1 is counted behind r others
/// while l_(r+1) > v(r) / n (mu + sigma s + mu^2 / (N m sigma) g), v(r) the variance above for rank r, N = n - r, m = p
/// - r, mu = (sqrt(N - 1/2) + sqrt(m - 1/2))^2, sigma = sqrt(mu) (1 / sqrt(N - 1/2) + 1 / sqrt(m - 1/2))^(1/3), s the
/// upper `level` quantile of Tracy-Widom 1 and g the derivative of the logarithm of its density at s.
///
/// Source: Kritchman and Nadler, "Non-parametric detection of the number of signals: hypothesis testing and random
/// matrix theory", IEEE Transactions on Signal Processing 57, 2009; centring of Ma 2012. The published rule takes
/// v(r+1) and m = p - r - 1, which hold where component r + 1 exists, so that it is two to six times a `level` of .05:
/// v(1) is too small by a fraction sqrt(p / n) / (p - 1) in noise. Here both are those of the null hypothesis. The last
/// term is the correction of Nadler, "On the distribution of the ratio of the largest eigenvalue to the trace of a
/// Wishart matrix", Journal of Multivariate Analysis 102, 2011: the largest eigenvalue is the product of its ratio to
/// the mean and of the mean, independent of each other, so that the ratio varies less. That l_(r+1) is part of v(r)
/// costs no power, because the test is equivalent to one with the rest alone.
///
/// False alarms in white noise, measured at level .05, .01 and .005 (4000 to 40 000 matrices): 50 x 80 .051, .011,
/// .005; 30 x 200 .048, .008, .004; 20 x 20 .046, .008, .004; 10 x 10 .039, .005, .002; below a side of ten fewer, and
/// in 4 x 4 nothing is found. The rule is symmetric in rows and columns. White noise only: under colour and heavy tails
/// it counts noise (docs/METHODS.md). A block that is exactly of low rank has that rank. Cost: O(p) for each component,
/// and a quantile (30 ms) once for each level.
[[nodiscard]] std::size_t kritchman_nadler_rank(const RelativeSpectrum& spectrum, double level);

}  // namespace spiked::estimators

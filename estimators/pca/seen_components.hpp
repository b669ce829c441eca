#pragma once
#include <span>

#include "estimators/pca/spiked_pca.hpp"
#include "estimators/svd/analysed_block.hpp"

namespace spiked::estimators {

/// The least fraction of seen entries from which errors and intervals hold nearly; docs/METHODS.md#missing-entries.
inline constexpr double share_trusted = 0.7;

/// Principal components of samples of which entries are missing, each seen with probability p independently of the
/// rest.
///
/// Entries seen are divided by p, the others are 0. The rows of such data have the covariance C + (1/p - 1) diag(C),
/// where C is that of the whole data. For a spiked C with noise level s^2 and eigenvalues l_i whose vectors are spread
/// over the features, the diagonal is nearly constant, and the data follow the spiked covariance model again, with
///     noise level  s'^2 = s^2 + (1/p - 1) (s^2 + sum_i (l_i - s^2) / features),
///     eigenvalues  l_i' = l_i - s^2 + s'^2,
/// and the same eigenvectors: missing entries act as noise that is (1/p) times as large, and larger for the components.
///
/// The two functions go around `check_samples`, which judges the weighted data: `weighted_components` finds l_i', s'^2
/// and the cosines, `correct_for_missing` turns them into l_i and s^2. Errors of eigenvalues, and cosines, are those of
/// the weighted data. Accuracy: first order; the noise level is that of a constant diagonal.
/// Source: the covariance of data with missing entries, Lounici 2014; spectral limits as in theory/missing. Compared
/// with simulated samples in tests/seen_components_test.cpp.

/// `spiked_pca` of weighted data; a known noise level in the options is s^2. The level of its test does not hold where
/// entries are missing: the kurtosis of those seen is 3 / p, and what uneven components leave out differs between rows
/// and between features. So a component is kept only if it also stands out of copies with random signs, which keep
/// both (ParallelAnalysis, at the level of the options but at least .001; 1 / level copies a component). It found more
/// than the two components of 40 and 20 in 18 of 150 sets of 200 x 100 samples with 40 % of the entries seen at level
/// .01, the test alone in 147.
[[nodiscard]] SpikedPca weighted_components(std::span<const double> singular_values, AnalysedBlock& weighted,
                                            Shape shape, const PcaOptions& options, double share_seen);

/// Debiased and shrunk eigenvalues and the noise level of the whole data; `eigenvalues` stay those of the weighted
/// data, and `weighted_noise_level` is their s'^2. Where the components explain all noise, as in data of low rank, the
/// noise level is 0, components keep their debiased eigenvalues, and the note says so.
void correct_for_missing(SpikedPca& found, Shape shape, const PcaOptions& options, double share_seen);

}  // namespace spiked::estimators

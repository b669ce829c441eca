#pragma once
#include "estimators/pca/spiked_pca.hpp"
#include "estimators/svd/analysed_block.hpp"

namespace spiked::estimators {

/// Adds to `found`, the components of these samples, what their spectrum does not show. `samples` is the n x p matrix,
/// prepared, whose singular values `found` was made of (`decomposed_samples`); `shape` has its degrees of freedom as
/// rows.
///
/// Fourth cumulants of the scores: the left vector u of a component is sqrt(f) times its standardised scores plus
/// Gaussian noise of variance 1 - f, where f = 1 - gamma / (l - 1)^2, so that kurtosis - 3 of the scores is that of u
/// (Fisher's G2, without bias for Gaussian scores) divided by f^2; at least -2, which no law is below. The standard
/// errors of debiased eigenvalues then hold for scores of any law with a fourth moment. G2 of long tails is too small
/// at few samples; coverage is in docs/METHODS.md. Needs 4 samples.
///
/// Unequal variances: one-way analysis of variance of the squared residuals behind the components, with the columns
/// and with the rows as groups, corrected at first order for what components take away from features with large
/// loadings and samples with large scores. A note says where F exceeds its quantile at `equal_variances_level`; that
/// was so in at most 1 of 3000 white Gaussian matrices of each of four shapes (100 x 50 to 300 x 12), and in at most 7
/// under Student's law of 6 degrees of freedom.
///
/// Noise of larger variance in a few features or samples may be taken for that many components and leave equal
/// residuals. Another note says where k components, at most a third of 20 or more features, have over 70 % of their
/// squared vectors in k of them; vectors in general position have about 40 % at most.
///
/// Does nothing where the noise level is 0. Cost: the vectors of k components and O(n p k). Source: ours; the variance
/// with a cumulant is that of Bai and Yao 2008.
void check_samples(SpikedPca& found, AnalysedBlock& samples, Shape shape);

/// The note instead, where the covariances of the samples are all that is known.
void note_unchecked(SpikedPca& found);

inline constexpr double equal_variances_level = 1e-4;

}  // namespace spiked::estimators

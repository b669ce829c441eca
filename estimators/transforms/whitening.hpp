#pragma once
#include "estimators/transforms/transform.hpp"

namespace spiked::estimators {

/// White coordinates by known covariances. Throws input_error when their size is not that of the block, or when one is
/// not invertible.
[[nodiscard]] WhiteCoordinates whiten_known(AnalysedBlock& block, const KnownNoise& known);

/// White coordinates by estimated covariances, as described in transform.hpp. A block without noise is left unchanged.
[[nodiscard]] WhiteCoordinates whiten_estimated(AnalysedBlock& block, bool full);

/// Sample covariance X X^T / count of the rows of an n x count matrix of mean 0, shrunk to a multiple of the identity.
/// Source: Chen, Wiesel, Eldar and Hero 2010, the oracle-approximating shrinkage (23).
[[nodiscard]] NoiseCovariance shrunk_covariance(const arma::mat& samples);

}  // namespace spiked::estimators

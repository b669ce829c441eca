#pragma once
#include "estimators/transforms/transform.hpp"

namespace spiked::estimators {

/// White coordinates by covariances that are told. Throws input_error when their size is not the block's, or one cannot
/// be inverted.
[[nodiscard]] WhiteCoordinates whiten_known(AnalysedBlock& block, const KnownNoise& known);

/// White coordinates by estimated covariances (transform.hpp says how). A block without noise stays as it is.
[[nodiscard]] WhiteCoordinates whiten_estimated(AnalysedBlock& block, bool full);

/// Sample covariance X X^T / count of the rows of an n x count matrix of mean 0, shrunk to a multiple of the identity.
/// Source: Chen, Wiesel, Eldar and Hero 2010, the oracle-approximating shrinkage (23).
[[nodiscard]] NoiseCovariance shrunk_covariance(const arma::mat& samples);

}  // namespace spiked::estimators

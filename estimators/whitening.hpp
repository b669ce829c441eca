#pragma once
#include "estimators/transform.hpp"

namespace spiked::estimators {

/// White coordinates by covariances that are told. Throws input_error when their size is not the block's, or one cannot
/// be inverted.
[[nodiscard]] WhiteCoordinates whiten_known(AnalysedBlock& block, const KnownNoise& known);

/// White coordinates by estimated covariances (transform.hpp says how). A block without noise stays as it is.
[[nodiscard]] WhiteCoordinates whiten_estimated(AnalysedBlock& block, bool full);

}  // namespace spiked::estimators

#pragma once
#include "core/text/name_options.hpp"
#include "estimators/spectral/spectral_estimator.hpp"

namespace spiked::estimators {

/// An entry of the table of estimators: its description for users, and the function that makes an estimator from a
/// parsed name. Each method family defines its own.
struct SpectralFamily {
    EstimatorEntry entry;
    SpectralEstimator (*make)(const ParsedName& parsed, theory::Loss loss, const KnownLaw& known);
};

}  // namespace spiked::estimators

#pragma once
#include "core/text/name_options.hpp"
#include "estimators/spectral/spectral_estimator.hpp"

namespace spiked::estimators {

/// An entry of the table of estimators: its description for users, and the function that makes an estimator from the
/// options in a name. Each method family defines its own.
struct SpectralFamily {
    EstimatorEntry entry;
    SpectralEstimator (*make)(const NameOptions& named, theory::Loss loss, const KnownLaw& known);
};

}  // namespace spiked::estimators

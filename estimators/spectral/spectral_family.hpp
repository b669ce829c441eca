#pragma once
#include "core/text/name_options.hpp"
#include "estimators/spectral/spectral_estimator.hpp"

namespace spiked::estimators {

/// One line of the table of estimators: what users read of it, and how a typed name becomes a function. Each method
/// family declares its own.
struct SpectralFamily {
    EstimatorEntry entry;
    SpectralEstimator (*make)(const ParsedName& parsed, theory::Loss loss, const KnownLaw& known);
};

}  // namespace spiked::estimators

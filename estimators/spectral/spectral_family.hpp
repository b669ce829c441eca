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

/// The family that a name selects, and the options in the name, checked against those of the family. Throws usage_error
/// with the nearest legal name or option.
struct SpectralSpec {
    const SpectralFamily* family = nullptr;
    NameOptions named;
};
[[nodiscard]] SpectralSpec spectral_spec(std::string_view name);

}  // namespace spiked::estimators

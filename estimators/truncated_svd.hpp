#pragma once
#include "estimators/spectral_family.hpp"

namespace spiked::estimators {

/// `svd:R`: the first R singular values as they are (Eckart and Young 1936). Values within rounding of 0 are not
/// components.
[[nodiscard]] SpectralFamily truncated_svd_family();

}  // namespace spiked::estimators

#pragma once
#include "estimators/spectral_family.hpp"

namespace spiked::estimators {

/// `svd:R`: the first R singular values as they are (Eckart and Young 1936). Values within rounding of 0 are not
/// components. `svd:rd`: R by rate_distortion_rank.
[[nodiscard]] SpectralFamily truncated_svd_family();

}  // namespace spiked::estimators

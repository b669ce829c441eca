#pragma once
#include "estimators/spectral_family.hpp"

namespace spiked::estimators {

/// `svd:R`: the first R singular values as they are (Eckart and Young 1936). Values within rounding of 0 are not
/// components. R may be a rank rule, `svd:rd`, `svd:ed` (rank_rule.hpp).
[[nodiscard]] SpectralFamily truncated_svd_family();

}  // namespace spiked::estimators

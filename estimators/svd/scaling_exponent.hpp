#pragma once
#include <cmath>

#include "core/device/host_device.hpp"

namespace spiked::estimators {

/// The exponent of the power of two that scales a block, whose largest entry has the magnitude `largest`, so that this
/// magnitude lies in [1, 2), or as near to it as the range of Real allows. It is 0 (no scaling) for a zero block and
/// where the magnitude is near 1 already, within 2^8.
template <class Real>
SPIKED_DEVICE inline int scaling_exponent(double largest) {
    constexpr int most = sizeof(Real) == 8 ? 1020 : 124;
    constexpr int harmless = 8;
    if (largest == 0.0) return 0;
    int exponent = -std::ilogb(largest);
    if (exponent > most) exponent = most;
    if (exponent < -most) exponent = -most;
    return exponent <= harmless && exponent >= -harmless ? 0 : exponent;
}

}  // namespace spiked::estimators

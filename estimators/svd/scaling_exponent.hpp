#pragma once
#include <cmath>

#include "core/device/host_device.hpp"

namespace spiked::estimators {

/// The power of two that brings a block whose largest entry has this size to [1, 2), or as near as it is a number.
/// None where it is near 1.
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

#pragma once
#include "estimators/svd/relative_spectrum.hpp"

namespace spiked::estimators {

/// The number of components that are worth their stored bits, for factors of `entry_bits` bits per entry (1 to 8 with
/// the fixed levels for normal entries, or 16). In high-rate theory b bits per entry divide the error by 2^(2b), so
/// rank r is as good as spending
///
///     r c + 1/2 log2(E_r / E_0) bits per entry,  c = ((n + d) b_s + 16) / (n d),
///     E_r = sum_{i > r} s_i^2 + (1 - (1 - D)^2) sum_{i <= r} s_i^2,
///
/// where b_s are the bits per factor entry and D is the distortion of the levels: the coding error of the factors stays
/// in the residual (closed loop). The result is the r with the least such cost. A component is worth its bits when its
/// fraction of the remaining energy is above (1 - 2^(-2c)) / (1 - D)^2: 8.6 % at n = d = 128 and 4 bits, of which 8.4 %
/// without the coding error (D = 0).
///
/// Source: Gish & Pierce 1968 for the slope of 6 dB per bit; the objective is ours. Cost O(min(n, d)).
[[nodiscard]] std::size_t rate_distortion_rank(const RelativeSpectrum& spectrum, unsigned entry_bits);

}  // namespace spiked::estimators

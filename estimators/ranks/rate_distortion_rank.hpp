#pragma once
#include "core/text/name_options.hpp"
#include "estimators/svd/relative_spectrum.hpp"

namespace spiked::estimators {

/// The number of components that pay for their stored bits, for factors of `entry_bits` bits an entry (1 to 8 on the
/// fixed normal levels, or 16). High-rate theory: b bits an entry divide what is left by 2^(2b), so rank r is as good
/// as spending
///
///     r c + 1/2 log2(E_r / E_0) bits an entry,  c = ((n + d) b_s + 16) / (n d),
///     E_r = sum_{i > r} s_i^2 + (1 - (1 - D)^2) sum_{i <= r} s_i^2,
///
/// D the distortion of the levels: what coding the factors loses stays in the residual (closed loop). The least such r
/// is the answer. While nothing is lost by coding, a component pays when its share of what is left is above 1 -
/// 2^(-2c): 8.4 % at n = d = 128 and 4 bits.
///
/// Source: Gish & Pierce 1968 for the slope of 6 dB a bit; the objective is ours. Cost O(min(n, d)).
[[nodiscard]] std::size_t rate_distortion_rank(const RelativeSpectrum& spectrum, unsigned entry_bits);

/// The option `bits=` of a rank chosen so: 1 to 8 or 16, 4 when it is not given. Throws usage_error.
[[nodiscard]] unsigned stored_entry_bits(const NameOptions& typed);

}  // namespace spiked::estimators

#pragma once
#include <numbers>
#include <span>

#include "theory/quantization/lloyd_max.hpp"

namespace spiked::theory {

// Rate and distortion for normal entries: Shannon's bound, and the best uniform quantizers with fixed-rate and with
// entropy-coded indices. Entries are N(0, 1), rates are bits per entry, distortions are mean squared errors per unit
// variance. Every function throws usage_error for NaN, infinity and values outside its stated range.

/// The limit of distortion * 4^bits for the best fixed-rate scalar quantizer of a normal entry (Panter and Dite 1951),
/// 2.7207. It is an upper bound for Lloyd-Max at every bit width.
inline constexpr double panter_dite_constant = std::numbers::pi * std::numbers::sqrt3 / 2.0;

/// The least distortion of any code with this many bits per entry, 4^-rate (Shannon 1959); rate > 0. Accuracy: one ulp.
[[nodiscard]] double shannon_distortion(double rate_bits);

/// The inverse: the least number of bits per entry for this distortion, 0 from distortion 1 on; distortion > 0.
[[nodiscard]] double shannon_rate(double distortion);

/// A channel of a normal source: a stationary process of first order.
struct NormalChannel {
    double variance = 0.0;     ///< of an entry, at least 0
    double correlation = 0.0;  ///< of an entry with the one before, between -1 and 1, limits excluded
};

/// The least mean squared error per entry of any code of independent channels with this many bits per entry, rate > 0:
/// reverse water-filling over channels and frequencies (Kolmogorov 1956; Cover and Thomas 2006, 10.3.3; Berger 1971).
/// Frequencies are sums over 128 of them: the error of a channel's variance is below 2 |correlation|^256, relative.
/// Throws usage_error for channels out of range and for no channel. Cost: sorting 128 values a channel, or 1 a channel
/// where no channel has a correlation.
[[nodiscard]] double water_filled_distortion(std::span<const NormalChannel> channels, double rate_bits);

/// A uniform quantizer with 2^bits levels at odd multiples of step / 2 (mid-rise) and thresholds at multiples of the
/// step.
struct UniformQuantizer {
    double step = 0.0;
    /// linear_gain == 1 - distortion, because at the best step the levels have the least-squares scale.
    Codebook codebook;
};

/// The step of least mean squared error for N(0, 1), bits 1 to 8 (Max 1960; quantizers.md 2). The optimality condition
/// step = E[z u(z)] / E[u(z)^2], where u is the level in steps, is a sum of normal tails without cancellation.
/// Accuracy: step 1e-14, distortion 1e-13 relative, where long double has 64 bits of mantissa. Cost: under 0.3 ms.
[[nodiscard]] UniformQuantizer uniform_quantizer_normal(int bits);

/// The thresholds of an unbounded uniform quantizer: at odd multiples of step / 2 (mid-tread) or at multiples of the
/// step (mid-rise).
enum class Staircase { mid_tread, mid_rise };

/// A quantizer with uniform thresholds and reconstruction at the mean of each bin, whose indices are coded at their
/// entropy.
struct EntropyCodedQuantizer {
    Staircase staircase = Staircase::mid_tread;
    double step = 0.0;
    double rate_bits = 0.0;   ///< entropy of the index
    double distortion = 0.0;  ///< strictly decreasing in the rate
};

/// Rate and distortion for N(0, 1) at one step in [1e-3, 1e6]. Cells are integrated by Gauss-Legendre about their
/// centres, where differences of erfc would cancel. Accuracy: 1e-14. Cost: 0.8 microseconds / step.
[[nodiscard]] EntropyCodedQuantizer entropy_coded_normal(double step, Staircase staircase);

/// The better of the two staircases at one rate in [0.01, 10] bits: mid-tread below 1.3548 bits (mid-rise cannot go
/// below 1 at all), and mid-rise above, by at most 2.4e-4 of the distortion. From 2.5 bits on the two agree to 2e-15,
/// and mid-tread is returned. The result is close to the best entropy-coded scalar quantizer (Farvardin and Modestino
/// 1984); mixtures of two quantizers are not considered. Accuracy: distortion 1e-13 relative. Cost: 0.01 ms (low rates)
/// to 0.6 ms (10 bits).
[[nodiscard]] EntropyCodedQuantizer entropy_coded_normal_at_rate(double rate_bits);

}  // namespace spiked::theory

#pragma once
#include <cstddef>
#include <optional>
#include <span>

namespace spiked::estimators {

/// A gap in the bulk of one spectrum.
struct BulkGap {
    std::size_t above = 0;  ///< number of singular values above it
    double lower = 0.0;     ///< the singular values at its ends
    double upper = 0.0;
    double spacings = 0.0;  ///< its width over the mean spacing beside it
};

/// Singular values that a gap needs on either side: fewer are outliers, not a component of the bulk.
inline constexpr std::size_t values_beside_gap = 11;
/// The probability that noise with a connected bulk shows a gap somewhere, nominal.
inline constexpr double bulk_gap_level = 1e-3;

/// The spacing of neighbouring singular values that is largest compared with the mean of the ten spacings above it or
/// the ten below, whichever mean is larger, if it is larger than noise with a connected bulk would leave. Singular
/// values at rounding level, below 1e-12 of the largest, are left out.
///
/// Source: in the bulk, spacings over their local mean have the law of the Gaussian orthogonal ensemble for any
/// covariances and entries (universality), whose tail is about exp(-pi s^2 / 4) (Wigner's surmise). With
/// bulk_gap_level divided among the m spacings that are tested, the limit is 1.2 sqrt((4 / pi) log(m / level)), 4.4 to
/// 4.9 for 64 to 512 values; 1.2 allows for the error of a mean of ten, which was set by simulation. Rate of false
/// alarms: nominal. Measured on white noise: 15 in 40 000 of 64 x 64, 6 in 14 000 of 128 x 128, 1 in 3500 of 256 x 512
/// (0.04 %), in coloured and heavy-tailed noise 0.025 to 0.12 %. Of gaps of four mean spacings it sees 60 % in such
/// blocks, of six all. The rule does not detect a component of fewer than 11 singular values, nor a gap narrower than
/// the limit. A signal of 11 or more components of similar strengths looks like a component of the bulk. Input:
/// singular values on any scale, descending. Cost O(number of values).
[[nodiscard]] std::optional<BulkGap> bulk_gap(std::span<const double> singular_values);

}  // namespace spiked::estimators

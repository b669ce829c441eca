#pragma once
#include <cmath>
#include <cstdint>

#include "core/device/host_device.hpp"
#include "core/text/enum_names.hpp"

namespace spiked::estimators {

/// The scale that is stored for a row x, whose rotated entries z, at unit variance, have the levels c. The row is
/// decoded as scale / sqrt(d) R^T c.
///
///   norm           |x|                     TurboQuant; shrinks by 1 - E[z c]
///   unbiased       |x| d / <z, c>          EDEN: <x, x^> = |x|^2 exactly, so E x^ = x over Haar rotations
///   least_squares  |x| <z, c> / |c|^2      the smallest |x - x^|
///   norm_matched   |x| sqrt(d) / |c|       |x^| = |x|; the geometric mean of the last two
enum class RowScale : std::uint8_t { norm, unbiased, least_squares, norm_matched };

/// The stored scale, from |x| (`norm`), d (`dimension`), <z, c> (`across`) and |c|^2 (`energy`).
[[nodiscard]] SPIKED_DEVICE inline double stored_scale(RowScale scale, double norm, double dimension, double across,
                                                       double energy) {
    if (scale == RowScale::unbiased) return norm * (dimension / across);
    if (scale == RowScale::least_squares) return norm * (across / energy);
    if (scale == RowScale::norm_matched) return norm * (std::sqrt(dimension) / std::sqrt(energy));
    return norm;
}

}  // namespace spiked::estimators

/// norm_matched has no name of its own: a quantizer that has it in place of `norm` calls it so.
template <>
struct spiked::EnumNames<spiked::estimators::RowScale> {
    using RowScale = spiked::estimators::RowScale;
    static constexpr EnumName<RowScale> table[] = {
        {RowScale::least_squares, "mmse"}, {RowScale::unbiased, "unbiased"}, {RowScale::norm, "norm"}};
};

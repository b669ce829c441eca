#pragma once
#include "estimators/quantizers/row_quantizer.hpp"

namespace spiked::estimators {

/// The format of a group's scale. e8m0: a power of two in a byte (OCP MX). e4m3: an 8-bit float, with one fp32 number
/// per block (NVFP4 with groups of 16 and elements of 4 bits).
enum class GroupScale { e8m0, e4m3 };

struct MicroscalingOptions {
    std::size_t group = 32;  ///< entries of a row that share a scale
    GroupScale scale = GroupScale::e8m0;
    Underflow underflow = Underflow::rejected;
};

/// Microscaling: small floats that share a scale in groups of consecutive entries of a row, which accelerators multiply
/// directly.
///
/// Elements have B bits, sign first: E2M1 (4), E2M3 (6), E4M3 (8), rounded to the nearest with ties to even; larger
/// entries become the largest element. e8m0: scale 2^(floor(log2 max|x|) - e) with e the exponent of the largest
/// element, so entries beyond it are clipped by up to a quarter. e4m3: max|x| / largest, divided by the block's number,
/// which makes the largest group scale 448. Stored: the block's number, scales row after row, elements in the order of
/// indices. Bits B + 8 / G, and 32 per block for e4m3. The last group of a row may be shorter; a group of zeros is
/// decoded as zeros.
///
/// Source: Open Compute Project, Microscaling Formats (MX) 1.0, 2023; NVFP4 as its vendor documents it. Relative
/// squared error of normal entries in whole groups of 32: .01322, .00080, .00086 at 4, 6, 8 bits. Throws input_error
/// for NaN, infinity, entries beyond the range of the scales and, on decoding, scales or elements that are NaN;
/// usage_error for other bits.
[[nodiscard]] RowQuantizer microscaling(std::size_t dimension, unsigned bits, const MicroscalingOptions& options);

}  // namespace spiked::estimators

template <>
struct spiked::EnumNames<spiked::estimators::GroupScale> {
    static constexpr EnumName<spiked::estimators::GroupScale> table[] = {
        {spiked::estimators::GroupScale::e8m0, "e8m0"}, {spiked::estimators::GroupScale::e4m3, "e4m3"}};
};

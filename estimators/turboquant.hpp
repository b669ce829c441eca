#pragma once
#include "estimators/row_quantizer.hpp"

namespace spiked::estimators {

/// TurboQuant MSE: row norm, random rotation, Lloyd-Max index of every coordinate.
///
/// Source: Zandieh et al., "TurboQuant", Algorithm 1. Rows are m x d, any scale; bits = index bits, 1..8.
/// Stored: norm of each row (format of the options), then m d indices packed without gaps. Zero rows come back zero.
/// Relative squared error of a Haar-rotated row: the distortion of theory::lloyd_max_sphere(d, bits), whatever the row.
/// Throws input_error for NaN, infinity, or a norm beyond the format. Cost: one m x d x d product a call, each way.
[[nodiscard]] RowQuantizer turboquant_mse(std::size_t dimension, unsigned bits, const QuantizerOptions& options);

}  // namespace spiked::estimators

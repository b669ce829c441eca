#pragma once
#include "estimators/quantizers/row_quantizer.hpp"
#include "estimators/quantizers/turboquant.hpp"

namespace spiked::estimators {

struct RabitqOptions {
    RotationOptions rotation;
    ScalarOptions norms;
    RowScale scale = RowScale::unbiased;
};

/// RaBitQ: a rotated row is coded by the direction on the grid (half-integers -(2^B - 1)/2 .. (2^B - 1)/2 in every
/// coordinate) that is nearest in angle.
///
/// Source: Gao and Long 2024 (one bit), Gao et al. 2025 (more). Stored: for each row the length s with which its
/// direction c is decoded, then indices as in tq-mse (0 counts as negative). s = |x| / cos(x, c), RaBitQ's estimator,
/// makes <x, x^> exact; least squares s = |x| cos; norm-matched s = |x|. The search is exact: it tries all grid points
/// that rounding t z to the grid gives for t > 0. Relative squared error with the first at d = 128: .566, .1308, .0361,
/// .0099 at 1 to 4 bits. Not implemented: centroids of a database, and factors for error bounds. Cost: sorting d
/// (2^(B-1) - 1) numbers per row.
[[nodiscard]] RowQuantizer rabitq(std::size_t dimension, unsigned bits, const RabitqOptions& options);

}  // namespace spiked::estimators

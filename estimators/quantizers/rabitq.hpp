#pragma once
#include "estimators/quantizers/row_quantizer.hpp"
#include "estimators/quantizers/turboquant.hpp"

namespace spiked::estimators {

struct RabitqOptions {
    RotationOptions rotation;
    ScalarOptions norms;
    RowScale scale = RowScale::unbiased;
};

/// RaBitQ: a rotated row is coded by the direction of the grid (odd halves -(2^B - 1)/2 .. (2^B - 1)/2 in every
/// coordinate) that is nearest in angle.
///
/// Source: Gao and Long 2024 (one bit), Gao et al. 2025 (more). Stored: of each row the length s that its direction c
/// comes back with, then indices as in tq-mse (0 counts as negative). s = |x| / cos(x, c), RaBitQ's estimator, makes
/// <x, x^> exact; least squares s = |x| cos; norm-matched s = |x|. The search is exact: all grid points on the way of
/// t z, t > 0, rounded to the grid. Relative squared error with the first at d = 128: .566, .1308, .0361, .0099 at 1 to
/// 4 bits. Left out: centroids of a data base, and factors for error bounds. Cost: sorting d (2^(B-1) - 1) numbers a
/// row.
[[nodiscard]] RowQuantizer rabitq(std::size_t dimension, unsigned bits, const RabitqOptions& options);

}  // namespace spiked::estimators

#pragma once
#include "estimators/transforms/transform.hpp"

namespace spiked::estimators {

/// Row factors x and column factors y with x_i y_j the noise variance of entry (i, j), from the resolvent of the block
/// at i times the median singular value: diagonals of (Y Y^T + eta^2)^(-1), Dyson's equation solved for x and y. A few
/// signals do not move it. Scale free.
///
/// Source: Landa and Kluger, "The Dyson equalizer", 2023. Cost: two decompositions, the second with all vectors. A
/// block with median 0 stays as it is.
[[nodiscard]] WhiteCoordinates dyson_equalize(AnalysedBlock& block);

}  // namespace spiked::estimators

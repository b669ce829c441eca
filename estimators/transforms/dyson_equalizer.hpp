#pragma once
#include "estimators/transforms/transform.hpp"

namespace spiked::estimators {

/// Row factors x and column factors y such that x_i y_j is the noise variance of entry (i, j), from the resolvent of
/// the block at i times the median singular value: the diagonals of (Y Y^T + eta^2)^(-1) give Dyson's equation, which
/// is solved for x and y. A few signals do not change the result. Independent of scale.
///
/// Source: Landa and Kluger, "The Dyson equalizer", 2023. Cost: two decompositions, the second with all vectors. A
/// block whose median singular value is 0 is left unchanged.
[[nodiscard]] WhiteCoordinates dyson_equalize(AnalysedBlock& block);

}  // namespace spiked::estimators

#pragma once
#include <cstddef>
#include <span>

#include "estimators/spectral/shrinkage.hpp"
#include "theory/laws/shrinkers.hpp"

namespace spiked::estimators {

/// OptShrink at a given rank: the noise law consists of the remaining singular values, unchanged, for a block with
/// `rank` fewer rows and columns.
///
/// Source: Nadakuditi 2014. For the Frobenius loss the weights are -2 D/D', with the method's own estimate of its
/// squared error, sum 1/D - sum w^2; other losses combine the same strengths and overlaps. A value equal to the first
/// one left out is a pole and becomes 0. Rank 0 with a note when `rank` leaves no singular value. Cost O(p rank).
[[nodiscard]] Shrinkage optshrink(std::span<const double> singular_values, Shape shape, std::size_t rank,
                                  theory::Loss loss = theory::Loss::frobenius);

}  // namespace spiked::estimators

#pragma once
#include <span>
#include <vector>

#include "estimators/shrinkage.hpp"

namespace spiked::estimators {

/// Strength and overlaps of one outlier, seen through the noise eigenvalues of the block it came from.
struct OutlierEstimate {
    double strength = 0.0;      ///< T(z)^{-1/2}, singular-value scale
    double overlap_left = 0.0;  ///< in [0, 1]
    double overlap_right = 0.0;
};

/// D-transform of a finite set of noise eigenvalues (unit mass, equal weights) with the companion that accounts for the
/// |n - d| zero eigenvalues of the longer side.
///
/// Source: eOptShrink Steps 2-3; Benaych-Georges & Nadakuditi 2012. noise: eigenvalues of the short side's Gram matrix,
/// any order. z: an eigenvalue above all of them; the caller guarantees it. Cost O(noise).
[[nodiscard]] OutlierEstimate estimate_outlier(std::span<const double> noise, Shape shape, Eigenvalue z);

}  // namespace spiked::estimators

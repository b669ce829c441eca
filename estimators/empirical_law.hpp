#pragma once
#include <span>
#include <vector>

#include "estimators/shrinkage.hpp"

namespace spiked::estimators {

/// A finite set of noise eigenvalues as a law: of the short side's Gram matrix, any order. `count` is what their sum is
/// divided by: their number for unit mass, more when some of the mass is left out. `aspect` = short / long side, for
/// the zero eigenvalues that the long side has besides.
struct EmpiricalLaw {
    std::span<const double> noise;
    double count = 0.0;
    double aspect = 1.0;

    EmpiricalLaw(std::span<const double> eigenvalues, Shape shape)
        : noise(eigenvalues),
          count(static_cast<double>(eigenvalues.size())),
          aspect(static_cast<double>(shape.short_side()) / static_cast<double>(shape.long_side())) {}
};

/// The transforms of the law at one point, which is no eigenvalue of it.
struct EmpiricalTransforms {
    double stieltjes_short = 0.0;
    double stieltjes_long = 0.0;
    double d_transform = 0.0;        ///< T = z m_short m_long
    double d_transform_slope = 0.0;  ///< T'
};

/// Source: Benaych-Georges & Nadakuditi 2012. Cost O(noise).
[[nodiscard]] EmpiricalTransforms transforms_at(const EmpiricalLaw& law, Eigenvalue z);

/// Strength and overlaps of one outlier, seen through the noise eigenvalues of the block it came from.
struct OutlierEstimate {
    double strength = 0.0;      ///< T(z)^{-1/2}, singular-value scale
    double overlap_left = 0.0;  ///< in [0, 1]
    double overlap_right = 0.0;
};

/// Source: eOptShrink Steps 2-3. z lies above all noise eigenvalues; the caller guarantees it. Cost O(noise).
[[nodiscard]] OutlierEstimate estimate_outlier(const EmpiricalLaw& law, Shape shape, Eigenvalue z);

}  // namespace spiked::estimators

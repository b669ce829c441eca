#pragma once
#include <algorithm>
#include <cmath>
#include <span>

#include "core/device/host_device.hpp"
#include "estimators/svd/shape.hpp"
#include "theory/laws/quantities.hpp"

namespace spiked::estimators {

/// A finite set of noise eigenvalues, those of the short side's Gram matrix in any order, as a law. `count` is the
/// divisor of sums over them: their number for a law of mass 1, more when some of the mass is left out. `aspect` =
/// short / long side determines the mass of the additional zero eigenvalues of the long side.
struct EmpiricalLaw {
    std::span<const double> noise;
    double count = 0.0;
    double aspect = 1.0;

    SPIKED_DEVICE EmpiricalLaw(std::span<const double> eigenvalues, Shape shape)
        : noise(eigenvalues),
          count(static_cast<double>(eigenvalues.size())),
          aspect(static_cast<double>(shape.short_side()) / static_cast<double>(shape.long_side())) {}
};

/// The transforms of the law at one point that is not an eigenvalue of it.
struct EmpiricalTransforms {
    double stieltjes_short = 0.0;
    double stieltjes_long = 0.0;
    double d_transform = 0.0;        ///< T = z m_short m_long
    double d_transform_slope = 0.0;  ///< T'
};

/// Source: Benaych-Georges & Nadakuditi 2012. Cost O(noise).
[[nodiscard]] SPIKED_DEVICE inline EmpiricalTransforms transforms_at(const EmpiricalLaw& law, Eigenvalue z) {
    // Symbols: m_s, m_l Stieltjes transforms of the short and long side, T the D-transform.
    const double beta = law.aspect;
    const double x = z.value;
    double m_s = 0.0;
    double m_s_slope = 0.0;
    for (const double mu : law.noise) {
        const double term = 1.0 / (mu - x);
        m_s += term;
        m_s_slope += term * term;
    }
    m_s /= law.count;
    m_s_slope /= law.count;
    const double m_l = beta * m_s - (1.0 - beta) / x;
    const double m_l_slope = beta * m_s_slope + (1.0 - beta) / (x * x);
    return {m_s, m_l, x * m_s * m_l, m_s * m_l + x * (m_s_slope * m_l + m_s * m_l_slope)};
}

/// Strength and overlaps of one outlier, estimated from the noise eigenvalues of its block.
struct OutlierEstimate {
    double strength = 0.0;      ///< T(z)^{-1/2}, singular-value scale
    double overlap_left = 0.0;  ///< in [0, 1]
    double overlap_right = 0.0;
};

/// Source: eOptShrink Steps 2-3. The caller guarantees that z lies above all noise eigenvalues. Cost O(noise).
[[nodiscard]] SPIKED_DEVICE inline OutlierEstimate estimate_outlier(const EmpiricalLaw& law, Shape shape,
                                                                    Eigenvalue z) {
    const EmpiricalTransforms at = transforms_at(law, z);
    const double to_overlap = at.d_transform / at.d_transform_slope;
    const double overlap_short = std::clamp(at.stieltjes_short * to_overlap, 0.0, 1.0);
    const double overlap_long = std::clamp(at.stieltjes_long * to_overlap, 0.0, 1.0);
    const bool left_is_short = shape.rows <= shape.columns;
    return {1.0 / std::sqrt(at.d_transform), left_is_short ? overlap_short : overlap_long,
            left_is_short ? overlap_long : overlap_short};
}

}  // namespace spiked::estimators

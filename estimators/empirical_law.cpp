#include "estimators/empirical_law.hpp"

#include <cmath>

namespace spiked::estimators {

EmpiricalTransforms transforms_at(const EmpiricalLaw& law, Eigenvalue z) {
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

OutlierEstimate estimate_outlier(const EmpiricalLaw& law, Shape shape, Eigenvalue z) {
    const EmpiricalTransforms at = transforms_at(law, z);
    const double to_overlap = at.d_transform / at.d_transform_slope;
    const double overlap_short = std::clamp(at.stieltjes_short * to_overlap, 0.0, 1.0);
    const double overlap_long = std::clamp(at.stieltjes_long * to_overlap, 0.0, 1.0);
    const bool left_is_short = shape.rows <= shape.columns;
    return {1.0 / std::sqrt(at.d_transform), left_is_short ? overlap_short : overlap_long,
            left_is_short ? overlap_long : overlap_short};
}

}  // namespace spiked::estimators

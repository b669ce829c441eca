#include "estimators/empirical_law.hpp"

#include <cmath>

namespace spiked::estimators {

OutlierEstimate estimate_outlier(std::span<const double> noise, Shape shape, Eigenvalue z) {
    // Symbols: m_s, m_l Stieltjes transforms of the short and long side, T the D-transform, a the squared overlaps.
    const double beta = static_cast<double>(shape.short_side()) / static_cast<double>(shape.long_side());
    const double x = z.value;
    double m_s = 0.0;
    double m_s_slope = 0.0;
    for (const double mu : noise) {
        const double term = 1.0 / (mu - x);
        m_s += term;
        m_s_slope += term * term;
    }
    m_s /= static_cast<double>(noise.size());
    m_s_slope /= static_cast<double>(noise.size());
    const double m_l = beta * m_s - (1.0 - beta) / x;
    const double m_l_slope = beta * m_s_slope + (1.0 - beta) / (x * x);
    const double T = x * m_s * m_l;
    const double T_slope = m_s * m_l + x * (m_s_slope * m_l + m_s * m_l_slope);

    const double a_s = std::clamp(m_s * T / T_slope, 0.0, 1.0);
    const double a_l = std::clamp(m_l * T / T_slope, 0.0, 1.0);
    const bool left_is_short = shape.rows <= shape.columns;
    return {1.0 / std::sqrt(T), left_is_short ? a_s : a_l, left_is_short ? a_l : a_s};
}

}  // namespace spiked::estimators

#pragma once

namespace spiked::theory {

/// Whether the noise is of real or of complex numbers, whose real and imaginary parts share its variance equally.
enum class Field { real, complex };

/// The Tracy-Widom laws: the limiting laws of the top eigenvalue of noise in the scale of SeparableLaw, of order 1 for
/// real and of order 2 for complex noise (Tracy and Widom 1994, 1996).
///   F1(s) = det(1 - K),  F2(s) = det(1 - K^2) = det(1 - K) det(1 + K)
/// on L^2(s, infinity) with K(x, y) = Ai((x + y) / 2) / 2 (Ferrari and Spohn 2005), discretised with Gauss-Legendre
/// nodes (Bornemann 2010). K^2 is the Airy kernel.
/// Accuracy: 1e-14 absolute. Relative accuracy in the tails: 1e-10 for a cdf down to 1e-12, and 1e-12 for any survival.
/// Quantiles: 1e-11 for probabilities and tails from 1e-12 on. The determinant is computed in long double for s < -4.
/// Below s = -10 (F1 < 1e-18), and below -8 for F2 (< 1e-19), the left-tail expansions of Baik, Buckingham and DiFranco
/// (2008) are used, with an error of 1 %. Cost: 1 to 2 ms; a quantile 10 to 30 ms.

[[nodiscard]] double tracy_widom_cdf(double s, Field field = Field::real);
[[nodiscard]] double tracy_widom_survival(double s, Field field = Field::real);  ///< 1 - cdf without cancellation

/// The s with cdf(s) = probability. Throws usage_error unless the probability lies in (0, 1).
[[nodiscard]] double tracy_widom_quantile(double probability, Field field = Field::real);
/// The s with survival(s) = tail, accurate also where 1 - tail would round to 1. Throws usage_error unless the tail
/// lies in [1e-100, 1).
[[nodiscard]] double tracy_widom_upper_quantile(double tail, Field field = Field::real);

/// The expected number of points above s in the limiting point process at the edge, whose largest point has the law
/// above. It is the integral of the one-point density, which is Ai'^2 - x Ai^2 for complex noise and for real noise
/// that plus Ai(x) (1 - int_x^inf Ai) / 2 (Forrester, Nagao and Honner 1999).
[[nodiscard]] double edge_points_above(double s, Field field = Field::real);

inline constexpr double tracy_widom_mean = -1.2065335745820;
inline constexpr double tracy_widom_variance = 1.607781034581;
inline constexpr double complex_tracy_widom_mean = -1.7710868074116;
inline constexpr double complex_tracy_widom_variance = 0.8131947928329;

[[nodiscard]] constexpr double tracy_widom_mean_of(Field field) {
    return field == Field::real ? tracy_widom_mean : complex_tracy_widom_mean;
}
[[nodiscard]] constexpr double tracy_widom_variance_of(Field field) {
    return field == Field::real ? tracy_widom_variance : complex_tracy_widom_variance;
}

}  // namespace spiked::theory

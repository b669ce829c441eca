#pragma once

namespace spiked::theory {

/// The Tracy-Widom law of order 1: the limit of the top eigenvalue of real noise, after SeparableLaw's scale.
/// F1(s) = det(1 - K) on L^2(s, infinity), K(x, y) = Ai((x + y) / 2) / 2 (Ferrari and Spohn 2005), by Gauss-Legendre
/// nodes (Bornemann 2010).
/// Accuracy: 1e-14 absolute; both tails keep relative accuracy: cdf 1e-10 down to 1e-12, survival 1e-12 at every size.
/// Quantiles: 1e-11 for probabilities and tails from 1e-12 on. Left of -4 the determinant runs in long double.
/// Below s = -10 (cdf < 1e-18) the left-tail expansion of Baik, Buckingham and DiFranco (2008) takes over, 1 % there.
/// Cost: 1 to 2 ms; a quantile 10 to 30 ms.

[[nodiscard]] double tracy_widom_cdf(double s);
[[nodiscard]] double tracy_widom_survival(double s);  ///< 1 - cdf without cancellation

/// The s with cdf(s) = probability in (0, 1); throws usage_error outside.
[[nodiscard]] double tracy_widom_quantile(double probability);
/// The s with survival(s) = tail in [1e-100, 1): exact where 1 - tail would round to 1. Throws usage_error outside.
[[nodiscard]] double tracy_widom_upper_quantile(double tail);

/// Expected number of points above s of the limiting process at the edge, of which the law above is the largest: the
/// integral of the one-point density Ai'^2 - x Ai^2 + Ai(x) (1 - int_x^inf Ai) / 2 (Forrester, Nagao and Honner 1999).
[[nodiscard]] double edge_points_above(double s);

inline constexpr double tracy_widom_mean = -1.2065335745820;
inline constexpr double tracy_widom_variance = 1.607781034581;

}  // namespace spiked::theory

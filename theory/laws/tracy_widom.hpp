#pragma once

namespace spiked::theory {

/// The Tracy-Widom law of order 1: the limiting law of the top eigenvalue of real noise in the scale of SeparableLaw.
/// F1(s) = det(1 - K) on L^2(s, infinity) with K(x, y) = Ai((x + y) / 2) / 2 (Ferrari and Spohn 2005), discretised with
/// Gauss-Legendre nodes (Bornemann 2010).
/// Accuracy: 1e-14 absolute. Relative accuracy in the tails: 1e-10 for a cdf down to 1e-12, and 1e-12 for any survival.
/// Quantiles: 1e-11 for probabilities and tails from 1e-12 on. The determinant is computed in long double for s < -4.
/// Below s = -10 (cdf < 1e-18) the left-tail expansion of Baik, Buckingham and DiFranco (2008) is used, with an error
/// of 1 %. Cost: 1 to 2 ms; a quantile 10 to 30 ms.

[[nodiscard]] double tracy_widom_cdf(double s);
[[nodiscard]] double tracy_widom_survival(double s);  ///< 1 - cdf without cancellation

/// The s with cdf(s) = probability. Throws usage_error unless the probability lies in (0, 1).
[[nodiscard]] double tracy_widom_quantile(double probability);
/// The s with survival(s) = tail, accurate also where 1 - tail would round to 1. Throws usage_error unless the tail
/// lies in [1e-100, 1).
[[nodiscard]] double tracy_widom_upper_quantile(double tail);

/// The expected number of points above s in the limiting point process at the edge, whose largest point has the law
/// above. It is the integral of the one-point density Ai'^2 - x Ai^2 + Ai(x) (1 - int_x^inf Ai) / 2 (Forrester, Nagao
/// and Honner 1999).
[[nodiscard]] double edge_points_above(double s);

inline constexpr double tracy_widom_mean = -1.2065335745820;
inline constexpr double tracy_widom_variance = 1.607781034581;

}  // namespace spiked::theory

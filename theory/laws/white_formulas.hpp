#pragma once
#include <algorithm>
#include <cmath>

#include "core/device/host_device.hpp"
#include "theory/laws/shrinkers.hpp"

/// Closed forms for white noise, A = B = identity, entries of variance 1/d (Benaych-Georges and Nadakuditi 2012; Gavish
/// and Donoho 2014 and 2017; Johnstone 2001), with one source for CPU and GPU. They share no code with SeparableLaw and
/// serve as an independent check of it. beta is rows over columns, x a signal strength, y an observed singular value.
/// Below the threshold overlaps and shrunk values are 0. Accuracy: a few ulp; for overlaps and shrunk values relative
/// to the distance from the threshold.
namespace spiked::theory::white {

[[nodiscard]] SPIKED_DEVICE inline double bulk_edge(double beta) {
    const double root_edge = 1.0 + std::sqrt(beta);
    return root_edge * root_edge;
}

[[nodiscard]] SPIKED_DEVICE inline double detection_threshold(double beta) { return std::sqrt(std::sqrt(beta)); }

/// The g with g d^(2/3) (largest eigenvalue - edge) -> Tracy-Widom 1.
[[nodiscard]] inline double tracy_widom_scale(double beta) {
    const double root_beta = std::sqrt(beta);
    return 1.0 / ((1.0 + root_beta) * std::cbrt(1.0 + 1.0 / root_beta));
}

/// Gavish and Donoho's hard threshold squared, for noise of variance 1/(long side), beta at most 1.
[[nodiscard]] inline double hard_threshold_squared(double beta) {
    return 2.0 * (beta + 1.0) + 8.0 * beta / (beta + 1.0 + std::sqrt(beta * beta + 14.0 * beta + 1.0));
}

/// Signal strength squared from an observed eigenvalue at or above the edge.
[[nodiscard]] SPIKED_DEVICE inline double strength_squared(double eigenvalue, double beta) {
    const double root_beta = std::sqrt(beta);
    const double upper = (1.0 + root_beta) * (1.0 + root_beta);
    const double lower = (1.0 - root_beta) * (1.0 - root_beta);
    // Two separate roots avoid overflow, because a strength may be 1e100 times the noise.
    const double discriminant =
        std::sqrt(std::max(0.0, eigenvalue - upper)) * std::sqrt(std::max(0.0, eigenvalue - lower));
    return 0.5 * ((eigenvalue - upper) + discriminant) + root_beta;
}

[[nodiscard]] SPIKED_DEVICE inline bool detectable(double x, double beta) { return x * x > std::sqrt(beta); }

/// (x^4 - beta) / x^2, the common numerator of the overlaps, factored so that it is exact at the threshold.
[[nodiscard]] SPIKED_DEVICE inline double excess(double x, double beta) {
    const double square = x * x;
    const double root_beta = std::sqrt(beta);
    return (square - root_beta) * (1.0 + root_beta / square);
}

[[nodiscard]] SPIKED_DEVICE inline double overlap_left(double x, double beta) {
    return detectable(x, beta) ? excess(x, beta) / (x * x + beta) : 0.0;
}
[[nodiscard]] SPIKED_DEVICE inline double overlap_right(double x, double beta) {
    return detectable(x, beta) ? excess(x, beta) / (x * x + 1.0) : 0.0;
}

/// The optimal singular value as a function of the observed one.
[[nodiscard]] SPIKED_DEVICE inline double shrunk(double y, double beta, Loss loss) {
    if (!(y * y > bulk_edge(beta))) return 0.0;
    const double square = strength_squared(y * y, beta);
    if (loss == Loss::frobenius) return (square - beta / square) / y;
    if (loss == Loss::operator_norm)
        return std::sqrt(square * ((square + std::min(1.0, beta)) / (square + std::max(1.0, beta))));
    const double root = std::sqrt(beta * square);
    return std::max(0.0, (square - (beta + root * y) / square) / y);
}

}  // namespace spiked::theory::white

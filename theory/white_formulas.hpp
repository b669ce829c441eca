#pragma once
#include <algorithm>
#include <cmath>

#include "theory/base/device.hpp"
#include "theory/shrinkers.hpp"

/// The closed forms of white_noise.hpp on plain numbers, one source for CPU and GPU; beta is rows over columns.
namespace spiked::theory::white {

[[nodiscard]] SPIKED_DEVICE inline double bulk_edge(double beta) {
    const double root_edge = 1.0 + std::sqrt(beta);
    return root_edge * root_edge;
}

[[nodiscard]] SPIKED_DEVICE inline double detection_threshold(double beta) { return std::sqrt(std::sqrt(beta)); }

/// Signal strength squared from an observed eigenvalue at or above the edge.
[[nodiscard]] SPIKED_DEVICE inline double strength_squared(double eigenvalue, double beta) {
    const double root_beta = std::sqrt(beta);
    const double upper = (1.0 + root_beta) * (1.0 + root_beta);
    const double lower = (1.0 - root_beta) * (1.0 - root_beta);
    // Roots apart: a strength may be 1e100 times the noise.
    const double discriminant =
        std::sqrt(std::max(0.0, eigenvalue - upper)) * std::sqrt(std::max(0.0, eigenvalue - lower));
    return 0.5 * ((eigenvalue - upper) + discriminant) + root_beta;
}

[[nodiscard]] SPIKED_DEVICE inline bool detectable(double x, double beta) { return x * x > std::sqrt(beta); }

/// x^4 - beta over x^2: what every overlap is made of; factored, so that it is exact at the threshold.
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

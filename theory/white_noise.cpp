#include "theory/white_noise.hpp"

#include <algorithm>
#include <cmath>

namespace spiked::theory {
namespace {

/// x^4 - beta over x^2: what every overlap is made of; factored, so that it is exact at the threshold.
double excess(double x, double beta) {
    const double square = x * x;
    const double root_beta = std::sqrt(beta);
    return (square - root_beta) * (1.0 + root_beta / square);
}

/// Signal strength squared from an observed eigenvalue at or above the edge.
double strength_squared(double eigenvalue, double beta) {
    const double root_beta = std::sqrt(beta);
    const double upper = (1.0 + root_beta) * (1.0 + root_beta);
    const double lower = (1.0 - root_beta) * (1.0 - root_beta);
    const double discriminant = std::sqrt(std::max(0.0, (eigenvalue - upper) * (eigenvalue - lower)));
    return 0.5 * ((eigenvalue - upper) + discriminant) + root_beta;
}

bool detectable(double x, double beta) { return x * x > std::sqrt(beta); }

}  // namespace

Eigenvalue white_bulk_edge(AspectRatio aspect) {
    const double root_edge = 1.0 + std::sqrt(aspect.value());
    return {root_edge * root_edge};
}

SignalStrength white_detection_threshold(AspectRatio aspect) { return {std::sqrt(std::sqrt(aspect.value()))}; }

double white_tracy_widom_scale(AspectRatio aspect) {
    const double root_beta = std::sqrt(aspect.value());
    return 1.0 / ((1.0 + root_beta) * std::cbrt(1.0 + 1.0 / root_beta));
}

Eigenvalue white_outlier(SignalStrength strength, AspectRatio aspect) {
    const double beta = aspect.value();
    if (!detectable(strength.value, beta)) return white_bulk_edge(aspect);
    const double square = strength.value * strength.value;
    return {(1.0 + square) * (1.0 + beta / square)};
}

SignalStrength white_strength_of(Eigenvalue outlier, AspectRatio aspect) {
    if (!(outlier >= white_bulk_edge(aspect)))
        throw usage_error("eigenvalue {} has no strength (it lies below the bulk edge {}): give one above the edge",
                          outlier.value, white_bulk_edge(aspect).value);
    return {std::sqrt(strength_squared(outlier.value, aspect.value()))};
}

Overlap white_overlap_left(SignalStrength strength, AspectRatio aspect) {
    const double x = strength.value;
    const double beta = aspect.value();
    if (!detectable(x, beta)) return {0.0};
    return {excess(x, beta) / (x * x + beta)};
}

Overlap white_overlap_right(SignalStrength strength, AspectRatio aspect) {
    const double x = strength.value;
    const double beta = aspect.value();
    if (!detectable(x, beta)) return {0.0};
    return {excess(x, beta) / (x * x + 1.0)};
}

SingularValue white_shrunk(SingularValue observed, AspectRatio aspect, Loss loss) {
    const double beta = aspect.value();
    const double y = observed.value;
    if (!(y * y > white_bulk_edge(aspect).value)) return {0.0};
    const double square = strength_squared(y * y, beta);
    switch (loss) {
        case Loss::frobenius:
            return {(square - beta / square) / y};
        case Loss::operator_norm:
            return {std::sqrt(square * (square + std::min(1.0, beta)) / (square + std::max(1.0, beta)))};
        case Loss::nuclear: {
            const double root = std::sqrt(beta * square);
            return {std::max(0.0, (square * square - beta - root * y) / (square * y))};
        }
    }
    throw bug("loss {} has no shrinker (a value outside the enumeration): report this", static_cast<int>(loss));
}

}  // namespace spiked::theory

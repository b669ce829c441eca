#include "theory/white_noise.hpp"

#include <cmath>

#include "theory/white_formulas.hpp"

namespace spiked::theory {

Eigenvalue white_bulk_edge(AspectRatio aspect) { return {white::bulk_edge(aspect.value())}; }

SignalStrength white_detection_threshold(AspectRatio aspect) { return {white::detection_threshold(aspect.value())}; }

double white_tracy_widom_scale(AspectRatio aspect) {
    const double root_beta = std::sqrt(aspect.value());
    return 1.0 / ((1.0 + root_beta) * std::cbrt(1.0 + 1.0 / root_beta));
}

Eigenvalue white_outlier(SignalStrength strength, AspectRatio aspect) {
    const double beta = aspect.value();
    if (!white::detectable(strength.value, beta)) return white_bulk_edge(aspect);
    const double square = strength.value * strength.value;
    return {(1.0 + square) * (1.0 + beta / square)};
}

SignalStrength white_strength_of(Eigenvalue outlier, AspectRatio aspect) {
    if (!(outlier >= white_bulk_edge(aspect)))
        throw usage_error("eigenvalue {} has no strength (it lies below the bulk edge {}): give one above the edge",
                          outlier.value, white_bulk_edge(aspect).value);
    return {std::sqrt(white::strength_squared(outlier.value, aspect.value()))};
}

Overlap white_overlap_left(SignalStrength strength, AspectRatio aspect) {
    return {white::overlap_left(strength.value, aspect.value())};
}

Overlap white_overlap_right(SignalStrength strength, AspectRatio aspect) {
    return {white::overlap_right(strength.value, aspect.value())};
}

SingularValue white_shrunk(SingularValue observed, AspectRatio aspect, Loss loss) {
    return {white::shrunk(observed.value, aspect.value(), loss)};
}

}  // namespace spiked::theory

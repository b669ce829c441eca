#pragma once
#include "theory/base/quantities.hpp"
#include "theory/shrinkers.hpp"

namespace spiked::theory {

/// Closed forms for white noise, A = B = identity, entries of variance 1/d, aspect n/d (Benaych-Georges and
/// Nadakuditi 2012; Gavish and Donoho 2017; Johnstone 2001). They share no code with SeparableLaw: a second opinion.
/// Strengths below the threshold: the outlier is the edge, overlaps and shrunk values are 0.
/// Accuracy: a few ulp, relative to the distance from the threshold for overlaps and shrunk values. Cost: nanoseconds.

[[nodiscard]] Eigenvalue white_bulk_edge(AspectRatio aspect);                ///< (1 + sqrt beta)^2
[[nodiscard]] SignalStrength white_detection_threshold(AspectRatio aspect);  ///< beta^(1/4)

/// The g with g d^(2/3) (largest eigenvalue - edge) -> Tracy-Widom 1.
[[nodiscard]] double white_tracy_widom_scale(AspectRatio aspect);

[[nodiscard]] Eigenvalue white_outlier(SignalStrength strength, AspectRatio aspect);
/// Inverse of white_outlier; throws usage_error below the edge.
[[nodiscard]] SignalStrength white_strength_of(Eigenvalue outlier, AspectRatio aspect);

[[nodiscard]] Overlap white_overlap_left(SignalStrength strength, AspectRatio aspect);   ///< the side of length n
[[nodiscard]] Overlap white_overlap_right(SignalStrength strength, AspectRatio aspect);  ///< the side of length d

/// The optimal singular value for an observed one, as a function of the observation alone.
[[nodiscard]] SingularValue white_shrunk(SingularValue observed, AspectRatio aspect, Loss loss);

}  // namespace spiked::theory

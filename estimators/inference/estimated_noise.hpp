#pragma once
#include <optional>
#include <string>
#include <vector>

#include "estimators/spectral/shrinkage.hpp"
#include "estimators/svd/shape.hpp"
#include "theory/laws/separable_law.hpp"

namespace spiked::estimators {

/// The noise of one block as an estimator sees it: the min(n, d) eigenvalues that noise alone would have, on the scale
/// of the block. Under white noise these are quantiles of the Marchenko-Pastur law at the estimated level, under noise
/// of unknown covariance the eigenvalues behind the signal with their imputed top.
struct EstimatedNoise {
    std::vector<double> eigenvalues;  ///< largest first
    Eigenvalue edge;
    /// The Tracy-Widom scale of the largest noise eigenvalue. Eigenvalue j of noise lies c j^(2/3) below the edge, and
    /// c = (3 pi / 2)^(2/3) scales, because that is how the zeros of the Airy function lie; c is read off the imputed
    /// eigenvalues. Under white noise the scale is that of the law.
    double width = 0.0;

    /// How many scales this eigenvalue lies above the edge.
    [[nodiscard]] double widths_above(Eigenvalue z) const { return (z.value - edge.value) / width; }
};

/// Nothing where the estimator knows no noise law: kept singular values, a known covariance, a transform before it, or
/// fewer than 8 noise eigenvalues.
[[nodiscard]] std::optional<EstimatedNoise> estimated_noise(const Shrinkage& found, Shape shape);
/// Why there is none, in words that end a sentence.
[[nodiscard]] std::string why_no_noise(const Shrinkage& found, Shape shape);

/// The curve of outliers over this noise at z, from sums over the eigenvalues. Source: t = -1 - z m(z), m the Stieltjes
/// transform of the side of length d, and derivatives with respect to log z of sums of (mu / (z - mu))^j. Requires z
/// above all eigenvalues.
[[nodiscard]] theory::SpikeCurve curve_at(const EstimatedNoise& noise, Shape shape, Eigenvalue z);

/// Strength of the spike whose outlier lies there, and its squared overlaps. The same values as estimate_outlier.
struct CurveEstimate {
    double strength = 0.0;
    double overlap_left = 0.0;
    double overlap_right = 0.0;
};
[[nodiscard]] CurveEstimate estimate_on(const theory::SpikeCurve& curve, Shape shape);

}  // namespace spiked::estimators

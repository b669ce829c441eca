#pragma once
#include <optional>
#include <span>

#include "estimators/spectral/noise_level.hpp"
#include "estimators/spectral/shrinkage.hpp"
#include "estimators/spectral/white_rule.hpp"
#include "theory/laws/shrinkers.hpp"

namespace spiked::estimators {

/// Hard threshold of Gavish and Donoho 2014, relative to the noise level times the root of the long side:
/// sqrt(2 (b + 1) + 8 b / (b + 1 + sqrt(b^2 + 14 b + 1))), b = short / long side in (0, 1].
[[nodiscard]] double hard_threshold_coefficient(double aspect);
/// The same threshold relative to the median singular value: divided by the root of the Marchenko-Pastur median.
[[nodiscard]] double median_threshold_coefficient(double aspect);

struct SpectralEstimator;

struct GavishDonohoOptions {
    theory::Loss loss = theory::Loss::frobenius;
    std::optional<double> noise_level;  ///< standard deviation of the noise entries; otherwise estimated by the rule
    NoiseLevelRule rule = NoiseLevelRule::median;
};

/// For white noise only. The reported edge is level^2 (sqrt n + sqrt d)^2. When the estimated level is 0 (more than
/// half the singular values are 0) the block is of low rank and kept unchanged, with a note. Cost O(p), and about 20 us
/// for the median.
///   hard    values above the threshold stay as they are (Frobenius loss)
///   shrink  optimal shrinkers of Gavish and Donoho 2017 for values above the edge; the operator norm in Leeb's form
///           (2022), which is right for any shape
[[nodiscard]] Shrinkage gavish_donoho_hard(std::span<const double> singular_values, Shape shape,
                                           const GavishDonohoOptions& options = {});
[[nodiscard]] Shrinkage gavish_donoho_shrink(std::span<const double> singular_values, Shape shape,
                                             const GavishDonohoOptions& options = {});

/// These options resolved for the blocks of one shape, both of whose sides are above 0; `rule` is not used.
[[nodiscard]] WhiteRule white_rule(Shape shape, const GavishDonohoOptions& options, bool hard);
/// The rule of a gd-hard or gd-shrink estimator; nothing for another estimator, or if the level is estimated by
/// quantiles.
[[nodiscard]] std::optional<WhiteRule> white_rule(const SpectralEstimator& estimator, Shape shape);

}  // namespace spiked::estimators

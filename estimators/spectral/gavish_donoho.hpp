#pragma once
#include <optional>
#include <span>
#include <string_view>

#include "estimators/spectral/noise_level.hpp"
#include "estimators/spectral/shrinkage.hpp"
#include "estimators/spectral/white_rule.hpp"
#include "theory/laws/shrinkers.hpp"

namespace spiked::estimators {

/// Hard threshold of Gavish and Donoho 2014, in units of the noise level times the root of the long side:
/// sqrt(2 (b + 1) + 8 b / (b + 1 + sqrt(b^2 + 14 b + 1))), b = short / long side in (0, 1].
[[nodiscard]] double hard_threshold_coefficient(double aspect);
/// The same in units of the median singular value: over the root of the Marchenko-Pastur median.
[[nodiscard]] double median_threshold_coefficient(double aspect);

struct GavishDonohoOptions {
    theory::Loss loss = theory::Loss::frobenius;
    std::optional<double> noise_level;  ///< standard deviation of the noise entries; else by the rule
    NoiseLevelRule rule = NoiseLevelRule::median;
};

/// White noise only. The edge reported is level^2 (sqrt n + sqrt d)^2. When the level comes out 0 (more than half the
/// singular values are 0) the block is of low rank and kept as it is, with a note. O(p), about 20 us for the median.
///   hard    values above the threshold stay as they are (Frobenius loss)
///   shrink  optimal shrinkers of Gavish and Donoho 2017 for values above the edge; the operator norm in Leeb's form
///           (2022), which is right for any shape
[[nodiscard]] Shrinkage gavish_donoho_hard(std::span<const double> singular_values, Shape shape,
                                           const GavishDonohoOptions& options = {});
[[nodiscard]] Shrinkage gavish_donoho_shrink(std::span<const double> singular_values, Shape shape,
                                             const GavishDonohoOptions& options = {});

/// These options settled for the blocks of one shape, with both sides above 0; `rule` is not among them.
[[nodiscard]] WhiteRule white_rule(Shape shape, const GavishDonohoOptions& options, bool hard);
/// That of a name as users type it; none of another method, or of the level by quantiles.
[[nodiscard]] std::optional<WhiteRule> white_rule(std::string_view name, theory::Loss loss, Shape shape);

}  // namespace spiked::estimators

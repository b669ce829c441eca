#pragma once
#include <span>

#include "estimators/svd/shape.hpp"

namespace spiked::estimators {

/// Standard deviation of the entries of white noise, from descending singular values on any scale:
///   median    the median value over that of the Marchenko-Pastur law; signals bias it upwards (by 5 % when a tenth of
///             the components are signals)
///   quantile  the same for the values below the white edge only, as noise with correspondingly fewer rows and columns,
///             repeated until the number of values above the edge no longer changes
/// Source: Gavish and Donoho 2014; `quantile` is ours. The level is 0 when the median is 0. Cost: microseconds per
/// round.
enum class NoiseLevelRule { median, quantile };

/// The median of `values` singular values of white noise at level 1 in a block with this long side.
[[nodiscard]] double median_root(std::size_t values, Shape shape);

[[nodiscard]] double white_noise_level(std::span<const double> singular_values, Shape shape, NoiseLevelRule rule);

}  // namespace spiked::estimators

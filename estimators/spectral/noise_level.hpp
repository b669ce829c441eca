#pragma once
#include <span>

#include "estimators/svd/shape.hpp"

namespace spiked::estimators {

/// Standard deviation of the entries of white noise, from singular values (descending, unit free):
///   median    median value over that of the Marchenko-Pastur law; signals bias it upwards (5 % at a tenth of the rank)
///   quantile  the same of the values below the white edge alone, as noise with so many rows and columns fewer,
///             repeated until the count of values above the edge stays
/// Source: Gavish and Donoho 2014; `quantile` ours. 0 when the median is 0. Cost: microseconds a round.
enum class NoiseLevelRule { median, quantile };

/// The median singular value of so many of white noise at level 1 with this long side.
[[nodiscard]] double median_root(std::size_t values, Shape shape);

[[nodiscard]] double white_noise_level(std::span<const double> singular_values, Shape shape, NoiseLevelRule rule);

}  // namespace spiked::estimators

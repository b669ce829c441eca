#pragma once
#include "estimators/spectral/shrinkage.hpp"
#include "estimators/spectral/white_rule.hpp"
#include "estimators/svd/relative_spectrum.hpp"

namespace spiked::estimators {

/// Strengths, overlaps and shrunk values of the first `rank` components under white noise whose entries have standard
/// deviation `level`, relative to the largest singular value. Components at or below the edge get overlaps and shrunk
/// value 0.
[[nodiscard]] Shrinkage white_shrinkage(const RelativeSpectrum& spectrum, std::size_t rank, double level,
                                        theory::Loss loss);

}  // namespace spiked::estimators

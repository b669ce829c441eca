#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "theory/quantization/lloyd_max.hpp"

namespace spiked::estimators {

/// Index of the bin (cell) of a value: the number of thresholds below it. A value on a threshold belongs to the lower
/// bin.
[[nodiscard]] inline std::uint64_t cell_of(double value, const theory::Codebook& codebook) {
    const auto& thresholds = codebook.thresholds;
    return static_cast<std::uint64_t>(std::lower_bound(thresholds.begin(), thresholds.end(), value) -
                                      thresholds.begin());
}

}  // namespace spiked::estimators

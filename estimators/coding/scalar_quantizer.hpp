#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "theory/quantization/lloyd_max.hpp"

namespace spiked::estimators {

/// Index of the cell a value falls into: how many thresholds lie below it. A value on a threshold takes the lower cell.
[[nodiscard]] inline std::uint64_t cell_of(double value, const theory::Codebook& codebook) {
    const auto& thresholds = codebook.thresholds;
    return static_cast<std::uint64_t>(std::lower_bound(thresholds.begin(), thresholds.end(), value) -
                                      thresholds.begin());
}

}  // namespace spiked::estimators

#include "estimators/ranks/bulk_gap.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace spiked::estimators {

std::optional<BulkGap> bulk_gap(std::span<const double> singular_values) {
    constexpr double rounding = 1e-12;
    constexpr std::size_t side = values_beside_gap;
    constexpr double spacings_of_side = side - 1;
    std::size_t count = singular_values.size();
    while (count > 0 && !(singular_values[count - 1] > rounding * singular_values[0])) --count;
    if (count < 2 * side) return std::nullopt;
    const std::size_t tested = count - 2 * side + 1;
    const double limit =
        1.2 * std::sqrt(4.0 / std::numbers::pi * std::log(static_cast<double>(tested) / bulk_gap_level));
    std::optional<BulkGap> found;
    for (std::size_t above = side; above + side <= count; ++above) {
        const double upper = singular_values[above - 1];
        const double lower = singular_values[above];
        const double beside =
            std::max(singular_values[above - side] - upper, lower - singular_values[above + side - 1]);
        const double mean = std::max(beside / spacings_of_side, rounding * singular_values[0]);
        if (upper - lower > limit * mean && (!found || upper - lower > found->spacings * mean))
            found = BulkGap{above, lower, upper, (upper - lower) / mean};
    }
    return found;
}

}  // namespace spiked::estimators

#include "estimators/spectral/noise_level.hpp"

#include <cmath>

#include "theory/laws/marchenko_pastur.hpp"

namespace spiked::estimators {
namespace {

double from_median(std::span<const double> values, Shape shape) {
    const std::size_t p = values.size();
    const double median = p % 2 == 1 ? values[p / 2] : 0.5 * (values[p / 2 - 1] + values[p / 2]);
    return median / median_root(p, shape);
}

}  // namespace

double median_root(std::size_t values, Shape shape) {
    const double q = static_cast<double>(shape.long_side());
    const theory::MarchenkoPastur law(AspectRatio(static_cast<double>(values) / q));
    return std::sqrt(q * law.median().value);
}

double white_noise_level(std::span<const double> singular_values, Shape shape, NoiseLevelRule rule) {
    if (singular_values.empty()) return 0.0;
    double level = from_median(singular_values, shape);
    if (rule == NoiseLevelRule::median) return level;
    // The level only falls and the count only grows, so the loop ends; at least half the values always remain.
    const double root_sides =
        std::sqrt(static_cast<double>(shape.rows)) + std::sqrt(static_cast<double>(shape.columns));
    std::size_t signals = 0;
    while (true) {
        std::size_t above = signals;
        while (above < singular_values.size() / 2 && singular_values[above] > level * root_sides) ++above;
        if (above == signals) return level;
        signals = above;
        level = std::min(
            level, from_median(singular_values.subspan(signals), {shape.rows - signals, shape.columns - signals}));
    }
}

}  // namespace spiked::estimators

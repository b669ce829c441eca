#pragma once
#include <algorithm>
#include <cmath>
#include <string_view>

#include "core/device/host_device.hpp"
#include "core/text/enum_names.hpp"
#include "theory/laws/quantities.hpp"

namespace spiked::theory {

/// The loss between the clean and the estimated signal that a shrinker minimises.
enum class Loss { frobenius, operator_norm, nuclear };

[[nodiscard]] std::string_view name_of(Loss loss);

/// The singular value that minimises the loss for one spike of this strength, when the observed singular vectors have
/// these overlaps with the true ones (paper, Step 3 of the algorithm; Gavish and Donoho 2017; Leeb 2022 for the
/// operator norm with unequal overlaps). The left and right overlaps are interchangeable.
///   frobenius  d sqrt(a b)
///   operator   d sqrt(min(a, b) / max(a, b)), 0 when both are 0
///   nuclear    d max(0, sqrt(a b) - sqrt((1 - a)(1 - b))): the positive part is optimal; a + b < 1 gives 0
/// Both strength and result are singular values, and the result is never above `strength`. Overlaps are clipped to
/// [0, 1], because estimates may lie slightly outside.
[[nodiscard]] SPIKED_DEVICE inline double shrink(double strength, double overlap, double other_overlap, Loss loss) {
    const double a = std::clamp(overlap, 0.0, 1.0);
    const double b = std::clamp(other_overlap, 0.0, 1.0);
    const double product = std::sqrt(a * b);
    if (loss == Loss::frobenius) return strength * product;
    if (loss == Loss::operator_norm) {
        const double larger = std::max(a, b);
        return larger > 0.0 ? strength * std::sqrt(std::min(a, b) / larger) : 0.0;
    }
    // sqrt(ab) - sqrt((1-a)(1-b)) as a difference of squares over a sum, which is exact where it changes sign.
    const double excess = (a - 0.5) + (b - 0.5);
    return excess > 0.0 ? strength * excess / (product + std::sqrt((1.0 - a) * (1.0 - b))) : 0.0;
}

}  // namespace spiked::theory

template <>
struct spiked::EnumNames<spiked::theory::Loss> {
    static constexpr EnumName<spiked::theory::Loss> table[] = {
        {spiked::theory::Loss::frobenius, "frobenius"},
        {spiked::theory::Loss::operator_norm, "operator", "spectral"},
        {spiked::theory::Loss::nuclear, "nuclear"}};
};

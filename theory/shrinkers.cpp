#include "theory/shrinkers.hpp"

#include <algorithm>
#include <cmath>

namespace spiked::theory {

std::string_view name_of(Loss loss) {
    switch (loss) {
        case Loss::frobenius:
            return "frobenius";
        case Loss::operator_norm:
            return "operator";
        case Loss::nuclear:
            return "nuclear";
    }
    throw bug("loss {} has no name (a value outside the enumeration): report this", static_cast<int>(loss));
}

std::optional<Loss> loss_from(std::string_view name) {
    for (const Loss loss : {Loss::frobenius, Loss::operator_norm, Loss::nuclear})
        if (name == name_of(loss)) return loss;
    return std::nullopt;
}

double shrink(double strength, double overlap, double other_overlap, Loss loss) {
    const double a = std::clamp(overlap, 0.0, 1.0);
    const double b = std::clamp(other_overlap, 0.0, 1.0);
    const double product = std::sqrt(a * b);
    switch (loss) {
        case Loss::frobenius:
            return strength * product;
        case Loss::operator_norm: {
            const double larger = std::max(a, b);
            return larger > 0.0 ? strength * std::sqrt(std::min(a, b) / larger) : 0.0;
        }
        case Loss::nuclear: {
            // sqrt(ab) - sqrt((1-a)(1-b)) with the difference of squares taken by hand: exact where it changes sign.
            const double excess = (a - 0.5) + (b - 0.5);
            return excess > 0.0 ? strength * excess / (product + std::sqrt((1.0 - a) * (1.0 - b))) : 0.0;
        }
    }
    throw bug("loss {} has no shrinker (a value outside the enumeration): report this", static_cast<int>(loss));
}

}  // namespace spiked::theory

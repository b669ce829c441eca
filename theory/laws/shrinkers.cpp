#include "theory/laws/shrinkers.hpp"

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
    throw precondition_error("loss {} has no name (a value outside the enumeration)", static_cast<int>(loss));
}

std::optional<Loss> loss_from(std::string_view name) {
    for (const Loss loss : {Loss::frobenius, Loss::operator_norm, Loss::nuclear})
        if (name == name_of(loss)) return loss;
    return std::nullopt;
}

}  // namespace spiked::theory

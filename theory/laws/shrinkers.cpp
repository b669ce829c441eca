#include "theory/laws/shrinkers.hpp"

namespace spiked::theory {

std::string_view name_of(Loss loss) { return enum_name(loss); }

}  // namespace spiked::theory

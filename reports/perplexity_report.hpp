#pragma once
#include <string>

#include "theory/base/json.hpp"
#include "validation/perplexity.hpp"

namespace spiked::reports {

/// What compression costs a model, a line a method and bit width.
[[nodiscard]] std::string perplexity_text(const validation::Perplexity& found);
/// `spiked.perplexity/1`.
[[nodiscard]] Json perplexity_json(const validation::Perplexity& found);

}  // namespace spiked::reports

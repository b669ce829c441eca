#pragma once
#include <string>

#include "core/text/json.hpp"
#include "validation/model/perplexity.hpp"
#include "validation/model/retrieval.hpp"

namespace spiked::reports {

/// What compression costs a model, a line a method and bit width.
[[nodiscard]] std::string perplexity_text(const validation::Perplexity& found);
/// `spiked.perplexity/1`.
[[nodiscard]] Json perplexity_json(const validation::Perplexity& found);

/// Which answers survive, a line a method and bit width; `heads` adds a table of attention on the needles by head.
[[nodiscard]] std::string retrieval_text(const validation::Retrieval& found, bool heads);
/// `spiked.retrieve/1`.
[[nodiscard]] Json retrieval_json(const validation::Retrieval& found);

}  // namespace spiked::reports

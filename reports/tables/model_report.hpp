#pragma once
#include <string>

#include "core/text/json.hpp"
#include "validation/model/perplexity.hpp"
#include "validation/model/retrieval.hpp"

namespace spiked::reports {

/// The loss of a language model through compression of its cache, one row per method and bit width.
[[nodiscard]] std::string perplexity_text(const validation::Perplexity& found);
/// JSON of schema `spiked.perplexity/1`.
[[nodiscard]] Json perplexity_json(const validation::Perplexity& found);

/// The answers that stay right under compression, one row per method and bit width. `heads` adds a table of the
/// attention of every head on the needles.
[[nodiscard]] std::string retrieval_text(const validation::Retrieval& found, bool heads);
/// JSON of schema `spiked.retrieve/1`.
[[nodiscard]] Json retrieval_json(const validation::Retrieval& found);

}  // namespace spiked::reports

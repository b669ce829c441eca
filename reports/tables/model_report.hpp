#pragma once
#include <string>

#include "core/text/json.hpp"
#include "validation/model/generated_answers.hpp"
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

/// The facts that a model still states in its answers, one row per method and bit width. `parts` adds a table by
/// context, number of needles and depth, and the answers to the first prompt.
[[nodiscard]] std::string answers_text(const validation::GeneratedAnswers& found, bool parts);
/// JSON of schema `spiked.answers/1`.
[[nodiscard]] Json answers_json(const validation::GeneratedAnswers& found);

}  // namespace spiked::reports

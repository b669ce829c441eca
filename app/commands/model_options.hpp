#pragma once
#include "app/cli/command.hpp"
#include "validation/model/perplexity.hpp"
#include "validation/model/retrieval.hpp"

namespace spiked::app {

// Options of commands that run a model on its own cache, and what they say.

[[nodiscard]] OptionSpec model_option();
/// Throws usage_error where one of both is missing.
void require_model_and_tokens(const Arguments& arguments);
[[nodiscard]] OptionSpec model_method_option();
[[nodiscard]] OptionSpec budget_option();
/// Prompts, and how they are asked.
[[nodiscard]] const std::vector<OptionSpec>& needle_options();

/// From --model, --tokens, --method, --bits, --budget, --block, --only (where the command has it), --threads and the
/// quantizer's.
[[nodiscard]] validation::PerplexityPlan read_perplexity_plan(const Arguments& arguments);
/// The same for prompts with needles, into a plan that has dumps or none.
void read_needles(const Arguments& arguments, validation::RetrievalPlan& plan);

}  // namespace spiked::app

#pragma once
#include "app/cli/command.hpp"
#include "validation/model/perplexity.hpp"
#include "validation/model/retrieval.hpp"

namespace spiked::app {

// The options of commands that run a model on its own cache, and their values.

[[nodiscard]] OptionSpec model_option();
/// Throws usage_error if --model or --tokens is missing.
void require_model_and_tokens(const Arguments& arguments);
[[nodiscard]] OptionSpec model_method_option();
[[nodiscard]] OptionSpec budget_option();
/// The options of prompts with needles.
[[nodiscard]] const std::vector<OptionSpec>& needle_options();

/// The plan from --model, --tokens, --method, --bits, --budget, --block, --only (if the command has it), --threads and
/// the options of quantizers.
[[nodiscard]] validation::PerplexityPlan read_perplexity_plan(const Arguments& arguments);
/// The same for prompts with needles, into a plan with or without dumps.
void read_needles(const Arguments& arguments, validation::RetrievalPlan& plan);

}  // namespace spiked::app

#pragma once
#include "app/cli/command.hpp"
#include "validation/model/generated_answers.hpp"
#include "validation/model/perplexity.hpp"
#include "validation/model/retrieval.hpp"

namespace spiked::app {

// The options of commands that run a model on its own cache, and their values.

[[nodiscard]] OptionSpec model_option();
/// Throws usage_error if --model or --tokens is missing.
void require_model_and_tokens(const Arguments& arguments);
[[nodiscard]] OptionSpec model_method_option();
[[nodiscard]] OptionSpec budget_option();
/// --documents, the number of rows of --tokens to use.
[[nodiscard]] OptionSpec documents_option();
/// The options of prompts with needles.
[[nodiscard]] const std::vector<OptionSpec>& needle_options();
/// `--model` of a command that measures dumps or a model: it excludes dumps and these options of theirs, but for
/// `--block` and `--tokens`, which a model has too.
[[nodiscard]] OptionSpec model_beside_dumps(const std::vector<OptionSpec>& of_dumps);

// Plans say in notes how much memory a pass takes, before the weights are read, and how long all of them take.

/// Says in a note the memory of passes, so many of which run beside each other. `state`: what PassMemory::state is of.
void say_memory(const Arguments& arguments, const sim::PassMemory& bytes, std::size_t tokens, std::size_t at_once,
                const char* state);

/// The plan from --model, --tokens, --documents, --method, --bits, --budget, --block, --only (if the command has it),
/// --threads and the options of quantizers.
[[nodiscard]] validation::PerplexityPlan read_perplexity_plan(const Arguments& arguments);
/// The same for prompts with needles, into a plan with or without dumps.
void read_needles(const Arguments& arguments, validation::RetrievalPlan& plan);
/// The plan of generated answers to the prompts of --prompts-file. Throws usage_error for options that have no effect
/// on it.
[[nodiscard]] validation::AnswerPlan read_answer_plan(const Arguments& arguments);

}  // namespace spiked::app

#pragma once
#include <string>

#include "validation/engine/experiment.hpp"
#include "validation/model/perplexity.hpp"
#include "validation/model/retrieval.hpp"

namespace spiked::validation {

// What a compressed cache costs a model as an experiment: a cell a document or prompt, of one replicate; metrics
// bits_per_entry and added_nats or retrieval, paired with full precision; side "cache", clusters the cells.
// Stores, frontiers and figures are then those of dump studies.

/// Adds inputs, methods, cells and the worker to an experiment that has its name and seed. Throws as measure_perplexity
/// does.
void make_perplexity_experiment(Experiment& experiment, const PerplexityPlan& plan);
/// The same for prompts built for a model (not for dumps). Full precision answers half of the first prompt's questions
/// right, or an input_error says so.
void make_retrieval_experiment(Experiment& experiment, const RetrievalPlan& plan);

}  // namespace spiked::validation

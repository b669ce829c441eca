#pragma once
#include <string>

#include "validation/model/perplexity.hpp"
#include "validation/model/retrieval.hpp"
#include "validation/store/experiment.hpp"

namespace spiked::validation {

// Experiments that measure how a compressed cache changes the predictions of a model. Each document or prompt is a cell
// with one replicate. Metrics are bits_per_entry and added_nats or retrieval, paired with full precision. The side is
// "cache" and each cell is a cluster, so that stores, frontiers and figures work as for dump studies.

/// Adds inputs, methods, cells and the worker to an experiment whose name and seed are set. Throws as
/// measure_perplexity does.
void make_perplexity_experiment(Experiment& experiment, const PerplexityPlan& plan);
/// The same for prompts built for a model (not for dumps). Also throws input_error if the model in full precision
/// answers fewer than half of the questions of the first prompt correctly.
void make_retrieval_experiment(Experiment& experiment, const RetrievalPlan& plan);

}  // namespace spiked::validation

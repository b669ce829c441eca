#pragma once
#include <memory>
#include <optional>

#include "validation/model/generated_answers.hpp"
#include "validation/model/perplexity.hpp"
#include "validation/model/retrieval.hpp"
#include "validation/store/experiment.hpp"
#include "validation/store/sqlite.hpp"

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

/// The same for prompts that the model answers in its own words. The metrics are bits_per_entry and wrong_answers, the
/// fraction of facts that an answer lacks, and controls have none. The answers are arrays of the store.
void make_answers_experiment(Experiment& experiment, const std::shared_ptr<const OpenAnswers>& open);
/// The table of such a store, as measure_answers returns it; no value if an answer is absent, as after an interruption.
/// Throws input_error for answers that no run writes.
[[nodiscard]] std::optional<GeneratedAnswers> stored_answers(Database& store, const OpenAnswers& open);

}  // namespace spiked::validation

#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "validation/model/prompt_score.hpp"
#include "validation/statistics/paired.hpp"

namespace spiked::validation {

struct NeedleAttention {
    std::size_t layer = 0, head = 0;
    MeanAndError mass, peaks;
};

struct RetrievalRow {
    std::string method;  ///< "none" for full precision
    double bits = 16.0;
    std::optional<double> budget;           ///< for evictions
    codec::CacheBits ledger{.rows = 16.0};  ///< stored bits per compressed entry
    MeanAndError right, log_probability;
    MeanAndError lost;  ///< `right` in full precision minus `right`, paired by prompt
    /// Differences from the first method at its first budget and bits, paired by prompt; also for full precision.
    MeanAndError right_over_first, log_probability_over_first;
    std::vector<double> right_by_prompt, log_probability_by_prompt;
    MeanAndError mass;  ///< attention on the needle, in the head that attends best to needles in full precision
    std::vector<NeedleAttention> heads;
    arma::mat where;  ///< PromptScore::where of the first prompt, in the same head
};

struct Retrieval {
    std::size_t prompts = 0, questions = 0;  ///< questions: in all prompts
    std::size_t needles = 0, context = 0;    ///< per prompt, for prompts built for a model
    std::vector<std::string> dumps;
    bool last_layer_only = false, exact_questions = false, at_once = false, observe_questions = false;
    std::size_t best_layer = 0, best_head = 0;
    std::vector<std::size_t> questions_by_prompt;
    std::vector<RetrievalRow> rows;  ///< full precision first, then in the order requested
};

/// The source of questions: prompts built for a model, or dumps.
struct Questions {
    sim::LlamaConfig shape;
    std::size_t prompts = 0, questions = 0;  ///< questions: in all prompts
    std::size_t needles = 0;                 ///< per prompt, for prompts built for a model
    std::size_t context = 0;                 ///< tokens before the questions; for dumps the smallest number
    bool last_layer_only = false, at_once = false;
    std::vector<codec::CacheVersion> versions;  ///< full precision first
    std::function<PromptScore(std::size_t prompt, codec::CompressedCache* cache)> ask;
    /// Checks the fractions of correct answers in full precision, one for each prompt from the first on. Throws
    /// input_error if they are too low or contradict a dump.
    std::function<void(const std::vector<double>& right)> check;
};
/// Throws as measure_retrieval does before it starts.
[[nodiscard]] Questions questions_of(RetrievalPlan plan);

/// Measures every version of the cache on every prompt. Throws usage_error and input_error before it starts, and
/// input_error if full precision answers fewer than half of the questions correctly or, for dumps that state a number
/// of correct answers, a different number.
[[nodiscard]] Retrieval measure_retrieval(const RetrievalPlan& plan);

}  // namespace spiked::validation

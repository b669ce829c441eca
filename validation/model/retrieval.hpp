#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "codec/cache/compressed_cache.hpp"
#include "sim/kv/needle.hpp"
#include "sim/llama/llama_readout.hpp"
#include "validation/statistics/paired.hpp"

namespace spiked::validation {

/// The special tokens of a retrieval model. A prompt consists of BOS and filler that contains needles, each a key token
/// directly followed by its value token. For each question ASK and a key follow; the answer is the value.
struct NeedleVocabulary {
    std::int32_t bos = 0;
    std::int32_t ask = 1;
    std::int32_t first_key = 512, last_key = 1023;
    std::int32_t first_value = 1024, last_value = 1535;
};

using sim::Needle;

struct NeedlePrompt {
    std::vector<std::int32_t> tokens;
    std::size_t context = 0;      ///< tokens before the questions
    std::vector<Needle> needles;  ///< those that are asked for
};

struct RetrievalPlan {
    std::vector<std::string> dumps;  ///< with readouts of the last layer; if empty, prompts are built for the model
    sim::DumpOptions dump;
    std::string model;   ///< folder
    std::string filler;  ///< .npy, streams x tokens
    NeedleVocabulary vocabulary;
    std::size_t needles = 16;  ///< per prompt
    std::size_t asked = 32;    ///< needles asked for per prompt, at most
    std::size_t prompts = 64;
    /// Tokens of a prompt with its questions. 0: the model's context, or less if the filler is shorter.
    std::size_t prompt_tokens = 0;
    std::vector<codec::CacheRequest> methods;
    bool last_layer_only = false;
    bool exact_questions = false;  ///< only the context is compressed; the questions stay exact
    /// The whole context is processed before any of it is compressed or evicted, and the questions stay exact. Always
    /// the case if a method evicts.
    bool at_once = false;
    /// Evictions also use the attention of all questions, not only that of the context.
    bool observe_questions = false;
    std::size_t block_tokens = 128;
    estimators::QuantizerOptions quantizer;  ///< its seed also draws the prompts
    std::size_t threads = 0;
    std::function<void(std::size_t done, std::size_t of)> progress = {};
};

/// Results of the questions of one prompt: means over the questions.
struct PromptScore {
    std::size_t questions = 0;
    double right = 0.0;            ///< fraction whose most probable value token is the answer
    double log_probability = 0.0;  ///< natural logarithm of the probability of the answer among all tokens
    /// Attention of the questions by layer and query head: the weight on the needle's value, and the fraction of
    /// questions whose largest weight is there.
    arma::mat mass, peaks;
    /// By layer and query head: questions x (needles asked for, elsewhere), the attention weight of each question on
    /// the value of each needle, and on all other tokens. Empty for a head without attention; where_of then returns
    /// zeros.
    std::vector<arma::mat> where;
    [[nodiscard]] arma::mat where_of(std::size_t layer, std::size_t head) const;
};

struct HeadAttention {
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
    std::vector<HeadAttention> heads;
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

/// Prompt `number` of the plan, a pure function of the plan's seed. Throws usage_error for more tokens than the model's
/// context, input_error if the vocabulary or a prompt has no room for the needles or a stream of the filler is too
/// short.
[[nodiscard]] NeedlePrompt needle_prompt(const RetrievalPlan& plan, const sim::LlamaConfig& model,
                                         const std::vector<std::vector<std::int32_t>>& filler, std::uint64_t number);

/// Runs the model on a prompt as the plan says; in full precision if `cache` is null. Attention on a needle is the
/// weight of the row that holds its value: zero if the row was evicted, the merged row if it was merged.
[[nodiscard]] PromptScore score_prompt(const sim::Llama& model, const NeedlePrompt& prompt, const RetrievalPlan& plan,
                                       codec::CompressedCache* cache);

/// The same for the questions of a dump, by its last layer alone: attention, MLP and prediction are recomputed. Answers
/// and log-probabilities are among the answer tokens of the dump only.
[[nodiscard]] PromptScore score_readout(const sim::LlamaReadout& readout, const RetrievalPlan& plan,
                                        codec::CompressedCache* cache);

/// The source of questions: prompts built for a model, or dumps.
struct Questions {
    sim::LlamaConfig shape;
    std::size_t prompts = 0, questions = 0;  ///< questions: in all prompts
    std::size_t needles = 0;                 ///< per prompt, for prompts built for a model
    std::size_t context = 0;                 ///< tokens before the questions; for dumps the smallest number
    bool last_layer_only = false, at_once = false;
    std::function<PromptScore(std::size_t prompt, codec::CompressedCache* cache)> ask;
    /// Checks the fractions of correct answers in full precision, one for each prompt from the first on. Throws
    /// input_error if they are too low or contradict a dump.
    std::function<void(const std::vector<double>& right)> check;

    [[nodiscard]] codec::CachePart part() const;  ///< the layers and sides that are compressed
};
/// Throws as measure_retrieval does before it starts.
[[nodiscard]] Questions questions_of(RetrievalPlan plan);

/// Measures every version of the cache on every prompt. Throws usage_error and input_error before it starts, and
/// input_error if full precision answers fewer than half of the questions correctly or, for dumps that state a number
/// of correct answers, a different number.
[[nodiscard]] Retrieval measure_retrieval(const RetrievalPlan& plan);

}  // namespace spiked::validation

#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "codec/cache/compressed_cache.hpp"
#include "sim/kv/needle.hpp"
#include "sim/llama/llama_readout.hpp"
#include "validation/model/pass_forecast.hpp"

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
    /// Receives numbers of passes: one of each prompt in full precision and one under each method.
    std::function<void(std::size_t done, std::size_t of)> progress = {};
    PassNotes notes = {};
};

/// Results of the questions of one prompt: means over the questions.
struct PromptScore {
    std::size_t questions = 0;
    double right = 0.0;            ///< fraction whose most probable value token is the answer
    double log_probability = 0.0;  ///< natural logarithm of the probability of the answer among all tokens
    /// Attention of the questions by layer and query head: the weight on the needle's value, and the fraction of
    /// questions whose largest weight is there.
    arma::mat mass, peaks;
    /// For each layer and query head, questions x (needles asked for, elsewhere): the attention weight of each question
    /// on the value of each needle and on all other tokens. Without attention it is empty, and where_of returns
    /// zeros.
    std::vector<arma::mat> where;
    [[nodiscard]] arma::mat where_of(std::size_t layer, std::size_t head) const;
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

}  // namespace spiked::validation

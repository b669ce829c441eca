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

/// What the tokens of a retrieval model mean. A prompt is BOS, then filler with needles in it: a key token directly
/// followed by its value token; then, for each question, ASK and a key. The answer is the value.
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
    std::vector<Needle> needles;  ///< those that are asked
};

struct RetrievalPlan {
    std::vector<std::string> dumps;  ///< with readouts of the last layer; empty: prompts are built for the model
    sim::DumpOptions dump;
    std::string model;   ///< folder
    std::string filler;  ///< .npy, streams x tokens
    NeedleVocabulary vocabulary;
    std::size_t needles = 16;  ///< in a prompt
    std::size_t asked = 32;    ///< of them, at most
    std::size_t prompts = 64;
    /// Of a prompt with its questions; 0: the model's context, or less where the filler is shorter.
    std::size_t prompt_tokens = 0;
    std::vector<codec::CacheRequest> methods;
    bool last_layer_only = false;
    bool exact_questions = false;  ///< the questions are read exactly, only the context before them is compressed
    /// All of the context is read before any of it is compressed or evicted, the questions behind it are exact. So it
    /// is always where a method evicts.
    bool at_once = false;
    /// An eviction sees what all of the questions attend to, not only what the context does.
    bool observe_questions = false;
    std::size_t block_tokens = 128;
    estimators::QuantizerOptions quantizer;  ///< its seed is that of the prompts, too
    std::size_t threads = 0;
    std::function<void(std::size_t done, std::size_t of)> progress = {};
};

/// What the model does with the questions of one prompt, means over them.
struct PromptScore {
    std::size_t questions = 0;
    double right = 0.0;            ///< share whose likeliest value token is the answer
    double log_probability = 0.0;  ///< natural, of the answer among all tokens
    /// Attention of the questions by layer and query head: the weight on the needle's value, and the share of the
    /// questions whose largest weight lies there.
    arma::mat mass, peaks;
    /// By layer and query head: questions x (their needles, elsewhere), the weight of each question on the value of
    /// each of the needles that are asked for; empty where nothing was attended to, which where_of gives as zeros.
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
    std::optional<double> budget;           ///< of an eviction
    codec::CacheBits ledger{.rows = 16.0};  ///< stored, an entry of what was compressed
    MeanAndError right, log_probability;
    MeanAndError lost;  ///< right of full precision minus right, paired by prompt
    /// Minus those of the first method at its first budget and bits, paired by prompt; of full precision, too.
    MeanAndError right_over_first, log_probability_over_first;
    std::vector<double> right_by_prompt, log_probability_by_prompt;
    MeanAndError mass;  ///< attention on the needle in the head that finds it best in full precision
    std::vector<HeadAttention> heads;
    arma::mat where;  ///< of the first prompt, in the head that finds its needles best in full precision
};

struct Retrieval {
    std::size_t prompts = 0, questions = 0;  ///< questions: of all prompts
    std::size_t needles = 0, context = 0;    ///< of a prompt that was built
    std::vector<std::string> dumps;
    bool last_layer_only = false, exact_questions = false, at_once = false, observe_questions = false;
    std::size_t best_layer = 0, best_head = 0;
    std::vector<std::size_t> questions_by_prompt;
    std::vector<RetrievalRow> rows;  ///< full precision first, then in the order asked
};

/// Prompt number so and so of the plan: a pure function of its seed. Throws usage_error where it asks for more tokens
/// than the model reads, input_error when the vocabulary or a prompt have no room for the needles, or a stream of the
/// filler is too short.
[[nodiscard]] NeedlePrompt needle_prompt(const RetrievalPlan& plan, const sim::LlamaConfig& model,
                                         const std::vector<std::vector<std::int32_t>>& filler, std::uint64_t number);

/// Reads a prompt as the plan says, all in full precision where there is no cache. Attention on a needle is that of the
/// row that holds its value: none where that was evicted, the row it became a part of where it was merged.
[[nodiscard]] PromptScore score_prompt(const sim::Llama& model, const NeedlePrompt& prompt, const RetrievalPlan& plan,
                                       codec::CompressedCache* cache);

/// Asks the questions of a dump of its last layer, as far as attention and what follows it go; answers are those the
/// dump knows, and so is the log-probability. Else as the above.
[[nodiscard]] PromptScore score_readout(const sim::LlamaReadout& readout, const RetrievalPlan& plan,
                                        codec::CompressedCache* cache);

/// Where questions come from: prompts built for a model, or dumps.
struct Questions {
    sim::LlamaConfig shape;
    std::size_t prompts = 0, questions = 0;  ///< questions: of all prompts
    std::size_t needles = 0;                 ///< of a prompt that is built
    std::size_t context = 0;                 ///< tokens before the questions; the fewest, of dumps
    bool last_layer_only = false, at_once = false;
    std::function<PromptScore(std::size_t prompt, codec::CompressedCache* cache)> ask;
    /// Throws input_error where what full precision gets right, by prompt from the first on, is not what it should be.
    std::function<void(const std::vector<double>& right)> check;

    [[nodiscard]] codec::CachePart part() const;  ///< what is compressed
};
/// Throws as measure_retrieval does before the work.
[[nodiscard]] Questions questions_of(RetrievalPlan plan);

/// Every version of the cache with every prompt. Throws usage_error and input_error before the work, and input_error
/// when the model does not answer in full precision: fewer than half right, or with dumps not as many as they say
/// (fewer than half where they do not).
[[nodiscard]] Retrieval measure_retrieval(const RetrievalPlan& plan);

}  // namespace spiked::validation

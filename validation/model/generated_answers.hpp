#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "codec/cache/compressed_cache.hpp"
#include "validation/model/needle_prompts_file.hpp"
#include "validation/model/pass_forecast.hpp"
#include "validation/statistics/paired.hpp"
#include "validation/statistics/statistics.hpp"

namespace spiked::validation {

/// How many facts of a prompt a model still states in an answer that it writes over its compressed cache.
struct AnswerPlan {
    std::string model;    ///< folder
    std::string prompts;  ///< file that read_fact_prompts reads
    std::vector<codec::CacheRequest> methods;
    bool last_layer_only = false;
    bool exact_questions = false;  ///< only the tokens before the question are compressed
    /// The text before the question is read before any of it is compressed or evicted; question and answer stay exact.
    /// Always the case if a method evicts.
    bool at_once = false;
    /// All of the question but its last token is read before that too, so that evictions know what is asked; it is
    /// compressed with the text.
    bool observe_questions = false;
    std::size_t block_tokens = 128;
    estimators::QuantizerOptions quantizer;
    std::size_t threads = 0;
    /// Receives numbers of answers, and the fraction of all tokens of prompts that these have.
    std::function<void(std::size_t done, std::size_t of, double share)> progress = {};
    PassNotes notes = {};
};

/// What a model writes after a prompt.
struct GeneratedAnswer {
    std::vector<std::int32_t> tokens;  ///< without the end token
    std::string text;
    std::vector<bool> found;  ///< by needle of the prompt, whether the text has its answer
    bool ended = false;       ///< by an end token, and not by the limit of its length
};

/// The fraction of needles that were found, with 95 % limits (clustered_fraction, by prompt); of the needles with this
/// context, number of needles in the prompt and tenth of the depth, where these are given.
struct Recall {
    std::optional<std::size_t> context, needles, tenth;
    std::size_t asked = 0;  ///< needles
    std::size_t prompts = 0;
    double fraction = 0.0, low = 0.0, high = 1.0;
};

struct AnswerRow {
    std::string method;  ///< "none" for full precision
    double bits = 16.0;
    std::optional<double> budget;           ///< for evictions
    codec::CacheBits ledger{.rows = 16.0};  ///< stored bits per compressed entry
    Recall recall;                          ///< of all prompts that are not controls
    MeanAndError lost;                      ///< full precision minus this, paired by prompt
    std::optional<Recall> control;          ///< of facts that the prompt does not have
    /// The recall by context; number of needles; depth; context and number of needles; context and depth.
    std::vector<Recall> parts;
    double tokens = 0.0;                   ///< mean length of the answers
    double ended = 0.0;                    ///< fraction of the answers that ended by an end token
    std::vector<GeneratedAnswer> answers;  ///< by prompt of the file
};

struct GeneratedAnswers {
    FactPrompts file;  ///< without its vocabulary
    bool last_layer_only = false, exact_questions = false, at_once = false, observe_questions = false;
    std::size_t block_tokens = 0;
    std::vector<AnswerRow> rows;  ///< full precision first, then in the order requested
};

/// Greedy generation: appends the most probable token (of equal ones that of the lowest id) until it is an end token or
/// `most` tokens are generated. The generated tokens join the sequence that `options` describe, so their blocks are
/// compressed as those of the prompt. Returns them without the end token.
struct GreedyText {
    std::vector<std::int32_t> tokens;
    bool ended = false;
};
[[nodiscard]] GreedyText generate_greedily(const sim::Llama& model, const std::vector<std::int32_t>& prompt,
                                           const sim::ForwardOptions& options,
                                           const std::vector<std::int32_t>& end_tokens, std::size_t most);

/// A plan of which the files were read.
struct OpenAnswers {
    AnswerPlan plan;  ///< with `at_once` if a method evicts
    FactPrompts file;
    std::vector<codec::CacheVersion> versions;  ///< full precision first
    sim::Llama model;
};
/// Throws as measure_answers does before anything runs.
[[nodiscard]] OpenAnswers open_answers(AnswerPlan plan);

/// An answer, and what the cache of its prompt stored.
struct MeasuredAnswer {
    GeneratedAnswer answer;
    codec::CacheBits bits;
    double entries = 0.0;
};
/// The answer to a prompt over a cache, whose rotations were drawn; in full precision if `cache` is null.
[[nodiscard]] MeasuredAnswer answer_prompt(const OpenAnswers& open, std::size_t prompt, codec::CompressedCache* cache);
/// The answer that consists of these tokens.
[[nodiscard]] GeneratedAnswer spelled_answer(const OpenAnswers& open, std::size_t prompt, GreedyText text);
/// The table of measured answers, which are given by version and prompt.
[[nodiscard]] GeneratedAnswers answers_table(const OpenAnswers& open, std::vector<std::vector<MeasuredAnswer>> found);

/// Lets the model answer every prompt in full precision and with every version of the cache. A block of tokens passes
/// through all layers and attends to itself exactly; it is compressed when it is full and a token follows, as in the
/// paper's chunk by chunk prefill. Each prompt has its own random rotations. Results do not depend on `threads`. Throws
/// as read_fact_prompts, Llama and cache_versions do before anything runs, and input_error for a prompt in which no
/// block would be compressed.
[[nodiscard]] GeneratedAnswers measure_answers(const AnswerPlan& plan);

}  // namespace spiked::validation

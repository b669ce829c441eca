#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "sim/llama/llama_config.hpp"

namespace spiked::validation {

/// A sentence with a fact in a prompt, for example "One of the special magic numbers for KEY is: NUMBER."
struct FactNeedle {
    std::string key, answer;
    double depth = 0.0;           ///< fraction of the text that lies before it, from 0 to 1
    std::size_t first_token = 0;  ///< of the sentence, in the prompt
    std::size_t tokens = 0;
};

/// A text with needles and one question that asks for all of them, in the form of the model's messages.
struct FactPrompt {
    std::vector<std::int32_t> tokens;
    std::size_t context = 0;      ///< the length of prompt and answer that it was made for
    std::size_t question_at = 0;  ///< tokens before the question, which has one or more
    std::size_t most_tokens = 0;  ///< of an answer
    bool control = false;         ///< the needles asked for are absent, and other ones stand in their places
    std::vector<FactNeedle> needles;
};

/// A file of the schema spiked.needle-prompts/1, which tools/needle-prompts writes and describes.
struct FactPrompts {
    std::string model;                     ///< the folder's name of the model that they were made for
    std::vector<std::int32_t> end_tokens;  ///< those that end an answer
    std::vector<std::string> vocabulary;   ///< the text of each token id
    std::vector<FactPrompt> prompts;

    /// The texts of the tokens, joined; ids without a text, which pad the vocabularies of models, have none.
    [[nodiscard]] std::string text(const std::vector<std::int32_t>& tokens) const;
};

/// Throws input_error for a file that is not of the schema, for ids outside the model's vocabulary, for a prompt that
/// is longer with its answer than the model's context, for a needle that is not at the tokens where the file says it
/// is, and for a control whose context has an answer. At most 64 MiB.
[[nodiscard]] FactPrompts read_fact_prompts(const std::string& path, const sim::LlamaConfig& model);

/// Whether the answer stands in the text and is not part of a longer number.
[[nodiscard]] bool states(const std::string& text, const std::string& answer);

}  // namespace spiked::validation

#pragma once
#include <string>
#include <vector>

#include "sim/kv/rope.hpp"

namespace spiked::sim {

/// The sizes of a Llama-shaped model: what config.json says in Hugging Face's names.
struct LlamaConfig {
    std::size_t vocabulary = 0;
    std::size_t hidden = 0;
    std::size_t intermediate = 0;
    std::size_t layers = 0;
    std::size_t heads = 0;     ///< of queries
    std::size_t kv_heads = 0;  ///< divides heads: query head h reads the cache of h / (heads / kv_heads)
    std::size_t head_dim = 0;  ///< even
    std::size_t context = 0;   ///< most tokens of a sequence
    double norm_epsilon = 1e-5;
    Rope rope;
    bool tied = false;  ///< the head is the embedding
};

/// Reads FOLDER/config.json. Throws input_error naming file, key, what was expected and what was found when the model
/// is not Llama-shaped: another model_type than llama or mistral, biases, another activation than silu, positions
/// scaled otherwise than llama3 says, a sliding window, multipliers (Granite's), another scale of attention, capped
/// logits.
[[nodiscard]] LlamaConfig read_llama_config(const std::string& folder);

}  // namespace spiked::sim

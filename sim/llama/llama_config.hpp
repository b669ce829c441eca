#pragma once
#include <string>
#include <vector>

#include "sim/kv/rope.hpp"

namespace spiked::sim {

/// The sizes of a Llama-shaped model, from a config.json of Hugging Face.
struct LlamaConfig {
    std::size_t vocabulary = 0;
    std::size_t hidden = 0;
    std::size_t intermediate = 0;
    std::size_t layers = 0;
    std::size_t heads = 0;     ///< query heads
    std::size_t kv_heads = 0;  ///< divides heads; query head h attends to kv head h / (heads / kv_heads)
    std::size_t head_dim = 0;  ///< even
    std::size_t context = 0;   ///< largest number of tokens of a sequence
    double norm_epsilon = 1e-5;
    Rope rope;
    bool tied = false;  ///< whether the output head is the embedding
};

/// Reads FOLDER/config.json. Throws an input_error with file, key, expected and found value when the model is not
/// Llama-shaped: a model_type other than llama or mistral, biases, an activation other than silu, a rope_type that
/// read_rope_scaling rejects, a sliding window, multipliers (as in Granite), another scale of attention, capped logits.
[[nodiscard]] LlamaConfig read_llama_config(const std::string& folder);

}  // namespace spiked::sim

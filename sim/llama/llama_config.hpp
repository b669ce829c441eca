#pragma once
#include <string>
#include <vector>

#include "sim/kv/rope.hpp"

namespace spiked::sim {

/// The sizes of a Llama-shaped model and the few things in which the families differ, from a config.json of Hugging
/// Face.
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
    bool tied = false;         ///< whether the output head is the embedding
    bool input_bias = false;   ///< biases on queries, keys and values
    bool output_bias = false;  ///< a bias on the output of attention
    bool mlp_bias = false;     ///< biases on the three maps of the MLP
    bool head_norms = false;   ///< queries and keys of each head are normalised (RMSNorm) before the rotary embedding
    bool fused = false;        ///< the file holds queries, keys and values as one map, and gate and up as one map
    /// The number of tokens that a token of each layer attends to, its own included; 0: all before it. Empty: all, in
    /// every layer.
    std::vector<std::size_t> windows;

    [[nodiscard]] std::size_t window(std::size_t layer) const { return windows.empty() ? 0 : windows[layer]; }
};

/// Reads FOLDER/config.json with the meaning and the defaults that transformers 5.24 gives the keys of the model_types
/// llama, mistral, qwen2, qwen3 and phi3. Throws an input_error with file, key, expected and found value for everything
/// else: other model_types, an activation other than silu, a rope_type that read_rope_scaling rejects, a rotary
/// embedding of some coordinates only, biases that the family does not have, a window in a family without one,
/// multipliers (as in Granite), another scale of attention, capped logits, experts, quantised weights.
[[nodiscard]] LlamaConfig read_llama_config(const std::string& folder);

}  // namespace spiked::sim

#include "sim/llama/llama.hpp"

#include <string>

#include "core/runtime/error.hpp"
#include "sim/llama/llama_session.hpp"
#include "sim/llama/llama_steps.hpp"

namespace spiked::sim {

Llama::Llama(const std::string& folder) : config_(read_llama_config(folder)) {
    const LlamaWeights weights(folder);
    const auto& c = config_;
    weight_bytes_ = weights.bytes();
    embedding_ = weights.matrix("model.embed_tokens.weight", c.hidden, c.vocabulary);
    for (std::size_t l = 0; l < c.layers; ++l)
        layers_.push_back(read_layer(weights, "model.layers." + std::to_string(l) + "."));
    norm_ = weights.vector("model.norm.weight", c.hidden);
    head_ = c.tied ? embedding_ : weights.matrix(LlamaWeights::head_name, c.hidden, c.vocabulary);
    weights.require_all_read(c.tied);
}

Llama::Layer Llama::read_layer(const LlamaWeights& weights, const std::string& at) const {
    const auto& c = config_;
    const std::size_t queries = c.heads * c.head_dim;
    const std::size_t keys = c.kv_heads * c.head_dim;
    const auto map = [&](const std::string& name, std::size_t inputs, std::size_t outputs, bool bias) {
        WeightMatrix result = weights.matrix(at + name + ".weight", inputs, outputs);
        if (bias) result.set_bias(weights.vector(at + name + ".bias", outputs));
        return result;
    };
    Layer layer;
    layer.attention_norm = weights.vector(at + "input_layernorm.weight", c.hidden);
    layer.mlp_norm = weights.vector(at + "post_attention_layernorm.weight", c.hidden);
    if (c.fused) {
        const WeightMatrix inputs = map("self_attn.qkv_proj", c.hidden, queries + 2 * keys, false);
        layer.query = inputs.part(0, queries);
        layer.key = inputs.part(queries, keys);
        layer.value = inputs.part(queries + keys, keys);
        const WeightMatrix both = map("mlp.gate_up_proj", c.hidden, 2 * c.intermediate, false);
        layer.gate = both.part(0, c.intermediate);
        layer.up = both.part(c.intermediate, c.intermediate);
    } else {
        layer.query = map("self_attn.q_proj", c.hidden, queries, c.input_bias);
        layer.key = map("self_attn.k_proj", c.hidden, keys, c.input_bias);
        layer.value = map("self_attn.v_proj", c.hidden, keys, c.input_bias);
        layer.gate = map("mlp.gate_proj", c.hidden, c.intermediate, c.mlp_bias);
        layer.up = map("mlp.up_proj", c.hidden, c.intermediate, c.mlp_bias);
    }
    layer.output = map("self_attn.o_proj", queries, c.hidden, c.output_bias);
    layer.down = map("mlp.down_proj", c.intermediate, c.hidden, c.mlp_bias);
    if (c.head_norms) {
        layer.query_norm = weights.vector(at + "self_attn.q_norm.weight", c.head_dim);
        layer.key_norm = weights.vector(at + "self_attn.k_norm.weight", c.head_dim);
    }
    return layer;
}

void Llama::forward(std::span<const std::int32_t> tokens, const ForwardOptions& options) const {
    if (options.context && *options.context > tokens.size())
        throw input_error("a context of {} tokens in a sequence of {}: make it shorter", *options.context,
                          tokens.size());
    LlamaSession(*this, options).append(tokens);
}

arma::fmat Llama::log_probabilities(const arma::fmat& states) const {
    arma::fmat logits = head_.product(rms_norm(states, norm_, config_.norm_epsilon));
    to_log_probabilities(logits);
    return logits;
}

}  // namespace spiked::sim

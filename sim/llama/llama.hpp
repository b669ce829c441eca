#pragma once
#include <armadillo>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/kv/kv_dump.hpp"
#include "sim/llama/llama_config.hpp"
#include "sim/llama/llama_weights.hpp"

namespace spiked::sim {

/// The address of a cached block: one side of one kv head, from first_token on.
struct CacheAddress {
    std::size_t layer = 0;
    Side side = Side::key;
    std::size_t head = 0;
    std::size_t first_token = 0;
};

/// Returns the block that later tokens attend to instead of `exact`; both are tokens x head_dim, keys after the rotary
/// embedding.
using CacheReplacer = std::function<arma::fmat(const CacheAddress& address, const arma::fmat& exact)>;

/// Keys and values of a block of tokens in all heads of a layer, tokens x kv_heads * head_dim each; keys after the
/// rotary embedding.
struct LayerRows {
    arma::fmat keys, values;
};
/// Returns what later tokens attend to instead of `exact`, of the same sizes.
using LayerReplacer = std::function<LayerRows(std::size_t layer, std::size_t first_token, const LayerRows& exact)>;

/// Queries (tokens x heads * head_dim), keys and values (tokens x kv_heads * head_dim) of a block of tokens in one
/// layer; queries and keys after the rotary embedding. `tokens` are the ids of the block's tokens.
struct LayerBlock {
    std::size_t layer = 0;
    std::size_t first_token = 0;
    const arma::fmat& queries;
    const arma::fmat& keys;
    const arma::fmat& values;
    std::span<const std::int32_t> tokens;
};

/// The attention weights of a block of tokens in one query head: tokens x cached rows, the block's own rows last. Each
/// row of weights sums to 1.
struct AttentionBlock {
    std::size_t layer = 0;
    std::size_t head = 0;
    std::size_t first_token = 0;
    const arma::fmat& weights;
    /// The tokens of the cached rows, ascending; all tokens so far unless some were evicted.
    const std::vector<std::size_t>& tokens;
};

/// The cache of a kv head of a layer.
struct CachedHead {
    arma::fmat keys, values;          ///< rows x head_dim
    std::vector<std::size_t> tokens;  ///< the token of each row, ascending
};

/// Removes rows from the cache of a head, which holds the first `seen` tokens, or replaces them.
using CacheEvictor = std::function<void(std::size_t layer, std::size_t head, std::size_t seen, CachedHead& cached)>;

/// Options and callbacks of a forward pass. The sequence is processed in blocks of tokens. A block attends to itself
/// exactly and to earlier full blocks as `keep` returned them; errors propagate from each layer to the next.
struct ForwardOptions {
    std::size_t block_tokens = 128;
    CacheReplacer keep = {};  ///< empty: the cache stays exact
    /// Called instead of `keep`, once for all heads of a layer; what is said of `keep` below holds for it too.
    LayerReplacer keep_layer = {};
    /// Called instead of `keep` and `keep_layer`. Cannot be combined with `keep_own`.
    CacheEvictor evict = {};
    /// The number of tokens in front of the questions. If given, `keep` or `evict` is called for all blocks of these
    /// tokens, also for the last one where it is not full, and for no later block. Otherwise it is called for all full
    /// blocks.
    std::optional<std::size_t> context = {};
    /// With a context: call `keep` or `evict` only after the whole context has been processed.
    bool at_once = false;
    /// Call `keep` for every block, also for the last, before its own tokens attend to it, so that no token attends to
    /// exact rows. Only without a context.
    bool keep_own = false;
    std::function<void(const LayerBlock&)> layer = {};
    std::function<void(const AttentionBlock&)> attention = {};
    /// Receives the natural logarithms of the probabilities of the next token: tokens x vocabulary.
    std::function<void(std::size_t first_token, const arma::fmat& log_probabilities)> predicted = {};
    /// For each token of the sequence the token whose probability after it is asked for, or -1 for none; none either
    /// for tokens beyond the end of this list. It must outlive the forward pass.
    std::span<const std::int32_t> next = {};
    /// Receives the natural logarithms of the probabilities of `next`, a block at a time, in the order of the tokens
    /// that are asked for. Faster than `predicted`: logits of other tokens' predictions are not computed, and none
    /// kept.
    std::function<void(const arma::vec& log_probabilities)> scored = {};
};

/// A Llama-shaped model: RMSNorm, rotary embedding (rotate-half), grouped attention of scale head_dim^-1/2, SwiGLU,
/// with the variations of LlamaConfig: biases, norms of queries and keys, windows, fused maps. Products in float, sums
/// of norms and of the softmax in double. Immutable, so safe from several threads. Source: Touvron et al. 2023 (LLaMA),
/// Ainslie et al. 2023 (grouped attention); tensor names of Hugging Face.
class Llama {
public:
    /// Reads FOLDER/config.json and FOLDER/model.safetensors, or the files of FOLDER/model.safetensors.index.json, in
    /// F16, BF16, F32 or F64. Throws input_error for a model of another architecture, and for a tensor that is missing,
    /// has another shape or would not be used; an Error of the kind memory for weights that do not fit.
    explicit Llama(const std::string& folder);

    [[nodiscard]] const LlamaConfig& config() const { return config_; }
    /// The bytes of the weights in memory: those of the file, but 4 for a number of 64 bits.
    [[nodiscard]] std::uint64_t weight_bytes() const { return weight_bytes_; }

    /// The forward pass over a sequence: a LlamaSession with one append. Throws input_error for a token outside the
    /// vocabulary, no tokens, and more than the model's context, and what LlamaSession throws.
    void forward(std::span<const std::int32_t> tokens, const ForwardOptions& options) const;

private:
    friend class LlamaSession;
    struct Layer {
        arma::fvec attention_norm, mlp_norm;
        arma::fvec query_norm, key_norm;  ///< of each head; empty: none
        WeightMatrix query, key, value, output;
        WeightMatrix gate, up, down;
    };
    [[nodiscard]] Layer read_layer(const LlamaWeights& weights, const std::string& at) const;
    /// Log-probabilities of the next token, tokens x vocabulary, from states before the final norm.
    [[nodiscard]] arma::fmat log_probabilities(const arma::fmat& states) const;

    LlamaConfig config_;
    std::uint64_t weight_bytes_ = 0;
    WeightMatrix embedding_;  ///< hidden to vocabulary
    std::vector<Layer> layers_;
    arma::fvec norm_;
    WeightMatrix head_;  ///< shares the embedding's weights when tied
};

}  // namespace spiked::sim

#pragma once
#include <armadillo>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/kv/kv_dump.hpp"
#include "sim/llama/llama_config.hpp"

namespace spiked::sim {

/// One side of one kv head of a block of tokens.
struct CachePlace {
    std::size_t layer = 0;
    Side side = Side::key;
    std::size_t head = 0;
    std::size_t first_token = 0;
};

/// What later tokens are to read in place of a full block; `exact`: tokens x head_dim, keys after the rotary embedding.
using CacheKeeper = std::function<arma::fmat(const CachePlace& place, const arma::fmat& exact)>;

/// Queries (tokens x heads * head_dim), keys and values (tokens x kv_heads * head_dim) of a block of tokens in one
/// layer; queries and keys after the rotary embedding.
struct LayerBlock {
    std::size_t layer = 0;
    std::size_t first_token = 0;
    const arma::fmat& queries;
    const arma::fmat& keys;
    const arma::fmat& values;
};

/// What the tokens of a block attended to in one query head: tokens x cached rows, the block's own last; rows sum to 1.
struct AttentionBlock {
    std::size_t layer = 0;
    std::size_t head = 0;
    std::size_t first_token = 0;
    const arma::fmat& weights;
    const std::vector<std::size_t>& tokens;  ///< of the cached rows, ascending: all so far where none was evicted
};

/// What a kv head of a layer has cached.
struct CachedHead {
    arma::fmat keys, values;          ///< rows x head_dim
    std::vector<std::size_t> tokens;  ///< whose row it is, ascending
};

/// Takes rows out of what a head has cached of the first `seen` tokens, or puts others in their place.
using CacheEvictor = std::function<void(std::size_t layer, std::size_t head, std::size_t seen, CachedHead& cached)>;

/// How a sequence is read. A block of tokens is read at once; it sees itself exactly, and full blocks before it as
/// `keep` gave them back. Every layer sees what the layers below make of that.
struct LlamaReading {
    std::size_t block_tokens = 128;
    CacheKeeper keep = {};  ///< empty: everything stays exact
    /// Asked where `keep` is, in its place, once all heads of a layer have attended. Not with `keep_own`.
    CacheEvictor evict = {};
    /// So many tokens are a context that others are asked about: all of it is kept, its last block too where it is not
    /// full, and nothing behind it. Not given: full blocks are kept, wherever they lie.
    std::optional<std::size_t> context = {};
    /// With a context: nothing is replaced or evicted before all of it is read.
    bool at_once = false;
    /// Every block is kept before it is read, the last one too: no token sees anything exact. Without a context.
    bool keep_own = false;
    std::function<void(const LayerBlock&)> layer = {};
    std::function<void(const AttentionBlock&)> attention = {};
    /// Natural logarithms of probabilities of the next token: tokens x vocabulary.
    std::function<void(std::size_t first_token, const arma::fmat& log_probabilities)> predicted = {};
};

/// The files of FOLDER's weights, by name: FOLDER/model.safetensors, or those of its index, all in FOLDER. Throws
/// input_error for an index that names others, more than 1000, or one file by two names.
[[nodiscard]] std::vector<std::string> weight_files(const std::string& folder);

/// A Llama-shaped model: RMSNorm, rotary embedding (rotate-half), grouped attention of scale head_dim^-1/2, SwiGLU, no
/// biases. Products in float, sums of norms and of the soft maximum in double. Immutable: safe from several threads.
/// Source: Touvron et al. 2023 (LLaMA), Ainslie et al. 2023 (grouped attention); tensor names of Hugging Face.
class Llama {
public:
    /// FOLDER/config.json and FOLDER/model.safetensors, or the files of FOLDER/model.safetensors.index.json; F16, BF16,
    /// F32 or F64. Throws input_error for a model of another shape, and for a tensor that is missing, of another
    /// shape or of no use here.
    explicit Llama(const std::string& folder);

    [[nodiscard]] const LlamaConfig& config() const { return config_; }

    /// Throws input_error for a token outside the vocabulary, no tokens, and more than the context.
    void read(std::span<const std::int32_t> tokens, const LlamaReading& reading) const;

private:
    /// Linear maps as input x output: activations are rows.
    struct Layer {
        arma::fvec attention_norm, mlp_norm;
        arma::fmat query, key, value, output;
        arma::fmat gate, up, down;
    };
    LlamaConfig config_;
    arma::fmat embedding_;  ///< hidden x vocabulary
    std::vector<Layer> layers_;
    arma::fvec norm_;
    arma::fmat head_;  ///< hidden x vocabulary; empty when tied
};

}  // namespace spiked::sim

#pragma once
#include <armadillo>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/llama/head_cache.hpp"
#include "sim/llama/llama.hpp"

namespace spiked::sim {

/// The bytes that a forward pass takes.
struct PassMemory {
    double weights = 0.0;  ///< once, however many passes run beside each other
    double cache = 0.0;    ///< in full, of one sequence
    double block = 0.0;    ///< the arrays of one block
    double codecs = 0.0;   ///< once: the codecs that all passes share
    double state = 0.0;    ///< what is kept beside the cache of one sequence: of its codecs, or the rows of a dump

    [[nodiscard]] double total(std::size_t passes = 1) const {
        return weights + codecs + static_cast<double>(passes) * (cache + block + state);
    }
};
/// A forecast for sequences of this many tokens in blocks of at most `block_tokens`. `logits`: all of a block are kept,
/// as for ForwardOptions::predicted.
[[nodiscard]] PassMemory pass_memory(const LlamaConfig& model, std::uint64_t weight_bytes, std::size_t tokens,
                                     std::size_t block_tokens, bool logits = false);
/// Throws an Error of the kind memory, with all sizes, if so many passes beside each other take more than this process
/// may use.
void require_memory(const PassMemory& needed, std::size_t tokens, std::size_t passes = 1);

/// The cache of one sequence of a model, to which tokens are appended in any number of calls, so that a model can
/// continue a text over a compressed cache. Calls of append give the same as one call with all tokens, up to rounding
/// of float. Not for several threads at once; sessions of one model are independent.
class LlamaSession {
public:
    /// The model must outlive the session. Throws usage_error for blocks of 0 tokens and precondition_error for options
    /// that exclude each other.
    LlamaSession(const Llama& model, ForwardOptions options);

    /// Appends one or more tokens. They are processed up to the end of a block at a time, so callbacks receive parts of
    /// blocks when a call ends within one. `keep` or `evict` is called for a block once it is full and a later token is
    /// appended, before that token attends to it. Throws input_error for no tokens, a token outside the vocabulary and
    /// more tokens than the model's context, and an Error of the kind memory, with the sizes, when the weights, the
    /// cache and the arrays of a block do not fit, before anything is appended; precondition_error with keep_own when
    /// the previous call ended within a block. After any other error the session is in no defined state.
    void append(std::span<const std::int32_t> tokens);

    /// The number of tokens appended so far.
    [[nodiscard]] std::size_t tokens() const { return tokens_; }

    /// Natural logarithms of the probabilities of the token after the last one, 1 x vocabulary. Computed anew by each
    /// call, at the cost of one row's product with the output head. Throws precondition_error before the first append.
    [[nodiscard]] arma::frowvec log_probabilities() const;

private:
    void append_part(std::span<const std::int32_t> tokens);
    void replace_due_blocks();
    [[nodiscard]] arma::fmat attended(std::size_t layer, const arma::fmat& queries) const;
    void score(const arma::fmat& states) const;
    [[nodiscard]] std::size_t block_end() const;

    const Llama* model_;
    ForwardOptions options_;
    std::vector<std::vector<HeadCache>> caches_;  ///< by layer and kv head
    std::size_t tokens_ = 0;
    std::size_t block_ = 0;                ///< first token of the block that the next token belongs to
    std::optional<std::size_t> due_from_;  ///< the tokens from here to block_ are to be replaced
    arma::fmat last_;                      ///< the state of the last token before the final norm
};

}  // namespace spiked::sim

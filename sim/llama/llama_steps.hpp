#pragma once
#include <armadillo>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/llama/llama_weights.hpp"

namespace spiked::sim {

// Steps of a Llama-shaped layer. Tokens are rows; sums of norms and of the softmax are computed in double, exponentials
// by float_exp.

/// Each row divided by its root mean square, times the weights (Zhang and Sennrich 2019).
[[nodiscard]] arma::fmat rms_norm(const arma::fmat& rows, const arma::fvec& weight, double epsilon);

/// softmax(Q K^T / sqrt(d)) V for the query heads that share one kv head. `queries`: tokens x (heads * d), `keys` and
/// `values`: d x cached rows, the last of which belong to the queries' own tokens; attention to these is causal.
/// Returns tokens x (heads * d). `weights`, if given, becomes the weights of each head, tokens x cached rows; the
/// result is the same with and without. `oldest`: the first cached row that each query sees, ascending (a sliding
/// window); empty: all see the first. Cost: 4 d operations and one exponential for each query and row that it sees.
[[nodiscard]] arma::fmat attend(const arma::fmat& queries, const arma::fmat& keys, const arma::fmat& values,
                                std::span<const arma::uword> oldest = {}, std::vector<arma::fmat>* weights = nullptr);

/// softmax(Q K^T / sqrt(d)), queries x cached rows. The last rows are the keys of the queries' own tokens, to which
/// attention is causal.
[[nodiscard]] arma::fmat attention_weights(const arma::fmat& queries, const arma::fmat& keys);

/// silu(gate) * up, entry by entry; silu(x) = x / (1 + exp(-x)).
[[nodiscard]] arma::fmat silu_product(arma::fmat gate, const arma::fmat& up);

/// (silu(X G) * (X U)) D with G and U of hidden x intermediate, D of intermediate x hidden (Shazeer 2020).
[[nodiscard]] arma::fmat swiglu(const arma::fmat& rows, const arma::fmat& gate, const arma::fmat& up,
                                const arma::fmat& down);

/// The natural logarithm of the probability of one token for each row of states (log-softmax of what `head` maps them
/// to); `tokens`: one for each row. The logits are computed in parts of the vocabulary and not kept. Accuracy: that of
/// float for the logits.
[[nodiscard]] arma::vec log_probabilities_of(const arma::fmat& states, const WeightMatrix& head,
                                             std::span<const std::int32_t> tokens);

/// Replaces each row of logits by natural logarithms of probabilities (log-softmax).
void to_log_probabilities(arma::fmat& rows);

}  // namespace spiked::sim

#pragma once
#include <armadillo>

namespace spiked::sim {

// Steps of a Llama-shaped layer. Tokens are rows; sums of norms and of the softmax are computed in double.

/// Each row divided by its root mean square, times the weights (Zhang and Sennrich 2019).
[[nodiscard]] arma::fmat rms_norm(const arma::fmat& rows, const arma::fvec& weight, double epsilon);

/// softmax(Q K^T / sqrt(d)), queries x cached rows. The last rows are the keys of the queries' own tokens, to which
/// attention is causal.
[[nodiscard]] arma::fmat attention_weights(const arma::fmat& queries, const arma::fmat& keys);

/// (silu(X G) * (X U)) D with G and U of hidden x intermediate, D of intermediate x hidden (Shazeer 2020).
[[nodiscard]] arma::fmat swiglu(const arma::fmat& rows, const arma::fmat& gate, const arma::fmat& up,
                                const arma::fmat& down);

/// Replaces each row of logits by natural logarithms of probabilities (log-softmax).
void to_log_probabilities(arma::fmat& rows);

}  // namespace spiked::sim

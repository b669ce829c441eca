#pragma once
#include <armadillo>

namespace spiked::sim {

// Steps of a Llama-shaped layer. Tokens are rows; sums of norms and of the soft maximum in double.

/// Each row over its root mean square, times the weights (Zhang and Sennrich 2019).
[[nodiscard]] arma::fmat rms_norm(const arma::fmat& rows, const arma::fvec& weight, double epsilon);

/// What softmax(Q K^T / sqrt(d)) gives each query over cached rows, whose last are the queries' own tokens: queries x
/// rows, causal inside the queries.
[[nodiscard]] arma::fmat attention_weights(const arma::fmat& queries, const arma::fmat& keys);

/// (silu(X G) * (X U)) D with G, U: width x inner, D: inner x width (Shazeer 2020).
[[nodiscard]] arma::fmat swiglu(const arma::fmat& rows, const arma::fmat& gate, const arma::fmat& up,
                                const arma::fmat& down);

/// Each row of logits to natural logarithms of a distribution.
void to_log_probabilities(arma::fmat& rows);

}  // namespace spiked::sim

#include "sim/llama/llama_steps.hpp"

#include <algorithm>
#include <cmath>

namespace spiked::sim {

// Loops run over columns outside and rows inside, the order of memory.

arma::fmat rms_norm(const arma::fmat& rows, const arma::fvec& weight, double epsilon) {
    arma::vec sums(rows.n_rows, arma::fill::zeros);
    for (arma::uword j = 0; j < rows.n_cols; ++j)
        for (arma::uword t = 0; t < rows.n_rows; ++t) sums(t) += static_cast<double>(rows(t, j)) * rows(t, j);
    arma::fvec scales(rows.n_rows);
    for (arma::uword t = 0; t < rows.n_rows; ++t)
        scales(t) = static_cast<float>(1.0 / std::sqrt(sums(t) / static_cast<double>(rows.n_cols) + epsilon));
    arma::fmat result(rows.n_rows, rows.n_cols);
    for (arma::uword j = 0; j < rows.n_cols; ++j)
        for (arma::uword t = 0; t < rows.n_rows; ++t) result(t, j) = rows(t, j) * scales(t) * weight(j);
    return result;
}

arma::fmat attention_weights(const arma::fmat& queries, const arma::fmat& keys) {
    arma::fmat weights = queries * keys.t() / std::sqrt(static_cast<float>(keys.n_cols));
    const arma::uword before = keys.n_rows - queries.n_rows;
    // The first query that attends to key j.
    const auto first = [&](arma::uword j) { return j > before ? j - before : 0; };
    arma::fvec largest = weights.col(0);
    for (arma::uword j = 1; j < weights.n_cols; ++j)
        for (arma::uword t = first(j); t < weights.n_rows; ++t) largest(t) = std::max(largest(t), weights(t, j));
    arma::vec sums(weights.n_rows, arma::fill::zeros);
    for (arma::uword j = 0; j < weights.n_cols; ++j) {
        for (arma::uword t = 0; t < first(j); ++t) weights(t, j) = 0.0F;
        for (arma::uword t = first(j); t < weights.n_rows; ++t) {
            weights(t, j) = std::exp(weights(t, j) - largest(t));
            sums(t) += static_cast<double>(weights(t, j));
        }
    }
    for (arma::uword t = 0; t < weights.n_rows; ++t) largest(t) = static_cast<float>(1.0 / sums(t));
    for (arma::uword j = 0; j < weights.n_cols; ++j)
        for (arma::uword t = first(j); t < weights.n_rows; ++t) weights(t, j) *= largest(t);
    return weights;
}

arma::fmat swiglu(const arma::fmat& rows, const arma::fmat& gate, const arma::fmat& up, const arma::fmat& down) {
    arma::fmat gated = rows * gate;
    gated.transform([](float x) { return x / (1.0F + std::exp(-x)); });
    return (gated % (rows * up)) * down;
}

void to_log_probabilities(arma::fmat& rows) {
    arma::fvec shift = arma::max(rows, 1);
    arma::vec sums(rows.n_rows, arma::fill::zeros);
    for (arma::uword j = 0; j < rows.n_cols; ++j)
        for (arma::uword t = 0; t < rows.n_rows; ++t) sums(t) += static_cast<double>(std::exp(rows(t, j) - shift(t)));
    for (arma::uword t = 0; t < rows.n_rows; ++t)
        shift(t) = static_cast<float>(static_cast<double>(shift(t)) + std::log(sums(t)));
    rows.each_col() -= shift;
}

}  // namespace spiked::sim

#include "sim/llama/llama_steps.hpp"

#include <algorithm>
#include <cmath>

namespace spiked::sim {

arma::fmat rms_norm(const arma::fmat& rows, const arma::fvec& weight, double epsilon) {
    arma::fmat result = rows;
    for (arma::uword t = 0; t < rows.n_rows; ++t) {
        double sum = 0.0;
        for (arma::uword j = 0; j < rows.n_cols; ++j) sum += static_cast<double>(rows(t, j)) * rows(t, j);
        const auto scale = static_cast<float>(1.0 / std::sqrt(sum / static_cast<double>(rows.n_cols) + epsilon));
        for (arma::uword j = 0; j < rows.n_cols; ++j) result(t, j) = rows(t, j) * scale * weight(j);
    }
    return result;
}

arma::fmat attention_weights(const arma::fmat& queries, const arma::fmat& keys) {
    arma::fmat weights = queries * keys.t() / std::sqrt(static_cast<float>(keys.n_cols));
    const arma::uword before = keys.n_rows - queries.n_rows;
    for (arma::uword t = 0; t < weights.n_rows; ++t) {
        const arma::uword seen = before + t + 1;
        float largest = weights(t, 0);
        for (arma::uword j = 1; j < seen; ++j) largest = std::max(largest, weights(t, j));
        double sum = 0.0;
        for (arma::uword j = 0; j < seen; ++j) {
            weights(t, j) = std::exp(weights(t, j) - largest);
            sum += static_cast<double>(weights(t, j));
        }
        const auto scale = static_cast<float>(1.0 / sum);
        for (arma::uword j = 0; j < seen; ++j) weights(t, j) *= scale;
        for (arma::uword j = seen; j < weights.n_cols; ++j) weights(t, j) = 0.0F;
    }
    return weights;
}

arma::fmat swiglu(const arma::fmat& rows, const arma::fmat& gate, const arma::fmat& up, const arma::fmat& down) {
    arma::fmat open = rows * gate;
    open.transform([](float x) { return x / (1.0F + std::exp(-x)); });
    return (open % (rows * up)) * down;
}

void to_log_probabilities(arma::fmat& rows) {
    for (arma::uword t = 0; t < rows.n_rows; ++t) {
        float largest = rows(t, 0);
        for (arma::uword j = 1; j < rows.n_cols; ++j) largest = std::max(largest, rows(t, j));
        double sum = 0.0;
        for (arma::uword j = 0; j < rows.n_cols; ++j) sum += std::exp(static_cast<double>(rows(t, j) - largest));
        const auto shift = static_cast<float>(static_cast<double>(largest) + std::log(sum));
        for (arma::uword j = 0; j < rows.n_cols; ++j) rows(t, j) -= shift;
    }
}

}  // namespace spiked::sim

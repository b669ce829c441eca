#include "validation/block_metrics.hpp"

#include <cmath>
#include <limits>

#include "theory/base/error.hpp"

namespace spiked::validation {
namespace {

/// Rows scaled to unit length, as columns; zero rows stay zero.
arma::mat unit_rows(const arma::mat& block) {
    arma::mat rows = block.t();
    for (arma::uword t = 0; t < rows.n_cols; ++t) {
        const double norm = arma::norm(rows.col(t));
        if (norm > 0.0) rows.col(t) /= norm;
    }
    return rows;
}

struct Spread {
    double mean;
    double deviation;
};

/// Mean and standard deviation of the off-diagonal entries in the given rows and columns.
Spread off_diagonal(const arma::mat& errors) {
    const double count = static_cast<double>(errors.n_rows) * static_cast<double>(errors.n_rows - 1);
    if (errors.n_rows < 2) return {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()};
    const double mean = (arma::accu(errors) - arma::trace(errors)) / count;
    double sum = 0.0;
    for (arma::uword t = 0; t < errors.n_cols; ++t)
        for (arma::uword j = 0; j < errors.n_rows; ++j)
            if (j != t) sum += (errors(j, t) - mean) * (errors(j, t) - mean);
    return {mean, std::sqrt(sum / count)};
}

}  // namespace

BlockMetrics measure_block(const arma::mat& block, const arma::mat& decoded) {
    if (arma::size(block) != arma::size(decoded))
        throw bug("a {} x {} block was decoded as {} x {}", block.n_rows, block.n_cols, decoded.n_rows, decoded.n_cols);
    BlockMetrics metrics;
    const arma::mat error = decoded - block;
    const double error_norm = arma::norm(error, "fro");
    metrics.relative_l2 = error_norm == 0.0 ? 0.0 : error_norm / arma::norm(block, "fro");

    const arma::uvec rows = arma::find(arma::any(block, 1));
    const arma::mat units = unit_rows(block.rows(rows));
    const arma::mat gram = units.t() * units;
    const Spread renormalised = off_diagonal(units.t() * unit_rows(decoded.rows(rows)) - gram);
    arma::mat scaled_error = error.rows(rows).t();
    for (arma::uword t = 0; t < scaled_error.n_cols; ++t) scaled_error.col(t) /= arma::norm(block.row(rows(t)));
    const Spread plain = off_diagonal(units.t() * scaled_error);
    metrics.ip_bias = renormalised.mean;
    metrics.ip_std = renormalised.deviation;
    metrics.ip_bias_plain = plain.mean;
    metrics.ip_std_plain = plain.deviation;
    return metrics;
}

}  // namespace spiked::validation

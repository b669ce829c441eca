#include "validation/block_metrics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "theory/base/error.hpp"
#include "validation/moments.hpp"

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

/// Mean and standard deviation of the entries (j, t), j != t, of an n x n matrix that is asked for in columns: of a
/// long block it would not fit the memory.
template <class Columns>
Spread off_diagonal(std::size_t n, const Columns& columns) {
    constexpr std::size_t at_once = 512;
    if (n < 2) return {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()};
    Moments all;
    for (std::size_t first = 0; first < n; first += at_once) {
        const std::size_t last = std::min(n, first + at_once) - 1;
        const arma::mat errors = columns(first, last);
        const double count = static_cast<double>(errors.n_cols) * static_cast<double>(n - 1);
        double sum = arma::accu(errors);
        for (arma::uword t = 0; t < errors.n_cols; ++t) sum -= errors(first + t, t);
        Moments part{.count = static_cast<std::uint64_t>(count), .mean = sum / count};
        for (arma::uword t = 0; t < errors.n_cols; ++t)
            for (arma::uword j = 0; j < n; ++j)
                if (j != first + t) part.m2 += (errors(j, t) - part.mean) * (errors(j, t) - part.mean);
        all.merge(part);
    }
    return {all.mean, std::sqrt(all.m2 / static_cast<double>(all.count))};
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
    const arma::mat decoded_units = unit_rows(decoded.rows(rows));
    const Spread renormalised = off_diagonal(units.n_cols, [&](std::size_t first, std::size_t last) -> arma::mat {
        return units.t() * decoded_units.cols(first, last) - units.t() * units.cols(first, last);
    });
    arma::mat scaled_error = error.rows(rows).t();
    for (arma::uword t = 0; t < scaled_error.n_cols; ++t) scaled_error.col(t) /= arma::norm(block.row(rows(t)));
    const Spread plain = off_diagonal(units.n_cols, [&](std::size_t first, std::size_t last) -> arma::mat {
        return units.t() * scaled_error.cols(first, last);
    });
    metrics.ip_bias = renormalised.mean;
    metrics.ip_std = renormalised.deviation;
    metrics.ip_bias_plain = plain.mean;
    metrics.ip_std_plain = plain.deviation;
    return metrics;
}

}  // namespace spiked::validation

#pragma once
#include <armadillo>
#include <vector>

namespace spiked::estimators {

/// Euclidean norms of the rows, also where their squares overflow or vanish. Throws input_error when a row holds NaN or
/// infinity, which quantizers that store norms look for nowhere else.
[[nodiscard]] std::vector<double> row_norms(const arma::mat& rows);
[[nodiscard]] std::vector<double> row_norms(const arma::fmat& rows);

/// Row t times factors[t] * factor.
template <class Real>
void scale_rows(arma::Mat<Real>& rows, const std::vector<double>& factors, double factor) {
    std::vector<Real> sizes(factors.size());
    for (std::size_t t = 0; t < sizes.size(); ++t) sizes[t] = static_cast<Real>(factors[t] * factor);
    for (arma::uword j = 0; j < rows.n_cols; ++j) {
        Real* column = rows.memptr() + j * rows.n_rows;  // no colptr: a block may have no rows
        for (arma::uword t = 0; t < rows.n_rows; ++t) column[t] *= sizes[t];
    }
}

}  // namespace spiked::estimators

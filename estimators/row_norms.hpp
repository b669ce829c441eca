#pragma once
#include <armadillo>
#include <cmath>
#include <limits>
#include <vector>

namespace spiked::estimators {

/// Euclidean norms of the rows, also where their squares overflow or vanish.
template <class Real>
[[nodiscard]] std::vector<double> row_norms(const arma::Mat<Real>& rows) {
    std::vector<Real> squares(rows.n_rows, Real{0});
    for (arma::uword j = 0; j < rows.n_cols; ++j) {
        const Real* column = rows.colptr(j);
        for (arma::uword t = 0; t < rows.n_rows; ++t) squares[t] += column[t] * column[t];
    }
    // Below this, squares of entries have lost digits.
    const Real least = std::numeric_limits<Real>::min() / std::numeric_limits<Real>::epsilon();
    std::vector<double> norms(rows.n_rows);
    for (arma::uword t = 0; t < rows.n_rows; ++t)
        norms[t] = squares[t] > least && squares[t] <= std::numeric_limits<Real>::max()
                       ? std::sqrt(static_cast<double>(squares[t]))
                       : arma::norm(arma::conv_to<arma::rowvec>::from(rows.row(t)));
    return norms;
}

/// Row t times factors[t] * factor.
template <class Real>
void scale_rows(arma::Mat<Real>& rows, const std::vector<double>& factors, double factor) {
    std::vector<Real> sizes(factors.size());
    for (std::size_t t = 0; t < sizes.size(); ++t) sizes[t] = static_cast<Real>(factors[t] * factor);
    for (arma::uword j = 0; j < rows.n_cols; ++j) {
        Real* column = rows.colptr(j);
        for (arma::uword t = 0; t < rows.n_rows; ++t) column[t] *= sizes[t];
    }
}

}  // namespace spiked::estimators

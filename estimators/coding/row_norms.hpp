#pragma once
#include <armadillo>
#include <vector>

namespace spiked::estimators {

/// Euclidean norms of the rows, also where their squares overflow or underflow. Throws input_error when a row holds NaN
/// or infinity. Quantizers that store norms rely on this check and make no other.
[[nodiscard]] std::vector<double> row_norms(const arma::mat& rows);
[[nodiscard]] std::vector<double> row_norms(const arma::fmat& rows);

/// Multiplies row t by factors[t] * factor.
template <class Real>
void scale_rows(arma::Mat<Real>& rows, const std::vector<double>& factors, double factor) {
    std::vector<Real> scales(factors.size());
    for (std::size_t t = 0; t < scales.size(); ++t) scales[t] = static_cast<Real>(factors[t] * factor);
    for (arma::uword j = 0; j < rows.n_cols; ++j) {
        Real* column = rows.memptr() + j * rows.n_rows;  // colptr would fail for a block without rows
        for (arma::uword t = 0; t < rows.n_rows; ++t) column[t] *= scales[t];
    }
}

}  // namespace spiked::estimators

#include "estimators/transforms/noise_covariance.hpp"

#include <limits>

#include "core/runtime/error.hpp"

namespace spiked::estimators {

NoiseCovariance NoiseCovariance::diagonal(arma::vec variances) {
    for (arma::uword i = 0; i < variances.n_elem; ++i)
        if (!(variances(i) >= 0.0 && std::isfinite(variances(i))))
            throw input_error("noise variance {} of {} is {} (it must be a number of at least 0): correct it", i + 1,
                              variances.n_elem, variances(i));
    NoiseCovariance covariance;
    covariance.eigenvalues_ = std::move(variances);
    return covariance;
}

NoiseCovariance NoiseCovariance::on_basis(arma::vec eigenvalues, arma::mat basis) {
    NoiseCovariance covariance = diagonal(std::move(eigenvalues));
    covariance.basis_ = std::move(basis);
    return covariance;
}

NoiseCovariance NoiseCovariance::full(const arma::mat& matrix) {
    if (matrix.n_rows != matrix.n_cols)
        throw input_error("a noise covariance is {} x {} (it must be square): give a covariance matrix", matrix.n_rows,
                          matrix.n_cols);
    if (!matrix.is_finite()) throw input_error("a noise covariance holds NaN or infinity: give a covariance matrix");
    const double scale = matrix.is_empty() ? 0.0 : arma::abs(matrix).max();
    if (!matrix.is_empty() && arma::abs(matrix - matrix.t()).max() > 1e-6 * scale)
        throw input_error("a noise covariance is not symmetric: give a covariance matrix");
    NoiseCovariance covariance;
    if (!arma::eig_sym(covariance.eigenvalues_, covariance.basis_, 0.5 * (matrix + matrix.t())))
        throw input_error("the eigenvalues of a noise covariance did not converge (LAPACK): check the matrix");
    if (!matrix.is_empty() && covariance.eigenvalues_.min() < -1e-6 * scale)
        throw input_error("a noise covariance has the negative eigenvalue {}: give a covariance matrix",
                          covariance.eigenvalues_.min());
    covariance.eigenvalues_ = arma::clamp(covariance.eigenvalues_, 0.0, std::numeric_limits<double>::infinity());
    return covariance;
}

theory::Spectrum NoiseCovariance::spectrum() const {
    return theory::Spectrum::of_values({eigenvalues_.memptr(), eigenvalues_.n_elem});
}

NoiseCovariance NoiseCovariance::restricted(const arma::uvec& kept) const {
    if (kept.n_elem == size()) return *this;
    if (basis_.is_empty()) return diagonal(eigenvalues_.elem(kept));
    const arma::mat rows = basis_.rows(kept);
    return full(rows * arma::diagmat(eigenvalues_) * rows.t());
}

arma::mat NoiseCovariance::inverse_root_times(const arma::mat& matrix) const {
    const double floor = static_cast<double>(size()) * std::numeric_limits<double>::epsilon();
    if (!eigenvalues_.is_empty() && !(eigenvalues_.min() > floor * eigenvalues_.max()))
        throw input_error(
            "a noise covariance has an eigenvalue within rounding of 0 (whitening divides by its root): give an "
            "invertible one");
    return power_times(-0.5, matrix);
}

arma::mat NoiseCovariance::power_times(double power, const arma::mat& matrix) const {
    if (matrix.n_rows != size())
        throw precondition_error("a noise covariance of size {} for {} coordinates", size(), matrix.n_rows);
    const arma::vec factors = arma::pow(eigenvalues_, power);
    arma::mat result = basis_.is_empty() ? matrix : arma::mat(basis_.t() * matrix);
    result.each_col() %= factors;
    return basis_.is_empty() ? result : arma::mat(basis_ * result);
}

}  // namespace spiked::estimators

#include "sim/covariance.hpp"

#include <cmath>

#include "theory/base/error.hpp"

namespace spiked::sim {

Covariance Covariance::identity(std::size_t size) { return {size, theory::identity_spectrum()}; }

Covariance Covariance::ar1(double rho, std::size_t size) {
    Covariance covariance(size, theory::toeplitz_ar1_spectrum(rho, size));
    arma::mat matrix(size, size);
    for (arma::uword j = 0; j < size; ++j)
        for (arma::uword i = 0; i < size; ++i) matrix(i, j) = std::pow(rho, static_cast<double>(i > j ? i - j : j - i));
    if (!arma::sqrtmat_sympd(covariance.dense_root_, matrix))
        throw bug("the square root of an AR(1) covariance with rho = {} failed", rho);
    return covariance;
}

Covariance Covariance::exponential(double decay, std::size_t size) {
    Covariance covariance(size, theory::exponential_spectrum(decay, size));
    covariance.diagonal_root_.set_size(size);
    for (arma::uword j = 0; j < size; ++j)
        covariance.diagonal_root_(j) =
            std::exp(-0.5 * decay * (static_cast<double>(j) + 0.5) / static_cast<double>(size));
    return covariance;
}

arma::mat Covariance::root_times(const arma::mat& right) const {
    if (!dense_root_.is_empty()) return dense_root_ * right;
    if (!diagonal_root_.is_empty()) return right.each_col() % diagonal_root_;
    return right;
}

arma::mat Covariance::times_root(const arma::mat& left) const {
    if (!dense_root_.is_empty()) return left * dense_root_;
    if (!diagonal_root_.is_empty()) return left.each_row() % diagonal_root_.t();
    return left;
}

}  // namespace spiked::sim

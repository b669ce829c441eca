#pragma once
#include <armadillo>
#include <cstddef>

#include "theory/spectrum.hpp"

namespace spiked::sim {

/// The row or column covariance of the noise: its eigenvalues, which theory needs, and its symmetric square root, which
/// colours a sample.
class Covariance {
public:
    [[nodiscard]] static Covariance identity(std::size_t size);
    /// Toeplitz matrix rho^|i-j|, -1 < rho < 1. Cost of one symmetric eigendecomposition.
    [[nodiscard]] static Covariance ar1(double rho, std::size_t size);
    /// Diagonal with entries exp(-decay (j - 1/2) / size), j = 1..size.
    [[nodiscard]] static Covariance exponential(double decay, std::size_t size);

    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] const theory::Spectrum& spectrum() const { return spectrum_; }
    [[nodiscard]] arma::mat root_times(const arma::mat& right) const;
    [[nodiscard]] arma::mat times_root(const arma::mat& left) const;

private:
    Covariance(std::size_t size, theory::Spectrum spectrum) : size_(size), spectrum_(std::move(spectrum)) {}

    std::size_t size_;
    theory::Spectrum spectrum_;
    arma::vec diagonal_root_;  // empty unless diagonal
    arma::mat dense_root_;     // empty unless dense
};

}  // namespace spiked::sim

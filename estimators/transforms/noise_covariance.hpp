#pragma once
#include <armadillo>
#include <optional>
#include <string>

#include "theory/laws/spectrum.hpp"

namespace spiked::estimators {

/// A row or column covariance of the noise, known or estimated: variances (diagonal) or a matrix. It is not the
/// covariance that blocks are drawn with, sim::Covariance, which estimators do not see
/// (docs/explanation/architecture.md).
class NoiseCovariance {
public:
    [[nodiscard]] static NoiseCovariance identity(std::size_t size) {
        return diagonal(arma::vec(size, arma::fill::ones));
    }
    /// Throws input_error when a variance is negative or not finite.
    [[nodiscard]] static NoiseCovariance diagonal(arma::vec variances);
    /// Eigenvalue j belongs to column j of an orthonormal basis; the caller guarantees orthonormality. Throws the
    /// errors of diagonal.
    [[nodiscard]] static NoiseCovariance on_basis(arma::vec eigenvalues, arma::mat basis);
    /// Throws input_error when the matrix is not square, symmetric to 1e-6, or has a negative eigenvalue beyond
    /// rounding. Cost of one symmetric eigendecomposition.
    [[nodiscard]] static NoiseCovariance full(const arma::mat& matrix);

    [[nodiscard]] std::size_t size() const { return eigenvalues_.n_elem; }
    [[nodiscard]] theory::Spectrum spectrum() const;
    /// The covariance of the coordinates `kept` only.
    [[nodiscard]] NoiseCovariance restricted(const arma::uvec& kept) const;

    /// C^(1/2) M and C^(-1/2) M. The inverse throws input_error when an eigenvalue is within rounding of 0.
    [[nodiscard]] arma::mat root_times(const arma::mat& matrix) const { return power_times(0.5, matrix); }
    [[nodiscard]] arma::mat inverse_root_times(const arma::mat& matrix) const;

private:
    [[nodiscard]] arma::mat power_times(double power, const arma::mat& matrix) const;

    arma::vec eigenvalues_;
    arma::mat basis_;  ///< empty: the standard basis
};

/// The part of the noise Z = A^(1/2) X B^(1/2), entries of X of variance 1/d, that is known; sizes are those of the
/// block that is decomposed.
struct KnownNoise {
    std::optional<NoiseCovariance> row;
    std::optional<NoiseCovariance> column;

    [[nodiscard]] bool empty() const { return !row && !column; }
};

}  // namespace spiked::estimators

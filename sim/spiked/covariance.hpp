#pragma once
#include <armadillo>
#include <cstddef>

#include "theory/laws/spectrum.hpp"

namespace spiked::sim {

/// Rows are tokens (covariance A, left vectors), columns are features (covariance B, right vectors).
enum class MatrixSide { row, column };

/// The row or column covariance of the noise, Q diag(a) Q^T: its eigenvalues a, which theory needs, its eigenvectors Q,
/// and its symmetric square root, which colours a sample. Memory: two dense matrices of its size, none where Q = I.
class Covariance {
public:
    [[nodiscard]] static Covariance identity(std::size_t size);
    /// Toeplitz matrix rho^|i-j|, -1 < rho < 1. Cost of one symmetric eigendecomposition.
    [[nodiscard]] static Covariance ar1(double rho, std::size_t size);
    /// The symmetric Toeplitz matrix with this first column, whose eigenvalues are that spectrum.
    [[nodiscard]] static Covariance toeplitz(theory::Spectrum spectrum, const arma::vec& first_column);
    /// Diagonal with entries exp(-decay (j - 1/2) / size), j = 1..size.
    [[nodiscard]] static Covariance exponential(double decay, std::size_t size);
    /// Diagonal with these entries. Throws usage_error like theory::Spectrum::of_values.
    [[nodiscard]] static Covariance diagonal(const arma::vec& eigenvalues);
    /// Eigenvalue j on column j of the orthonormal `basis`; throws bug when that is not orthonormal. Cost of two
    /// products of its size.
    [[nodiscard]] static Covariance on_basis(const arma::vec& eigenvalues, arma::mat basis);

    [[nodiscard]] std::size_t size() const { return size_; }
    /// What theory sees.
    [[nodiscard]] const theory::Spectrum& spectrum() const { return spectrum_; }
    /// `size` of them, in the order of the columns of the basis.
    [[nodiscard]] const arma::vec& eigenvalues() const { return eigenvalues_; }
    [[nodiscard]] bool is_diagonal() const { return basis_.is_empty(); }  ///< the basis is the identity
    [[nodiscard]] arma::mat basis() const;                                ///< Q, size x size

    /// A^{1/2} times a matrix, a matrix times A^{1/2}: a dense product unless diagonal.
    [[nodiscard]] arma::mat root_times(const arma::mat& right) const;
    [[nodiscard]] arma::mat times_root(const arma::mat& left) const;

    /// The same eigenvalues on the identity: what is left of this covariance in its own eigenbasis.
    [[nodiscard]] Covariance in_eigenbasis() const;
    /// Q^T vectors: columns of length `size` in the coordinates of the eigenbasis.
    [[nodiscard]] arma::mat to_eigenbasis(const arma::mat& vectors) const;
    /// Eigenvectors of the eigenvalues number first, first + 1, .. (1 is the largest; equal ones in the order of the
    /// basis) as columns. Throws bug when there are not so many.
    [[nodiscard]] arma::mat eigenvectors(std::size_t first, std::size_t count) const;

private:
    Covariance(std::size_t size, theory::Spectrum spectrum) : size_(size), spectrum_(std::move(spectrum)) {}

    std::size_t size_;
    theory::Spectrum spectrum_;
    arma::vec eigenvalues_;
    arma::vec eigenvalue_roots_;  // empty: all 1
    arma::mat basis_;             // empty: the identity
    arma::mat dense_root_;        // empty: diagonal
};

/// `size` eigenvalues, largest first, with the shares of the spectrum. Each value's count differs from its share of
/// `size` by less than 1, and the count down to each value from its cumulative share by at most 1/2 (halves go to the
/// larger value), so a whole number of eigenvalues is met exactly and a long list of tiny weights is thinned evenly.
[[nodiscard]] arma::vec expand(const theory::Spectrum& spectrum, std::size_t size);

}  // namespace spiked::sim

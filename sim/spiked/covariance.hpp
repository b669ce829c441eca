#pragma once
#include <armadillo>
#include <cstddef>

#include "theory/laws/spectrum.hpp"

namespace spiked::sim {

/// Rows are tokens (covariance A, left vectors), columns are features (covariance B, right vectors).
enum class MatrixSide { row, column };

/// The row or column covariance of the noise, Q diag(a) Q^T: its eigenvalues a, which theory needs, its eigenvectors Q,
/// and its symmetric square root, which colours a sample. Memory: two size x size matrices, none where Q = I.
class Covariance {
public:
    [[nodiscard]] static Covariance identity(std::size_t size);
    /// The Toeplitz matrix rho^|i-j|, -1 < rho < 1. Costs one symmetric eigendecomposition.
    [[nodiscard]] static Covariance ar1(double rho, std::size_t size);
    /// The symmetric Toeplitz matrix with this first column; `spectrum` must hold its eigenvalues.
    [[nodiscard]] static Covariance toeplitz(theory::Spectrum spectrum, const arma::vec& first_column);
    /// The diagonal matrix with entries exp(-decay (j - 1/2) / size), j = 1..size.
    [[nodiscard]] static Covariance exponential(double decay, std::size_t size);
    /// The diagonal matrix with these entries. Throws usage_error like theory::Spectrum::of_values.
    [[nodiscard]] static Covariance diagonal(const arma::vec& eigenvalues);
    /// The matrix with eigenvalue j on column j of `basis`; throws precondition_error when `basis` is not orthonormal.
    /// Costs two products of size x size matrices.
    [[nodiscard]] static Covariance on_basis(const arma::vec& eigenvalues, arma::mat basis);

    [[nodiscard]] std::size_t size() const { return size_; }
    /// The eigenvalue distribution that theory uses.
    [[nodiscard]] const theory::Spectrum& spectrum() const { return spectrum_; }
    /// All `size` eigenvalues, in the order of the columns of the basis.
    [[nodiscard]] const arma::vec& eigenvalues() const { return eigenvalues_; }
    [[nodiscard]] bool is_diagonal() const { return basis_.is_empty(); }  ///< whether the basis is the identity
    [[nodiscard]] arma::mat basis() const;                                ///< Q, size x size

    /// Whether `other` is the same matrix, computed in the same way. Costs a comparison of two size x size matrices,
    /// unless the matrix is diagonal.
    [[nodiscard]] bool same_as(const Covariance& other) const;

    /// A^{1/2} times `right`, and `left` times A^{1/2}: a dense product unless A is diagonal.
    [[nodiscard]] arma::mat root_times(const arma::mat& right) const;
    [[nodiscard]] arma::mat times_root(const arma::mat& left) const;

    /// The diagonal covariance with the same eigenvalues: this covariance in the coordinates of its eigenbasis.
    [[nodiscard]] Covariance in_eigenbasis() const;
    /// Q^T times `vectors`, columns of length `size`: their coordinates in the eigenbasis.
    [[nodiscard]] arma::mat to_eigenbasis(const arma::mat& vectors) const;
    /// The eigenvectors of `count` eigenvalues from number `first` on, as columns. Number 1 is the largest eigenvalue;
    /// equal eigenvalues keep the order of the basis. Throws precondition_error beyond `size`.
    [[nodiscard]] arma::mat eigenvectors(std::size_t first, std::size_t count) const;

private:
    Covariance(std::size_t size, theory::Spectrum spectrum) : size_(size), spectrum_(std::move(spectrum)) {}

    std::size_t size_;
    theory::Spectrum spectrum_;
    arma::vec eigenvalues_;
    arma::vec eigenvalue_roots_;  // empty: all are 1
    arma::mat basis_;             // empty: Q = I
    arma::mat dense_root_;        // empty: the matrix is diagonal
};

/// `size` eigenvalues, largest first, in proportion to the weights of the spectrum. The count of each value differs
/// from its weight times `size` by less than 1, and the count of all values down to it from the cumulative weight times
/// `size` by at most 1/2 (ties go to the larger value). Weights that are whole numbers of eigenvalues are therefore met
/// exactly, and a long list of tiny weights is thinned evenly.
[[nodiscard]] arma::vec expand(const theory::Spectrum& spectrum, std::size_t size);

}  // namespace spiked::sim

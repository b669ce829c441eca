#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/registry.hpp"
#include "sim/random/address.hpp"
#include "sim/spiked/covariance.hpp"
#include "sim/spiked/covariance_kinds.hpp"

namespace spiked::sim {

/// A row or column covariance as a study file writes it: { kind = "ar1", rho = 0.4, basis = "haar" }.
struct CovarianceSpec {
    std::string kind = "identity";             ///< a name of covariance_kinds()
    std::map<std::string, double> parameters;  ///< by name
    std::string path;                          ///< only for kinds that read a file
    std::string basis;                         ///< empty: the default of the kind
};

/// The eigenvectors of a covariance matrix.
struct CovarianceBasis : RegistryEntry {
    /// The vectors as columns, in decreasing order of the eigenvalues; null: unit vectors, so that the matrix is
    /// diagonal.
    arma::mat (*vectors)(std::size_t size, const stream::Stream& random) = nullptr;
    bool toeplitz = false;  ///< a kind with a first column is the Toeplitz matrix itself
};
[[nodiscard]] const Registry<CovarianceBasis>& covariance_bases();
/// The basis that is named, or the default one of the kind. Throws usage_error for an unknown name.
[[nodiscard]] const CovarianceBasis& basis_of(const CovarianceSpec& spec);

/// Throws usage_error on errors that do not depend on the size: an unknown kind, basis or parameter, a missing
/// parameter, one out of range. Reads no file.
void check_covariance(const CovarianceSpec& spec);

/// The eigenvalue law of the matrix of that size, without building the matrix. Theory needs it before the address of
/// the cell is known. Laws with weights (two-atom, file, sample) are expanded to whole eigenvalues first, see `expand`;
/// the others are evaluated at N = size. Throws like check_covariance, usage_error for an atom whose weight is too
/// small for one eigenvalue, and input_error for files.
[[nodiscard]] theory::Spectrum covariance_spectrum(const CovarianceSpec& spec, std::size_t size);

/// The matrix. Its eigenvalues belong to the columns of the basis in decreasing order (exponential: in the order of its
/// formula). The bases are
///   identity   unit vectors: a diagonal matrix;
///   haar       a random rotation, addressed by (seed, cell, side), so the same for every replicate of a cell;
///   toeplitz   for Toeplitz kinds (ar1, toeplitz) the eigenvectors of that matrix itself; for every other kind the
///              cosine basis (DCT-II), largest eigenvalue on the lowest frequency, as for stationary covariances
///              of large size. Such a matrix is Toeplitz plus Hankel; for a smooth spectrum the Hankel part is confined
///              to the corners.
/// A multiple of the identity is the same on every basis. Throws like covariance_spectrum. Cost: an eigendecomposition
/// (toeplitz kinds), a QR (haar) or two products of that size; none on the identity basis.
[[nodiscard]] Covariance build_covariance(const CovarianceSpec& spec, std::size_t size, MatrixSide side,
                                          const stream::StudySeed& seed, std::string_view cell);

/// The covariance that --row-spectrum or --col-spectrum of `spiked spectrum` gives: FILE.npy (a matrix, or one column
/// or row of variances), or a SPEC of `spiked theory` as a matrix of that size: ar1 and toeplitz are the matrix
/// rho^|i-j|, sample:FILE is the matrix in the file, everything else is diagonal. An N in the SPEC must equal `size`.
/// Returns size x size, or size x 1 where it is diagonal. Throws usage_error for the SPEC, input_error for the files.
[[nodiscard]] arma::mat covariance_matrix(const std::string& spec, std::size_t size);

}  // namespace spiked::sim

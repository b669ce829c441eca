#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/catalogue.hpp"
#include "sim/random/address.hpp"
#include "sim/spiked/covariance.hpp"
#include "sim/spiked/covariance_kinds.hpp"

namespace spiked::sim {

/// A row or column covariance as a study file writes it: { kind = "ar1", rho = 0.4, basis = "haar" }.
struct CovarianceSpec {
    std::string kind = "identity";             ///< of covariance_kinds()
    std::map<std::string, double> parameters;  ///< by name
    std::string path;                          ///< of kinds that read a file
    std::string basis;                         ///< empty: the default of the kind
};

/// identity | haar | toeplitz.
[[nodiscard]] const std::vector<CatalogueLine>& covariance_bases();

/// Throws usage_error on what is wrong whatever the size: an unknown kind, basis or parameter, a missing one, one
/// outside the range of its builder. Reads no file.
void check_covariance(const CovarianceSpec& spec);

/// The eigenvalue law of the matrix of that size, without the matrix: what theory needs, before a cell has its address.
/// Laws with weights (two-atom, file, sample) are expanded to whole eigenvalues first, see `expand`; the others are
/// built at N = size. Throws like check_covariance, usage_error also for an atom too light for one eigenvalue, and
/// input_error for files.
[[nodiscard]] theory::Spectrum covariance_spectrum(const CovarianceSpec& spec, std::size_t size);

/// The matrix. Eigenvalues stand largest first on the columns of the basis (exponential: in the order of its formula):
///   identity   unit vectors: a diagonal matrix;
///   haar       a random rotation, the same for every replicate of a cell: it is addressed by (seed, cell, side);
///   toeplitz   for Toeplitz kinds (ar1, toeplitz) the eigenvectors of that matrix itself; for every other kind the
///              cosine basis (DCT-II), largest eigenvalue on the lowest frequency: what stationary covariances look
///              like as size grows. Such a matrix is Toeplitz plus Hankel, the Hankel part in the corners when the
///              spectrum is smooth.
/// A multiple of the identity is the same on every basis. Throws like covariance_spectrum. Cost: an eigendecomposition,
/// a QR or two products of that size; nothing on the identity basis.
[[nodiscard]] Covariance build_covariance(const CovarianceSpec& spec, std::size_t size, MatrixSide side,
                                          const stream::StudySeed& seed, std::string_view cell);

/// A covariance as --row-spectrum and --col-spectrum of `spiked spectrum` write it: FILE.npy (a matrix, or one column
/// or row of variances), or the SPEC words of `spiked theory` as a matrix of that size: ar1 and toeplitz the matrix
/// rho^|i-j|, sample:FILE the matrix in the file, everything else on unit vectors. An N that is given must be the size.
/// Returns size x size, or size x 1 where it is diagonal. Throws usage_error for the words, input_error for the files.
[[nodiscard]] arma::mat covariance_matrix(const std::string& spec, std::size_t size);

}  // namespace spiked::sim

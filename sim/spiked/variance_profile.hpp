#pragma once
#include <armadillo>
#include <cstddef>
#include <string>

#include "theory/laws/profile_law.hpp"

namespace spiked::sim {

/// A variance profile as users write it, for --variances of `spiked theory` and noise.variances of study files:
///   blocks:S11,S12,../S21,S22,..[:rows=W,..][:columns=W,..]   classes of rows, separated by '/', and of columns; their
///                                                            weights are the fractions of rows and columns in each,
///                                                            by default equal
///   file:PATH                                                a matrix with the variance of every entry (read_matrix)
/// S are the variances of sqrt(d) Z: entry (i, j) of the noise has variance S_ij / d.
struct ProfileSpec {
    std::string text;                 ///< as written
    std::string path;                 ///< empty for blocks
    theory::VarianceProfile classes;  ///< of a file one class for each row and each column
};

/// Throws usage_error for the text, input_error for the file. Numbers that are no variances or weights are left to
/// theory::ProfileLaw, which rejects them.
[[nodiscard]] ProfileSpec parse_profile(const std::string& spec);

/// The profile of an n x d block: consecutive rows and columns in the order of the classes, numbers of them in
/// proportion to the weights. The weights of the result are the fractions that these numbers are. Throws usage_error
/// for a file of another size, weights that are not positive numbers with the sum 1 within 1e-9, and a class without
/// rows or columns.
[[nodiscard]] theory::VarianceProfile profile_of_size(const ProfileSpec& spec, std::size_t rows, std::size_t columns);

/// The variance S_ij of every entry of a block of that size, of a profile that `profile_of_size` returned for it.
[[nodiscard]] arma::mat entry_variances(const theory::VarianceProfile& profile, std::size_t rows, std::size_t columns);

}  // namespace spiked::sim

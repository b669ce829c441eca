#pragma once
#include <armadillo>
#include <vector>

namespace spiked::estimators {

/// All min(n, d) singular values in descending order, without vectors. This is the reference path: LAPACK in double.
/// Throws input_error when the block holds NaN or infinity, or when LAPACK does not converge.
[[nodiscard]] std::vector<double> singular_values(const arma::mat& block);

/// The singular vectors of the `count` largest singular values: left n x count, right d x count.
struct SingularVectors {
    arma::mat left;
    arma::mat right;
};
[[nodiscard]] SingularVectors leading_vectors(const arma::mat& block, std::size_t count);

}  // namespace spiked::estimators

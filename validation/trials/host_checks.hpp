#pragma once
#include <armadillo>
#include <functional>

#include "validation/trials/parity.hpp"

// Checks of the linear algebra of this machine, for `spiked doctor`: some builds of BLAS and LAPACK compute wrong
// numbers on some processors.
namespace spiked::validation {

/// Compares the product of two Gaussian matrices, 131 x 257 and 257 x 67, with three nested loops in double. A test
/// replaces the product of BLAS.
[[nodiscard]] ParityCheck check_product(const std::function<arma::mat(const arma::mat&, const arma::mat&)>& product =
                                            [](const arma::mat& a, const arma::mat& b) { return arma::mat(a * b); });
/// Compares a Gaussian matrix of 96 x 64 with the product of its singular vectors and values.
[[nodiscard]] ParityCheck check_decomposition();

}  // namespace spiked::validation

#pragma once
#include <armadillo>

namespace spiked::estimators {

/// ||X - X^||_F / ||X||_F; 0 for a zero block decoded as zero.
[[nodiscard]] double relative_l2(const arma::mat& block, const arma::mat& decoded);

}  // namespace spiked::estimators

#pragma once
#include <armadillo>

namespace spiked::validation {

/// How far a decoded block is from the block. Rows are vectors; inner products run over ordered pairs of different
/// rows, pairs with a zero row left out.
struct BlockMetrics {
    double relative_l2 = 0.0;    ///< ||X - X^||_F / ||X||_F; 0 for a zero block decoded as zero
    double ip_bias = 0.0;        ///< mean of cos(x_j, x^_t) - cos(x_j, x_t): the paper's, decoded rows renormalised
    double ip_std = 0.0;         ///< standard deviation of that over the pairs of the block
    double ip_bias_plain = 0.0;  ///< mean of <x_j, x^_t - x_t> / (|x_j| |x_t|): nothing renormalised
    double ip_std_plain = 0.0;
};

/// Source: paper Section 5 (tables of compression quality); research reading of its renormalisation. NaN in the ip_*
/// fields where no pair of non-zero rows exists. Cost: two n x n x d products.
[[nodiscard]] BlockMetrics measure_block(const arma::mat& block, const arma::mat& decoded);

}  // namespace spiked::validation

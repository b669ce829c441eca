#pragma once
#include <armadillo>
#include <cstddef>
#include <vector>

namespace spiked::estimators {

/// The fold of every row and column, each from 0 to `folds` - 1.
struct HeldOutFolds {
    std::size_t folds = 0;
    std::vector<std::size_t> of_row;
    std::vector<std::size_t> of_column;
};

/// Folds whose sizes differ by one at most, in a random order that is a function of the matrix alone.
[[nodiscard]] HeldOutFolds random_folds(const arma::mat& matrix, std::size_t folds);

/// The squared error of bi-cross-validation for rank k = 0, 1, ..: the sum over all pairs of a row fold and a column
/// fold of ||A - B D_k^+ C||_F^2, where A holds the rows and columns of the pair, B its rows and the other columns, C
/// the other rows and its columns, D the others of both, and D_k^+ is the pseudoinverse of the first k components of D.
/// Ends at the rank of the D with the fewest components above rounding. Empty where a D is empty.
[[nodiscard]] std::vector<double> held_out_errors(const arma::mat& matrix, const HeldOutFolds& folds);

/// The k with the least such error, the first of equal ones; 0 for a matrix with fewer rows or columns than folds.
///
/// Source: Owen and Perry, "Bi-cross-validation of the SVD and the nonnegative matrix factorization", Annals of Applied
/// Statistics 3, 2009; Gabriel 2002 for the prediction of a block. What it promises is prediction: a component is kept
/// where it lowers the error for entries that it has not seen. It has no false-alarm rate of its own (docs/METHODS.md
/// has measured ones), misses weak components, and beside a dozen strong ones counts one too many on average. The error
/// of an entry that is held out does not depend on its own noise, whatever its distribution or variance, as long as the
/// noise of different entries is independent. Heavy tails make the error noisy; correlated noise predicts itself and is
/// counted. Cost: folds^2 decompositions of the D.
[[nodiscard]] std::size_t bi_cross_validation_rank(const arma::mat& matrix, std::size_t folds);

}  // namespace spiked::estimators

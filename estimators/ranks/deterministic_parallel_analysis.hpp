#pragma once
#include <cstddef>

#include "core/text/enum_names.hpp"
#include "estimators/svd/analysed_block.hpp"

namespace spiked::estimators {

/// What may have noise variances of its own: only columns, or rows too, with variances a_i b_j.
enum class NoiseVariances { columns, both };

/// The upper `level` quantile of the largest squared singular value of independent noise with the variances that this
/// residual R (n x d) behind `rank` components r shows. It is that of Tracy-Widom 1 at the edge of the law of
/// A^(1/2) X B^(1/2) with (n - r) x (d - r) entries of X, A = diag(a) and B = diag(b) ||R||_F^2 / (n - r). Here a are
/// the mean squares of the rows over their mean and b those of the columns, each drawn towards 1: 1 + c (b_j - 1) with
/// c^2 = 1 - 2 sum v_i^2 / (sum v_i)^2 / mean (b_j - 1)^2, v the mean squares of the rows, or c = 0 where this is
/// negative, so that the spread that Gaussian squares have by chance is not taken for one of variances. With
/// NoiseVariances::columns a is 1. Cost: a law of n + d atoms.
[[nodiscard]] double largest_of_noise(const arma::mat& residual, std::size_t rank, double level,
                                      NoiseVariances variances);

/// The number of components by deflated deterministic parallel analysis: component r + 1 is counted while its squared
/// singular value exceeds largest_of_noise for the residual behind the first r; at most half the short side.
///
/// Source: Dobriban and Owen, "Deterministic parallel analysis: an improved method for selecting factors and principal
/// components", Journal of the Royal Statistical Society B 81, 2019. Their rule takes the edge itself, which a sixth of
/// white noise exceeds, column variances only, and these as they are; the quantile, the row variances and the factor c
/// are ours. At level .05 it finds something in .014 to .032 of white Gaussian blocks, and in less where variances
/// differ or tails are heavy (docs/METHODS.md has the table): a quiet rule, weaker than parallel analysis by signs
/// where variances differ much. Correlated noise is counted. A few columns or rows with far larger variances than all
/// others have eigenvalues of their own, for which Tracy-Widom does not hold. Cost: for each component a law and a
/// residual, no copies.
[[nodiscard]] std::size_t deflated_deterministic_rank(AnalysedBlock& block, double level, NoiseVariances variances);

}  // namespace spiked::estimators

template <>
struct spiked::EnumNames<spiked::estimators::NoiseVariances> {
    static constexpr EnumName<spiked::estimators::NoiseVariances> table[] = {
        {spiked::estimators::NoiseVariances::both, "both"}, {spiked::estimators::NoiseVariances::columns, "columns"}};
};

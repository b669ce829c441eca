#pragma once
#include <armadillo>
#include <cstddef>
#include <cstdint>
#include <string>

#include "sim/stream/address.hpp"

namespace spiked::estimators {

/// Rank rules that need the matrix, not only its singular values. Their randomness is addressed: the answer is a pure
/// function of (block, seed, cell, replicate, options).
struct ResamplingAddress {
    stream::StudySeed seed;
    std::string cell;
    std::uint64_t replicate = 0;
};

/// How a null block is made: signs of all entries flipped at random (keeps any variance profile and destroys the
/// signal; Hong, Sheng and Dobriban 2020), or the entries of each column permuted (Horn 1965; Buja and Eyuboglu 1992).
enum class NullBlock { signflip, permutation };

struct ParallelAnalysisOptions {
    NullBlock null = NullBlock::signflip;
    std::size_t draws = 20;
    double quantile = 0.95;  ///< of the draws, in (0, 1]; 1: their largest
    bool against_top =
        false;  ///< compare with the largest singular value of each draw, not with the one of equal place
};

/// Number of leading singular values above the quantile of those of null blocks. Throws usage_error on 0 draws, more
/// than 65535, or a quantile outside (0, 1]; input_error on a block that holds NaN. Cost: `draws` sets of singular
/// values.
[[nodiscard]] std::size_t parallel_analysis(const arma::mat& block, const ResamplingAddress& address,
                                            const ParallelAnalysisOptions& options = {});

/// Bi-cross-validation (Owen and Perry 2009): rows and columns are split at random into `folds` parts each; every part
/// A of the block is predicted as B D_k^+ C from the other three, D_k the rank-k truncation of D. The rank with the
/// least sum of squared errors, at most `most` (and what the smallest D allows); 0 when that is 0. Throws usage_error
/// unless 2 <= folds <= min(n, d). Cost: folds^2 decompositions.
[[nodiscard]] std::size_t bi_cross_validation(const arma::mat& block, const ResamplingAddress& address,
                                              std::size_t most, std::size_t folds = 2);

}  // namespace spiked::estimators

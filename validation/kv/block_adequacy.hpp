#pragma once
#include <armadillo>
#include <string>
#include <vector>

#include "sim/random/address.hpp"

namespace spiked::validation {

/// Smallest number of rows and columns whose spectrum is judged.
inline constexpr std::size_t smallest_judged_side = 16;

/// A test of whether the spiked model describes a block, with a simulated null law. The tests are applied after
/// eOptShrink with the rank of its edge fit.
///
/// Two null laws are fitted and sampled, both with the block's estimated strengths on random vectors:
///   others    Z = A^{1/2} G C^{1/2}, G Gaussian, from the residuals of up to 32 other blocks of the head: A is AR(1)
///             with their lag-one correlation of rows, C their column covariance shrunk towards its diagonal so
///             that its second moment is unbiased (after Ledoit and Wolf 2004)
///   regular   Gaussian columns of variances exp(-c (j - 1/2) / d), c from two moments of the block's own residual:
///             noise with a square-root edge, regardless of the head's law
/// Draws are processed like the block (rank, shrinkage, residual), except that peak.rows uses the noise of a draw as
/// its residual.
///
/// Because the law is fitted, the level is kept for blocks of the spiked model itself only if the fit is good. It is
/// kept at AR(1) .4 with exponential variances of c = 2 (checked by the unit tests) and at c = 4. At AR(1) .9, where
/// the rank of the edge fit counts noise, the tests at 5 % rejected, of 120 blocks of 64 x 64: others.top 20 %,
/// others.spectrum 14 %, edge.shape 11 %, halves 10 %. At c = 8 they rejected, of 100 blocks: peak.vectors 33 to 38 %,
/// others 9 to 23 %.
struct AdequacyTest {
    std::string name;
    std::string rejects;  ///< the deviation for which it rejects, in words
    bool of_model;        ///< false: the null law has independent entries, which the spiked model does not require
};

/// The tests in the order of BlockAdequacy::p_values.
[[nodiscard]] const std::vector<AdequacyTest>& adequacy_tests();

/// Results for one block. p-values are (1 + number of draws at least as extreme) / (1 + draws): under the fitted law
/// P(p <= level) equals the level, or less if the statistic is discrete.
struct BlockAdequacy {
    std::string skipped;  ///< why the block was not judged (zero, or exactly of low rank); empty otherwise
    std::size_t rank = 0;
    double half_rank = 0.0;        ///< mean rank of random halves of the rows
    double power_advantage = 0.0;  ///< log of the ratio of residual sums, square-root edge over power law; positive if
                                   ///< the power law fits better
    double exponent = 0.0;         ///< exponent a of the power law lambda_j ~ j^-a
    double peak_over_bound = 0.0;  ///< max |r_tj| / ||r_t|| over sqrt(2 kappa log(n d) / d), kappa the ratio
                                   ///< of largest to mean variance of the channels
    std::vector<double> p_values;
};

/// Addresses, number and threads of the draws.
struct AdequacyDraws {
    stream::StudySeed seed;
    std::string cell;
    std::size_t count = 199;
    std::size_t threads = 0;
};

/// Judges the blocks of one head. There must be two or more, all of one shape with n and d at least 16; otherwise
/// throws input_error. Results do not depend on the number of threads. Memory: two copies of the blocks and a few
/// hundred KB per thread. Cost of a block of 128 x 128 with 199 draws: about a second.
[[nodiscard]] std::vector<BlockAdequacy> judge_head(const std::vector<arma::mat>& blocks, const AdequacyDraws& draws);

}  // namespace spiked::validation

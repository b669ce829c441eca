#pragma once
#include <armadillo>
#include <string>
#include <vector>

#include "sim/random/address.hpp"

namespace spiked::validation {

/// Rows and columns that a spectrum to judge needs.
inline constexpr std::size_t smallest_judged_side = 16;

/// Whether the spiked model describes a block: a few questions, each a test with a simulated null law. They are asked
/// after eOptShrink with the rank of its edge fit.
///
/// Two laws are fitted and drawn from, both with the block's estimated strengths on random vectors:
///   others    Z = A^{1/2} G C^{1/2}, G Gaussian, from the residuals of up to 32 other blocks of the head: A is AR(1)
///             with their lag-one correlation of rows, C their column covariance shrunk towards its diagonal so
///             that its second moment is unbiased (after Ledoit and Wolf 2004)
///   regular   Gaussian columns of variances exp(-c (j - 1/2) / d), c from two moments of the block's own residual:
///             noise with a square-root edge, whatever the head's law is
/// What is done to a block (rank, shrinkage, residual) is done to each draw; peak.rows alone takes a draw's noise for
/// its residual.
///
/// The law is fitted, so blocks of the spiked model itself keep the level only as far as the fit does: they do at AR(1)
/// .4 and exponential variances of c = 2 (the tests); at AR(1) .9, where the rank of the edge fit counts noise, draws
/// of 64 x 64 at 5 % were rejected by others.top in 20 %, others.spectrum 14 %, edge.shape 11 %, halves 10 % of 120
/// blocks, and at variances of c = 8 by peak.vectors in 33 to 38 %, others 9 to 23 % of 100 blocks; c = 4 kept it.
struct AdequacyTest {
    std::string name;
    std::string rejects;  ///< when
    bool of_model;        ///< false: the null asks for more than the model does, independent entries
};

/// In the order of BlockAdequacy::p_values.
[[nodiscard]] const std::vector<AdequacyTest>& adequacy_tests();

/// What is found in one block. p-values (1 + number of draws at least as extreme) / (1 + draws): under the fitted law
/// P(p <= level) is the level, less where the statistic is discrete.
struct BlockAdequacy {
    std::string skipped;  ///< why nothing is said: zero, or exactly of low rank; empty otherwise
    std::size_t rank = 0;
    double half_rank = 0.0;        ///< mean rank of random halves of the rows
    double power_advantage = 0.0;  ///< log of residual sums, square-root edge over power law; positive: the power law
                                   ///< fits better
    double exponent = 0.0;         ///< a of lambda_j ~ j^-a
    double peak_over_bound = 0.0;  ///< max |r_tj| / ||r_t|| over sqrt(2 kappa log(n d) / d), kappa the largest over
                                   ///< the mean variance of a channel
    std::vector<double> p_values;
};

/// Addresses and number of draws.
struct AdequacyDraws {
    stream::StudySeed seed;
    std::string cell;
    std::size_t count = 199;
    std::size_t threads = 0;
};

/// Judges the blocks of one head, all of one shape, n and d at least 16, two or more of them; throws input_error
/// otherwise. The same for any number of threads. Memory: two copies of the blocks and a few hundred KB a thread.
/// Cost of a block of 128 x 128 with 199 draws: about a second.
[[nodiscard]] std::vector<BlockAdequacy> judge_head(const std::vector<arma::mat>& blocks, const AdequacyDraws& draws);

}  // namespace spiked::validation

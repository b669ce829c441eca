#pragma once
#include <armadillo>
#include <string>
#include <vector>

#include "sim/covariance.hpp"
#include "sim/stream/address.hpp"
#include "theory/base/quantities.hpp"

namespace spiked::sim {

/// S~ = S + A^{1/2} X B^{1/2} (paper, spiked model): n x d, entries of X independent N(0, 1/d), S of the given
/// strengths (absolute, singular-value scale) with Haar singular vectors.
struct SpikedModel {
    Covariance row;     ///< A, n x n
    Covariance column;  ///< B, d x d
    std::vector<SignalStrength> strengths;
};

struct SpikedSample {
    arma::mat observed;
    arma::mat signal;
    arma::mat noise;
    arma::mat left;   ///< n x r, true left vectors
    arma::mat right;  ///< d x r
};

/// One replicate, a pure function of (seed, cell, replicate). Cost: two dense products where a covariance is dense.
[[nodiscard]] SpikedSample sample(const SpikedModel& model, const stream::StudySeed& seed, std::string_view cell,
                                  std::uint64_t replicate);

}  // namespace spiked::sim

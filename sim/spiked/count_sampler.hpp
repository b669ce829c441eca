#pragma once
#include <armadillo>
#include <cstddef>
#include <string_view>

#include "sim/random/address.hpp"

namespace spiked::sim {

/// Independent counts Y_ij with means M of low rank. M_ij is proportional to x_i y_j sum_k a_ik b_jk, with a and b
/// exponential of mean 1, and log x and log y normal with these standard deviations (the depths of rows and columns);
/// its average is `mean`. Counts are Poisson, or negative binomial with variance m + dispersion m^2.
struct CountModel {
    std::size_t rows = 0;
    std::size_t columns = 0;
    std::size_t components = 1;  ///< the rank of M
    double mean = 1.0;           ///< above 0, at most 1e6
    double row_spread = 0.0;     ///< 0 to 3
    double column_spread = 0.0;
    double dispersion = 0.0;  ///< 0 to 100
};

struct CountSample {
    arma::mat observed;
    arma::mat means;
};

/// Throws usage_error for numbers out of range and for more components than the shorter side.
void require_possible(const CountModel& model);

/// Draws one replicate, a pure function of (seed, cell, replicate) within one build (Boost.Random). Throws like
/// require_possible. An entry costs some 100 ns.
[[nodiscard]] CountSample sample_counts(const CountModel& model, const stream::StudySeed& seed, std::string_view cell,
                                        std::uint64_t replicate);

/// Independent counts with these means, each a function of its element of the stream. Throws usage_error for means that
/// are negative, not finite or above 1e12, and for a negative dispersion.
[[nodiscard]] arma::mat draw_counts(const arma::mat& means, double dispersion, const stream::Stream& stream);

}  // namespace spiked::sim

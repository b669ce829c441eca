#pragma once
#include <armadillo>
#include <cmath>
#include <string_view>
#include <vector>

#include "sim/random/address.hpp"
#include "sim/random/haar.hpp"
#include "sim/random/normal.hpp"

namespace spiked::estimators {

struct CovarianceSamples {
    arma::mat data;     ///< n x p, a sample per row, mean 0
    arma::mat vectors;  ///< p x r, eigenvectors of the population
};

/// n Gaussian samples of p features with covariance noise_level (I + sum (l_i - 1) v_i v_i'), where the spikes l_i are
/// in units of the noise level and the eigenvectors are Haar distributed: a pure function of its arguments.
inline CovarianceSamples covariance_samples(std::size_t samples, std::size_t features,
                                            const std::vector<double>& spikes, double noise_level,
                                            std::string_view cell, std::uint64_t replicate) {
    const stream::StudySeed seed = stream::StudySeed::parse("0x5eed0000000000000000000000000048");
    arma::mat data(samples, features);
    stream::fill_normal(stream::Stream(seed, cell, stream::Role::noise, replicate), {data.memptr(), data.n_elem});
    if (spikes.empty()) return {std::sqrt(noise_level) * data, {}};
    const arma::mat vectors =
        stream::haar_frame(stream::Stream(seed, cell, stream::Role::right_vectors, replicate), features, spikes.size());
    arma::mat scores = data * vectors;
    for (std::size_t i = 0; i < spikes.size(); ++i) scores.col(i) *= std::sqrt(spikes[i]) - 1.0;
    return {std::sqrt(noise_level) * (data + scores * vectors.t()), vectors};
}

}  // namespace spiked::estimators

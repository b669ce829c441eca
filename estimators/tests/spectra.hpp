#pragma once
#include <armadillo>
#include <cmath>
#include <string_view>
#include <vector>

#include "estimators/svd/decomposition.hpp"
#include "sim/random/haar.hpp"
#include "sim/random/normal.hpp"

namespace spiked::estimators {

/// Test point A of research note spectral.md 12: singular values whose squares are 40, 20, 6, 5.5, ..., 1.5.
inline std::vector<double> point_a() {
    std::vector<double> s;
    for (const double lambda : {40.0, 20.0, 6.0, 5.5, 5.0, 4.5, 4.0, 3.5, 3.0, 2.5, 2.0, 1.5})
        s.push_back(std::sqrt(lambda));
    return s;
}

/// Independent normal entries of standard deviation 1/sqrt(columns).
inline arma::mat white_block(std::size_t rows, std::size_t columns, std::uint64_t replicate,
                             std::string_view cell = "white") {
    arma::mat block(rows, columns);
    const stream::Stream stream(stream::StudySeed::parse("0x5eed0000000000000000000000000031"), cell,
                                stream::Role::noise, replicate);
    stream::fill_normal(stream, {block.memptr(), block.n_elem});
    return block / std::sqrt(static_cast<double>(columns));
}

/// White noise plus spikes of these strengths on Haar vectors.
inline arma::mat spiked_block(std::size_t rows, std::size_t columns, const std::vector<double>& strengths,
                              std::uint64_t replicate) {
    arma::mat block = white_block(rows, columns, replicate);
    if (strengths.empty()) return block;
    const stream::StudySeed seed = stream::StudySeed::parse("0x5eed0000000000000000000000000031");
    const arma::mat left =
        stream::haar_frame({seed, "spikes", stream::Role::left_vectors, replicate}, rows, strengths.size());
    const arma::mat right =
        stream::haar_frame({seed, "spikes", stream::Role::right_vectors, replicate}, columns, strengths.size());
    return block + left * arma::diagmat(arma::vec(strengths)) * right.t();
}

}  // namespace spiked::estimators

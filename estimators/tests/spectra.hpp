#pragma once
#include <armadillo>
#include <cmath>
#include <string_view>
#include <vector>

#include "estimators/decomposition.hpp"
#include "sim/stream/normal.hpp"

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

/// White noise plus spikes on the first coordinates.
inline arma::mat spiked_block(std::size_t rows, std::size_t columns, const std::vector<double>& strengths,
                              std::uint64_t replicate) {
    arma::mat block = white_block(rows, columns, replicate);
    for (std::size_t i = 0; i < strengths.size(); ++i) block(i, i) += strengths[i];
    return block;
}

}  // namespace spiked::estimators

#include "sim/spiked_sampler.hpp"

#include <cmath>

#include "sim/stream/haar.hpp"
#include "sim/stream/normal.hpp"
#include "theory/base/error.hpp"

namespace spiked::sim {

SpikedSample sample(const SpikedModel& model, const stream::StudySeed& seed, std::string_view cell,
                    std::uint64_t replicate) {
    using stream::Role;
    using stream::Stream;
    const std::size_t n = model.row.size();
    const std::size_t d = model.column.size();
    const std::size_t rank = model.strengths.size();
    if (rank > std::min(n, d))
        throw usage_error("a signal of rank {} does not fit a {} x {} block: give at most {} strengths", rank, n, d,
                          std::min(n, d));

    SpikedSample result;
    arma::mat white(n, d);
    stream::fill_normal(Stream(seed, cell, Role::noise, replicate), {white.memptr(), white.n_elem});
    white /= std::sqrt(static_cast<double>(d));
    result.noise = model.column.times_root(model.row.root_times(white));
    result.left = stream::haar_frame(Stream(seed, cell, Role::left_vectors, replicate), n, rank);
    result.right = stream::haar_frame(Stream(seed, cell, Role::right_vectors, replicate), d, rank);
    arma::rowvec strengths(rank);
    for (std::size_t i = 0; i < rank; ++i) strengths(i) = model.strengths[i].value;
    result.signal = (result.left.each_row() % strengths) * result.right.t();
    result.observed = result.signal + result.noise;
    return result;
}

}  // namespace spiked::sim

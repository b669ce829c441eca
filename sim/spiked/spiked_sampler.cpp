#include "sim/spiked/spiked_sampler.hpp"

#include <algorithm>
#include <cmath>

#include "core/runtime/error.hpp"

namespace spiked::sim {

void require_possible(const SpikedModel& model) {
    const std::size_t n = model.row.size();
    const std::size_t d = model.column.size();
    const std::size_t rank = model.strengths.size();
    if (rank > std::min(n, d))
        throw usage_error("a signal of rank {} does not fit a {} x {} block: give at most {} strengths", rank, n, d,
                          std::min(n, d));
    model.left_vectors.require_room(n, rank);
    model.right_vectors.require_room(d, rank);
    if (model.colouring == Colouring::eigenbasis && !model.entries.gaussian())
        throw usage_error(
            "colouring in the eigenbasis of \"{}\" entries is not possible (only Gaussian entries are invariant under "
            "rotation): use dense colouring",
            model.entries.text());
}

SignalSides signal_sides(const SpikedModel& model, const stream::StudySeed& seed, std::string_view cell,
                         std::uint64_t replicate) {
    using stream::Role;
    using stream::Stream;
    const std::size_t rank = model.strengths.size();
    SignalSides sides{model.left_vectors.draw(Stream(seed, cell, Role::left_vectors, replicate), model.row, rank),
                      model.right_vectors.draw(Stream(seed, cell, Role::right_vectors, replicate), model.column, rank)};
    if (model.colouring == Colouring::eigenbasis) {
        sides.left = model.row.to_eigenbasis(sides.left);
        sides.right = model.column.to_eigenbasis(sides.right);
    }
    return sides;
}

SpikedSample sample(const SpikedModel& model, const stream::StudySeed& seed, std::string_view cell,
                    std::uint64_t replicate) {
    using stream::Role;
    using stream::Stream;
    require_possible(model);
    const std::size_t n = model.row.size();
    const std::size_t d = model.column.size();
    const std::size_t rank = model.strengths.size();

    SpikedSample result;
    arma::mat white(n, d);
    fill_entries(model.entries, Stream(seed, cell, Role::noise, replicate), {white.memptr(), white.n_elem});
    white /= std::sqrt(static_cast<double>(d));
    SignalSides sides = signal_sides(model, seed, cell, replicate);
    result.left = std::move(sides.left);
    result.right = std::move(sides.right);
    if (model.colouring == Colouring::dense) {
        result.noise = model.column.times_root(model.row.root_times(white));
    } else {
        result.noise = model.column.in_eigenbasis().times_root(model.row.in_eigenbasis().root_times(white));
    }
    arma::rowvec strengths(rank);
    for (std::size_t i = 0; i < rank; ++i) strengths(i) = model.strengths[i].value;
    result.signal = (result.left.each_row() % strengths) * result.right.t();
    result.observed = result.signal + result.noise;
    return result;
}

}  // namespace spiked::sim

#include "estimators/ranks/parallel_analysis.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/runtime/error.hpp"
#include "sim/random/address.hpp"

namespace spiked::estimators {
namespace {

/// Rounding must not remove a draw from level (draws + 1), which is often meant to be a whole number.
constexpr double flip_rounding = 1e-9;

/// One bit of the stream for each entry.
void flip_signs(const arma::mat& from, const stream::Stream& stream, std::uint16_t draw, arma::mat& to) {
    to.set_size(arma::size(from));
    for (arma::uword e = 0; e < from.n_elem; e += 128) {
        const stream::PhiloxCounter words = stream.words(static_cast<std::uint32_t>(e / 128), draw);
        for (arma::uword i = 0; i < 128 && e + i < from.n_elem; ++i) {
            const bool negative = (words[i / 32] >> (i % 32) & 1U) != 0;
            to[e + i] = negative ? -from[e + i] : from[e + i];
        }
    }
}

/// Fisher and Yates' order for every column; entry i of the block takes one element of the stream.
void permute_columns(const arma::mat& from, const stream::Stream& stream, std::uint16_t draw, arma::mat& to) {
    to = from;
    for (arma::uword j = 0; j < to.n_cols; ++j)
        for (arma::uword i = to.n_rows; i > 1; --i) {
            const stream::PhiloxCounter words = stream.words(static_cast<std::uint32_t>(j * to.n_rows + i - 1), draw);
            const std::uint64_t word = static_cast<std::uint64_t>(words[0]) << 32 | words[1];
            std::swap(to(i - 1, j), to(word % i, j));
        }
}

/// Whether the largest singular value is at least 1; equal ones count.
bool reaches_one(const arma::mat& matrix) {
    arma::mat rest = matrix.n_rows <= matrix.n_cols ? arma::mat(-matrix * matrix.t()) : arma::mat(-matrix.t() * matrix);
    rest.diag() += 1.0 - flip_rounding;
    arma::mat factor;
    return !arma::chol(factor, rest);
}

}  // namespace

std::size_t ParallelAnalysis::least_draws(double level) {
    return static_cast<std::size_t>(std::max(1.0, std::ceil(1.0 / level - flip_rounding) - 1.0));
}

ParallelAnalysis::ParallelAnalysis(AnalysedBlock& block, double level, std::size_t draws, ResidualCopies copies)
    : block_(block), draws_(draws), copies_(copies) {
    if (draws < least_draws(level) || draws > most_draws)
        throw usage_error("{} draws are not possible at level {}: give {} to {}", draws, level, least_draws(level),
                          most_draws);
    as_large_ = static_cast<std::size_t>(level * static_cast<double>(draws + 1) + flip_rounding) - 1;
}

bool ParallelAnalysis::significant(std::size_t rank) const {
    const std::vector<double>& values = block_.singular_values();
    if (rank >= values.size() || values[rank] == 0.0) return false;
    const arma::mat residual = block_.residual(std::span(values).first(rank)) / values[rank];
    const arma::mat& block = block_.block();
    const std::string_view bytes(reinterpret_cast<const char*>(block.memptr()), block.n_elem * sizeof(double));
    static const stream::StudySeed seed = stream::StudySeed::parse("0x5169");
    const stream::Stream random(seed, bytes, stream::Role::resampling, rank);
    arma::mat copy;
    std::size_t as_large = 0;
    for (std::size_t draw = 0; draw < draws_; ++draw) {
        if (copies_ == ResidualCopies::signs)
            flip_signs(residual, random, static_cast<std::uint16_t>(draw), copy);
        else
            permute_columns(residual, random, static_cast<std::uint16_t>(draw), copy);
        if (reaches_one(copy) && ++as_large > as_large_) return false;
    }
    return true;
}

std::size_t ParallelAnalysis::rank() const {
    const std::size_t most = block_.singular_values().size() / 2;
    std::size_t found = 0;
    while (found < most && significant(found)) ++found;
    return found;
}

}  // namespace spiked::estimators

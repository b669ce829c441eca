#include "estimators/ranks/parallel_analysis.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "core/runtime/error.hpp"
#include "core/runtime/stop_point.hpp"
#include "estimators/svd/relative_spectrum.hpp"
#include "sim/random/address.hpp"

namespace spiked::estimators {
namespace {

/// Rounding must not remove a draw from level (draws + 1), which is often meant to be a whole number.
constexpr double flip_rounding = 1e-9;
/// Columns are taken for centred where their means hold at most this fraction of the energy.
constexpr double centred_below = 1e-20;

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

/// Fisher and Yates' order for every column of centred columns; entry i of the block takes one element of the stream.
/// `with_means`: every column gets the mean of its entries with random signs, which varies as the mean of as many
/// independent ones does.
void permute_columns(const arma::mat& from, bool with_means, const stream::Stream& stream, std::uint16_t draw,
                     arma::mat& to) {
    to = from;
    const auto rows = static_cast<double>(from.n_rows);
    for (arma::uword j = 0; j < to.n_cols; ++j) {
        double sum = 0.0;
        for (arma::uword i = to.n_rows; i > 0; --i) {
            const stream::PhiloxCounter words = stream.words(static_cast<std::uint32_t>(j * to.n_rows + i - 1), draw);
            const std::uint64_t word = static_cast<std::uint64_t>(words[0]) << 32 | words[1];
            sum += (words[2] & 1U) != 0 ? from(i - 1, j) : -from(i - 1, j);
            std::swap(to(i - 1, j), to(word % i, j));
        }
        if (with_means && rows > 1.0) to.col(j) += sum / std::sqrt(rows * (rows - 1.0));
    }
}

/// Whether the largest singular value is at least 1; equal ones count.
bool reaches_one(const arma::mat& matrix) {
    arma::mat rest = matrix.n_rows <= matrix.n_cols ? arma::mat(-matrix * matrix.t()) : arma::mat(-matrix.t() * matrix);
    stop_point();
    rest.diag() += 1.0 - flip_rounding;
    arma::mat factor;
    return !arma::chol(factor, rest);
}

/// The matrix without the stripped rows and columns of the block.
arma::mat kept_lines(arma::mat matrix, const AnalysedBlock& block) {
    const Shape shape = block.shape();
    if (shape.rows == matrix.n_rows && shape.columns == matrix.n_cols) return matrix;
    return matrix.submat(block.kept_rows(), block.kept_columns());
}

/// The residual behind `rank` components as copies are made of it. Noise behind r components has the edge of a block
/// with r fewer rows and columns, one row fewer where columns are centred; its copies have the same energy in more rows
/// and columns. The factor makes the edges equal. Permuted copies are those of centred columns, with means drawn anew
/// where the block's are not zero.
struct CopiedResidual {
    arma::mat residual;
    bool with_means = false;
};

CopiedResidual prepared_for_copies(arma::mat residual, ResidualCopies copies, std::size_t rank) {
    const double all_rows = static_cast<double>(residual.n_rows);
    const double columns = static_cast<double>(residual.n_cols);
    const arma::rowvec means = arma::mean(residual, 0);
    const bool centred =
        all_rows * arma::accu(arma::square(means)) <= centred_below * arma::accu(arma::square(residual));
    double rows_of_copies = all_rows;
    const bool permuted = copies == ResidualCopies::permutations;
    if (permuted) residual.each_row() -= means;
    if (permuted && centred) rows_of_copies -= 1.0;
    const double left_rows = all_rows - (centred ? 1.0 : 0.0) - static_cast<double>(rank);
    const double left_columns = columns - static_cast<double>(rank);
    const bool with_means = permuted && !centred;
    if (left_rows <= 0.0 || left_columns <= 0.0) return {std::move(residual), with_means};
    const double edges =
        (std::sqrt(left_rows) + std::sqrt(left_columns)) / (std::sqrt(rows_of_copies) + std::sqrt(columns));
    residual *= edges * std::sqrt(rows_of_copies / left_rows * columns / left_columns);
    return {std::move(residual), with_means};
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
    if (rank >= values.size() || relative_value(values[rank], values.front(), block_.shape().long_side()) == 0.0)
        return false;
    const auto [residual, with_means] = prepared_for_copies(
        kept_lines(block_.residual(std::span(values).first(rank)) / values[rank], block_), copies_, rank);
    const arma::mat& block = block_.block();
    const std::string_view bytes(reinterpret_cast<const char*>(block.memptr()), block.n_elem * sizeof(double));
    static const stream::StudySeed seed = stream::StudySeed::parse("0x5169");
    const stream::Stream random(seed, bytes, stream::Role::resampling, rank);
    arma::mat copy;
    std::size_t as_large = 0;
    for (std::size_t draw = 0; draw < draws_; ++draw) {
        stop_point();
        if (copies_ == ResidualCopies::signs)
            flip_signs(residual, random, static_cast<std::uint16_t>(draw), copy);
        else
            permute_columns(residual, with_means, random, static_cast<std::uint16_t>(draw), copy);
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

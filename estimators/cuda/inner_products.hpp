#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "estimators/cuda/decomposition_batch.hpp"
#include "theory/base/cuda/team.hpp"
#include "theory/base/cuda/tile_product.hpp"

/// Errors of the inner products of queries with coded rows, by kernels in this order: UnitLines makes queries unit
/// vectors, RowErrors finds what became of each row and asks the queries a row each, PairSums asks the others.
namespace spiked::estimators::cuda {

/// Kernel: rows of column-major blocks, lines x length each, to unit length in place; zero rows stay. A thread a row.
struct UnitLines {
    static constexpr unsigned threads = 128;
    static constexpr unsigned resident = 8;

    std::uint32_t count;
    std::uint32_t lines;
    std::uint32_t length;
    double* blocks_of;

    [[nodiscard]] unsigned blocks() const { return (count * lines + threads - 1) / threads; }
    [[nodiscard]] std::size_t shared_bytes() const { return 0; }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned part) const {
        const unsigned which = part * threads + team.rank();
        if (which >= count * lines) return;
        double* const row = blocks_of + std::size_t{which / lines} * lines * length + which % lines;
        double squares = 0.0;
        for (unsigned j = 0; j < length; ++j)
            squares = std::fma(row[std::size_t{j} * lines], row[std::size_t{j} * lines], squares);
        if (squares == 0.0) return;
        const double norm = std::sqrt(squares);
        for (unsigned j = 0; j < length; ++j) row[std::size_t{j} * lines] /= norm;
    }
};

/// What RowErrors finds of a block: means and standard deviations over its rows, and sums.
struct RowErrorSums {
    double own_bias, own_deviation, own_bias_plain, own_deviation_plain;  ///< the query is the row itself
    double aligned_bias, aligned_deviation, aligned_bias_plain, aligned_deviation_plain;
    double across;  ///< sum of <x, x^>
};

/// Kernel: of each row x and what came back, x^: the unit row x / |x|, how far x^ / |x^| is from it (renormalised), and
/// (x^ - x) / |x| (plain); a thread block a matrix, a thread a row. One query is asked of every row: the leading right
/// vector, turned towards the rows.
template <class Real>
struct RowErrors {
    static constexpr unsigned threads = 128;
    static constexpr unsigned resident = 4;
    static constexpr unsigned warps = threads / spiked::cuda::warp_size;

    std::uint32_t count;
    std::uint32_t rows;
    std::uint32_t dimension;
    std::uint32_t vectors;   ///< stored of each block
    const double* original;  ///< column-major
    const float* decoded;
    const Real* right;  ///< dimension x vectors
    double* units;
    double* renormalised;
    double* plain;
    BlockStatus* status;  ///< for_the_host: a row is zero, or came back as zero
    RowErrorSums* sums;

    [[nodiscard]] unsigned blocks() const { return count; }
    [[nodiscard]] std::size_t shared_bytes() const { return spiked::cuda::shared_room<double>(warps); }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned block) const {
        auto room = team.template take<double>(warps);
        const std::size_t corner = std::size_t{block} * rows * dimension;
        const Real* const v = right + std::size_t{block} * vectors * dimension;
        double v_squares = 0.0;
        for (unsigned j = 0; j < dimension; ++j)
            v_squares = std::fma(static_cast<double>(v[j]), static_cast<double>(v[j]), v_squares);
        double towards = 0.0;
        double across = 0.0;
        double zeros = 0.0;
        for (unsigned t = team.rank(); t < rows; t += threads) {
            double norm = 0.0;
            double other = 0.0;
            for (unsigned j = 0; j < dimension; ++j) {
                const std::size_t at = corner + std::size_t{j} * rows + t;
                const double x = original[at];
                const auto y = static_cast<double>(decoded[at]);
                norm = std::fma(x, x, norm);
                other = std::fma(y, y, other);
                across = std::fma(x, y, across);
                towards = std::fma(x, static_cast<double>(v[j]), towards);
            }
            norm = std::sqrt(norm);
            other = std::sqrt(other);
            zeros += norm == 0.0 || other == 0.0 ? 1.0 : 0.0;
            for (unsigned j = 0; j < dimension; ++j) {
                const std::size_t at = corner + std::size_t{j} * rows + t;
                const double x = original[at];
                const auto y = static_cast<double>(decoded[at]);
                const double unit = norm == 0.0 ? 0.0 : x / norm;
                units[at] = unit;
                renormalised[at] = (other == 0.0 ? 0.0 : y / other) - unit;
                plain[at] = norm == 0.0 ? 0.0 : (y - x) / norm;
            }
        }
        towards = sum_of_all(team, room, towards);
        across = sum_of_all(team, room, across);
        zeros = sum_of_all(team, room, zeros);
        const double scale = (towards < 0.0 ? -1.0 : 1.0) / std::sqrt(v_squares);
        RowErrorSums found{};
        found.across = across;
        const auto own = [&](std::size_t at, unsigned) { return units[at]; };
        const auto aligned = [&](std::size_t, unsigned j) { return scale * static_cast<double>(v[j]); };
        spread(team, room, corner, own, renormalised, found.own_bias, found.own_deviation);
        spread(team, room, corner, own, plain, found.own_bias_plain, found.own_deviation_plain);
        spread(team, room, corner, aligned, renormalised, found.aligned_bias, found.aligned_deviation);
        spread(team, room, corner, aligned, plain, found.aligned_bias_plain, found.aligned_deviation_plain);
        if (team.rank() != 0) return;
        sums[block] = found;
        status[block] = zeros == 0.0 ? BlockStatus::fine : BlockStatus::for_the_host;
    }

private:
    /// The same in every thread.
    template <class Team, class Room>
    SPIKED_DEVICE static double sum_of_all(Team& team, Room& room, double x) {
        x = spiked::cuda::warp_sum(team, x);
        if (team.lane() == 0) room[team.warp()] = x;
        team.barrier();
        double sum = 0.0;
        for (unsigned w = 0; w < warps; ++w) {
            const double other = room[w];
            sum += other;
        }
        team.barrier();
        return sum;
    }
    /// Mean and standard deviation over the rows of <query, error>; query(entry, column).
    template <class Team, class Room, class Query>
    SPIKED_DEVICE void spread(Team& team, Room& room, std::size_t corner, Query query, const double* errors,
                              double& mean, double& deviation) const {
        const auto product = [&](unsigned t) {
            double sum = 0.0;
            for (unsigned j = 0; j < dimension; ++j) {
                const std::size_t at = corner + std::size_t{j} * rows + t;
                sum = std::fma(query(at, j), errors[at], sum);
            }
            return sum;
        };
        double sum = 0.0;
        for (unsigned t = team.rank(); t < rows; t += threads) sum += product(t);
        mean = sum_of_all(team, room, sum) / rows;
        double squares = 0.0;
        for (unsigned t = team.rank(); t < rows; t += threads) {
            const double off = product(t) - mean;
            squares = std::fma(off, off, squares);
        }
        deviation = std::sqrt(sum_of_all(team, room, squares) / rows);
    }
};

/// Kernel: sum and sum of squares of <q, e> over the pairs of a query and a row's error, 64 x 64 of them a thread
/// block; their reader adds the parts of a block in order.
struct PairSums {
    using Product = spiked::cuda::TileProduct<double>;
    static constexpr unsigned threads = Product::threads;
    static constexpr unsigned resident = 2;
    static constexpr unsigned warps = threads / spiked::cuda::warp_size;

    std::uint32_t count;
    std::uint32_t queries;  ///< of a block
    std::uint32_t rows;
    std::uint32_t dimension;
    bool different;        ///< query i is not asked about row i
    const double* asked;   ///< queries x dimension, column-major
    const double* errors;  ///< rows x dimension
    double* sums;          ///< 2 a part

    [[nodiscard]] SPIKED_DEVICE unsigned parts() const { return Product::tiles(queries, rows); }
    [[nodiscard]] unsigned blocks() const { return count * parts(); }
    [[nodiscard]] std::size_t shared_bytes() const {
        return Product::shared_bytes() + 2 * spiked::cuda::shared_room<double>(warps);
    }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned part) const {
        const std::size_t block = part / parts();
        Product product(queries, rows, part % parts());
        product.multiply(team, asked + block * queries * dimension, errors + block * rows * dimension, dimension,
                         [](unsigned) { return 1.0; });
        auto sum_of = team.template take<double>(warps);
        auto squares_of = team.template take<double>(warps);
        double sum = 0.0;
        double squares = 0.0;
        const bool all = !different;
        product.each_entry(team, [&](unsigned query, unsigned row, double x) {
            const double counted = all || query != row ? x : 0.0;
            sum += counted;
            squares = std::fma(counted, counted, squares);
        });
        sum = spiked::cuda::warp_sum(team, sum);
        squares = spiked::cuda::warp_sum(team, squares);
        if (team.lane() == 0) {
            sum_of[team.warp()] = sum;
            squares_of[team.warp()] = squares;
        }
        team.barrier();
        if (team.rank() != 0) return;
        for (unsigned w = 1; w < warps; ++w) {
            sum += sum_of[w];
            squares += squares_of[w];
        }
        sums[2 * std::size_t{part}] = sum;
        sums[2 * std::size_t{part} + 1] = squares;
    }
};

}  // namespace spiked::estimators::cuda

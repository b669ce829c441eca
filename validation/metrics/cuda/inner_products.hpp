#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "core/device/team.hpp"
#include "core/device/tile_product.hpp"
#include "estimators/svd/cuda/decomposition_batch.hpp"

/// Kernels for the errors of inner products of queries with coded rows. QueryScales computes the norms of random
/// queries. RowErrors computes the norms of the rows, and the errors for the queries that need one product per row: the
/// row itself, and the leading right singular vector of the block. PairSums then needs these norms and takes every
/// query with every row. `Entry` is the type of rows and queries.
namespace spiked::estimators::cuda {

/// Kernel: one over the norm of each row of column-major blocks of size rows x length; 0 for zero rows. One thread per
/// row.
template <class Entry>
struct QueryScales {
    static constexpr unsigned threads = 128;
    static constexpr unsigned resident = 8;

    std::uint32_t count;
    std::uint32_t rows;
    std::uint32_t length;
    const Entry* queries;
    Entry* scales;

    [[nodiscard]] unsigned blocks() const { return (count * rows + threads - 1) / threads; }
    [[nodiscard]] std::size_t shared_bytes() const { return 0; }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned part) const {
        const unsigned which = part * threads + team.rank();
        if (which >= count * rows) return;
        const Entry* const row = queries + std::size_t{which / rows} * rows * length + which % rows;
        double squares = 0.0;
        SPIKED_UNROLL_BY(8)
        for (unsigned j = 0; j < length; ++j) {
            const auto x = static_cast<double>(row[std::size_t{j} * rows]);
            squares = std::fma(x, x, squares);
        }
        scales[which] = static_cast<Entry>(squares == 0.0 ? 0.0 : 1.0 / std::sqrt(squares));
    }
};

/// The results of RowErrors for a block: means and standard deviations over its rows, and a sum.
struct RowErrorSums {
    double own_bias, own_deviation, own_bias_plain, own_deviation_plain;  ///< the query is the row itself
    double aligned_bias, aligned_deviation, aligned_bias_plain, aligned_deviation_plain;
    double across;  ///< sum of <x, x^>
};

/// Kernel: for each row x and its decoded row x^, one over their norms, and the differences of <q, x^ / |x^|>
/// (renormalised) and <q, x^> / |x| (plain) from <q, x / |x|>. The queries q are x / |x| and the leading right singular
/// vector, with its sign chosen so that its sum of products with the rows is not negative. One thread block per matrix;
/// a thread reads each of its rows once; up to 256 rows.
template <class Entry, class Real>
struct RowErrors {
    static constexpr unsigned threads = 128;
    static constexpr unsigned resident = 4;
    static constexpr unsigned warps = threads / spiked::cuda::warp_size;
    static constexpr unsigned each = 2;  ///< rows per thread
    static constexpr unsigned most_rows = each * threads;

    std::uint32_t count;
    std::uint32_t rows;
    std::uint32_t dimension;
    std::uint32_t vectors;  ///< stored per block
    const Entry* original;  ///< column-major
    const float* decoded;
    const Real* right;    ///< dimension x vectors
    Entry* scales;        ///< per block 1 / |x| of all rows, then 1 / |x^|; 0 for zero rows
    BlockStatus* status;  ///< for_the_host if a row or a decoded row is zero
    RowErrorSums* sums;

    [[nodiscard]] unsigned blocks() const { return count; }
    [[nodiscard]] std::size_t shared_bytes() const { return spiked::cuda::shared_bytes_for<double>(warps); }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned block) const {
        auto room = team.template take<double>(warps);
        const std::size_t corner = std::size_t{block} * rows * dimension;
        const Real* const v = right + std::size_t{block} * vectors * dimension;
        Entry* const own_scales = scales + std::size_t{block} * 2 * rows;
        double v_squares = 0.0;
        for (unsigned j = 0; j < dimension; ++j)
            v_squares = std::fma(static_cast<double>(v[j]), static_cast<double>(v[j]), v_squares);
        double towards = 0.0;
        double across = 0.0;
        double zeros = 0.0;
        double own[each] = {}, own_plain[each] = {}, aligned[each] = {}, aligned_plain[each] = {};
        SPIKED_UNROLL
        for (unsigned r = 0; r < each; ++r) {
            const unsigned t = team.rank() + threads * r;
            if (t >= rows) continue;
            const Entry* const x_row = original + corner + t;
            const float* const y_row = decoded + corner + t;
            double xx = 0.0, yy = 0.0, xy = 0.0, xv = 0.0, yv = 0.0;
            SPIKED_UNROLL_BY(8)
            for (unsigned j = 0; j < dimension; ++j) {
                const auto x = static_cast<double>(x_row[std::size_t{j} * rows]);
                const auto y = static_cast<double>(y_row[std::size_t{j} * rows]);
                const auto along = static_cast<double>(v[j]);
                xx = std::fma(x, x, xx);
                yy = std::fma(y, y, yy);
                xy = std::fma(x, y, xy);
                xv = std::fma(x, along, xv);
                yv = std::fma(y, along, yv);
            }
            const bool zero = xx == 0.0 || yy == 0.0;
            const double norm = xx == 0.0 ? 0.0 : 1.0 / std::sqrt(xx);
            const double other = yy == 0.0 ? 0.0 : 1.0 / std::sqrt(yy);
            own_scales[t] = static_cast<Entry>(norm);
            own_scales[rows + t] = static_cast<Entry>(other);
            zeros += zero ? 1.0 : 0.0;
            towards += xv;
            across += xy;
            own[r] = std::fma(xy * norm, other, -1.0);
            own_plain[r] = (xy - xx) * norm * norm;
            aligned[r] = yv * other - xv * norm;
            aligned_plain[r] = (yv - xv) * norm;
        }
        towards = sum_of_all(team, room, towards);
        across = sum_of_all(team, room, across);
        zeros = sum_of_all(team, room, zeros);
        const double scale = (towards < 0.0 ? -1.0 : 1.0) / std::sqrt(v_squares);
        RowErrorSums found{};
        found.across = across;
        mean_and_deviation(team, room, 1.0, own, found.own_bias, found.own_deviation);
        mean_and_deviation(team, room, 1.0, own_plain, found.own_bias_plain, found.own_deviation_plain);
        mean_and_deviation(team, room, scale, aligned, found.aligned_bias, found.aligned_deviation);
        mean_and_deviation(team, room, scale, aligned_plain, found.aligned_bias_plain, found.aligned_deviation_plain);
        if (team.rank() != 0) return;
        sums[block] = found;
        status[block] = zeros == 0.0 ? BlockStatus::fine : BlockStatus::for_the_host;
    }

private:
    /// The sum over all threads; every thread gets the same result.
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
    /// Mean and standard deviation over the rows of `scale` times their numbers.
    template <class Team, class Room>
    SPIKED_DEVICE void mean_and_deviation(Team& team, Room& room, double scale, const double (&numbers)[each],
                                          double& mean, double& deviation) const {
        double sum = 0.0;
        SPIKED_UNROLL
        for (unsigned r = 0; r < each; ++r) sum += numbers[r];  // 0 where there is no row
        mean = scale * (sum_of_all(team, room, sum) / rows);
        double squares = 0.0;
        SPIKED_UNROLL
        for (unsigned r = 0; r < each; ++r) {
            const double off = std::fma(scale, numbers[r], -mean);
            if (team.rank() + threads * r < rows) squares = std::fma(off, off, squares);
        }
        deviation = std::sqrt(sum_of_all(team, room, squares) / rows);
    }
};

/// The results of PairSums for a part of the pairs.
struct PairErrorSums {
    double renormalised, renormalised_squares, plain, plain_squares;
};

/// Kernel: sums and sums of squares of <q, e> over the pairs of a unit query q and the error e of a row, renormalised
/// and plain. A thread block computes 64 x 64 pairs; the caller adds the parts of a block in their order. In float, q
/// and e are rounded to 11 significant bits: the error of a product is about 1e-4 |q| |e| with either sign, and that of
/// a mean over n pairs is sqrt(n) times smaller.
template <class Entry>
struct PairSums {
    using Product = spiked::cuda::TensorProduct<Entry>;
    using Tile = spiked::cuda::WarpTile<Entry>;
    static constexpr unsigned side = Product::side;
    static constexpr unsigned threads = Product::threads;
    static constexpr unsigned resident = sizeof(Entry) == 4 ? 3 : 2;
    static constexpr unsigned warps = threads / spiked::cuda::warp_size;
    static constexpr unsigned slice = Tile::slice;

    std::uint32_t count;
    std::uint32_t queries;  ///< per block
    std::uint32_t rows;
    std::uint32_t dimension;
    bool different;              ///< pairs of query i and row i are left out
    const Entry* query_rows;     ///< queries x dimension, column-major
    const Entry* query_scales;   ///< 1 / |q|
    std::uint32_t query_stride;  ///< distance of the scales from block to block
    const Entry* original;       ///< rows x dimension
    const float* decoded;
    const Entry* scales;  ///< as computed by RowErrors
    PairErrorSums* sums;  ///< one per part

    [[nodiscard]] SPIKED_DEVICE unsigned parts() const { return Product::tiles(queries, rows); }
    [[nodiscard]] unsigned blocks() const { return count * parts(); }
    [[nodiscard]] std::size_t shared_bytes() const {
        return 3 * spiked::cuda::shared_bytes_for<Entry>(Tile::pitch * slice) +
               spiked::cuda::shared_bytes_for<double>(4 * warps);
    }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned part) const {
        const std::size_t block = part / parts();
        const unsigned down = Product::down(queries);
        const unsigned top = part % parts() % down * side;
        const unsigned left = part % parts() / down * side;
        const Entry* const q = query_rows + block * queries * dimension;
        const Entry* const x = original + block * rows * dimension;
        const float* const y = decoded + block * rows * dimension;
        const Entry* const norms = scales + block * 2 * rows;
        auto query_slice = team.template take<Entry>(Tile::pitch * slice);
        auto renormalised_slice = team.template take<Entry>(Tile::pitch * slice);
        auto plain_slice = team.template take<Entry>(Tile::pitch * slice);
        // In every slice a thread loads entries of the same query and the same row.
        const unsigned own = team.rank() % side;
        const bool is_query = top + own < queries;
        const bool is_row = left + own < rows;
        const Entry by_query = is_query ? query_scales[block * query_stride + top + own] : Entry(0);
        const Entry by_row = is_row ? norms[left + own] : Entry(0);
        const Entry by_decoded = is_row ? norms[rows + left + own] : Entry(0);
        Tile renormalised, plain;
        constexpr unsigned loads = side * slice / threads;
        Entry query[loads], from[loads], back[loads];
        constexpr unsigned step = threads / side;
        const unsigned own_inner = team.rank() / side;
        const std::size_t corner = std::size_t{own_inner} * rows + left + own;
        const Entry* from_query = q + std::size_t{own_inner} * queries + top + own;
        const Entry* from_row = x + corner;
        const float* from_decoded = y + corner;
        const bool whole = top + side <= queries && left + side <= rows && dimension % slice == 0;
        const auto read = [&](unsigned first) {
            const auto take = [&](unsigned load, bool has_query, bool has_row) {
                query[load] = has_query ? from_query[load * (step * queries)] : Entry(0);
                from[load] = has_row ? from_row[load * (step * rows)] : Entry(0);
                back[load] = has_row ? static_cast<Entry>(from_decoded[load * (step * rows)]) : Entry(0);
            };
            if (whole) {
                SPIKED_UNROLL
                for (unsigned load = 0; load < loads; ++load) take(load, true, true);
            } else {
                SPIKED_UNROLL
                for (unsigned load = 0; load < loads; ++load) {
                    const bool inside = first + own_inner + load * step < dimension;
                    take(load, inside && is_query, inside && is_row);
                }
            }
            from_query += std::size_t{slice} * queries;
            from_row += std::size_t{slice} * rows;
            from_decoded += std::size_t{slice} * rows;
        };
        read(0);
        for (unsigned first = 0; first < dimension; first += slice) {
            SPIKED_UNROLL
            for (unsigned load = 0; load < loads; ++load) {
                const unsigned to = (load * step + own_inner) * Tile::pitch + own;
                query_slice[to] = Tile::rounded(by_query * query[load]);
                renormalised_slice[to] = Tile::rounded(std::fma(back[load], by_decoded, -(from[load] * by_row)));
                plain_slice[to] = Tile::rounded((back[load] - from[load]) * by_row);
            }
            team.barrier();
            if (first + slice < dimension) read(first + slice);  // overlaps with the products below
            renormalised.add(team, query_slice, Product::first_row(team), renormalised_slice,
                             Product::first_column(team));
            plain.add(team, query_slice, Product::first_row(team), plain_slice, Product::first_column(team));
            team.barrier();
        }
        double found[4] = {};
        add_up(team, renormalised, top, left, found[0], found[1]);
        add_up(team, plain, top, left, found[2], found[3]);
        auto room = team.template take<double>(4 * warps);
        SPIKED_UNROLL
        for (unsigned i = 0; i < 4; ++i) {
            found[i] = spiked::cuda::warp_sum(team, found[i]);
            if (team.lane() == 0) room[4 * team.warp() + i] = found[i];
        }
        team.barrier();
        if (team.rank() != 0) return;
        for (unsigned w = 1; w < warps; ++w)
            for (unsigned i = 0; i < 4; ++i) found[i] += room[4 * w + i];
        sums[part] = {found[0], found[1], found[2], found[3]};
    }

private:
    /// The sum and the sum of squares over the 32 pairs that this thread has of a tile.
    template <class Team>
    SPIKED_DEVICE void add_up(Team& team, const Tile& tile, unsigned top, unsigned left, double& sum,
                              double& squares) const {
        Entry own_sum = 0;
        Entry own_squares = 0;
        tile.each_entry(team, [&](unsigned i, unsigned j, Entry product) {
            // Products are zero beyond the last query and the last row.
            const bool own_row =
                different && top + Product::first_row(team) + i == left + Product::first_column(team) + j;
            const Entry counted = own_row ? Entry(0) : product;
            own_sum += counted;
            own_squares = std::fma(counted, counted, own_squares);
        });
        sum = static_cast<double>(own_sum);
        squares = static_cast<double>(own_squares);
    }
};

}  // namespace spiked::estimators::cuda

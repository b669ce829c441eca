#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/device/tile_product.hpp"
#include "sim/random/cuda/haar_frames.hpp"

/// Turns Gaussian matrices G of up to 128 x 128 into the orthonormal frames of haar_frame (../haar.hpp) in float: the Q
/// of the QR decomposition in which R has a positive diagonal. Since G^T G = R^T R, Q is G times the inverse of a
/// Cholesky factor. These are two products on the tensor units and one elimination without sums over columns, which
/// takes half the time of Householder reflectors. With the ratio r_jj^2 / |g_j|^2 of a column, the error of column j is
/// up to 1e-13 over the product of its ratio and the smallest ratio of a column before it. From the first column on for
/// which this can exceed a float's rounding error, the columns are made orthogonal once more.
namespace spiked::stream {

/// Memory of these kernels, given by the caller: columns x columns doubles and one number per frame.
struct FrameWork {
    double* factors;              ///< G^T G, replaced by the inverse of its Cholesky factor L
    std::uint32_t* first_unsure;  ///< the first column that is computed again; the number of columns if there is none
};

/// Kernel: the lower triangle of G^T G, in tiles of 64 x 64.
struct GramMatrices {
    using Product = spiked::cuda::TensorProduct<double>;
    static constexpr unsigned threads = Product::threads;
    static constexpr unsigned resident = 3;

    std::uint32_t count;
    std::uint32_t rows;
    std::uint32_t columns;  ///< at most 128
    const double* normals;  ///< rows x columns per frame, column-major
    FrameWork work;

    [[nodiscard]] SPIKED_DEVICE unsigned tiles() const { return columns > Product::side ? 3 : 1; }
    [[nodiscard]] unsigned blocks() const { return count * tiles(); }
    [[nodiscard]] std::size_t shared_bytes() const { return Product::shared_bytes(); }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned part) const {
        const std::size_t block = part / tiles();
        const unsigned tile = part % tiles();
        Product product(columns, columns, tile == 2 ? 3 : tile);  // all but the tile above the diagonal
        const double* const matrix = normals + block * rows * columns;
        product.multiply(team, matrix, matrix, rows, true, true);
        double* const to = work.factors + block * columns * columns;
        product.each_entry(team, [&](unsigned row, unsigned column, double sum) {
            if (row >= column) to[std::size_t{column} * columns + row] = sum;
        });
    }
};

/// Kernel: replaces the lower triangle of a positive definite matrix by the inverse of its Cholesky factor, by
/// elimination in the registers of a thread block. Thread (lane of 16, group of 8) holds rows lane, lane + 16, .. and
/// columns group, group + 8, ... Step k subtracts multiples of row k from the rows below, and the same from a unit
/// matrix. What is left of both fits one triangle: columns from k on are those of the symmetric matrix, and those
/// before belong to what the unit matrix has become. Above the diagonal, zeros are written in the tiles that hold it.
struct InverseCholesky {
    static constexpr unsigned lanes = 16;
    static constexpr unsigned groups = 8;
    static constexpr unsigned threads = lanes * groups;
    static constexpr unsigned resident = 2;
    static constexpr unsigned most_columns = 128;
    static constexpr unsigned row_slots = most_columns / lanes;
    static constexpr unsigned column_slots = most_columns / groups;
    static constexpr unsigned tile_side = spiked::cuda::TensorProduct<double>::side;
    /// A column is unsure if its ratio, times the smallest ratio of a column before it, is below `unsure`. A pivot
    /// below the fraction `least` of the squared norm is a rounding error and is replaced by that fraction.
    static constexpr double unsure = 0x1p-20;
    static constexpr double least = 0x1p-50;

    std::uint32_t columns;
    FrameWork work;

    [[nodiscard]] std::size_t shared_bytes() const { return 4 * spiked::cuda::shared_bytes_for<double>(most_columns); }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned block) const {
        Shared<Team> shared(team);
        const unsigned lane = team.rank() % lanes;
        const unsigned group = team.rank() / lanes;
        double* const matrix = work.factors + std::size_t{block} * columns * columns;
        Entries a;
        SPIKED_UNROLL
        for (unsigned s = 0; s < row_slots; ++s) SPIKED_UNROLL
        for (unsigned c = 0; c < column_slots_of(s); ++c) {
            const unsigned i = lane + lanes * s;
            const unsigned j = group + groups * c;
            a[s][c] = i < columns && j <= i ? matrix[std::size_t{j} * columns + i] : 0.0;
            if (i == j) shared.squares[i] = a[s][c];
        }
        publish<0>(shared, a, 0, lane, group);
        team.barrier();
        all_steps(team, shared, a, lane, group, std::make_integer_sequence<unsigned, column_slots>());

        if (team.warp() == 0) {
            const unsigned first = first_unsure(team, shared);
            if (team.lane() == 0) work.first_unsure[block] = first;
        }
        SPIKED_UNROLL
        for (unsigned s = 0; s < row_slots; ++s) {
            const unsigned i = lane + lanes * s;
            if (i >= columns) continue;
            const double scale = spiked::cuda::fast_inverse(spiked::cuda::fast_sqrt(shared.pivots[i]));
            SPIKED_UNROLL
            for (unsigned c = 0; c < column_slots; ++c) {
                if (groups * c >= (lanes * s / tile_side + 1) * tile_side) continue;  // FrameProducts does not read it
                const unsigned j = group + groups * c;
                if (j >= columns) continue;
                const double entry = c < column_slots_of(s) && j < i ? scale * a[s][c] : 0.0;
                matrix[std::size_t{j} * columns + i] = j == i ? scale : entry;
            }
        }
    }

private:
    using Entries = double[row_slots][column_slots];
    /// The number of slots of columns that can be on or left of the diagonal in the rows of a slot.
    [[nodiscard]] SPIKED_DEVICE static constexpr unsigned column_slots_of(unsigned row_slot) {
        return (row_slot + 1) * lanes / groups;
    }

    template <class Team>
    struct Shared {
        /// Row k up to the diagonal and column k from there on, of even steps and then of odd ones.
        typename Team::template Shared<double> crosses;
        typename Team::template Shared<double> pivots;
        typename Team::template Shared<double> squares;  ///< the diagonal of the matrix: squared norms of G's columns

        SPIKED_DEVICE explicit Shared(Team& team)
            : crosses(team.template take<double>(2 * most_columns)),
              pivots(team.template take<double>(most_columns)),
              squares(team.template take<double>(most_columns)) {}
    };

    /// The first unsure column, or the number of columns. All threads of a warp must call this.
    template <class Team>
    SPIKED_DEVICE unsigned first_unsure(Team& team, const Shared<Team>& shared) const {
        constexpr unsigned each = most_columns / spiked::cuda::warp_size;  // consecutive columns of a lane
        double ratios[each];
        double smallest = 1.0;  // of the lane's columns, then also of those of all lanes before
        SPIKED_UNROLL
        for (unsigned t = 0; t < each; ++t) {
            const unsigned k = each * team.lane() + t;
            const double square = k < columns ? shared.squares[k] : 1.0;
            ratios[t] = k >= columns ? 1.0 : square > 0.0 ? shared.pivots[k] / square : 0.0;
            smallest = ratios[t] < smallest ? ratios[t] : smallest;
        }
        for (unsigned distance = 1; distance < spiked::cuda::warp_size; distance *= 2) {
            const bool has_other = team.lane() >= distance;
            const double other = team.shuffle(smallest, has_other ? team.lane() - distance : team.lane());
            smallest = has_other && other < smallest ? other : smallest;
        }
        double before = team.shuffle(smallest, team.lane() > 0 ? team.lane() - 1 : 0);
        if (team.lane() == 0) before = 1.0;
        unsigned left = 0;  // the number of columns from the first unsure one on
        SPIKED_UNROLL
        for (unsigned t = 0; t < each; ++t) {
            const unsigned k = each * team.lane() + t;
            if (left == 0 && k < columns && !(ratios[t] * before >= unsure)) left = columns - k;
            before = ratios[t] < before ? ratios[t] : before;
        }
        return columns - spiked::cuda::warp_max(team, left);
    }

    /// Copies row and column k, which is in column slot `slot`, to shared memory, in the threads that hold them.
    template <unsigned slot, class Team>
    SPIKED_DEVICE static void publish(Shared<Team>& shared, const Entries& a, unsigned k, unsigned lane,
                                      unsigned group) {
        constexpr unsigned row_slot = slot * groups / lanes;
        const auto cross = shared.crosses + k % 2 * most_columns;
        if (group == k % groups) {
            SPIKED_UNROLL
            for (unsigned s = row_slot; s < row_slots; ++s)
                if (s > row_slot || lane + lanes * s >= k) cross[lane + lanes * s] = a[s][slot];
        }
        if (lane == k % lanes) {
            SPIKED_UNROLL
            for (unsigned c = 0; c <= slot; ++c)
                if (c != slot || group + groups * c < k) cross[group + groups * c] = a[row_slot][c];
        }
    }

    /// The steps whose column is in slot `phase`.
    template <unsigned phase, class Team>
    SPIKED_DEVICE void steps(Team& team, Shared<Team>& shared, Entries& a, unsigned lane, unsigned group) const {
        constexpr unsigned first_row_slot = phase * groups / lanes;
        const unsigned end = (phase + 1) * groups < columns ? (phase + 1) * groups : columns;
        for (unsigned k = phase * groups; k < end; ++k) {
            const auto cross = shared.crosses + k % 2 * most_columns;
            const double smallest = least * shared.squares[k];
            const double pivot = cross[k] > smallest ? cross[k] : smallest;
            if (team.rank() == 0) shared.pivots[k] = pivot;
            const double by = -spiked::cuda::fast_inverse(pivot);
            double multipliers[row_slots];
            SPIKED_UNROLL
            for (unsigned s = first_row_slot; s < row_slots; ++s) {
                const unsigned i = lane + lanes * s;
                multipliers[s] = s > first_row_slot || i > k ? by * cross[i] : 0.0;
            }
            SPIKED_UNROLL
            for (unsigned c = 0; c < column_slots; ++c) {
                const unsigned j = group + groups * c;
                const double across = cross[j];
                SPIKED_UNROLL
                for (unsigned s = first_row_slot; s < row_slots; ++s) {
                    if (c >= column_slots_of(s)) continue;
                    const double sum = std::fma(multipliers[s], across, a[s][c]);
                    const bool is_below_pivot = c == phase && j == k && (s > first_row_slot || lane + lanes * s > k);
                    a[s][c] = is_below_pivot ? multipliers[s] : sum;
                }
            }
            if (k + 1 < end) {
                publish<phase>(shared, a, k + 1, lane, group);
            } else if constexpr (phase + 1 < column_slots) {
                if (end < columns) publish<phase + 1>(shared, a, end, lane, group);
            }
            team.barrier();
        }
    }
    template <class Team, unsigned... phases>
    SPIKED_DEVICE void all_steps(Team& team, Shared<Team>& shared, Entries& a, unsigned lane, unsigned group,
                                 std::integer_sequence<unsigned, phases...>) const {
        (steps<phases>(team, shared, a, lane, group), ...);
    }
};

/// Kernel: the frames Q = G L^-T.
struct FrameProducts {
    using Product = spiked::cuda::TensorProduct<double>;
    static constexpr unsigned threads = Product::threads;
    static constexpr unsigned resident = 3;

    std::uint32_t count;
    std::uint32_t rows;
    std::uint32_t columns;
    const double* normals;
    FrameWork work;
    float* frames;  ///< rows x columns per frame, column-major

    [[nodiscard]] SPIKED_DEVICE unsigned tiles() const { return Product::tiles(rows, columns); }
    [[nodiscard]] unsigned blocks() const { return count * tiles(); }
    [[nodiscard]] std::size_t shared_bytes() const { return Product::shared_bytes(); }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned part) const {
        const std::size_t block = part / tiles();
        const unsigned tile = part % tiles();
        Product product(rows, columns, tile);
        // L^-1 is lower triangular, so that later columns of G do not matter.
        const unsigned after = (tile / Product::down(rows) + 1) * Product::side;
        product.multiply_part(team, normals + block * rows * columns, rows, false,
                              work.factors + block * columns * columns, columns, false,
                              after < columns ? after : columns);
        float* const to = frames + block * rows * columns;
        product.each_entry(team, [&](unsigned row, unsigned column, double sum) {
            to[std::size_t{column} * rows + row] = static_cast<float>(sum);
        });
    }
};

/// Kernel: makes the unsure columns of a frame orthogonal to all columns before them, one after the other, and gives
/// them norm 1.
struct OrthogonalFrames {
    static constexpr unsigned threads = 128;
    static constexpr unsigned resident = 8;
    static constexpr unsigned warps = threads / spiked::cuda::warp_size;

    std::uint32_t rows;
    std::uint32_t columns;
    FrameWork work;
    float* frames;

    [[nodiscard]] std::size_t shared_bytes() const {
        return spiked::cuda::shared_bytes_for<double>(rows) + spiked::cuda::shared_bytes_for<double>(columns);
    }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned block) const {
        auto own = team.template take<double>(rows);
        auto overlaps = team.template take<double>(columns);
        float* const frame = frames + std::size_t{block} * rows * columns;
        for (unsigned j = work.first_unsure[block]; j < columns; ++j) {
            float* const column = frame + std::size_t{j} * rows;
            for (unsigned i = team.rank(); i < rows; i += threads) own[i] = static_cast<double>(column[i]);
            team.barrier();
            for (unsigned round = 0; round < 2; ++round) {  // once is not enough for a column of rounding errors
                for (unsigned c = team.warp(); c < j; c += warps) {
                    const double overlap = product(team, frame + std::size_t{c} * rows, own);
                    if (team.lane() == 0) overlaps[c] = overlap;
                }
                team.barrier();
                for (unsigned i = team.rank(); i < rows; i += threads) {
                    double rest = own[i];
                    for (unsigned c = 0; c < j; ++c)
                        rest = std::fma(-overlaps[c], static_cast<double>(frame[std::size_t{c} * rows + i]), rest);
                    own[i] = rest;
                }
                team.barrier();
            }
            const double square = product(team, own, own);
            const double scale = square > 0.0 ? 1.0 / std::sqrt(square) : 0.0;
            for (unsigned i = team.rank(); i < rows; i += threads) column[i] = static_cast<float>(scale * own[i]);
            team.barrier();
        }
    }

private:
    /// The inner product of two columns, in each lane of the warp.
    template <class Team, class Left, class Right>
    SPIKED_DEVICE double product(Team& team, const Left& left, const Right& right) const {
        double sum = 0.0;
        for (unsigned i = team.lane(); i < rows; i += spiked::cuda::warp_size)
            sum = std::fma(static_cast<double>(left[i]), static_cast<double>(right[i]), sum);
        return spiked::cuda::warp_sum(team, sum);
    }
};

/// The number of doubles in FrameWork::factors for a frame; 0 where Householder reflectors are used, which need no
/// FrameWork.
[[nodiscard]] inline std::size_t frame_factors(std::uint32_t columns) {
    return columns <= InverseCholesky::most_columns ? std::size_t{columns} * columns : 0;
}

/// Computes frames of up to 256 rows in float. The normals may be overwritten.
template <class Executor>
void launch_haar_rotations(Executor& executor, std::uint32_t count, std::uint32_t rows, std::uint32_t columns,
                           double* normals, const FrameWork& work, float* frames) {
    if (frame_factors(columns) == 0) {
        launch_haar_frames(executor, count, rows, columns, normals, frames);
        return;
    }
    const GramMatrices gram{count, rows, columns, normals, work};
    executor.launch(gram, gram.blocks());
    executor.launch(InverseCholesky{columns, work}, count);
    const FrameProducts products{count, rows, columns, normals, work, frames};
    executor.launch(products, products.blocks());
    executor.launch(OrthogonalFrames{rows, columns, work, frames}, count);
}

}  // namespace spiked::stream

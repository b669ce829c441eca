#pragma once
#include <cmath>

#include "core/device/team.hpp"
#include "estimators/svd/bidiagonal_tolerances.hpp"
#include "estimators/svd/cuda/decomposition_batch.hpp"
#include "estimators/svd/cuda/one_lane.hpp"
#include "estimators/svd/twisted_vectors.hpp"

namespace spiked::estimators::cuda {

/// Kernel: vectors of the largest singular values of the bidiagonal matrices, for blocks `first`, `first` + 1, .. of
/// the batch, by twisted factorisations of the Golub-Kahan matrix (estimators/svd/twisted_vectors.hpp), one warp per
/// matrix. A vector is computed by two lanes: one eliminates the matrix from its first row on, the other from its last,
/// and then each finds the entries on its side of the twist. With more than 16 vectors the warp computes them in two
/// rounds. Vectors of close values are made orthogonal. A block whose vectors fail the checks is left to the host.
template <class Real>
struct BidiagonalVectors {
    static constexpr unsigned threads = spiked::cuda::warp_size;
    static constexpr unsigned resident = 16;
    static constexpr unsigned slots = 8;                   ///< of 32 rows
    static constexpr unsigned most_at_once = threads / 2;  ///< vectors

    DecompositionBatch<Real> batch;
    std::uint32_t first;

    /// The number of vectors that are computed at once.
    [[nodiscard]] SPIKED_DEVICE static unsigned at_once(const BatchSize& size) {
        return size.vectors < most_at_once ? size.vectors : most_at_once;
    }
    /// The number of doubles that hold the multipliers of a block while its vectors are computed: for both directions,
    /// one for each row and vector.
    [[nodiscard]] SPIKED_DEVICE static std::size_t work_of_block(const BatchSize& size) {
        return std::size_t{4} * size.short_side * at_once(size);
    }
    /// Whether these are in shared memory, of which a multiprocessor has at least 99 KB for a block. Otherwise they are
    /// in vector_work.
    [[nodiscard]] SPIKED_DEVICE static bool works_in_shared(const BatchSize& size) {
        return work_of_block(size) * sizeof(double) <= (std::size_t{80} << 10);
    }
    /// Size of vector_work for a block, in doubles.
    [[nodiscard]] static std::size_t memory_of_block(const BatchSize& size) {
        return works_in_shared(size) ? 0 : work_of_block(size);
    }
    [[nodiscard]] std::size_t shared_bytes() const {
        return spiked::cuda::shared_bytes_for<double>(2 * batch.size.short_side) +
               spiked::cuda::shared_bytes_for<double>(works_in_shared(batch.size) ? work_of_block(batch.size) : 0);
    }

    using Twisted = kernels::TwistedVectors<OneLane, 1>;

    /// One of the two lanes of a vector. Row r of the Golub-Kahan matrix, counted from this lane's end, couples to row
    /// r
    /// + 1 by `link(r)`. Multiplier r of the lane belongs to row r, and is at r * stride of `own`.
    struct Half {
        unsigned rows;  ///< of the Golub-Kahan matrix
        unsigned stride;
        bool from_last_row;
        const double* links;
        double* own;
        const double* other;  ///< the multipliers of the partner, whose row r is this lane's row rows - 1 - r

        [[nodiscard]] SPIKED_DEVICE double link(unsigned r) const { return links[from_last_row ? rows - 2 - r : r]; }
    };

    /// Computes the multipliers of this lane's elimination.
    SPIKED_DEVICE static void eliminate(const Half& half, double eigenvalue) {
        double pivot = -eigenvalue;
        for (unsigned r = 0; r < half.rows; r += 2) {
            const double next = r + 2 < half.rows ? half.link(r + 1) : 0.0;
            const typename Twisted::Eliminated done = Twisted::eliminate(eigenvalue, pivot, half.link(r), next);
            half.own[r * half.stride] = done.first;
            half.own[(r + 1) * half.stride] = done.second;
            pivot = done.pivot;
        }
    }

    /// The smallest remainder that both eliminations leave in a row of the half at this lane's end, and that row,
    /// counted from this lane's end.
    SPIKED_DEVICE static void find_twist(const Half& half, double eigenvalue, unsigned& twist, double& remainder) {
        remainder = 0x1p1000;
        twist = 0;
        SPIKED_UNROLL_BY(8)
        for (unsigned r = 0; r < half.rows / 2; ++r) {
            double left = -eigenvalue;
            if (r > 0) left = std::fma(-half.link(r - 1), half.own[(r - 1) * half.stride], left);
            left = std::fma(-half.link(r), half.other[(half.rows - 2 - r) * half.stride], left);
            if (std::fabs(left) < std::fabs(remainder)) {
                remainder = left;
                twist = r;
            }
        }
    }

    /// Replaces the multipliers of the rows before the twist by the entries of the vector, of which the one at the
    /// twist is 1, and sums the squares of those at even and at odd distances from the twist.
    SPIKED_DEVICE static void multiply_out(const Half& half, unsigned twist, double (&squares)[2]) {
        constexpr unsigned ahead = 8;  // number of multipliers that are read before the first of them is overwritten
        double entry = 1.0;
        squares[0] = squares[1] = 0.0;
        for (unsigned done = 0; done < twist; done += ahead) {
            double multipliers[ahead];
            SPIKED_UNROLL
            for (unsigned t = 0; t < ahead; ++t)
                multipliers[t] = done + t < twist ? half.own[(twist - 1 - done - t) * half.stride] : 0.0;
            SPIKED_UNROLL
            for (unsigned t = 0; t < ahead; ++t) {
                entry = -(multipliers[t] * entry);
                squares[(t + 1) % 2] = std::fma(entry, entry, squares[(t + 1) % 2]);
                if (done + t < twist) half.own[(twist - 1 - done - t) * half.stride] = entry;
            }
        }
    }

    /// Computes one vector by two lanes and stores it in a column of bidiagonal_right and of bidiagonal_left. All lanes
    /// of the warp must call this; those that are not `busy` only take part in the exchanges.
    template <class Team>
    SPIKED_DEVICE bool find(Team& team, const Half& half, bool busy, double value, double largest, double* right,
                            double* left) const {
        const unsigned rows = half.rows;
        double eigenvalue = value;
        double right_square = 1.0;
        double left_square = 1.0;
        unsigned twist = 0;  // counted from this lane's end
        bool searching = busy;
        bool good = true;
        for (int round = 0; round <= bidiagonal::last_round; ++round) {
            double remainder = 0.0;
            unsigned nearest = 0;
            if (searching) eliminate(half, eigenvalue);
            team.warp_barrier();
            if (searching) find_twist(half, eigenvalue, nearest, remainder);
            const double others = team.shuffle_xor(remainder, 1);
            const unsigned others_nearest = team.shuffle_xor(nearest, 1);
            team.warp_barrier();
            double squares[2] = {};
            if (searching) {
                // Of two equal ones, the lane at the first row has the twist.
                const bool is_mine = half.from_last_row ? std::fabs(remainder) < std::fabs(others)
                                                        : !(std::fabs(others) < std::fabs(remainder));
                twist = is_mine ? nearest : rows - 1 - others_nearest;
                remainder = is_mine ? remainder : others;
                multiply_out(half, twist, squares);
            }
            const double others_squares[2] = {team.shuffle_xor(squares[0], 1), team.shuffle_xor(squares[1], 1)};
            if (searching) {
                const unsigned row = half.from_last_row ? rows - 1 - twist : twist;
                const double near = squares[0] + others_squares[0] + 1.0;
                const double far = squares[1] + others_squares[1];
                right_square = row % 2 == 0 ? near : far;
                left_square = row % 2 == 0 ? far : near;
                const double square = right_square + left_square;
                const double residual = std::fabs(remainder) / std::sqrt(square);
                searching = !(residual < bidiagonal::good_residual<Real> * largest) && round < bidiagonal::last_round;
                if (round == bidiagonal::last_round) good = residual < bidiagonal::acceptable_residual * largest;
                eigenvalue += remainder / square;  // Rayleigh quotient
            }
            if (spiked::cuda::warp_max(team, searching ? 1 : 0) == 0) break;
        }
        if (!busy) return true;
        if (!good || !(std::fabs(right_square - left_square) < bidiagonal::unequal_halves * right_square)) return false;
        const double right_scale = 1.0 / std::sqrt(right_square);
        const double left_scale = 1.0 / std::sqrt(left_square);
        const auto put = [&](unsigned r, double entry) {
            const unsigned row = half.from_last_row ? rows - 1 - r : r;
            const double scaled = (row % 2 == 0 ? right_scale : left_scale) * entry;
            (row % 2 == 0 ? right : left)[row / 2] = std::fabs(scaled) < bidiagonal::smallest_entry ? 0.0 : scaled;
        };
        for (unsigned r = 0; r < twist; ++r) put(r, half.own[r * half.stride]);
        if (!half.from_last_row) put(twist, 1.0);
        return true;
    }

    /// Gram-Schmidt: makes column `last` orthogonal to those from `from` on. Returns false when little of it remains.
    template <class Team>
    SPIKED_DEVICE bool orthogonalise(Team& team, double* columns, unsigned from, unsigned last) const {
        const unsigned size = batch.size.short_side;
        double own[slots];
        for (unsigned t = 0; t < slots; ++t) {
            const unsigned i = team.lane() + threads * t;
            own[t] = i < size ? columns[std::size_t{last} * size + i] : 0.0;
        }
        double square = 0.0;
        for (unsigned c = from; c <= last; ++c) {
            double other[slots];
            double overlap = 0.0;
            for (unsigned t = 0; t < slots; ++t) {
                const unsigned i = team.lane() + threads * t;
                other[t] = c == last ? own[t] : i < size ? columns[std::size_t{c} * size + i] : 0.0;
                overlap = std::fma(other[t], own[t], overlap);
            }
            overlap = spiked::cuda::warp_sum(team, overlap);
            if (c == last)
                square = overlap;
            else
                for (unsigned t = 0; t < slots; ++t) own[t] = std::fma(-overlap, other[t], own[t]);
        }
        const double scale = square > 0.0 ? 1.0 / std::sqrt(square) : 0.0;
        for (unsigned t = 0; t < slots; ++t) {
            const unsigned i = team.lane() + threads * t;
            if (i < size) columns[std::size_t{last} * size + i] = scale * own[t];
        }
        team.warp_barrier();
        return square >= 0.5;
    }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned part) const {
        const unsigned block = first + part;
        if (batch.status[block] != BlockStatus::fine) return;
        const std::size_t size = batch.size.short_side;
        const unsigned wanted = batch.size.vectors;
        const double* const values = batch.scaled_values + block * size;
        const double largest = values[0];
        const auto links = team.template take<double>(2 * size);
        const bool in_shared = works_in_shared(batch.size);
        const auto shared_work = team.template take<double>(in_shared ? work_of_block(batch.size) : 0);
        for (unsigned i = team.lane(); i < size; i += threads) {
            links[2 * i] = batch.diagonal[block * size + i];
            links[2 * i + 1] = batch.off_diagonal[block * size + i];
        }
        team.warp_barrier();
        double* const right = batch.bidiagonal_right + part * wanted * size;
        double* const left = batch.bidiagonal_left + part * wanted * size;
        bool good = values[wanted - 1] > bidiagonal::smallest_for_twisted * largest;
        const unsigned lane = team.lane();
        const unsigned some = at_once(batch.size);
        for (unsigned from = 0; good && from < wanted; from += some) {
            const unsigned vector = from + lane / 2;
            const bool busy = lane / 2 < some && vector < wanted;
            const auto find_in = [&](double* work) {
                const bool last = lane % 2 == 1;
                double* const first_half = work + lane / 2;
                double* const last_half = first_half + 2 * size * some;
                const Half half{
                    2 * batch.size.short_side,    some, last, spiked::cuda::raw(links), last ? last_half : first_half,
                    last ? first_half : last_half};
                return find(team, half, busy, busy ? values[vector] : 0.0, largest, right + vector * size,
                            left + vector * size);
            };
            // Two calls, so that a compiler knows which memory each of them uses.
            good = in_shared ? find_in(spiked::cuda::raw(shared_work))
                             : find_in(batch.vector_work + part * work_of_block(batch.size));
            team.warp_barrier();
            good = spiked::cuda::warp_max(team, good ? 0 : 1) == 0;
        }
        team.warp_barrier();
        if (good) {
            unsigned first_close = 0;
            for (unsigned i = 1; i < wanted; ++i) {
                while (values[first_close] - values[i] > bidiagonal::close<Real> * largest) ++first_close;
                if (first_close == i) continue;
                good = orthogonalise(team, right, first_close, i) && good;
                good = orthogonalise(team, left, first_close, i) && good;
            }
        }
        if (!good && lane == 0) batch.status[block] = BlockStatus::for_the_host;
    }
};

}  // namespace spiked::estimators::cuda

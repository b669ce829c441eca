#pragma once
#include <cmath>

#include "core/device/team.hpp"
#include "estimators/svd/bidiagonal_tolerances.hpp"
#include "estimators/svd/cuda/decomposition_batch.hpp"
#include "estimators/svd/scaling_exponent.hpp"

namespace spiked::estimators::cuda {

/// The rows and columns of a block that are left when another kernel has reduced the first `done` of both: they are
/// counted from there.
struct BlockPart {
    unsigned block = 0;
    unsigned done = 0;
};

/// What the kernels of a bidiagonalisation have in common, wherever they keep the matrix: between two passes over it
/// some warps, each with 32 rows, make the reflectors from what the pass left in shared memory, while the others wait.
/// Column j has its numbers at Place::of(j).
template <class Real, unsigned most_rows, unsigned most_columns, unsigned warps, class Place>
struct BidiagonalStep {
    static constexpr unsigned finishers = (most_rows + 31) / 32;  ///< warps
    static_assert(finishers <= warps);
    static constexpr unsigned columns_a_lane = (most_columns + 31) / 32;

    template <class Team>
    struct Shared {
        template <class T>
        using Array = typename Team::template Shared<T>;
        Array<Real> u;  ///< left reflectors of even steps, then of odd ones
        Array<Real> z;
        Array<Real> column;  ///< the next one, before this step
        Array<Real> q;       ///< parts of it, warp after warp
        Array<Real> y, r;    ///< at the place of its column
        Array<Real>
            scalars;  ///< left scale, u_k; head of the right reflector of the step before; of the column to reflect
        Array<Real> squares;  ///< of the column to reflect, without its head, from each of its warps
        Array<double> largest;

        SPIKED_DEVICE explicit Shared(Team& team) {
            u = team.template take<Real>(2 * most_rows);
            z = team.template take<Real>(most_rows);
            column = team.template take<Real>(most_rows);
            q = team.template take<Real>(warps * most_rows);
            y = team.template take<Real>(most_columns);
            r = team.template take<Real>(most_columns);
            scalars = team.template take<Real>(4);
            squares = team.template take<Real>(finishers);
            largest = team.template take<double>(warps);
        }
    };

    [[nodiscard]] static std::size_t shared_bytes() {
        using spiked::cuda::shared_room;
        return shared_room<Real>(2 * most_rows) + 2 * shared_room<Real>(most_rows) +
               shared_room<Real>(warps * most_rows) + 2 * shared_room<Real>(most_columns) + shared_room<Real>(4) +
               shared_room<Real>(finishers) + shared_room<double>(warps);
    }

    /// The power of two that brings a block to a safe size, from each thread's largest magnitude, infinite where one
    /// met what is no number; then this is false.
    template <class Team>
    SPIKED_DEVICE static bool scale(const DecompositionBatch<Real>& batch, Team& team, Shared<Team>& shared,
                                    unsigned block, double largest, int& exponent) {
        largest = spiked::cuda::warp_max(team, largest);
        if (team.lane() == 0) shared.largest[team.warp()] = largest;
        team.barrier();
        for (unsigned w = 0; w < warps; ++w) {
            const double other = shared.largest[w];
            largest = other > largest ? other : largest;
        }
        const bool finite = largest != HUGE_VAL;
        exponent = finite ? scaling_exponent<Real>(largest) : 0;
        if (team.rank() == 0) {
            batch.exponents[block] = exponent;
            batch.status[block] = finite ? BlockStatus::fine : BlockStatus::not_finite;
            const std::size_t last = std::size_t{block + 1} * batch.size.short_side - 1;
            batch.off_diagonal[last] = 0.0;
            batch.right_scales[last] = 0;
        }
        return finite;
    }

    /// The reflector of column 0, which lies in shared memory.
    template <class Team>
    SPIKED_DEVICE static void begin(const DecompositionBatch<Real>& batch, Team& team, Shared<Team>& shared,
                                    BlockPart part) {
        team.barrier();
        Real w = 0;
        if (team.warp() < finishers) {
            const unsigned i = team.rank();
            if (i < most_rows) w = shared.column[i];
            measure(team, shared, 0, w);
        }
        reflect(batch, team, shared, part, 0, w);
    }

    /// Between pass k and the next.
    template <class Team>
    SPIKED_DEVICE static void between(const DecompositionBatch<Real>& batch, Team& team, Shared<Team>& shared,
                                      BlockPart part, unsigned k) {
        team.barrier();
        Real w = 0;
        if (team.warp() < finishers) {
            w = next_column(batch, team, shared, part, k);
            measure(team, shared, k + 1, w);
        }
        reflect(batch, team, shared, part, k + 1, w);
    }

private:
    struct Reflector {
        Real beta, scale;
    };
    SPIKED_DEVICE static Reflector reflector(Real head, Real tail_square) {
        const Real square = std::fma(head, head, tail_square);
        const Real norm = std::sqrt(square);
        const Real scale = Real(1) / std::fma(std::fabs(head), norm, square);
        const bool none = !(tail_square > static_cast<Real>(bidiagonal::negligible_square<Real>));
        return {none ? head : (head >= Real(0) ? -norm : norm), none ? Real(0) : scale};
    }

    /// The head and the squares of column k, from entry k on, of which a finisher's thread holds w, at the row of its
    /// rank.
    template <class Team>
    SPIKED_DEVICE static void measure(Team& team, Shared<Team>& shared, unsigned k, Real w) {
        const unsigned i = team.rank();
        const Real tail = i > k ? w : Real(0);
        const Real square = spiked::cuda::warp_sum(team, tail * tail);
        if (team.lane() == 0) shared.squares[team.warp()] = square;
        if (i == k) shared.scalars[3] = w;
    }

    /// The left reflector of column k, once all of it is measured.
    template <class Team>
    SPIKED_DEVICE static void reflect(const DecompositionBatch<Real>& batch, Team& team, Shared<Team>& shared,
                                      BlockPart part, unsigned k, Real w) {
        if constexpr (finishers > 1)
            team.barrier();
        else if (team.warp() == 0)
            team.warp_barrier();
        if (team.warp() < finishers) {
            Real square = 0;
            SPIKED_UNROLL
            for (unsigned from = 0; from < finishers; ++from) square += shared.squares[from];
            const Real head = shared.scalars[3];
            const Reflector left = reflector(head, square);
            const std::size_t long_side = batch.size.long_side;
            const std::size_t column =
                part.block * batch.size.block_entries() + (part.done + k) * long_side + part.done;
            const unsigned i = team.rank();
            if (i == k) w -= left.beta;
            if (i < most_rows) shared.u[k % 2 * most_rows + i] = i < k ? Real(0) : w;
            if (i >= k && part.done + i < long_side) batch.left[column + i] = w;
            if (i == 0) {
                shared.scalars[0] = left.scale;
                shared.scalars[1] = head - left.beta;
                const std::size_t at = std::size_t{part.block} * batch.size.short_side + part.done + k;
                batch.diagonal[at] = left.beta;
                batch.left_scales[at] = left.scale;
            }
        }
        team.barrier();
    }

    /// By the finishers, after pass k: the right reflector of row k, which each of them finds, and of a thread's row z
    /// and the entry of column k + 1, which is returned.
    template <class Team>
    SPIKED_DEVICE static Real next_column(const DecompositionBatch<Real>& batch, Team& team, Shared<Team>& shared,
                                          BlockPart part, unsigned k) {
        const unsigned n = batch.size.short_side;
        const unsigned lane = team.lane();
        Real square = 0;
        Real overlap = 0;
        Real r[columns_a_lane];
        SPIKED_UNROLL
        for (unsigned t = 0; t < columns_a_lane; ++t) {
            const unsigned j = lane + 32 * t;
            const bool there = j > k && j < most_columns;
            const unsigned at = Place::of(j < most_columns ? j : 0);
            const Real found = shared.r[at];
            const Real other = shared.y[at];
            r[t] = there ? found : Real(0);
            overlap = std::fma(other, r[t], overlap);
            const Real tail = j > k + 1 ? r[t] : Real(0);
            square = std::fma(tail, tail, square);
        }
        square = spiked::cuda::warp_sum(team, square);
        overlap = spiked::cuda::warp_sum(team, overlap);
        const Real head = shared.r[Place::of(k + 1)];
        const Real y = shared.y[Place::of(k + 1)];
        const Reflector right = reflector(head, square);
        const Real v = head - right.beta;
        if (team.warp() == 0) {
            const std::size_t row = (std::size_t{part.block} * n + part.done + k) * n + part.done;
            SPIKED_UNROLL
            for (unsigned t = 0; t < columns_a_lane; ++t) {
                const unsigned j = lane + 32 * t;
                if (j > k && part.done + j < n) batch.right[row + j] = j == k + 1 ? v : r[t];
            }
            if (lane == 0) {
                const std::size_t at = std::size_t{part.block} * n + part.done + k;
                batch.off_diagonal[at] = right.beta;
                batch.right_scales[at] = right.scale;
                shared.scalars[2] = v;
            }
        }
        const Real by_a = right.scale * right.beta;
        const Real by_u = right.scale * std::fma(-right.beta, y, overlap);
        const unsigned i = team.rank();
        const bool below = i > k && i < most_rows;
        const unsigned at = i < most_rows ? i : 0;
        Real q = 0;
        SPIKED_UNROLL
        for (unsigned from = 0; from < warps; ++from) q += shared.q[from * most_rows + at];
        const Real a = shared.column[at];
        const Real along = shared.u[k % 2 * most_rows + at];
        Real z = std::fma(-by_u, along, std::fma(-by_a, a, right.scale * q));
        z = below ? z : Real(0);
        if (i < most_rows) shared.z[i] = z;
        return below ? std::fma(-z, v, std::fma(-along, y, a)) : Real(0);
    }
};

}  // namespace spiked::estimators::cuda

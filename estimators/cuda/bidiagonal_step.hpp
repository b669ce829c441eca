#pragma once
#include <cmath>

#include "estimators/bidiagonal_tolerances.hpp"
#include "estimators/cuda/decomposition_batch.hpp"
#include "estimators/scaling_exponent.hpp"
#include "theory/base/cuda/team.hpp"

namespace spiked::estimators::cuda {

/// The rows and columns of a block that are left when another kernel has reduced the first `done` of both: they are
/// counted from there.
struct BlockPart {
    unsigned block = 0;
    unsigned done = 0;
};

/// What the kernels of a bidiagonalisation have in common, wherever they keep the matrix: between two passes over it
/// one warp makes the reflectors, from what the pass left in shared memory. Column j has its numbers at Place::of(j).
template <class Real, unsigned most_rows, unsigned most_columns, unsigned warps, class Place>
struct BidiagonalStep {
    static constexpr unsigned rows_a_lane = (most_rows + 31) / 32;
    static constexpr unsigned columns_a_lane = (most_columns + 31) / 32;

    template <class Team>
    struct Shared {
        template <class T>
        using Array = typename Team::template Shared<T>;
        Array<Real> u;  ///< left reflectors of even steps, then of odd ones
        Array<Real> z;
        Array<Real> column;   ///< the next one, before this step
        Array<Real> q;        ///< parts of it, warp after warp
        Array<Real> y, r;     ///< at the place of its column
        Array<Real> scalars;  ///< left scale, u_k; head of the right reflector of the step before
        Array<double> largest;

        SPIKED_DEVICE explicit Shared(Team& team) {
            u = team.template take<Real>(2 * most_rows);
            z = team.template take<Real>(most_rows);
            column = team.template take<Real>(most_rows);
            q = team.template take<Real>(warps * most_rows);
            y = team.template take<Real>(most_columns);
            r = team.template take<Real>(most_columns);
            scalars = team.template take<Real>(4);
            largest = team.template take<double>(warps);
        }
    };

    [[nodiscard]] static std::size_t shared_bytes() {
        using spiked::cuda::shared_room;
        return shared_room<Real>(2 * most_rows) + 2 * shared_room<Real>(most_rows) +
               shared_room<Real>(warps * most_rows) + 2 * shared_room<Real>(most_columns) + shared_room<Real>(4) +
               shared_room<double>(warps);
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
        if (team.warp() == 0) {
            Real w[rows_a_lane];
            SPIKED_UNROLL
            for (unsigned t = 0; t < rows_a_lane; ++t) {
                const unsigned i = team.lane() + 32 * t;
                w[t] = i < most_rows ? static_cast<Real>(shared.column[i]) : Real(0);
            }
            left_reflector(batch, team, shared, part, 0, w);
        }
        team.barrier();
    }

    /// Between pass k and the next.
    template <class Team>
    SPIKED_DEVICE static void between(const DecompositionBatch<Real>& batch, Team& team, Shared<Team>& shared,
                                      BlockPart part, unsigned k) {
        team.barrier();
        if (team.warp() == 0) finish(batch, team, shared, part, k);
        team.barrier();
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

    /// The left reflector of column k, from entry k on, of which a lane holds w[t] at row lane + 32 t.
    template <class Team>
    SPIKED_DEVICE static void left_reflector(const DecompositionBatch<Real>& batch, Team& team, Shared<Team>& shared,
                                             BlockPart part, unsigned k, Real (&w)[rows_a_lane]) {
        Real square = 0;
        Real head = 0;
        SPIKED_UNROLL
        for (unsigned t = 0; t < rows_a_lane; ++t) {
            const unsigned i = team.lane() + 32 * t;
            const Real own = i > k ? w[t] : Real(0);
            square = std::fma(own, own, square);
            head = i == k ? w[t] : head;
        }
        square = spiked::cuda::warp_sum(team, square);
        head = team.shuffle(head, k % 32);
        const Reflector left = reflector(head, square);
        const std::size_t long_side = batch.size.long_side;
        const std::size_t column = part.block * batch.size.block_entries() + (part.done + k) * long_side + part.done;
        SPIKED_UNROLL
        for (unsigned t = 0; t < rows_a_lane; ++t) {
            const unsigned i = team.lane() + 32 * t;
            if (i == k) w[t] -= left.beta;
            if (i < most_rows) shared.u[k % 2 * most_rows + i] = i < k ? Real(0) : w[t];
            if (i >= k && part.done + i < long_side) batch.left[column + i] = w[t];
        }
        if (team.lane() == 0) {
            shared.scalars[0] = left.scale;
            shared.scalars[1] = head - left.beta;
            const std::size_t at = std::size_t{part.block} * batch.size.short_side + part.done + k;
            batch.diagonal[at] = left.beta;
            batch.left_scales[at] = left.scale;
        }
    }

    /// By one warp, after pass k: the right reflector of row k, z, column k + 1 and its reflector.
    template <class Team>
    SPIKED_DEVICE static void finish(const DecompositionBatch<Real>& batch, Team& team, Shared<Team>& shared,
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
        const Real by_a = right.scale * right.beta;
        const Real by_u = right.scale * std::fma(-right.beta, y, overlap);
        const auto u = shared.u + k % 2 * most_rows;
        Real w[rows_a_lane];
        SPIKED_UNROLL
        for (unsigned t = 0; t < rows_a_lane; ++t) {
            const unsigned i = lane + 32 * t;
            const bool below = i > k && i < most_rows;
            const unsigned at = i < most_rows ? i : 0;
            Real q = 0;
            SPIKED_UNROLL
            for (unsigned from = 0; from < warps; ++from) q += shared.q[from * most_rows + at];
            const Real a = shared.column[at];
            const Real along = u[at];
            Real z = std::fma(-by_u, along, std::fma(-by_a, a, right.scale * q));
            z = below ? z : Real(0);
            w[t] = below ? std::fma(-z, v, std::fma(-along, y, a)) : Real(0);
            if (i < most_rows) shared.z[i] = z;
        }
        left_reflector(batch, team, shared, part, k + 1, w);
    }
};

}  // namespace spiked::estimators::cuda

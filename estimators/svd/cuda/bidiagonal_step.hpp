#pragma once
#include <cmath>

#include "core/device/team.hpp"
#include "estimators/svd/bidiagonal_tolerances.hpp"
#include "estimators/svd/cuda/decomposition_batch.hpp"
#include "estimators/svd/scaling_exponent.hpp"

namespace spiked::estimators::cuda {

/// The rows and columns of a block that remain after another kernel has reduced the first `done` of both. Indices count
/// from there.
struct BlockPart {
    unsigned block = 0;
    unsigned done = 0;
};

/// The part that all bidiagonalisation kernels share, wherever they store the matrix: between two passes over it some
/// warps, each with 32 rows, compute the reflectors from the results of the pass in shared memory, while the other
/// warps wait. The numbers of column j are at Place::of(j).
template <class Real, unsigned most_rows, unsigned most_columns, unsigned warps, class Place>
struct BidiagonalStep {
    static constexpr unsigned finishers = (most_rows + 31) / 32;  ///< warps
    static_assert(finishers <= warps);
    static constexpr unsigned columns_a_lane = (most_columns + 31) / 32;

    template <class Team>
    struct Shared {
        template <class T>
        using Array = typename Team::template Shared<T>;
        Array<Real> u;  ///< left reflectors: of even steps, then of odd ones
        Array<Real> z;
        Array<Real> column;   ///< the next column, before this step
        Array<Real> q;        ///< partial sums of q, one warp after the other
        Array<Real> y, r;     ///< of column j at Place::of(j)
        Array<Real> scalars;  ///< left scale and u_k; head of the right reflector of the previous step; head of the
                              ///< column to reflect
        Array<Real>
            squares;  ///< partial sums, from each warp, of the squares of the column to reflect without its head
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
        using spiked::cuda::shared_bytes_for;
        return shared_bytes_for<Real>(2 * most_rows) + 2 * shared_bytes_for<Real>(most_rows) +
               shared_bytes_for<Real>(warps * most_rows) + 2 * shared_bytes_for<Real>(most_columns) +
               shared_bytes_for<Real>(4) + shared_bytes_for<Real>(finishers) + shared_bytes_for<double>(warps);
    }

    /// Finds the exponent of the power of two that scales a block safely, from the largest magnitude that each thread
    /// has seen. This is infinite where a thread saw NaN or infinity; then the result is false.
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

    /// Computes the reflector of column 0, which is in shared memory.
    template <class Team>
    SPIKED_DEVICE static void begin(const DecompositionBatch<Real>& batch, Team& team, Shared<Team>& shared,
                                    BlockPart part) {
        team.barrier();
        Real w = 0;
        if (spiked::cuda::uniform_warp(team) < finishers) {
            const unsigned i = team.rank();
            if (i < most_rows) w = shared.column[i];
            measure(team, shared, 0, w);
        }
        reflect(batch, team, shared, part, 0, w);
    }

    /// The work between pass k and the next one.
    template <class Team>
    SPIKED_DEVICE static void between(const DecompositionBatch<Real>& batch, Team& team, Shared<Team>& shared,
                                      BlockPart part, unsigned k) {
        team.barrier();
        Real w = 0;
        if (spiked::cuda::uniform_warp(team) < finishers) {
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

    /// Stores the head of column k and the partial sums of its squares, from entry k on. Each finisher thread holds in
    /// w the entry of the row of its rank.
    template <class Team>
    SPIKED_DEVICE static void measure(Team& team, Shared<Team>& shared, unsigned k, Real w) {
        const unsigned i = team.rank();
        const Real tail = i > k ? w : Real(0);
        const Real square = spiked::cuda::warp_sum(team, tail * tail);
        if (team.lane() == 0) shared.squares[team.warp()] = square;
        if (i == k) shared.scalars[3] = w;
    }

    /// Computes the left reflector of column k after measure() has finished in all warps.
    template <class Team>
    SPIKED_DEVICE static void reflect(const DecompositionBatch<Real>& batch, Team& team, Shared<Team>& shared,
                                      BlockPart part, unsigned k, Real w) {
        if constexpr (finishers > 1)
            team.barrier();
        else if (team.warp() == 0)
            team.warp_barrier();
        if (spiked::cuda::uniform_warp(team) < finishers) {
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

    /// Run by the finishers after pass k: each of them computes the right reflector of row k. Each thread then computes
    /// z of its row, and returns the entry of column k + 1 in this row.
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

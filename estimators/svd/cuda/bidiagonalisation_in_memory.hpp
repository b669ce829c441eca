#pragma once
#include <cmath>

#include "estimators/svd/cuda/bidiagonal_step.hpp"

namespace spiked::estimators::cuda {

/// Kernel: the same steps as Bidiagonalise (bidiagonalisation.hpp) for blocks that do not fit into registers, up to 256
/// x 256. The matrix is stored where its left reflectors will be. A warp processes every 16th column and a lane every
/// 32nd row, and a step reads and writes the remaining matrix once: 4 fma for two memory accesses. These go to the
/// second cache (L2) of the GPU as long as few enough blocks are resident to fit there.
template <class Real>
struct BidiagonaliseInMemory {
    static constexpr unsigned warps = 16;
    static constexpr unsigned threads = warps * spiked::cuda::warp_size;
    static constexpr unsigned resident = 1;
    static constexpr unsigned most_rows = 256;
    static constexpr unsigned most_columns = 256;
    static constexpr unsigned slots = most_rows / spiked::cuda::warp_size;

    struct Place {
        SPIKED_DEVICE static unsigned of(unsigned column) { return column; }
    };
    using Step = BidiagonalStep<Real, most_rows, most_columns, warps, Place>;
    template <class Team>
    using Shared = typename Step::template Shared<Team>;

    DecompositionBatch<Real> batch;

    [[nodiscard]] std::size_t shared_bytes() const { return Step::shared_bytes(); }

    /// Copies the block, scaled, to where it is reduced. Returns false when an entry is NaN or infinite.
    template <class Team>
    SPIKED_DEVICE bool load(Team& team, Shared<Team>& shared, unsigned block, Real* matrix) const {
        const BatchSize& size = batch.size;
        const auto entries = static_cast<unsigned>(size.block_entries());
        const Real* const from = batch.blocks + std::size_t{block} * entries;
        double largest = 0.0;
        for (unsigned e = team.rank(); e < entries; e += threads) {
            const double magnitude = std::fabs(static_cast<double>(from[e]));
            if (!(magnitude <= largest)) largest = magnitude < HUGE_VAL ? magnitude : HUGE_VAL;
        }
        int exponent = 0;
        if (!Step::scale(batch, team, shared, block, largest, exponent)) return false;
        const Real factor = static_cast<Real>(std::ldexp(1.0, exponent));
        for (unsigned e = team.rank(); e < entries; e += threads)
            matrix[size.wide ? e / size.short_side + e % size.short_side * size.long_side : e] = from[e] * factor;
        for (unsigned j = team.rank(); j < most_columns; j += threads) shared.y[j] = shared.r[j] = Real(0);
        team.barrier();
        for (unsigned i = team.rank(); i < most_rows; i += threads)
            shared.column[i] = i < size.long_side ? matrix[i] : Real(0);
        return true;
    }

    template <class Team>
    SPIKED_DEVICE void pass(Team& team, Shared<Team>& shared, Real* matrix, unsigned k) const {
        const BatchSize& size = batch.size;
        const auto u = shared.u + k % 2 * most_rows;
        const auto before = shared.u + (k + 1) % 2 * most_rows;
        const unsigned done = k / spiked::cuda::warp_size;  // slots above row k
        Real along[slots], left[slots], right[slots], q[slots];
        SPIKED_UNROLL
        for (unsigned t = 0; t < slots; ++t) {
            const unsigned i = team.lane() + spiked::cuda::warp_size * t;
            along[t] = u[i];
            left[t] = k > 0 ? static_cast<Real>(before[i]) : Real(0);
            right[t] = k > 0 ? static_cast<Real>(shared.z[i]) : Real(0);
            q[t] = 0;
        }
        const Real scale = shared.scalars[0];
        const Real head = shared.scalars[1];
        for (unsigned j = k + 1 + (team.warp() + warps - (k + 1) % warps) % warps; j < size.short_side; j += warps) {
            Real* const column = matrix + std::size_t{j} * size.long_side;
            const Real y_before = shared.y[j];
            const Real v_before = shared.r[j];
            Real a[slots];
            Real x = 0;
            Real row = 0;
            SPIKED_UNROLL
            for (unsigned t = 0; t < slots; ++t) {
                const unsigned i = team.lane() + spiked::cuda::warp_size * t;
                a[t] = 0;
                if (t < done || i >= size.long_side) continue;
                a[t] = std::fma(-right[t], v_before, std::fma(-left[t], y_before, column[i]));
                column[i] = a[t];
                x = std::fma(a[t], along[t], x);
                if (i == k) row = a[t];
            }
            const Real y = scale * spiked::cuda::warp_sum(team, x);
            const Real r = std::fma(-head, y, team.shuffle(row, k % spiked::cuda::warp_size));
            SPIKED_UNROLL
            for (unsigned t = 0; t < slots; ++t) {
                q[t] = std::fma(a[t], r, q[t]);
                if (j == k + 1) shared.column[team.lane() + spiked::cuda::warp_size * t] = a[t];
            }
            team.warp_barrier();
            if (team.lane() == 0) {
                shared.y[j] = y;
                shared.r[j] = r;
            }
        }
        SPIKED_UNROLL
        for (unsigned t = 0; t < slots; ++t)
            shared.q[team.warp() * most_rows + team.lane() + spiked::cuda::warp_size * t] = q[t];
    }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned block) const {
        Shared<Team> shared(team);
        Real* const matrix = batch.left + block * batch.size.block_entries();
        if (!load(team, shared, block, matrix)) return;
        Step::begin(batch, team, shared, {block});
        for (unsigned k = 0; k + 1 < batch.size.short_side; ++k) {
            pass(team, shared, matrix, k);
            Step::between(batch, team, shared, {block}, k);
        }
    }
};

}  // namespace spiked::estimators::cuda

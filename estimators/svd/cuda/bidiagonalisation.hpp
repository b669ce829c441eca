#pragma once
#include <cmath>
#include <utility>

#include "estimators/svd/cuda/bidiagonal_step.hpp"

namespace spiked::estimators::cuda {

/// Kernel: Householder bidiagonalisation with one thread block per matrix and the matrix in registers.
///
/// A thread (lane of 16, group) holds rows lane, lane + 16, .. (`row_slots` of them) and columns group, group + groups,
/// .. (8 of them), so that all threads stay busy while the matrix shrinks. Finished rows and columns are dropped 8
/// times on the way, in code that is unrolled for each of these phases. A step k, as on the CPU
/// (estimators/svd/bidiagonalisation.hpp), is one pass over the registers:
///
///     a_ij -= u_i y_j + z_i v_j     of the previous step
///     x_j   = sum_i a_ij u_i        within 16 lanes, by shuffles
///     y_j   = scale x_j,  r_j = a_kj - u_k y_j
///     q_i   = sum_j a_ij r_j        across groups, through shared memory
///
/// Afterwards some warps compute the right reflector of row r, z, the next column and its reflector, while the others
/// wait. A step has three barriers.
///
/// The tile has 16 row_slots rows and 8 groups columns; a smaller matrix is padded with zeros. The cost is 4 fma per
/// entry and step.
///
/// Between two passes most threads of a block wait, so the throughput of a multiprocessor is proportional to its number
/// of resident blocks. As soon as the remaining matrix of a square tile fits the next smaller one, it is therefore
/// passed on, through `trailing`, to the kernel with that tile, of which a multiprocessor holds more blocks.
template <class Real, unsigned row_slots, unsigned groups>
struct Bidiagonalise {
    static constexpr unsigned lanes = 16;
    static constexpr unsigned column_slots = 8;
    static constexpr unsigned threads = lanes * groups;
    static constexpr unsigned warps = threads / spiked::cuda::warp_size;
    static constexpr unsigned most_rows = lanes * row_slots;
    static constexpr unsigned most_columns = groups * column_slots;
    /// A quarter of a multiprocessor has 16384 registers for its warps. A thread needs one register per word of its
    /// tile and the others counted here. They are so few that the small tiles spill some bytes, which costs less than
    /// one more resident block gains (README.md has the figures).
    static constexpr unsigned others = sizeof(Real) == 4 && (row_slots == 4 || row_slots == 6) ? 32 : 64;
    static constexpr unsigned words = row_slots * column_slots * (sizeof(Real) / 4) + others;
    static constexpr unsigned resident = 16384 / (spiked::cuda::warp_size * words) * 4 / warps;

    /// Column group + groups * slot is at 8 group + slot, so that the columns of a thread lie next to each other.
    struct Place {
        SPIKED_DEVICE static unsigned of(unsigned column) { return column % groups * column_slots + column / groups; }
    };
    using Step = BidiagonalStep<Real, most_rows, most_columns, warps, Place>;
    template <class Team>
    using Shared = typename Step::template Shared<Team>;

    static constexpr bool can_hand_over =
        row_slots >= 4 && most_rows == most_columns;  // there is no tile below 2 row slots
    /// The side of the next smaller tile, and the phases and columns after which the remaining matrix fits it.
    static constexpr unsigned smaller_side = most_columns > 96 ? 96 : most_columns > 64 ? 64 : 32;
    static constexpr unsigned own_phases = can_hand_over ? (most_columns - smaller_side + groups - 1) / groups : 0;
    static constexpr unsigned own_columns = own_phases * groups;
    static_assert(!can_hand_over || most_columns - own_columns <= trailing_side);

    DecompositionBatch<Real> batch;
    unsigned done = 0;        ///< rows and columns that the previous kernel reduced
    bool hands_over = false;  ///< whether all but the first `own_columns` columns are passed on

    [[nodiscard]] std::size_t shared_bytes() const { return Step::shared_bytes(); }

    /// The part of the matrix that a thread holds.
    struct Tile {
        Real a[row_slots][column_slots];
        Real y[column_slots], v[column_slots];
        unsigned lane, group;
    };

    /// Fills the tile and scales it. Returns false when an entry is NaN or infinite.
    template <class Team>
    SPIKED_DEVICE bool load(Team& team, Shared<Team>& shared, unsigned block, Tile& tile) const {
        const BatchSize& size = batch.size;
        const bool first = done == 0;
        const Real* const from =
            first ? batch.blocks + block * size.block_entries() : batch.trailing + block * trailing_entries;
        const std::size_t row_step = first && size.wide ? size.short_side : 1;
        const std::size_t column_step = !first ? trailing_side : size.wide ? 1 : size.long_side;
        Real largest_here = 0;
        Real wrong = 0;
        SPIKED_UNROLL
        for (unsigned c = 0; c < column_slots; ++c) {
            const unsigned j = tile.group + groups * c;
            SPIKED_UNROLL
            for (unsigned s = 0; s < row_slots; ++s) {
                const unsigned i = tile.lane + lanes * s;
                Real x = 0;
                if (done + i < size.long_side && done + j < size.short_side) x = from[i * row_step + j * column_step];
                tile.a[s][c] = x;
                wrong += x * Real(0);
                const Real magnitude = std::fabs(x);
                largest_here = magnitude > largest_here ? magnitude : largest_here;
            }
            tile.y[c] = tile.v[c] = 0;
        }
        if (!first) return true;  // the previous kernel has checked and scaled it
        // 0 * x is NaN for NaN and infinity, and then this comparison holds.
        const double largest = wrong != Real(0) ? HUGE_VAL : static_cast<double>(largest_here);
        int exponent = 0;
        if (!Step::scale(batch, team, shared, block, largest, exponent)) return false;
        if (exponent != 0) {
            const Real factor = static_cast<Real>(std::ldexp(1.0, exponent));
            SPIKED_UNROLL
            for (unsigned s = 0; s < row_slots; ++s) SPIKED_UNROLL
            for (unsigned c = 0; c < column_slots; ++c) tile.a[s][c] *= factor;
        }
        return true;
    }

    /// Sums each of 8 numbers over 16 lanes; a lane gets the sum of slot `lane / 2`.
    template <class Team>
    SPIKED_DEVICE static Real sum_of_slot(Team& team, const Real (&x)[column_slots], unsigned lane) {
        Real four[4];
        Real two[2];
        const bool eighth = (lane & 8U) != 0;
        const bool fourth = (lane & 4U) != 0;
        const bool second = (lane & 2U) != 0;
        SPIKED_UNROLL
        for (unsigned c = 0; c < 4; ++c)
            four[c] = (eighth ? x[c + 4] : x[c]) + team.shuffle_xor(eighth ? x[c] : x[c + 4], 8);
        SPIKED_UNROLL
        for (unsigned c = 0; c < 2; ++c)
            two[c] = (fourth ? four[c + 2] : four[c]) + team.shuffle_xor(fourth ? four[c] : four[c + 2], 4);
        Real one = (second ? two[1] : two[0]) + team.shuffle_xor(second ? two[0] : two[1], 2);
        one += team.shuffle_xor(one, 1);
        return one;
    }

    /// Step k without its right reflector. k lies in phase `phase`: the columns of earlier slots are finished.
    template <unsigned phase, class Team>
    SPIKED_DEVICE void pass(Team& team, Shared<Team>& shared, Tile& tile, unsigned k) const {
        constexpr unsigned first_row_slot = phase * groups / lanes;
        constexpr unsigned last_row_slot = ((phase + 1) * groups - 1) / lanes;
        const auto u = shared.u + k % 2 * most_rows;
        const auto before = shared.u + (k + 1) % 2 * most_rows;
        if (tile.group == k % groups) tile.y[phase] = tile.v[phase] = 0;  // this column is finished

        Real x[column_slots];
        SPIKED_UNROLL
        for (unsigned c = 0; c < column_slots; ++c) x[c] = 0;
        SPIKED_UNROLL
        for (unsigned s = first_row_slot; s < row_slots; ++s) {
            const unsigned i = tile.lane + lanes * s;
            const Real along = u[i];
            const Real left = k > 0 ? static_cast<Real>(before[i]) : Real(0);
            const Real right = k > 0 ? static_cast<Real>(shared.z[i]) : Real(0);
            SPIKED_UNROLL
            for (unsigned c = phase; c < column_slots; ++c) {
                Real a = tile.a[s][c];
                a = std::fma(-left, tile.y[c], a);
                a = std::fma(-right, tile.v[c], a);
                tile.a[s][c] = a;
                x[c] = std::fma(a, along, x[c]);
            }
        }
        // Row k goes to the threads of each column.
        const unsigned own = tile.group * column_slots;
        SPIKED_UNROLL
        for (unsigned s = first_row_slot; s <= last_row_slot && s < row_slots; ++s)
            if (tile.lane + lanes * s == k) SPIKED_UNROLL
        for (unsigned c = phase; c < column_slots; ++c) shared.r[own + c] = tile.a[s][c];
        const Real sum = sum_of_slot(team, x, tile.lane);
        team.warp_barrier();
        if (tile.lane % 2 == 0) {
            const unsigned c = tile.lane / 2;
            const unsigned j = tile.group + groups * c;
            Real y = 0;
            Real r = 0;
            if (j > k) {
                y = shared.scalars[0] * sum;
                r = std::fma(-shared.scalars[1], y, static_cast<Real>(shared.r[own + c]));
            }
            shared.y[own + c] = y;
            shared.r[own + c] = r;
        }
        team.warp_barrier();
        SPIKED_UNROLL
        for (unsigned c = phase; c < column_slots; ++c) {
            tile.y[c] = shared.y[own + c];
            tile.v[c] = shared.r[own + c];
        }
        // The two groups of a warp add their partial sums of q; each keeps every other slot.
        const bool upper = team.lane() >= lanes;
        const auto q = shared.q + team.warp() * most_rows;
        const auto part = [&](unsigned s) {
            Real total = 0;
            SPIKED_UNROLL
            for (unsigned c = phase; c < column_slots; ++c) total = std::fma(tile.a[s][c], tile.v[c], total);
            return total;
        };
        SPIKED_UNROLL
        for (unsigned s = first_row_slot; s < row_slots; s += 2) {
            const Real first = part(s);
            if (s + 1 < row_slots) {
                const Real second = part(s + 1);
                const Real total = (upper ? second : first) + team.shuffle_xor(upper ? first : second, lanes);
                q[tile.lane + lanes * (upper ? s + 1 : s)] = total;
            } else {
                const Real total = first + team.shuffle_xor(first, lanes);
                if (!upper) q[tile.lane + lanes * s] = total;
            }
        }
        if (tile.group == (k + 1) % groups) {
            const bool next_phase = (k + 1) / groups > phase;
            SPIKED_UNROLL
            for (unsigned s = first_row_slot; s < row_slots; ++s) {
                Real a = tile.a[s][phase];
                if constexpr (phase + 1 < column_slots) a = next_phase ? tile.a[s][phase + 1] : a;
                shared.column[tile.lane + lanes * s] = a;
            }
        }
    }

    template <unsigned phase, class Team>
    SPIKED_DEVICE void steps(Team& team, Shared<Team>& shared, unsigned block, Tile& tile) const {
        const unsigned end = (phase + 1) * groups;
        for (unsigned k = phase * groups; k < end && done + k + 1 < batch.size.short_side; ++k) {
            pass<phase>(team, shared, tile, k);
            Step::between(batch, team, shared, {block, done}, k);
        }
    }

    /// Writes the matrix that remains after the first `own_columns` columns, with the updates of the last step applied.
    template <class Team>
    SPIKED_DEVICE void hand_over(Shared<Team>& shared, unsigned block, const Tile& tile) const {
        constexpr unsigned first_column_slot = own_phases;
        constexpr unsigned first_row_slot = own_columns / lanes;
        const auto u = shared.u + (own_columns - 1) % 2 * most_rows;
        Real* const to = batch.trailing + block * trailing_entries;
        SPIKED_UNROLL
        for (unsigned c = first_column_slot; c < column_slots; ++c) {
            const unsigned j = tile.group + groups * c;
            const Real v = j == own_columns ? static_cast<Real>(shared.scalars[2]) : tile.v[c];
            SPIKED_UNROLL
            for (unsigned s = first_row_slot; s < row_slots; ++s) {
                const unsigned i = tile.lane + lanes * s;
                Real a = std::fma(-static_cast<Real>(u[i]), tile.y[c], tile.a[s][c]);
                a = std::fma(-static_cast<Real>(shared.z[i]), v, a);
                if (i >= own_columns && j >= own_columns && done + i < batch.size.long_side &&
                    done + j < batch.size.short_side)
                    to[(j - own_columns) * trailing_side + i - own_columns] = a;
            }
        }
    }

    template <unsigned first, class Team, unsigned... phases>
    SPIKED_DEVICE void steps_from(Team& team, Shared<Team>& shared, [[maybe_unused]] unsigned block, Tile& tile,
                                  std::integer_sequence<unsigned, phases...>) const {
        (steps<first + phases>(team, shared, block, tile), ...);
    }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned block) const {
        if (done > 0 && batch.status[block] != BlockStatus::fine) return;
        Shared<Team> shared(team);
        Tile tile;
        tile.lane = team.lane() % lanes;
        tile.group = team.rank() / lanes;
        if (!load(team, shared, block, tile)) return;
        if (tile.group == 0) SPIKED_UNROLL
        for (unsigned s = 0; s < row_slots; ++s) shared.column[tile.lane + lanes * s] = tile.a[s][0];
        Step::begin(batch, team, shared, {block, done});
        steps_from<0>(team, shared, block, tile, std::make_integer_sequence<unsigned, own_phases>());
        if constexpr (can_hand_over)
            if (hands_over) {
                hand_over(shared, block, tile);
                return;
            }
        steps_from<own_phases>(team, shared, block, tile,
                               std::make_integer_sequence<unsigned, column_slots - own_phases>());
    }
};

}  // namespace spiked::estimators::cuda

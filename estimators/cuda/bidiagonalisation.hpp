#pragma once
#include <cmath>
#include <utility>

#include "estimators/cuda/decomposition_batch.hpp"
#include "estimators/scaling_exponent.hpp"
#include "theory/base/cuda/team.hpp"

namespace spiked::estimators::cuda {

/// Kernel: Householder bidiagonalisation, one thread block a matrix, the matrix in registers.
///
/// Thread (lane of 16, group) holds rows lane, lane + 16, .. (`row_slots` of them) and columns group, group + groups,
/// .. (8), so that all threads stay busy while the matrix shrinks; what is done is left out 8 times on the way, in code
/// unrolled for each. A step k, as on the CPU (estimators/bidiagonalisation.hpp), is one pass over the registers:
///
///     a_ij -= u_i y_j + z_i v_j     of the step before
///     x_j   = sum_i a_ij u_i        within 16 lanes, by shuffles
///     y_j   = scale x_j,  r_j = a_kj - u_k y_j
///     q_i   = sum_j a_ij r_j        across groups through shared memory
///
/// after which one warp makes the right reflector of row r, z, the next column and its reflector, while the others
/// wait: two barriers a step. Squares of norms are added in double.
///
/// Up to 16 row_slots by 8 groups; what a matrix has less is zero. 4 fma an entry and step.
template <class Real, unsigned row_slots, unsigned groups>
struct Bidiagonalise {
    static constexpr unsigned lanes = 16;
    static constexpr unsigned column_slots = 8;
    static constexpr unsigned threads = lanes * groups;
    static constexpr unsigned warps = threads / spiked::cuda::warp_size;
    static constexpr unsigned most_rows = lanes * row_slots;
    static constexpr unsigned most_columns = groups * column_slots;
    /// A quarter of a multiprocessor has 16384 registers for its warps, of which a thread needs as many for its tile
    /// and these besides (README.md has what it uses).
    static constexpr unsigned words = row_slots * column_slots * (sizeof(Real) / 4) + (sizeof(Real) == 4 ? 64 : 104);
    static constexpr unsigned resident = 16384 / (spiked::cuda::warp_size * words) * 4 / warps;
    static constexpr unsigned rows_a_lane = (most_rows + 31) / 32;

    DecompositionBatch<Real> batch;

    [[nodiscard]] std::size_t shared_bytes() const {
        using spiked::cuda::shared_room;
        return 4 * shared_room<Real>(most_rows) + shared_room<Real>(warps * most_rows) +
               2 * shared_room<Real>(most_columns) + shared_room<Real>(4) + shared_room<double>(warps);
    }

    template <class Team>
    struct Shared {
        template <class T>
        using Array = typename Team::template Shared<T>;
        Array<Real> u;  ///< left reflectors of even steps, then of odd ones
        Array<Real> z;
        Array<Real> column;   ///< the next one, before this step
        Array<Real> q;        ///< parts of it, warp after warp
        Array<Real> y, r;     ///< column group + groups * slot at 8 group + slot
        Array<Real> scalars;  ///< left scale, u_k
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

    /// What a thread keeps.
    struct Tile {
        Real a[row_slots][column_slots];
        Real y[column_slots], v[column_slots];
        unsigned lane, group;
    };

    struct Reflector {
        Real beta, scale;
    };
    SPIKED_DEVICE static Reflector reflector(Real head, double tail_square) {
        constexpr double nothing = sizeof(Real) == 8 ? 1e-280 : 1e-32;
        if (!(tail_square > nothing)) return {head, 0};
        const double alpha = head;
        const double square = std::fma(alpha, alpha, tail_square);
        const double norm = std::sqrt(square);
        return {static_cast<Real>(alpha >= 0.0 ? -norm : norm),
                static_cast<Real>(1.0 / std::fma(std::fabs(alpha), norm, square))};
    }

    SPIKED_DEVICE static unsigned place_of(unsigned column) { return column % groups * column_slots + column / groups; }

    /// Fills the tile, scaled. False where an entry is no number.
    template <class Team>
    SPIKED_DEVICE bool load(Team& team, Shared<Team>& shared, unsigned block, Tile& tile) const {
        const BatchSize& size = batch.size;
        const Real* const from = batch.blocks + block * size.block_entries();
        const std::size_t row_step = size.wide ? size.short_side : 1;
        const std::size_t column_step = size.wide ? 1 : size.long_side;
        double largest = 0.0;
        Real wrong = 0;
        SPIKED_UNROLL
        for (unsigned c = 0; c < column_slots; ++c) {
            const unsigned j = tile.group + groups * c;
            SPIKED_UNROLL
            for (unsigned s = 0; s < row_slots; ++s) {
                const unsigned i = tile.lane + lanes * s;
                Real x = 0;
                if (i < size.long_side && j < size.short_side) x = from[i * row_step + j * column_step];
                tile.a[s][c] = x;
                wrong += x * Real(0);
                const double magnitude = std::fabs(static_cast<double>(x));
                largest = magnitude > largest ? magnitude : largest;
            }
            tile.y[c] = tile.v[c] = 0;
        }
        if (wrong != Real(0)) largest = HUGE_VAL;  // 0 * x is NaN for NaN and infinity, and then this comparison holds
        largest = spiked::cuda::warp_max(team, largest);
        if (team.lane() == 0) shared.largest[team.warp()] = largest;
        team.barrier();
        for (unsigned w = 0; w < warps; ++w) {
            const double other = shared.largest[w];
            largest = other > largest ? other : largest;
        }
        if (largest == HUGE_VAL) return false;
        const int exponent = scaling_exponent<Real>(largest);
        if (team.rank() == 0) batch.exponents[block] = exponent;
        if (exponent != 0) {
            const Real factor = static_cast<Real>(std::ldexp(1.0, exponent));
            SPIKED_UNROLL
            for (unsigned s = 0; s < row_slots; ++s) SPIKED_UNROLL
            for (unsigned c = 0; c < column_slots; ++c) tile.a[s][c] *= factor;
        }
        return true;
    }

    /// The sums over 16 lanes of 8 numbers: the one of slot `lane / 2`.
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

    /// Everything of step k but its right reflector. k lies in phase `phase`: columns of the slots before are done.
    template <unsigned phase, class Team>
    SPIKED_DEVICE void pass(Team& team, Shared<Team>& shared, Tile& tile, unsigned k) const {
        constexpr unsigned first_row_slot = phase * groups / lanes;
        constexpr unsigned last_row_slot = ((phase + 1) * groups - 1) / lanes;
        const auto u = shared.u + k % 2 * most_rows;
        const auto before = shared.u + (k + 1) % 2 * most_rows;
        if (tile.group == k % groups) tile.y[phase] = tile.v[phase] = 0;  // this column is done

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
        // Row k, for the threads of each column.
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
        // The two groups of a warp add their parts of q; each keeps every other slot.
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

    /// The left reflector of column k, from entry k on, of which a lane holds w[t] at row lane + 32 t.
    template <class Team>
    SPIKED_DEVICE void left_reflector(Team& team, Shared<Team>& shared, unsigned block, unsigned k,
                                      Real (&w)[rows_a_lane]) const {
        double square = 0.0;
        Real head = 0;
        SPIKED_UNROLL
        for (unsigned t = 0; t < rows_a_lane; ++t) {
            const unsigned i = team.lane() + 32 * t;
            if (i > k) square = std::fma(static_cast<double>(w[t]), static_cast<double>(w[t]), square);
            if (i == k) head = w[t];
        }
        square = spiked::cuda::warp_sum(team, square);
        head = team.shuffle(head, k % 32);
        const Reflector left = reflector(head, square);
        const std::size_t column = block * batch.size.block_entries() + std::size_t{k} * batch.size.long_side;
        SPIKED_UNROLL
        for (unsigned t = 0; t < rows_a_lane; ++t) {
            const unsigned i = team.lane() + 32 * t;
            if (i == k) w[t] -= left.beta;
            if (i < most_rows) shared.u[k % 2 * most_rows + i] = i < k ? Real(0) : w[t];
            if (i >= k && i < batch.size.long_side) batch.left[column + i] = w[t];
        }
        if (team.lane() == 0) {
            shared.scalars[0] = left.scale;
            shared.scalars[1] = head - left.beta;
            const std::size_t at = std::size_t{block} * batch.size.short_side + k;
            batch.diagonal[at] = left.beta;
            batch.left_scales[at] = left.scale;
        }
    }

    /// By one warp, after pass k: the right reflector of row k, z, column k + 1 and its reflector.
    template <class Team>
    SPIKED_DEVICE void finish(Team& team, Shared<Team>& shared, unsigned block, unsigned k) const {
        const unsigned n = batch.size.short_side;
        const unsigned lane = team.lane();
        double square = 0.0;
        double overlap = 0.0;
        for (unsigned j = lane; j < n; j += 32)
            if (j > k) {
                const double r = shared.r[place_of(j)];
                overlap = std::fma(static_cast<double>(static_cast<Real>(shared.y[place_of(j)])), r, overlap);
                if (j > k + 1) square = std::fma(r, r, square);
            }
        square = spiked::cuda::warp_sum(team, square);
        overlap = spiked::cuda::warp_sum(team, overlap);
        const Real head = shared.r[place_of(k + 1)];
        const Real y = shared.y[place_of(k + 1)];
        const Reflector right = reflector(head, square);
        const Real v = head - right.beta;
        const std::size_t row = (std::size_t{block} * n + k) * n;
        for (unsigned j = lane; j < n; j += 32)
            if (j > k) batch.right[row + j] = j == k + 1 ? v : static_cast<Real>(shared.r[place_of(j)]);
        if (lane == 0) {
            const std::size_t at = std::size_t{block} * n + k;
            batch.off_diagonal[at] = right.beta;
            batch.right_scales[at] = right.scale;
        }
        const Real by_a = right.scale * right.beta;
        const Real by_u = right.scale * std::fma(-right.beta, y, static_cast<Real>(overlap));
        const auto u = shared.u + k % 2 * most_rows;
        Real w[rows_a_lane];
        SPIKED_UNROLL
        for (unsigned t = 0; t < rows_a_lane; ++t) {
            const unsigned i = lane + 32 * t;
            w[t] = 0;
            Real z = 0;
            if (i > k && i < most_rows) {
                Real q = 0;
                for (unsigned part = 0; part < warps; ++part) q += shared.q[part * most_rows + i];
                const Real a = shared.column[i];
                const Real along = u[i];
                z = std::fma(-by_u, along, std::fma(-by_a, a, right.scale * q));
                w[t] = std::fma(-z, v, std::fma(-along, y, a));
            }
            if (i < most_rows) shared.z[i] = z;
        }
        left_reflector(team, shared, block, k + 1, w);
    }

    template <unsigned phase, class Team>
    SPIKED_DEVICE void steps(Team& team, Shared<Team>& shared, unsigned block, Tile& tile) const {
        const unsigned end = (phase + 1) * groups;
        for (unsigned k = phase * groups; k < end && k + 1 < batch.size.short_side; ++k) {
            pass<phase>(team, shared, tile, k);
            team.barrier();
            if (team.warp() == 0) finish(team, shared, block, k);
            team.barrier();
        }
    }

    template <class Team, unsigned... phases>
    SPIKED_DEVICE void all_steps(Team& team, Shared<Team>& shared, unsigned block, Tile& tile,
                                 std::integer_sequence<unsigned, phases...>) const {
        (steps<phases>(team, shared, block, tile), ...);
    }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned block) const {
        Shared<Team> shared(team);
        Tile tile;
        tile.lane = team.lane() % lanes;
        tile.group = team.rank() / lanes;
        const bool finite = load(team, shared, block, tile);
        if (team.rank() == 0) {
            batch.status[block] = finite ? BlockStatus::fine : BlockStatus::not_finite;
            const std::size_t last = std::size_t{block + 1} * batch.size.short_side - 1;
            batch.off_diagonal[last] = 0.0;
            batch.right_scales[last] = 0;
        }
        if (!finite) return;
        if (tile.group == 0) SPIKED_UNROLL
        for (unsigned s = 0; s < row_slots; ++s) shared.column[tile.lane + lanes * s] = tile.a[s][0];
        team.barrier();
        if (team.warp() == 0) {
            Real w[rows_a_lane];
            SPIKED_UNROLL
            for (unsigned t = 0; t < rows_a_lane; ++t) {
                const unsigned i = team.lane() + 32 * t;
                w[t] = i < most_rows ? static_cast<Real>(shared.column[i]) : Real(0);
            }
            left_reflector(team, shared, block, 0, w);
        }
        team.barrier();
        all_steps(team, shared, block, tile, std::make_integer_sequence<unsigned, column_slots>());
    }
};

}  // namespace spiked::estimators::cuda

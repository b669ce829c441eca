#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/device/team.hpp"

/// Turns Gaussian matrices into the orthonormal frames of haar_frame (../haar.hpp) in float: the Q of the QR
/// decomposition in which R has a positive diagonal, by Householder reflectors H = I - scale u u^T. There are two
/// kernels, which keep a matrix in the registers of a thread block. HaarReflectors computes the reflectors in double,
/// because rounding errors in Q are amplified by the condition number of the Gaussian matrix, which is in the thousands
/// for square matrices. HaarProducts multiplies the reflectors in float, with an error of 1e-6.
namespace spiked::stream {

/// The layout of a matrix in a thread block: thread (lane of 16, group) holds rows lane, lane + 16, .. (`row_slots` of
/// them) and columns group, group + groups, .. (`column_slots` of them, 4 or 8).
template <unsigned row_slots, unsigned groups, unsigned column_slots>
struct FrameTile {
    static constexpr unsigned lanes = 16;
    static constexpr unsigned threads = lanes * groups;
    static constexpr unsigned most_rows = lanes * row_slots;
    static constexpr unsigned most_columns = column_slots * groups;

    template <class Real>
    using Entries = Real[row_slots][column_slots];

    /// Sums each of the numbers over 16 lanes; each lane gets all sums.
    template <class Team, class Real>
    SPIKED_DEVICE static void sums(Team& team, Real (&x)[column_slots]) {
        const unsigned lane = team.lane();
        // While there are several numbers, a lane passes half of them on to its partner and adds the other half.
        unsigned mask = lanes / 2;
        SPIKED_UNROLL
        for (unsigned half = column_slots / 2; half > 0; half /= 2, mask /= 2) {
            const bool upper = (lane & mask) != 0;
            SPIKED_UNROLL
            for (unsigned c = 0; c < half; ++c)
                x[c] = (upper ? x[c + half] : x[c]) + team.shuffle_xor(upper ? x[c] : x[c + half], mask);
        }
        SPIKED_UNROLL
        for (; mask > 0; mask /= 2) x[0] += team.shuffle_xor(x[0], mask);
        const Real one = x[0];
        SPIKED_UNROLL
        for (unsigned c = 0; c < column_slots; ++c) x[c] = team.shuffle(one, (lane & 16U) + lanes / column_slots * c);
    }

    /// Applies a reflector to the columns in slots `first` to `last` - 1 of phase `phase`. Its vector u is zero in the
    /// rows before those of the phase. The column in slot `phase` is left out if it is `done`.
    template <unsigned phase, unsigned first, unsigned last, class Real, class Team, class Vector>
    SPIKED_DEVICE static void reflect(Team& team, Real (&a)[row_slots][column_slots], const Vector& reflector,
                                      Real scale, bool done) {
        if constexpr (first < last) {
            constexpr unsigned first_row_slot = phase * groups / lanes;
            const unsigned lane = team.lane() % lanes;
            Real x[column_slots];
            Real u[row_slots];
            SPIKED_UNROLL
            for (unsigned c = 0; c < column_slots; ++c) x[c] = 0;
            SPIKED_UNROLL
            for (unsigned s = first_row_slot; s < row_slots; ++s) {
                u[s] = reflector[lane + lanes * s];
                SPIKED_UNROLL
                for (unsigned c = first; c < last; ++c) x[c] = std::fma(a[s][c], u[s], x[c]);
            }
            if constexpr (last - first == 1) {
                SPIKED_UNROLL
                for (unsigned mask = lanes / 2; mask > 0; mask /= 2) x[first] += team.shuffle_xor(x[first], mask);
            } else {
                sums(team, x);
            }
            SPIKED_UNROLL
            for (unsigned c = first; c < last; ++c) {
                const Real y = c == phase && done ? Real(0) : scale * x[c];
                SPIKED_UNROLL
                for (unsigned s = first_row_slot; s < row_slots; ++s) a[s][c] = std::fma(-u[s], y, a[s][c]);
            }
        }
    }
};

/// Kernel: the reflectors of Gaussian matrices. Step k is one pass over the registers and one barrier: each half warp
/// applies reflector k to its columns. The one that holds column k + 1 treats this column first and turns it into the
/// next reflector; the rest of its columns follow after the barrier, while the other warps have begun step k + 1. A
/// step is bound by latency, so when the remaining matrix fits a smaller tile, it is handed over to a kernel with that
/// tile, of which a multiprocessor holds more blocks: the first kernel ends at `stop`, and the next begins with `done`.
///
/// On return, the normals are overwritten by the remaining matrix and, in row k of the first column, the scale of
/// reflector k with the sign of R's diagonal. The vector u_k lies in column k of the frame, from row k on.
template <unsigned row_slots, unsigned groups>
struct HaarReflectors {
    static constexpr unsigned column_slots = 4;
    using Tile = FrameTile<row_slots, groups, column_slots>;
    static constexpr unsigned lanes = Tile::lanes;
    static constexpr unsigned threads = Tile::threads;
    static constexpr unsigned resident = threads >= 512 ? 1 : threads >= 384 ? 2 : 4;
    static constexpr unsigned most_rows = Tile::most_rows;
    static constexpr unsigned most_columns = Tile::most_columns;

    std::uint32_t rows;
    std::uint32_t columns;  ///< at most the rows
    double* normals;        ///< rows x columns per frame, column-major
    float* frames;
    unsigned done = 0;  ///< rows and columns that earlier kernels have reduced; indices count from there
    unsigned stop = 0;  ///< columns after which the remaining matrix is handed over; 0 to reduce all columns

    [[nodiscard]] std::size_t shared_bytes() const {
        return spiked::cuda::shared_bytes_for<double>(kept * most_rows) +
               spiked::cuda::shared_bytes_for<double>(most_columns);
    }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned block) const {
        Shared<Team> shared(team);
        const unsigned lane = team.lane() % lanes;
        const unsigned group = team.rank() / lanes;
        const unsigned warp = spiked::cuda::uniform_warp(team);
        const unsigned rows_left = rows - done;
        const unsigned columns_left = columns - done;
        double* const matrix = normals + std::size_t{block} * rows * columns;
        double* const rest = matrix + std::size_t{done} * rows + done;
        double a[row_slots][column_slots];
        SPIKED_UNROLL
        for (unsigned c = 0; c < column_slots; ++c) SPIKED_UNROLL
        for (unsigned s = 0; s < row_slots; ++s) {
            const unsigned i = lane + lanes * s;
            const unsigned j = group + groups * c;
            a[s][c] = i < rows_left && j < columns_left ? rest[std::size_t{j} * rows + i] : 0.0;
        }
        if (warp == 0) make_reflector<0>(team, shared, a, 0, group == 0);
        team.barrier();
        all_steps(team, shared, a, group, warp, std::make_integer_sequence<unsigned, column_slots>());

        const unsigned found = stop > 0 ? stop : columns_left;
        float* const to = frames + std::size_t{block} * rows * columns + std::size_t{done} * rows + done;
        SPIKED_UNROLL
        for (unsigned c = 0; c < column_slots; ++c) SPIKED_UNROLL
        for (unsigned s = 0; s < row_slots; ++s) {
            const unsigned i = lane + lanes * s;
            const unsigned j = group + groups * c;
            if (i >= rows_left || j >= columns_left) continue;
            if (j >= found)
                rest[std::size_t{j} * rows + i] = a[s][c];
            else if (i >= j)
                to[std::size_t{j} * rows + i] = static_cast<float>(a[s][c]);
        }
        for (unsigned k = team.rank(); k < found; k += threads) matrix[done + k] = scale_of(shared, k);
    }

private:
    /// Reflectors in shared memory: a warp may still need that of step k while another writes that of step k + 2.
    static constexpr unsigned kept = 3;

    template <class Team>
    struct Shared {
        typename Team::template Shared<double> u;  ///< u_k in place k % kept; zero above row k where read
        /// The reciprocals of all scales, with the signs of R's diagonal, or 0 for a zero scale. The threads that need
        /// a scale divide, which overlaps with their additions.
        typename Team::template Shared<double> over_scales;

        SPIKED_DEVICE explicit Shared(Team& team)
            : u(team.template take<double>(kept * most_rows)), over_scales(team.template take<double>(most_columns)) {}
    };

    /// The scale of reflector k, with the sign of R's diagonal.
    template <class Team>
    SPIKED_DEVICE static double scale_of(const Shared<Team>& shared, unsigned k) {
        const double over = shared.over_scales[k];
        return over == 0.0 ? over : spiked::cuda::fast_inverse(over);
    }

    /// Replaces column k, which lies in slot `slot`, by its reflector in the half warp that owns it. The whole warp
    /// must call this.
    template <unsigned slot, class Team>
    SPIKED_DEVICE static void make_reflector(Team& team, Shared<Team>& shared, double (&a)[row_slots][column_slots],
                                             unsigned k, bool owner) {
        constexpr unsigned first_row_slot = slot * groups / lanes;  // earlier rows are above row k
        const unsigned lane = team.lane() % lanes;
        double squares[2] = {};
        double head = 0.0;
        SPIKED_UNROLL
        for (unsigned s = first_row_slot; s < row_slots; ++s) {
            const unsigned i = lane + lanes * s;
            const double x = i >= k ? a[s][slot] : 0.0;
            squares[s % 2] = std::fma(x, x, squares[s % 2]);
            head = i == k ? x : head;
        }
        double square = squares[0] + squares[1];
        SPIKED_UNROLL
        for (unsigned mask = lanes / 2; mask > 0; mask /= 2) square += team.shuffle_xor(square, mask);
        head = team.shuffle(head, (team.lane() & 16U) + k % lanes);
        if (!owner) return;
        const double norm = spiked::cuda::fast_sqrt(square);
        const double beta = head >= 0.0 ? -norm : norm;
        const auto u = shared.u + k % kept * most_rows;
        SPIKED_UNROLL
        for (unsigned s = first_row_slot; s < row_slots; ++s) {
            const unsigned i = lane + lanes * s;
            if (i == k) a[s][slot] = head - beta;
            if (i < k) a[s][slot] = 0.0;  // an entry of R, which is not needed
            u[i] = a[s][slot];
        }
        if (lane == 0) {
            const double over_scale = std::fma(std::fabs(head), norm, square);
            shared.over_scales[k] = beta < 0.0 ? -over_scale : over_scale;
        }
    }

    template <unsigned phase, class Team>
    SPIKED_DEVICE void steps(Team& team, Shared<Team>& shared, double (&a)[row_slots][column_slots], unsigned group,
                             unsigned warp) const {
        const unsigned end = (phase + 1) * groups;
        const unsigned wanted = stop > 0 ? stop : columns - done;
        for (unsigned k = phase * groups; k < end && (stop > 0 ? k < stop : k + 1 < wanted); ++k) {
            const auto u = shared.u + k % kept * most_rows;
            const double scale = std::fabs(scale_of(shared, k));
            const bool done_here = group + groups * phase <= k;
            const unsigned next = (k + 1) % groups;
            const bool makes_next = next / 2 == warp && k + 1 < wanted;  // a warp has two groups
            if (!makes_next) {
                Tile::template reflect<phase, phase, column_slots>(team, a, u, scale, done_here);
            } else if (k + 1 < end) {
                Tile::template reflect<phase, phase, phase + 1>(team, a, u, scale, done_here);
                make_reflector<phase>(team, shared, a, k + 1, group == next);
            } else if constexpr (phase + 1 < column_slots) {
                Tile::template reflect<phase, phase + 1, phase + 2>(team, a, u, scale, false);
                make_reflector<phase + 1>(team, shared, a, k + 1, group == next);
            }
            team.barrier();
            if (!makes_next) continue;
            if (k + 1 < end)
                Tile::template reflect<phase, phase + 1, column_slots>(team, a, u, scale, false);
            else  // all columns in slot `phase` are done
                Tile::template reflect<phase, phase + 2, column_slots>(team, a, u, scale, false);
        }
    }
    template <class Team, unsigned... phases>
    SPIKED_DEVICE void all_steps(Team& team, Shared<Team>& shared, double (&a)[row_slots][column_slots], unsigned group,
                                 unsigned warp, std::integer_sequence<unsigned, phases...>) const {
        (steps<phases>(team, shared, a, group, warp), ...);
    }
};

/// Kernel: the frames of these reflectors. It applies H_0 H_1 .. to the first columns of the identity, from the last
/// reflector to the first, and gives each column the sign of R's diagonal.
template <unsigned row_slots, unsigned groups, unsigned column_slots>
struct HaarProducts {
    using Tile = FrameTile<row_slots, groups, column_slots>;
    static constexpr unsigned lanes = Tile::lanes;
    static constexpr unsigned threads = Tile::threads;
    static constexpr unsigned resident = 512 / threads;
    static constexpr unsigned most_rows = Tile::most_rows;
    static constexpr unsigned most_columns = Tile::most_columns;

    std::uint32_t rows;
    std::uint32_t columns;
    const double* reflected;  ///< the scales and signs from HaarReflectors, in its `normals`
    float* frames;

    [[nodiscard]] std::size_t shared_bytes() const {
        return spiked::cuda::shared_bytes_for<float>(2 * most_rows) +
               spiked::cuda::shared_bytes_for<float>(most_columns);
    }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned block) const {
        Shared<Team> shared(team);
        const unsigned lane = team.lane() % lanes;
        const unsigned group = team.rank() / lanes;
        const double* const scales = reflected + std::size_t{block} * rows * columns;
        for (unsigned k = team.rank(); k < columns; k += threads) shared.scales[k] = static_cast<float>(scales[k]);
        float* const frame = frames + std::size_t{block} * rows * columns;
        float q[row_slots][column_slots];
        SPIKED_UNROLL
        for (unsigned c = 0; c < column_slots; ++c) SPIKED_UNROLL
        for (unsigned s = 0; s < row_slots; ++s) {
            const unsigned i = lane + lanes * s;
            const unsigned j = group + groups * c;
            q[s][c] = i < rows && j < columns && i >= j ? frame[std::size_t{j} * rows + i] : 0.0F;
        }
        all_steps(team, shared, q, group, std::make_integer_sequence<unsigned, column_slots>());
        SPIKED_UNROLL
        for (unsigned c = 0; c < column_slots; ++c) {
            const unsigned j = group + groups * c;
            if (j >= columns) continue;
            const float sign = std::signbit(static_cast<float>(shared.scales[j])) ? -1.0F : 1.0F;
            SPIKED_UNROLL
            for (unsigned s = 0; s < row_slots; ++s) {
                const unsigned i = lane + lanes * s;
                if (i < rows) frame[std::size_t{j} * rows + i] = sign * q[s][c];
            }
        }
    }

private:
    template <class Team>
    struct Shared {
        typename Team::template Shared<float> u;  ///< u_k of even steps, then of odd ones
        typename Team::template Shared<float> scales;

        SPIKED_DEVICE explicit Shared(Team& team)
            : u(team.template take<float>(2 * most_rows)), scales(team.template take<float>(most_columns)) {}
    };

    /// Copies column k, which lies in slot `slot`, to shared memory, in the threads that hold it.
    template <unsigned slot, class Team>
    SPIKED_DEVICE static void publish(const Team& team, Shared<Team>& shared, const float (&q)[row_slots][column_slots],
                                      unsigned k, unsigned group) {
        if (group != k % groups) return;
        const auto u = shared.u + k % 2 * most_rows;
        SPIKED_UNROLL
        for (unsigned s = 0; s < row_slots; ++s) u[team.lane() % lanes + lanes * s] = q[s][slot];
    }

    /// Applies H_k to the columns after k, and sets column k to H_k e_k = e_k - scale head u. Column k - 1 is published
    /// for the next step.
    template <unsigned phase, class Team>
    SPIKED_DEVICE void steps(Team& team, Shared<Team>& shared, float (&q)[row_slots][column_slots],
                             unsigned group) const {
        const unsigned first = phase * groups;
        if (columns <= first) return;
        const unsigned lane = team.lane() % lanes;
        if (columns <= first + groups) {  // before the very first step
            publish<phase>(team, shared, q, columns - 1, group);
            team.barrier();
        }
        for (unsigned k = (columns < first + groups ? columns : first + groups); k-- > first;) {
            if (k > first)
                publish<phase>(team, shared, q, k - 1, group);
            else if constexpr (phase > 0)
                publish<phase - 1>(team, shared, q, k - 1, group);
            const auto u = shared.u + k % 2 * most_rows;
            const float scale = std::fabs(static_cast<float>(shared.scales[k]));
            const unsigned own = group + groups * phase;
            Tile::template reflect<phase, phase, column_slots>(team, q, u, scale, own <= k);
            if (own == k) {
                const float by = scale * static_cast<float>(u[k]);
                SPIKED_UNROLL
                for (unsigned s = 0; s < row_slots; ++s)
                    q[s][phase] = std::fma(-by, q[s][phase], lane + lanes * s == k ? 1.0F : 0.0F);
            }
            team.barrier();
        }
    }
    template <class Team, unsigned... phases>
    SPIKED_DEVICE void all_steps(Team& team, Shared<Team>& shared, float (&q)[row_slots][column_slots], unsigned group,
                                 std::integer_sequence<unsigned, phases...>) const {
        (steps<column_slots - 1 - phases>(team, shared, q, group), ...);
    }
};

/// The number of rows and columns of the largest compiled tile. visit_frame_tiles visits all tiles, smallest first.
inline constexpr std::uint32_t most_in_registers = 128;
template <class Visitor>
void visit_frame_tiles(Visitor&& visit) {
    visit(FrameTile<4, 16, 4>());
    visit(FrameTile<6, 24, 4>());
    visit(FrameTile<8, 32, 4>());
}

/// Computes frames of up to 128 x 128. The normals are overwritten.
template <class Executor>
void launch_haar_rotations(Executor& executor, std::uint32_t count, std::uint32_t rows, std::uint32_t columns,
                           double* normals, float* frames) {
    unsigned done = 0;
    bool reflected = false;
    while (!reflected) {
        bool found = false;
        unsigned smaller = 0;  // rows of the next smaller tile
        visit_frame_tiles([&]<unsigned row_slots, unsigned groups>(FrameTile<row_slots, groups, 4>) {
            using Kernel = HaarReflectors<row_slots, groups>;
            const unsigned left = rows - done;
            if (!found && left <= Kernel::most_rows) {
                found = true;
                const unsigned stop = smaller > 0 && left - smaller < columns - done ? left - smaller : 0;
                executor.launch(Kernel{rows, columns, normals, frames, done, stop}, count);
                reflected = stop == 0;
                done += stop;
            }
            smaller = Kernel::most_rows;
        });
    }
    bool multiplied = false;
    visit_frame_tiles([&]<unsigned row_slots, unsigned groups>(FrameTile<row_slots, groups, 4>) {
        using Kernel = HaarProducts<row_slots, groups / 2, 8>;
        if (multiplied || rows > Kernel::most_rows) return;
        executor.launch(Kernel{rows, columns, normals, frames}, count);
        multiplied = true;
    });
}

}  // namespace spiked::stream

#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "theory/base/cuda/team.hpp"

namespace spiked::stream {

/// Kernel: Gaussian matrices to orthonormal frames in float, as haar_frame (../haar.hpp) finds them: Q of the QR
/// decomposition with R's diagonal positive, by Householder reflectors. A thread block a frame, which lies in its
/// registers: thread (lane of 16, group) holds rows lane, lane + 16, .. (`row_slots` of them) and columns group,
/// group + groups, .. (4). The reflectors are found in double, since rounding reaches Q by the condition of the
/// Gaussian matrix, in the thousands where it is square; Q is multiplied out of them in float, which costs 1e-6.
///
/// Step k is one pass over the registers and one barrier: each half warp takes its columns' parts along u_k away, and
/// the one that holds column k + 1 makes it the next reflector. The way back is the same from the last to the first.
/// Up to 16 row_slots rows and 4 groups columns.
template <unsigned row_slots, unsigned groups>
struct HaarRotations {
    static constexpr unsigned lanes = 16;
    static constexpr unsigned column_slots = 4;
    static constexpr unsigned threads = lanes * groups;
    static constexpr unsigned resident = threads >= 512 ? 1 : 512 / threads;
    static constexpr unsigned most_rows = lanes * row_slots;
    static constexpr unsigned most_columns = column_slots * groups;

    std::uint32_t count;
    std::uint32_t rows;
    std::uint32_t columns;  ///< at most the rows
    const double* normals;  ///< rows x columns a frame, column-major
    float* frames;

    [[nodiscard]] unsigned blocks() const { return count; }
    [[nodiscard]] std::size_t shared_bytes() const {
        return spiked::cuda::shared_room<double>(2 * most_rows) + spiked::cuda::shared_room<float>(2 * most_rows) +
               spiked::cuda::shared_room<double>(2) + 2 * spiked::cuda::shared_room<float>(most_columns);
    }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned block) const {
        Shared<Team> shared(team);
        const unsigned lane = team.lane() % lanes;
        const unsigned group = team.rank() / lanes;
        double a[row_slots][column_slots];
        const double* const from = normals + std::size_t{block} * rows * columns;
        SPIKED_UNROLL
        for (unsigned c = 0; c < column_slots; ++c) SPIKED_UNROLL
        for (unsigned s = 0; s < row_slots; ++s) {
            const unsigned i = lane + lanes * s;
            const unsigned j = group + groups * c;
            a[s][c] = i < rows && j < columns ? from[std::size_t{j} * rows + i] : 0.0;
        }
        if (team.warp() == 0) make_reflector<0>(team, shared, a, 0, group == 0);
        team.barrier();
        all_steps(team, shared, a, group, std::make_integer_sequence<unsigned, column_slots>());

        float q[row_slots][column_slots];
        SPIKED_UNROLL
        for (unsigned c = 0; c < column_slots; ++c) SPIKED_UNROLL
        for (unsigned s = 0; s < row_slots; ++s) q[s][c] = static_cast<float>(a[s][c]);
        all_steps_back(team, shared, q, group, std::make_integer_sequence<unsigned, column_slots>());
        float* const to = frames + std::size_t{block} * rows * columns;
        SPIKED_UNROLL
        for (unsigned c = 0; c < column_slots; ++c) SPIKED_UNROLL
        for (unsigned s = 0; s < row_slots; ++s) {
            const unsigned i = lane + lanes * s;
            const unsigned j = group + groups * c;
            if (i < rows && j < columns) to[std::size_t{j} * rows + i] = shared.signs[j] * q[s][c];
        }
    }

private:
    template <class Team>
    struct Shared {
        template <class T>
        using Array = typename Team::template Shared<T>;
        Array<double> u;  ///< reflectors of even steps, then of odd ones, zero above their heads
        Array<float> v;   ///< the same on the way back
        Array<double> scale;
        Array<float> scales, signs;  ///< of all reflectors; of R's diagonal

        SPIKED_DEVICE explicit Shared(Team& team) {
            u = team.template take<double>(2 * most_rows);
            v = team.template take<float>(2 * most_rows);
            scale = team.template take<double>(2);
            scales = team.template take<float>(most_columns);
            signs = team.template take<float>(most_columns);
        }
    };

    /// The sums over 16 lanes of 4 numbers, in each lane.
    template <class Team, class Real>
    SPIKED_DEVICE static void sums(Team& team, Real (&x)[column_slots]) {
        const unsigned lane = team.lane();
        const bool eighth = (lane & 8U) != 0;
        const bool fourth = (lane & 4U) != 0;
        const Real a = (eighth ? x[2] : x[0]) + team.shuffle_xor(eighth ? x[0] : x[2], 8);
        const Real b = (eighth ? x[3] : x[1]) + team.shuffle_xor(eighth ? x[1] : x[3], 8);
        Real one = (fourth ? b : a) + team.shuffle_xor(fourth ? a : b, 4);
        one += team.shuffle_xor(one, 2);
        one += team.shuffle_xor(one, 1);
        SPIKED_UNROLL
        for (unsigned c = 0; c < column_slots; ++c) x[c] = team.shuffle(one, (lane & 16U) + 4 * c);
    }

    /// Column k, which lies in slot `slot`, becomes its reflector in the half warp that owns it. By a whole warp.
    template <unsigned slot, class Team>
    SPIKED_DEVICE void make_reflector(Team& team, Shared<Team>& shared, double (&a)[row_slots][column_slots],
                                      unsigned k, bool owner) const {
        const unsigned lane = team.lane() % lanes;
        double square = 0.0;
        double head = 0.0;
        SPIKED_UNROLL
        for (unsigned s = 0; s < row_slots; ++s) {
            const unsigned i = lane + lanes * s;
            const double x = i >= k ? a[s][slot] : 0.0;
            square = std::fma(x, x, square);
            head = i == k ? x : head;
        }
        SPIKED_UNROLL
        for (unsigned mask = lanes / 2; mask > 0; mask /= 2) square += team.shuffle_xor(square, mask);
        head = team.shuffle(head, (team.lane() & 16U) + k % lanes);
        if (!owner) return;
        const double norm = std::sqrt(square);
        const double scale = square > 0.0 ? 1.0 / std::fma(std::fabs(head), norm, square) : 0.0;
        const double beta = head >= 0.0 ? -norm : norm;
        const auto u = shared.u + k % 2 * most_rows;
        SPIKED_UNROLL
        for (unsigned s = 0; s < row_slots; ++s) {
            const unsigned i = lane + lanes * s;
            if (i == k) a[s][slot] = head - beta;
            if (i < k) a[s][slot] = 0.0;  // R, which nobody reads
            u[i] = a[s][slot];
        }
        if (lane == 0) {
            shared.scale[k % 2] = scale;
            shared.scales[k] = static_cast<float>(scale);
            shared.signs[k] = beta < 0.0 ? -1.0F : 1.0F;
        }
    }

    /// a_j less its part along u, for the columns of slots from `phase` on that lie behind column k.
    template <unsigned phase, class Real, class Team, class Vector>
    SPIKED_DEVICE static void reflect(Team& team, Real (&a)[row_slots][column_slots], const Vector& reflector,
                                      Real scale, bool done) {
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
            for (unsigned c = phase; c < column_slots; ++c) x[c] = std::fma(a[s][c], u[s], x[c]);
        }
        sums(team, x);
        SPIKED_UNROLL
        for (unsigned c = phase; c < column_slots; ++c) {
            const Real y = c == phase && done ? Real(0) : scale * x[c];
            SPIKED_UNROLL
            for (unsigned s = first_row_slot; s < row_slots; ++s) a[s][c] = std::fma(-u[s], y, a[s][c]);
        }
    }

    template <unsigned phase, class Team>
    SPIKED_DEVICE void steps(Team& team, Shared<Team>& shared, double (&a)[row_slots][column_slots],
                             unsigned group) const {
        const unsigned end = (phase + 1) * groups;
        for (unsigned k = phase * groups; k < end && k + 1 < columns; ++k) {
            reflect<phase>(team, a, shared.u + k % 2 * most_rows, static_cast<double>(shared.scale[k % 2]),
                           group + groups * phase <= k);
            const unsigned next = (k + 1) % groups;
            if (next / 2 == team.warp()) {  // two groups a warp
                if (k + 1 < end)
                    make_reflector<phase>(team, shared, a, k + 1, group == next);
                else if constexpr (phase + 1 < column_slots)
                    make_reflector<phase + 1>(team, shared, a, k + 1, group == next);
            }
            team.barrier();
        }
    }
    template <class Team, unsigned... phases>
    SPIKED_DEVICE void all_steps(Team& team, Shared<Team>& shared, double (&a)[row_slots][column_slots], unsigned group,
                                 std::integer_sequence<unsigned, phases...>) const {
        (steps<phases>(team, shared, a, group), ...);
    }

    /// Column k, which lies in slot `slot`, for the others, by the threads that hold it.
    template <unsigned slot, class Team>
    SPIKED_DEVICE static void publish(const Team& team, Shared<Team>& shared, const float (&q)[row_slots][column_slots],
                                      unsigned k, unsigned group) {
        if (group != k % groups) return;
        const auto v = shared.v + k % 2 * most_rows;
        SPIKED_UNROLL
        for (unsigned s = 0; s < row_slots; ++s) v[team.lane() % lanes + lanes * s] = q[s][slot];
    }

    /// H_k of the columns behind k, and column k itself: H_k e_k = e_k - scale head u. Column k - 1 is put where the
    /// next step looks for it.
    template <unsigned phase, class Team>
    SPIKED_DEVICE void steps_back(Team& team, Shared<Team>& shared, float (&q)[row_slots][column_slots],
                                  unsigned group) const {
        const unsigned first = phase * groups;
        if (columns <= first) return;
        const unsigned lane = team.lane() % lanes;
        if (columns <= first + groups) {  // the first of these steps
            publish<phase>(team, shared, q, columns - 1, group);
            team.barrier();
        }
        for (unsigned k = (columns < first + groups ? columns : first + groups); k-- > first;) {
            if (k > first)
                publish<phase>(team, shared, q, k - 1, group);
            else if constexpr (phase > 0)
                publish<phase - 1>(team, shared, q, k - 1, group);
            const auto v = shared.v + k % 2 * most_rows;
            const float scale = shared.scales[k];
            const unsigned own = group + groups * phase;
            reflect<phase>(team, q, v, scale, own <= k);
            if (own == k) {
                const float by = scale * static_cast<float>(v[k]);
                SPIKED_UNROLL
                for (unsigned s = 0; s < row_slots; ++s)
                    q[s][phase] = std::fma(-by, q[s][phase], lane + lanes * s == k ? 1.0F : 0.0F);
            }
            team.barrier();
        }
    }
    template <class Team, unsigned... phases>
    SPIKED_DEVICE void all_steps_back(Team& team, Shared<Team>& shared, float (&q)[row_slots][column_slots],
                                      unsigned group, std::integer_sequence<unsigned, phases...>) const {
        (steps_back<column_slots - 1 - phases>(team, shared, q, group), ...);
    }
};

}  // namespace spiked::stream

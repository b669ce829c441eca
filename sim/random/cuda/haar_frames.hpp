#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "core/device/team.hpp"

namespace spiked::stream {

/// Kernel: turns Gaussian matrices into the orthonormal frames of haar_frame (../haar.hpp) by Householder reflectors. A
/// frame is the Q of the QR decomposition in which R has a positive diagonal, and is therefore unique. A frame is
/// computed by one warp, or by a block of `warps_per_frame` warps. A lane holds rows lane + 32 t, and a warp every
/// warps_per_frame-th column, so that the warps share only the column of the current reflector. At most 32 * slots
/// rows.
template <class Out, unsigned warps_per_frame, unsigned slots>
struct HaarFrames {
    static constexpr unsigned warps = warps_per_frame == 1 ? 4 : warps_per_frame;
    static constexpr unsigned threads = warps * spiked::cuda::warp_size;
    static constexpr unsigned resident = (warps_per_frame == 1 ? 8 : 2) / (slots > 4 ? 2 : 1);
    static constexpr unsigned frames_per_block = warps / warps_per_frame;
    static constexpr unsigned most_rows = slots * spiked::cuda::warp_size;

    std::uint32_t count;
    std::uint32_t rows;
    std::uint32_t columns;  ///< at most the rows
    double* normals;        ///< rows x columns per frame, column-major; overwritten
    Out* frames;            ///< may be `normals`

    [[nodiscard]] unsigned blocks() const { return (count + frames_per_block - 1) / frames_per_block; }
    [[nodiscard]] std::size_t shared_bytes() const {
        return 3 * spiked::cuda::shared_bytes_for<double>(std::size_t{frames_per_block} * columns);
    }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned block) const {
        Frame<Team> frame(team, *this);
        const unsigned within = warps_per_frame == 1 ? team.warp() : 0;
        frame.number = std::size_t{block} * frames_per_block + within;
        frame.first = within * columns;
        frame.warp = warps_per_frame == 1 ? 0 : team.warp();
        if (frame.number >= count) return;  // a whole warp ends here, and in this case warps do not wait for each other
        frame.matrix = normals + frame.number * rows * columns;
        factorise(team, frame);
        multiply(team, frame);
    }

private:
    template <class Team>
    struct Frame {
        typename Team::template Shared<double> scales, heads, signs;  ///< of the reflectors; signs of R's diagonal
        std::size_t number = 0;
        unsigned first = 0;  ///< index of its first number in the shared arrays
        unsigned warp = 0;
        double* matrix = nullptr;

        SPIKED_DEVICE Frame(Team& team, const HaarFrames& kernel)
            : scales(team.template take<double>(std::size_t{frames_per_block} * kernel.columns)),
              heads(team.template take<double>(std::size_t{frames_per_block} * kernel.columns)),
              signs(team.template take<double>(std::size_t{frames_per_block} * kernel.columns)) {}
    };

    template <class Team>
    SPIKED_DEVICE static void synchronize(Team& team) {
        if constexpr (warps_per_frame == 1)
            team.warp_barrier();
        else
            team.barrier();
    }

    /// Loads the rows of a column from row `from` on, with zeros elsewhere.
    template <class Team>
    SPIKED_DEVICE void load(const Team& team, const double* column, unsigned from, double (&entries)[slots]) const {
        SPIKED_UNROLL
        for (unsigned t = 0; t < slots; ++t) {
            const unsigned i = team.lane() + spiked::cuda::warp_size * t;
            entries[t] = i >= from && i < rows ? column[i] : 0.0;
        }
    }
    template <class Team>
    SPIKED_DEVICE void store(const Team& team, double* column, unsigned from, const double (&entries)[slots]) const {
        SPIKED_UNROLL
        for (unsigned t = 0; t < slots; ++t) {
            const unsigned i = team.lane() + spiked::cuda::warp_size * t;
            if (i >= from && i < rows) column[i] = entries[t];
        }
    }
    /// Applies the reflector H = I - scale u u^T to `entries`.
    template <class Team>
    SPIKED_DEVICE static void reflect(Team& team, double scale, const double (&u)[slots], double (&entries)[slots]) {
        double along = 0.0;
        SPIKED_UNROLL
        for (unsigned t = 0; t < slots; ++t) along = std::fma(u[t], entries[t], along);
        along = scale * spiked::cuda::warp_sum(team, along);
        SPIKED_UNROLL
        for (unsigned t = 0; t < slots; ++t) entries[t] = std::fma(-along, u[t], entries[t]);
    }

    /// Replaces column k by its reflector.
    template <class Team>
    SPIKED_DEVICE void make_reflector(Team& team, const Frame<Team>& frame, unsigned k,
                                      double (&entries)[slots]) const {
        double square = 0.0;
        double head = 0.0;
        SPIKED_UNROLL
        for (unsigned t = 0; t < slots; ++t) {
            const unsigned i = team.lane() + spiked::cuda::warp_size * t;
            if (i >= k) square = std::fma(entries[t], entries[t], square);
            if (i == k) head = entries[t];
        }
        const double norm = std::sqrt(spiked::cuda::warp_sum(team, square));
        head = team.shuffle(head, k % spiked::cuda::warp_size);
        const double beta = head >= 0.0 ? -norm : norm;
        const double u = head - beta;
        SPIKED_UNROLL
        for (unsigned t = 0; t < slots; ++t)
            if (team.lane() + spiked::cuda::warp_size * t == k) entries[t] = u;
        store(team, frame.matrix + std::size_t{k} * rows, k, entries);
        if (team.lane() == 0) {
            frame.scales[frame.first + k] = norm > 0.0 ? 1.0 / (norm * (norm + std::fabs(head))) : 0.0;
            frame.heads[frame.first + k] = u;
            frame.signs[frame.first + k] = beta < 0.0 ? -1.0 : 1.0;
        }
    }

    template <class Team>
    SPIKED_DEVICE void factorise(Team& team, const Frame<Team>& frame) const {
        double u[slots];
        double entries[slots];
        if (frame.warp == 0) {
            load(team, frame.matrix, 0, entries);
            make_reflector(team, frame, 0, entries);
        }
        synchronize(team);
        for (unsigned k = 0; k + 1 < columns; ++k) {
            load(team, frame.matrix + std::size_t{k} * rows, k, u);
            const double scale = frame.scales[frame.first + k];
            for (unsigned c = next_of(frame.warp, k + 1); c < columns; c += warps_per_frame) {
                double* const column = frame.matrix + std::size_t{c} * rows;
                load(team, column, k, entries);
                reflect(team, scale, u, entries);
                if (c == k + 1)
                    make_reflector(team, frame, c, entries);
                else
                    store(team, column, k, entries);
            }
            synchronize(team);
        }
    }

    /// Applies H_0 H_1 .. to the first columns of the identity, from the last reflector to the first.
    template <class Team>
    SPIKED_DEVICE void multiply(Team& team, const Frame<Team>& frame) const {
        double u[slots];
        double entries[slots];
        for (unsigned k = columns - 1; k-- > 0;) {
            load(team, frame.matrix + std::size_t{k} * rows, k, u);
            const double scale = frame.scales[frame.first + k];
            for (unsigned c = next_of(frame.warp, k + 1); c < columns; c += warps_per_frame) {
                double* const column = frame.matrix + std::size_t{c} * rows;
                load(team, column, k + 1, entries);
                if (c == k + 1) apply_to_unit_vector(team, frame, c, entries);
                reflect(team, scale, u, entries);
                if (k > 0)
                    store(team, column, k, entries);
                else
                    put(team, frame, c, entries);
            }
            synchronize(team);
        }
        if (frame.warp == 0) {  // no other warp reads column 0 any more
            load(team, frame.matrix, 0, entries);
            apply_to_unit_vector(team, frame, 0, entries);
            put(team, frame, 0, entries);
        }
    }

    /// Replaces u_k by H_k e_k.
    template <class Team>
    SPIKED_DEVICE static void apply_to_unit_vector(const Team& team, const Frame<Team>& frame, unsigned k,
                                                   double (&entries)[slots]) {
        const double by = -frame.scales[frame.first + k] * frame.heads[frame.first + k];
        SPIKED_UNROLL
        for (unsigned t = 0; t < slots; ++t) {
            const bool own = team.lane() + spiked::cuda::warp_size * t == k;
            entries[t] = std::fma(by, entries[t], own ? 1.0 : 0.0);
        }
    }
    template <class Team>
    SPIKED_DEVICE void put(const Team& team, const Frame<Team>& frame, unsigned c,
                           const double (&entries)[slots]) const {
        const double sign = frame.signs[frame.first + c];
        Out* const to = frames + frame.number * rows * columns;
        SPIKED_UNROLL
        for (unsigned t = 0; t < slots; ++t) {
            const unsigned i = team.lane() + spiked::cuda::warp_size * t;
            if (i < rows) to[std::size_t{c} * rows + i] = static_cast<Out>(sign * entries[t]);
        }
    }
    /// The first column from `from` on that belongs to the warp.
    SPIKED_DEVICE static unsigned next_of(unsigned warp, unsigned from) {
        return from + (warp + warps_per_frame - from % warps_per_frame) % warps_per_frame;
    }
};

/// Computes frames of up to 256 rows with the kernel for their size.
template <class Executor, class Out>
void launch_haar_frames(Executor& executor, std::uint32_t count, std::uint32_t rows, std::uint32_t columns,
                        double* normals, Out* frames) {
    if (columns == 0) return;
    const auto launch = [&]<unsigned warps, unsigned slots>(HaarFrames<Out, warps, slots>) {
        const HaarFrames<Out, warps, slots> kernel{count, rows, columns, normals, frames};
        executor.launch(kernel, kernel.blocks());
    };
    if constexpr (sizeof(Out) == sizeof(double)) {
        if (rows <= HaarFrames<Out, 1, 4>::most_rows)
            launch(HaarFrames<Out, 1, 4>{});
        else
            launch(HaarFrames<Out, 1, 8>{});
    } else {
        launch(HaarFrames<Out, 16, 8>{});
    }
}

}  // namespace spiked::stream

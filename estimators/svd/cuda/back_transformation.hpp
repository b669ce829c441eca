#pragma once
#include <cmath>

#include "core/device/team.hpp"
#include "estimators/svd/cuda/decomposition_batch.hpp"

namespace spiked::estimators::cuda {

/// Kernel: transforms vectors of B into those of the block, for blocks `first`, `first` + 1, .. of the batch: H_0 H_1
/// .. is applied to the left vectors and G_0 G_1 .. to the right ones. A warp holds 4 vectors in registers, a lane
/// every 32nd entry of each, and reads each reflector once; warps do not wait for each other. The cost is 4 fma per
/// entry, reflector and vector.
template <class Real, unsigned slots>
struct BackTransform {
    static constexpr unsigned warp_size = spiked::cuda::warp_size;
    static constexpr unsigned vectors_per_warp = 4;  ///< of each warp
    static constexpr unsigned warps = 4;
    static constexpr unsigned threads = warps * warp_size;
    static constexpr unsigned resident = slots * sizeof(Real) > 32 ? 4 : slots * sizeof(Real) > 16 ? 8 : 10;
    static constexpr unsigned most_rows = slots * warp_size;

    DecompositionBatch<Real> batch;
    std::uint32_t first;
    std::uint32_t some;  ///< number of blocks

    [[nodiscard]] unsigned blocks() const { return some * 2 * parts(); }
    [[nodiscard]] std::size_t shared_bytes() const { return 0; }
    /// Thread blocks per side of a matrix.
    [[nodiscard]] SPIKED_DEVICE unsigned parts() const {
        return (batch.size.vectors + warps * vectors_per_warp - 1) / (warps * vectors_per_warp);
    }

    /// Sums each of 4 numbers over a warp; every lane gets all the sums.
    template <class Team>
    SPIKED_DEVICE static void sums(Team& team, Real (&x)[vectors_per_warp]) {
        const bool upper = (team.lane() & 16U) != 0;
        const bool second = (team.lane() & 8U) != 0;
        const Real a = (upper ? x[2] : x[0]) + team.shuffle_xor(upper ? x[0] : x[2], 16);
        const Real b = (upper ? x[3] : x[1]) + team.shuffle_xor(upper ? x[1] : x[3], 16);
        Real sum = (second ? b : a) + team.shuffle_xor(second ? a : b, 8);
        for (unsigned mask = 4; mask > 0; mask /= 2) sum += team.shuffle_xor(sum, mask);
        SPIKED_UNROLL
        for (unsigned v = 0; v < vectors_per_warp; ++v) x[v] = team.shuffle(sum, v * 8);
    }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned part) const {
        const BatchSize& size = batch.size;
        const unsigned local = part / (2 * parts());
        const unsigned block = first + local;
        const bool is_left = part / parts() % 2 == 0;
        const unsigned column = (part % parts() * warps + team.warp()) * vectors_per_warp;
        if (column >= size.vectors) return;
        const unsigned length = is_left ? size.long_side : size.short_side;
        Real* const to = (is_left ? batch.left_vectors : batch.right_vectors) +
                         (std::size_t{block} * size.vectors + column) * length;
        const unsigned there = size.vectors - column < vectors_per_warp ? size.vectors - column : vectors_per_warp;
        Real x[vectors_per_warp][slots];
        if (batch.status[block] != BlockStatus::fine) {
            for (unsigned v = 0; v < there; ++v)
                for (unsigned i = team.lane(); i < length; i += warp_size) to[std::size_t{v} * length + i] = 0;
            return;
        }
        const double* const from = (is_left ? batch.bidiagonal_left : batch.bidiagonal_right) +
                                   (std::size_t{local} * size.vectors + column) * size.short_side;
        SPIKED_UNROLL
        for (unsigned v = 0; v < vectors_per_warp; ++v) SPIKED_UNROLL
        for (unsigned t = 0; t < slots; ++t) {
            const unsigned i = team.lane() + warp_size * t;
            x[v][t] = v < there && i < size.short_side ? static_cast<Real>(from[std::size_t{v} * size.short_side + i])
                                                       : Real(0);
        }
        const Real* const reflectors =
            (is_left ? batch.left : batch.right) + std::size_t{block} * size.short_side * length;
        const Real* const scales =
            (is_left ? batch.left_scales : batch.right_scales) + std::size_t{block} * size.short_side;
        for (unsigned k = is_left ? size.short_side : size.short_side - 1; k-- > 0;) {
            const unsigned head = is_left ? k : k + 1;
            const Real scale = scales[k];
            Real u[slots];
            Real overlap[vectors_per_warp] = {};
            SPIKED_UNROLL
            for (unsigned t = 0; t < slots; ++t) {
                const unsigned i = team.lane() + warp_size * t;
                u[t] = i >= head && i < length ? reflectors[std::size_t{k} * length + i] : Real(0);
                SPIKED_UNROLL
                for (unsigned v = 0; v < vectors_per_warp; ++v) overlap[v] = std::fma(u[t], x[v][t], overlap[v]);
            }
            sums(team, overlap);
            SPIKED_UNROLL
            for (unsigned v = 0; v < vectors_per_warp; ++v) {
                const Real by = scale * overlap[v];
                SPIKED_UNROLL
                for (unsigned t = 0; t < slots; ++t) x[v][t] = std::fma(-by, u[t], x[v][t]);
            }
        }
        SPIKED_UNROLL
        for (unsigned v = 0; v < vectors_per_warp; ++v) SPIKED_UNROLL
        for (unsigned t = 0; t < slots; ++t) {
            const unsigned i = team.lane() + warp_size * t;
            if (v < there && i < length) to[std::size_t{v} * length + i] = x[v][t];
        }
    }
};

}  // namespace spiked::estimators::cuda

#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "core/device/team.hpp"
#include "sim/random/cuda/fill_normals.hpp"

namespace spiked::sim {

/// Turns white entries x_ij into samples of the spiked model in the eigenbases of its covariances
/// (Colouring::eigenbasis,
/// ../spiked_sampler.hpp). Each column-major rows x columns block is the signal U diag(strengths) V^T plus the noise
/// x_ij / sqrt(columns) sqrt(a_i) sqrt(b_j). In double, the noise equals that of `sample` bit for bit, and the signal
/// equals it up to the rounding of its sum.
struct SpikedEntries {
    std::uint32_t rows;
    std::uint32_t columns;
    std::uint32_t rank;
    double scale;                ///< sqrt(columns)
    const double* row_roots;     ///< sqrt(a_i)
    const double* column_roots;  ///< sqrt(b_j)
    const double* strengths;
    const double* left;   ///< rows x rank of each block, in the eigenbasis
    const double* right;  ///< columns x rank
    double* observed;     ///< this and the next outputs are not written where null
    double* signal;
    float* observed_as_float = nullptr;
    float* signal_as_float = nullptr;

    /// Computes the entries in `down` consecutive rows and in `across` consecutive columns, as far as these exist.
    /// white(r, at) is the white noise of row `row` + r, for the entry that is number `at` of the batch.
    template <unsigned down, unsigned across, class White>
    SPIKED_DEVICE void put(std::size_t block, unsigned row, unsigned column, const White& white) const {
        double sums[down][across] = {};
        SPIKED_UNROLL_BY(2)
        for (unsigned k = 0; k < rank; ++k) {
            const double strength = strengths[k];
            const double* const u = left + (block * rank + k) * rows + row;
            const double* const v = right + (block * rank + k) * columns + column;
            SPIKED_UNROLL
            for (unsigned r = 0; r < down; ++r) {
                const double scaled = strength * u[r];
                SPIKED_UNROLL
                for (unsigned c = 0; c < across; ++c)
                    if (column + c < columns) sums[r][c] = std::fma(scaled, v[c], sums[r][c]);
            }
        }
        const double inverse = 1.0 / scale;
        SPIKED_UNROLL
        for (unsigned r = 0; r < down; ++r) {
            const double row_root = row_roots[row + r];
            SPIKED_UNROLL
            for (unsigned c = 0; c < across; ++c) {
                if (column + c >= columns) continue;
                // x / scale with correct rounding, from the inverse and two remainders (Markstein 1990).
                const std::size_t at = (block * columns + column + c) * rows + row + r;
                const double x = white(r, at);
                double noise = x * inverse;
                noise = std::fma(std::fma(-scale, noise, x), inverse, noise);
                noise = std::fma(std::fma(-scale, noise, x), inverse, noise);
                const double entry = sums[r][c] + noise * row_root * column_roots[column + c];
                if (observed != nullptr) observed[at] = entry;
                if (signal != nullptr) signal[at] = sums[r][c];
                if (observed_as_float != nullptr) observed_as_float[at] = static_cast<float>(entry);
                if (signal_as_float != nullptr) signal_as_float[at] = static_cast<float>(sums[r][c]);
            }
        }
    }
};

/// Kernel: samples from white entries in memory.
struct SpikedBlocks {
    static constexpr unsigned threads = 128;
    static constexpr unsigned resident = 12;
    static constexpr unsigned each = 8;  ///< consecutive columns of one row that a thread computes

    std::uint32_t count;
    SpikedEntries model;
    const double* white;  ///< may be the memory of `observed`

    [[nodiscard]] SPIKED_DEVICE unsigned parts_down() const { return (model.rows + threads - 1) / threads; }
    [[nodiscard]] SPIKED_DEVICE unsigned parts() const { return parts_down() * ((model.columns + each - 1) / each); }
    [[nodiscard]] unsigned blocks() const { return count * parts(); }
    [[nodiscard]] std::size_t shared_bytes() const { return 0; }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned part) const {
        const std::size_t block = part / parts();
        const unsigned row = part % parts() % parts_down() * threads + team.rank();
        const unsigned first = part % parts() / parts_down() * each;
        if (row >= model.rows) return;
        model.put<1, each>(block, row, first, [&](unsigned, std::size_t at) { return white[at]; });
    }
};

/// Kernel: the same samples from white entries that it draws (stream::FillNormals), without a copy of them in memory.
/// The number of rows must be even: the entries of a word block then belong to one column.
struct DrawnBlocks {
    using Fill = stream::FillNormals<double>;
    static constexpr unsigned threads = Fill::threads;
    static constexpr unsigned resident = 5;

    Fill fill;  ///< its `out` is not used
    SpikedEntries model;

    [[nodiscard]] unsigned blocks() const { return fill.blocks(); }
    [[nodiscard]] std::size_t shared_bytes() const { return 0; }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned part) const {
        fill.each_word_block(team, part, [&](std::uint32_t block, std::uint32_t first, const auto& normals) {
            const std::uint32_t column = first / model.rows;
            model.put<Fill::block_entries, 1>(block, first - column * model.rows, column,
                                              [&](unsigned row, std::size_t) { return normals[row]; });
        });
    }
};

}  // namespace spiked::sim

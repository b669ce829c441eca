#pragma once
#include <cstddef>
#include <cstdint>

#include "theory/base/cuda/tile_product.hpp"

namespace spiked::sim {

/// Kernel: white entries to samples of the spiked model in the eigenbases of its covariances (Colouring::eigenbasis,
/// ../spiked_sampler.hpp), where colouring scales rows and columns: of each column-major rows x columns block the
/// signal U diag(strengths) V^T and, added to it, the noise x_ij / sqrt(columns) sqrt(a_i) sqrt(b_j). The noise is that
/// of `sample` bit for bit in double, the signal to the rounding of its sum.
template <class Real>
struct SpikedBlocks {
    using Product = spiked::cuda::TileProduct<Real>;
    static constexpr unsigned threads = Product::threads;
    static constexpr unsigned resident = 2;

    std::uint32_t count;
    std::uint32_t rows;
    std::uint32_t columns;
    std::uint32_t rank;
    Real unit;              ///< sqrt(columns)
    const Real* row_roots;  ///< sqrt(a_i)
    const Real* column_roots;
    const Real* strengths;
    const Real* left;   ///< rows x rank of each block, in the eigenbasis
    const Real* right;  ///< columns x rank
    const Real* white;
    Real* observed;  ///< may be white; null: not wanted, as each of the next
    Real* signal;
    float* observed_as_float = nullptr;
    float* signal_as_float = nullptr;

    [[nodiscard]] SPIKED_DEVICE unsigned tiles() const { return Product::tiles(rows, columns); }
    [[nodiscard]] unsigned blocks() const { return count * tiles(); }
    [[nodiscard]] std::size_t shared_bytes() const { return Product::shared_bytes(); }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned part) const {
        const std::size_t block = part / tiles();
        const std::size_t corner = block * rows * columns;
        const Real* const weights = strengths;
        Product product(rows, columns, part % tiles());
        product.multiply(team, left + block * rank * rows, right + block * rank * columns, rank,
                         [weights](unsigned k) { return weights[k]; });
        product.each_entry(team, [&](unsigned row, unsigned column, Real sum) {
            const std::size_t at = corner + std::size_t{column} * rows + row;
            const Real entry = sum + white[at] / unit * row_roots[row] * column_roots[column];
            if (observed != nullptr) observed[at] = entry;
            if (signal != nullptr) signal[at] = sum;
            if (observed_as_float != nullptr) observed_as_float[at] = static_cast<float>(entry);
            if (signal_as_float != nullptr) signal_as_float[at] = static_cast<float>(sum);
        });
    }
};

}  // namespace spiked::sim

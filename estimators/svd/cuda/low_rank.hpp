#pragma once
#include <cstddef>
#include <cstdint>

#include "core/device/tile_product.hpp"
#include "estimators/svd/cuda/decomposition_batch.hpp"

namespace spiked::estimators::cuda {

/// The components of low-rank blocks U diag(shrunk) V^T of a batch.
///
/// Components beyond `vectors` or `room` are left out; `ranks` shows where this happened. A block with NaN or infinity
/// has rank 0.
template <class Real>
struct LowRankBlocks {
    std::uint32_t rows;
    std::uint32_t columns;
    std::uint32_t vectors;      ///< stored for each block
    std::uint32_t room;         ///< size of `shrunk` for each block
    const BlockStatus* status;  ///< blocks marked for_the_host have vectors too
    const std::uint32_t* ranks;
    const double* shrunk;  ///< `room` values per block
    const Real* left;      ///< rows x vectors
    const Real* right;     ///< columns x vectors

    [[nodiscard]] SPIKED_DEVICE bool fails(std::size_t block) const { return status[block] == BlockStatus::not_finite; }
    [[nodiscard]] SPIKED_DEVICE unsigned rank(std::size_t block) const {
        unsigned rank = fails(block) ? 0 : ranks[block];
        rank = rank < vectors ? rank : vectors;
        return rank < room ? rank : room;
    }
    [[nodiscard]] SPIKED_DEVICE const double* shrunk_of(std::size_t block) const { return shrunk + block * room; }
    [[nodiscard]] SPIKED_DEVICE const Real* left_of(std::size_t block) const { return left + block * vectors * rows; }
    [[nodiscard]] SPIKED_DEVICE const Real* right_of(std::size_t block) const {
        return right + block * vectors * columns;
    }
};

/// Kernel: computes for each block Y, column-major rows x columns, the estimate S^ = U diag(shrunk) V^T and the
/// residual Y - S^. The error of an entry of S^ is (rank + 2) epsilon times the sum of the magnitudes of its terms.
/// Both are zero for a block with NaN or infinity.
template <class Real>
struct SplitLowRank {
    using Product = spiked::cuda::TileProduct<Real>;
    static constexpr unsigned threads = Product::threads;
    static constexpr unsigned resident = 2;

    std::uint32_t count;
    LowRankBlocks<Real> estimates;
    const Real* blocks_in;
    Real* estimate;  ///< null when not wanted
    Real* residual;  ///< null when not wanted; may be blocks_in

    [[nodiscard]] SPIKED_DEVICE unsigned tiles() const { return Product::tiles(estimates.rows, estimates.columns); }
    [[nodiscard]] unsigned blocks() const { return count * tiles(); }
    [[nodiscard]] std::size_t shared_bytes() const { return Product::shared_bytes(); }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned part) const {
        const std::size_t block = part / tiles();
        const unsigned rows = estimates.rows;
        const std::size_t corner = block * rows * estimates.columns;
        const bool fails = estimates.fails(block);
        const double* const strengths = estimates.shrunk_of(block);
        Product product(rows, estimates.columns, part % tiles());
        product.multiply(team, estimates.left_of(block), estimates.right_of(block), estimates.rank(block),
                         [strengths](unsigned k) { return static_cast<Real>(strengths[k]); });
        product.each_entry(team, [&](unsigned row, unsigned column, Real sum) {
            const std::size_t at = corner + std::size_t{column} * rows + row;
            if (residual != nullptr) residual[at] = fails ? Real{0} : blocks_in[at] - sum;
            if (estimate != nullptr) estimate[at] = sum;
        });
    }
};

}  // namespace spiked::estimators::cuda

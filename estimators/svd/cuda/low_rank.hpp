#pragma once
#include <cstddef>
#include <cstdint>

#include "core/device/tile_product.hpp"
#include "estimators/svd/cuda/decomposition_batch.hpp"

namespace spiked::estimators::cuda {

/// Kernel: computes for each block Y, column-major rows x columns, the estimate S^ = U diag(shrunk) V^T and the
/// residual Y - S^. The error of an entry of S^ is (rank + 2) epsilon times the sum of the magnitudes of its terms.
///
/// Components beyond `vectors` or `room` stay in the residual; `ranks` shows where this happened. A block with NaN or
/// infinity gets zeros.
template <class Real>
struct SplitLowRank {
    using Product = spiked::cuda::TileProduct<Real>;
    static constexpr unsigned threads = Product::threads;
    static constexpr unsigned resident = 2;

    std::uint32_t count;
    std::uint32_t rows;
    std::uint32_t columns;
    std::uint32_t vectors;      ///< stored for each block
    std::uint32_t room;         ///< size of `shrunk` for each block
    const BlockStatus* status;  ///< blocks marked for_the_host have vectors too
    const std::uint32_t* ranks;
    const double* shrunk;  ///< `room` values per block
    const Real* left;      ///< rows x vectors
    const Real* right;     ///< columns x vectors
    const Real* blocks_in;
    Real* estimate;  ///< null when not wanted
    Real* residual;  ///< null when not wanted; may be blocks_in

    [[nodiscard]] SPIKED_DEVICE unsigned tiles() const { return Product::tiles(rows, columns); }
    [[nodiscard]] unsigned blocks() const { return count * tiles(); }
    [[nodiscard]] std::size_t shared_bytes() const { return Product::shared_bytes(); }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned part) const {
        const std::size_t block = part / tiles();
        const std::size_t corner = block * rows * columns;
        const bool fails = status[block] == BlockStatus::not_finite;
        unsigned rank = fails ? 0 : ranks[block];
        rank = rank < vectors ? rank : vectors;
        rank = rank < room ? rank : room;
        const double* const strengths = shrunk + block * room;
        Product product(rows, columns, part % tiles());
        product.multiply(team, left + block * vectors * rows, right + block * vectors * columns, rank,
                         [strengths](unsigned k) { return static_cast<Real>(strengths[k]); });
        product.each_entry(team, [&](unsigned row, unsigned column, Real sum) {
            const std::size_t at = corner + std::size_t{column} * rows + row;
            if (residual != nullptr) residual[at] = fails ? Real{0} : blocks_in[at] - sum;
            if (estimate != nullptr) estimate[at] = sum;
        });
    }
};

}  // namespace spiked::estimators::cuda

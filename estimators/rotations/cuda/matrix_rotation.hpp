#pragma once
#include <cstddef>
#include <cstdint>

#include "core/device/tile_product.hpp"

namespace spiked::estimators::cuda {

/// Kernel: rotates the rows x of column-major blocks, rows x dimension each, to R x or R^T x for any matrix R, such as
/// a Haar rotation. It does not work in place.
template <class Real>
struct TurnByMatrix {
    using Product = spiked::cuda::TensorProduct<Real>;
    static constexpr unsigned threads = Product::threads;
    static constexpr unsigned resident = 5;

    std::uint32_t count;
    std::uint32_t rows;  ///< of each block
    std::uint32_t dimension;
    const Real* matrix;  ///< R, column-major
    const Real* from;
    Real* to;
    bool each_its_own = false;             ///< each block has its own matrix; these are stored one after the other
    bool transposed = false;               ///< whether to compute R^T x
    const std::uint32_t* which = nullptr;  ///< the number of the matrix of each block; in place of each_its_own

    [[nodiscard]] SPIKED_DEVICE unsigned tiles() const { return Product::tiles(rows, dimension); }
    [[nodiscard]] unsigned blocks() const { return count * tiles(); }
    [[nodiscard]] std::size_t shared_bytes() const { return Product::shared_bytes(); }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned part) const {
        const std::size_t corner = std::size_t{part / tiles()} * rows * dimension;
        Product product(rows, dimension, part % tiles());
        const unsigned block = part / tiles();
        const std::size_t own = which != nullptr ? which[block] : each_its_own ? block : 0;
        product.multiply(team, from + corner, matrix + own * dimension * dimension, dimension, transposed);
        product.each_entry(team, [&](unsigned row, unsigned column, Real sum) {
            to[corner + std::size_t{column} * rows + row] = sum;
        });
    }
};

}  // namespace spiked::estimators::cuda

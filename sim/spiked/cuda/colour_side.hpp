#pragma once
#include <cstddef>
#include <cstdint>

#include "core/device/tile_product.hpp"

namespace spiked::sim {

/// A kernel that turns column-major blocks X, each rows x length, into R X^T, length x rows. Two launches colour a
/// block: A^{1/2} X B^{1/2} = A^{1/2} (B^{1/2} X^T)^T. Input and output must not overlap.
struct ColourSide {
    using Product = spiked::cuda::TensorProduct<double>;
    static constexpr unsigned threads = Product::threads;
    static constexpr unsigned resident = 3;

    std::uint32_t count;
    std::uint32_t rows;
    std::uint32_t length;
    const double* root;  ///< R, length x length
    const double* from;
    double* to;

    [[nodiscard]] SPIKED_DEVICE unsigned tiles() const { return Product::tiles(length, rows); }
    [[nodiscard]] unsigned blocks() const { return count * tiles(); }
    [[nodiscard]] std::size_t shared_bytes() const { return Product::shared_bytes(); }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned part) const {
        const std::size_t corner = std::size_t{part / tiles()} * rows * length;
        Product product(length, rows, part % tiles());
        product.multiply(team, root, from + corner, length);
        product.each_entry(team, [&](unsigned row, unsigned column, double sum) {
            to[corner + std::size_t{column} * length + row] = sum;
        });
    }
};

/// Kernel: R v for column vectors v of length `length`, which follow each other in memory.
struct TurnVectors {
    using Product = spiked::cuda::TensorProduct<double>;
    static constexpr unsigned threads = Product::threads;
    static constexpr unsigned resident = 3;

    std::uint32_t count;
    std::uint32_t length;
    const double* matrix;  ///< R, length x length
    const double* from;
    double* to;  ///< must not overlap with `from`

    [[nodiscard]] unsigned blocks() const { return Product::tiles(length, count); }
    [[nodiscard]] std::size_t shared_bytes() const { return Product::shared_bytes(); }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned part) const {
        Product product(length, count, part);
        product.multiply(team, matrix, from, length, true);
        product.each_entry(
            team, [&](unsigned row, unsigned column, double sum) { to[std::size_t{column} * length + row] = sum; });
    }
};

}  // namespace spiked::sim

#pragma once
#include <cstddef>
#include <cstdint>

#include "core/device/tile_product.hpp"

namespace spiked::sim {

/// Kernel: column-major blocks X, lines x length each, to R X^T, length x lines: one half of dense colouring.
/// A^{1/2} X B^{1/2} is this with B^{1/2}, then with A^{1/2}. Not in place.
struct ColourSide {
    using Product = spiked::cuda::TensorProduct<double>;
    static constexpr unsigned threads = Product::threads;
    static constexpr unsigned resident = 3;

    std::uint32_t count;
    std::uint32_t lines;
    std::uint32_t length;
    const double* root;  ///< R
    const double* from;
    double* to;

    [[nodiscard]] SPIKED_DEVICE unsigned tiles() const { return Product::tiles(length, lines); }
    [[nodiscard]] unsigned blocks() const { return count * tiles(); }
    [[nodiscard]] std::size_t shared_bytes() const { return Product::shared_bytes(); }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned part) const {
        const std::size_t corner = std::size_t{part / tiles()} * lines * length;
        Product product(length, lines, part % tiles());
        product.multiply(team, root, from + corner, length);
        product.each_entry(team, [&](unsigned row, unsigned column, double sum) {
            to[corner + std::size_t{column} * length + row] = sum;
        });
    }
};

}  // namespace spiked::sim

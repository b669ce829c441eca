#pragma once
#include <algorithm>
#include <cstddef>
#include <cstring>

namespace spiked::estimators {

/// A square tile of `side` x `side` numbers. Its vectors have 16 bytes, because every processor has registers of this
/// size.
template <class Real>
struct SquareTile {
    static constexpr std::size_t side = 16 / sizeof(Real);
    template <class Number>
    struct VectorOf {
        using Type [[gnu::vector_size(side * sizeof(Number))]] = Number;
    };
    using Vector = typename VectorOf<Real>::Type;
    Vector vectors[side];

    void load(const Real* from, std::size_t stride) {
        for (std::size_t j = 0; j < side; ++j) std::memcpy(&vectors[j], from + j * stride, sizeof(Vector));
    }
    template <class To>
    void store(To* to, std::size_t stride) const {
        for (std::size_t i = 0; i < side; ++i) {
            const auto converted = __builtin_convertvector(vectors[i], typename VectorOf<To>::Type);
            std::memcpy(to + i * stride, &converted, sizeof converted);
        }
    }
    void transpose() {
        if constexpr (side == 2) {
            const Vector first = __builtin_shufflevector(vectors[0], vectors[1], 0, 2);
            vectors[1] = __builtin_shufflevector(vectors[0], vectors[1], 1, 3);
            vectors[0] = first;
        } else {
            const Vector low02 = __builtin_shufflevector(vectors[0], vectors[2], 0, 4, 1, 5);
            const Vector low13 = __builtin_shufflevector(vectors[1], vectors[3], 0, 4, 1, 5);
            const Vector high02 = __builtin_shufflevector(vectors[0], vectors[2], 2, 6, 3, 7);
            const Vector high13 = __builtin_shufflevector(vectors[1], vectors[3], 2, 6, 3, 7);
            vectors[0] = __builtin_shufflevector(low02, low13, 0, 4, 1, 5);
            vectors[1] = __builtin_shufflevector(low02, low13, 2, 6, 3, 7);
            vectors[2] = __builtin_shufflevector(high02, high13, 0, 4, 1, 5);
            vectors[3] = __builtin_shufflevector(high02, high13, 2, 6, 3, 7);
        }
    }
};

/// Writes the transpose of a column-major rows x columns matrix, converting its numbers. It works in tiles, so that
/// both sides stay in cache.
template <class From, class To>
void copy_transposed(const From* from, std::size_t from_stride, std::size_t rows, std::size_t columns, To* to,
                     std::size_t to_stride) {
    constexpr std::size_t tile = 16;
    constexpr std::size_t side = SquareTile<From>::side;
    for (std::size_t first_column = 0; first_column < columns; first_column += tile)
        for (std::size_t first_row = 0; first_row < rows; first_row += tile) {
            const std::size_t last_column = std::min(columns, first_column + tile);
            const std::size_t last_row = std::min(rows, first_row + tile);
            std::size_t i = first_row;
            for (; i + side <= last_row; i += side) {
                std::size_t j = first_column;
                for (; j + side <= last_column; j += side) {
                    SquareTile<From> square;
                    square.load(from + j * from_stride + i, from_stride);
                    square.transpose();
                    square.store(to + i * to_stride + j, to_stride);
                }
                for (; j < last_column; ++j)
                    for (std::size_t k = i; k < i + side; ++k)
                        to[k * to_stride + j] = static_cast<To>(from[j * from_stride + k]);
            }
            for (; i < last_row; ++i)
                for (std::size_t j = first_column; j < last_column; ++j)
                    to[i * to_stride + j] = static_cast<To>(from[j * from_stride + i]);
        }
}

}  // namespace spiked::estimators

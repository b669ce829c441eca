#pragma once
#include <algorithm>
#include <cstddef>
#include <cstring>

namespace spiked::estimators {

/// Square parts whose lines are 16 bytes, which every processor has registers for.
template <class Real>
struct Part {
    static constexpr std::size_t side = 16 / sizeof(Real);
    template <class Number>
    struct LineOf {
        using Type [[gnu::vector_size(side * sizeof(Number))]] = Number;
    };
    using Line = typename LineOf<Real>::Type;
    Line line[side];

    void load(const Real* from, std::size_t stride) {
        for (std::size_t j = 0; j < side; ++j) std::memcpy(&line[j], from + j * stride, sizeof(Line));
    }
    template <class To>
    void store(To* to, std::size_t stride) const {
        for (std::size_t i = 0; i < side; ++i) {
            const auto converted = __builtin_convertvector(line[i], typename LineOf<To>::Type);
            std::memcpy(to + i * stride, &converted, sizeof converted);
        }
    }
    void transpose() {
        if constexpr (side == 2) {
            const Line first = __builtin_shufflevector(line[0], line[1], 0, 2);
            line[1] = __builtin_shufflevector(line[0], line[1], 1, 3);
            line[0] = first;
        } else {
            const Line low02 = __builtin_shufflevector(line[0], line[2], 0, 4, 1, 5);
            const Line low13 = __builtin_shufflevector(line[1], line[3], 0, 4, 1, 5);
            const Line high02 = __builtin_shufflevector(line[0], line[2], 2, 6, 3, 7);
            const Line high13 = __builtin_shufflevector(line[1], line[3], 2, 6, 3, 7);
            line[0] = __builtin_shufflevector(low02, low13, 0, 4, 1, 5);
            line[1] = __builtin_shufflevector(low02, low13, 2, 6, 3, 7);
            line[2] = __builtin_shufflevector(high02, high13, 0, 4, 1, 5);
            line[3] = __builtin_shufflevector(high02, high13, 2, 6, 3, 7);
        }
    }
};

/// A column-major rows x columns matrix to its transpose, converted. In tiles, so that both sides stay in cache.
template <class From, class To>
void copy_transposed(const From* from, std::size_t from_stride, std::size_t rows, std::size_t columns, To* to,
                     std::size_t to_stride) {
    constexpr std::size_t tile = 16;
    constexpr std::size_t side = Part<From>::side;
    for (std::size_t first_column = 0; first_column < columns; first_column += tile)
        for (std::size_t first_row = 0; first_row < rows; first_row += tile) {
            const std::size_t last_column = std::min(columns, first_column + tile);
            const std::size_t last_row = std::min(rows, first_row + tile);
            std::size_t i = first_row;
            for (; i + side <= last_row; i += side) {
                std::size_t j = first_column;
                for (; j + side <= last_column; j += side) {
                    Part<From> part;
                    part.load(from + j * from_stride + i, from_stride);
                    part.transpose();
                    part.store(to + i * to_stride + j, to_stride);
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

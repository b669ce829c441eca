#pragma once
#include "estimators/decomposition_kernels.hpp"

#ifndef SPIKED_KERNEL
#define SPIKED_KERNEL
#endif

/// Products of Householder reflectors applied to a few columns, four reflectors at a time:
/// H_0 H_1 H_2 H_3 = I - Y T Y^T with T upper triangular.
namespace spiked::estimators::kernels {

template <class Pack>
struct Reflectors {
    using Real = typename Pack::Real;
    using Vector = typename Pack::Vector;
    using Four = typename Pack::Four;
    static constexpr std::size_t width = Pack::width;
    static constexpr std::size_t group = reflector_group;
    static constexpr std::size_t tile = Pack::many_registers ? 4 : 2;
    static_assert(column_tile % tile == 0);

    struct Group {
        const Real* y[group];
        Four column[group];  ///< of T
        std::size_t first, end;
    };

    SPIKED_KERNEL static void gather(const Real* reflectors, std::size_t stride, const Real* scales, std::size_t start,
                                     std::size_t count, std::size_t length, Group& those) {
        static_assert(group == 4);
        those.first = start / width * width;
        those.end = length;
        Real scale[group];
        for (std::size_t j = 0; j < group; ++j) {
            const bool there = start + j < count;
            those.y[j] = reflectors + (there ? start + j : start) * stride;
            scale[j] = there ? scales[start + j] : 0;
        }
        Vector sum[6];
        for (Vector& some : sum) some = Pack::set(0);
        for (std::size_t i = those.first; i < length; i += width) {
            Vector y[group];
            for (std::size_t j = 0; j < group; ++j) y[j] = Pack::load(those.y[j] + i);
            for (std::size_t j = 1, at = 0; j < group; ++j)
                for (std::size_t l = 0; l < j; ++l, ++at) sum[at] = Pack::fma(y[l], y[j], sum[at]);
        }
        Real overlap[8];
        Pack::sums(sum[0], sum[1], sum[2], sum[3], overlap);
        Pack::sums(sum[4], sum[5], sum[5], sum[5], overlap + 4);
        Real triangle[group][group] = {};
        for (std::size_t j = 0, at = 0; j < group; at += j, ++j) {
            for (std::size_t i = 0; i < j; ++i) {
                Real product = 0;
                for (std::size_t l = i; l < j; ++l) product += triangle[i][l] * overlap[at + l];
                triangle[i][j] = -scale[j] * product;
            }
            triangle[j][j] = scale[j];
        }
        for (std::size_t j = 0; j < group; ++j)
            those.column[j] = Four{triangle[0][j], triangle[1][j], triangle[2][j], triangle[3][j]};
    }

    /// T times the products of the reflectors with the columns.
    SPIKED_KERNEL static inline __attribute__((always_inline)) void weigh(const Group& those,
                                                                          const Vector (&sum)[group][tile],
                                                                          Real (&weight)[tile][group]) {
        static_assert(group == 4);
        for (std::size_t c = 0; c < tile; ++c) {
            Real overlap[group];
            Pack::sums(sum[0][c], sum[1][c], sum[2][c], sum[3][c], overlap);
            Four of_column = overlap[0] * those.column[0];
            for (std::size_t l = 1; l < group; ++l) of_column += overlap[l] * those.column[l];
            __builtin_memcpy(weight[c], &of_column, sizeof of_column);
        }
    }

    SPIKED_KERNEL static void apply(const Group& those, Real* x, std::size_t stride) {
        Vector sum[group][tile];
        for (std::size_t j = 0; j < group; ++j)
            for (std::size_t c = 0; c < tile; ++c) sum[j][c] = Pack::set(0);
        for (std::size_t i = those.first; i < those.end; i += width) {
            Vector column[tile];
            for (std::size_t c = 0; c < tile; ++c) column[c] = Pack::load(x + c * stride + i);
            for (std::size_t j = 0; j < group; ++j) {
                const Vector y = Pack::load(those.y[j] + i);
                for (std::size_t c = 0; c < tile; ++c) sum[j][c] = Pack::fma(y, column[c], sum[j][c]);
            }
        }
        Real weight[tile][group];
        weigh(those, sum, weight);
        Vector by[group][tile];
        for (std::size_t j = 0; j < group; ++j)
            for (std::size_t c = 0; c < tile; ++c) by[j][c] = Pack::set(weight[c][j]);
        for (std::size_t i = those.first; i < those.end; i += width) {
            Vector column[tile];
            for (std::size_t c = 0; c < tile; ++c) column[c] = Pack::load(x + c * stride + i);
            for (std::size_t j = 0; j < group; ++j) {
                const Vector y = Pack::load(those.y[j] + i);
                for (std::size_t c = 0; c < tile; ++c) column[c] = Pack::fnma(y, by[j][c], column[c]);
            }
            for (std::size_t c = 0; c < tile; ++c) Pack::store(x + c * stride + i, column[c]);
        }
    }

    SPIKED_KERNEL static void apply_all(const Real* reflectors, std::size_t stride, const Real* scales,
                                        std::size_t count, std::size_t length, const Columns<Real>& columns) {
        for (std::size_t start = (count + group - 1) / group * group; start > 0;) {
            start -= group;
            Group those;
            gather(reflectors, stride, scales, start, count, length, those);
            for (std::size_t c = 0; c < columns.count; c += tile)
                apply(those, columns.entries + c * columns.stride, columns.stride);
        }
    }
};

}  // namespace spiked::estimators::kernels

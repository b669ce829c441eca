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
    static constexpr std::size_t width = Pack::width;
    static constexpr std::size_t group = reflector_group;
    static constexpr std::size_t tile = Pack::many_registers ? 4 : 2;
    static_assert(column_tile % tile == 0);

    struct Group {
        const Real* y[group];
        Real triangle[group][group];  ///< T
        std::size_t first, end;
    };

    SPIKED_KERNEL static Real product(const Real* a, const Real* b, std::size_t first, std::size_t end) {
        Vector sum = Pack::set(0);
        for (std::size_t i = first; i < end; i += width) sum = Pack::fma(Pack::load(a + i), Pack::load(b + i), sum);
        return Pack::sum(sum);
    }

    SPIKED_KERNEL static Group gather(const Real* reflectors, std::size_t stride, const Real* scales, std::size_t start,
                                      std::size_t count, std::size_t length) {
        Group those{};
        those.first = start / width * width;
        those.end = length;
        for (std::size_t j = 0; j < group; ++j) {
            const bool there = start + j < count;
            those.y[j] = reflectors + (there ? start + j : start) * stride;
            const Real scale = there ? scales[start + j] : 0;
            Real overlaps[group] = {};
            for (std::size_t i = 0; i < j; ++i) overlaps[i] = product(those.y[i], those.y[j], those.first, length);
            for (std::size_t i = 0; i < j; ++i) {
                Real sum = 0;
                for (std::size_t l = i; l < j; ++l) sum += those.triangle[i][l] * overlaps[l];
                those.triangle[i][j] = -scale * sum;
            }
            those.triangle[j][j] = scale;
        }
        return those;
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
        Real overlap[group][tile];
        for (std::size_t j = 0; j < group; ++j)
            for (std::size_t c = 0; c < tile; ++c) overlap[j][c] = Pack::sum(sum[j][c]);
        Vector weight[group][tile];
        for (std::size_t j = 0; j < group; ++j)
            for (std::size_t c = 0; c < tile; ++c) {
                Real w = 0;
                for (std::size_t l = j; l < group; ++l) w += those.triangle[j][l] * overlap[l][c];
                weight[j][c] = Pack::set(w);
            }
        for (std::size_t i = those.first; i < those.end; i += width) {
            Vector column[tile];
            for (std::size_t c = 0; c < tile; ++c) column[c] = Pack::load(x + c * stride + i);
            for (std::size_t j = 0; j < group; ++j) {
                const Vector y = Pack::load(those.y[j] + i);
                for (std::size_t c = 0; c < tile; ++c) column[c] = Pack::fnma(y, weight[j][c], column[c]);
            }
            for (std::size_t c = 0; c < tile; ++c) Pack::store(x + c * stride + i, column[c]);
        }
    }

    SPIKED_KERNEL static void apply_all(const Real* reflectors, std::size_t stride, const Real* scales,
                                        std::size_t count, std::size_t length, const Columns<Real>& columns) {
        for (std::size_t start = (count + group - 1) / group * group; start > 0;) {
            start -= group;
            const Group those = gather(reflectors, stride, scales, start, count, length);
            for (std::size_t c = 0; c < columns.count; c += tile)
                apply(those, columns.entries + c * columns.stride, columns.stride);
        }
    }
};

}  // namespace spiked::estimators::kernels

#pragma once
#include "estimators/svd/decomposition_kernels.hpp"

#ifndef SPIKED_KERNEL
#define SPIKED_KERNEL
#endif

/// Applies products of Householder reflectors to vectors that lie side by side, one per lane. Four reflectors are
/// applied at a time: H_0 H_1 H_2 H_3 = I - Y T Y^T with T upper triangular.
namespace spiked::estimators::kernels {

template <class Pack>
struct Reflectors {
    using Real = typename Pack::Real;
    using Vector = typename Pack::Vector;
    static constexpr std::size_t width = Pack::width;
    static constexpr std::size_t group = reflector_group;
    static constexpr std::size_t lanes = applied_lanes;

    struct Group {
        const Real* y[group];
        Real triangle[group][group] = {};  ///< T
        std::size_t first, end;
    };

    template <class Place>
    SPIKED_KERNEL static void gather(const Real* reflectors, const Place& place, const Real* scales, std::size_t start,
                                     std::size_t count, std::size_t length, Group& current) {
        static_assert(group == 4);
        current.first = start;
        current.end = length;
        Real scale[group];
        for (std::size_t j = 0; j < group; ++j) {
            const bool there = start + j < count;
            current.y[j] = reflectors + place.column(there ? start + j : start);
            scale[j] = there ? scales[start + j] : 0;
        }
        Vector sum[6];
        for (Vector& some : sum) some = Pack::set(0);
        for (std::size_t i = start / width * width; i < length; i += width) {
            Vector y[group];
            for (std::size_t j = 0; j < group; ++j) y[j] = Pack::load(current.y[j] + i);
            for (std::size_t j = 1, at = 0; j < group; ++j)
                for (std::size_t l = 0; l < j; ++l, ++at) sum[at] = Pack::fma(y[l], y[j], sum[at]);
        }
        Real overlap[8];
        Pack::sums({sum[0], sum[1], sum[2], sum[3]}, overlap);
        Pack::sums({sum[4], sum[5], sum[5], sum[5]}, overlap + 4);
        make_triangle(scale, overlap, current);
    }

    /// T from the products y_l^T y_j of the reflectors, in the order (0, 1), (0, 2), (1, 2), (0, 3), ..
    SPIKED_KERNEL static void make_triangle(const Real (&scale)[group], const Real* overlap, Group& current) {
        for (std::size_t j = 0, at = 0; j < group; at += j, ++j) {
            for (std::size_t i = 0; i < j; ++i) {
                Real product = 0;
                for (std::size_t l = i; l < j; ++l) product += current.triangle[i][l] * overlap[at + l];
                current.triangle[i][j] = -scale[j] * product;
            }
            current.triangle[j][j] = scale[j];
        }
    }

    SPIKED_KERNEL static void prefetch(const Real* from, std::size_t size) {
        for (std::size_t i = 0; i < size; i += alignment / sizeof(Real)) __builtin_prefetch(from + i);
    }

    /// Adds (a row of Y)^T (a row of x) to the sums.
    template <std::size_t registers>
    SPIKED_KERNEL static inline __attribute__((always_inline)) void add_row(const Group& current, const Real* x,
                                                                            std::size_t i,
                                                                            Vector (&sum)[group][registers]) {
        Vector row[registers];
        for (std::size_t g = 0; g < registers; ++g) row[g] = Pack::load(x + i * lanes + g * width);
        for (std::size_t j = 0; j < group; ++j) {
            const Vector y = Pack::set(current.y[j][i]);
            for (std::size_t g = 0; g < registers; ++g) sum[j][g] = Pack::fma(y, row[g], sum[j][g]);
        }
    }

    /// The products of rows `from` to `end` of Y and x. Even and odd rows have separate sums.
    template <std::size_t registers>
    SPIKED_KERNEL static inline __attribute__((always_inline)) void multiply(const Group& current, const Real* x,
                                                                             std::size_t from, std::size_t end,
                                                                             Vector (&sum)[group][registers]) {
        Vector odd[group][registers];
        for (std::size_t j = 0; j < group; ++j)
            for (std::size_t g = 0; g < registers; ++g) sum[j][g] = odd[j][g] = Pack::set(0);
        std::size_t i = from;
        for (; i + 2 <= end; i += 2) {
            add_row<registers>(current, x, i, sum);
            add_row<registers>(current, x, i + 1, odd);
        }
        if (i < end) add_row<registers>(current, x, i, sum);
        for (std::size_t j = 0; j < group; ++j)
            for (std::size_t g = 0; g < registers; ++g) sum[j][g] = sum[j][g] + odd[j][g];
    }

    /// Applies a group to `registers` registers of lanes. Sums over more than `part` rows are made of parts, which
    /// keeps the rounding errors of many equal terms small; 0 means all rows.
    template <std::size_t registers, std::size_t part>
    SPIKED_KERNEL static void apply(const Group& current, Real* x) {
        Vector sum[group][registers];
        std::size_t i = current.end;
        if (part > 0 && current.first + part < current.end) i = current.first + part;
        multiply<registers>(current, x, current.first, i, sum);
        if constexpr (part > 0)
            while (i < current.end) {
                const std::size_t end = i + part < current.end ? i + part : current.end;
                Vector more[group][registers];
                multiply<registers>(current, x, i, end, more);
                for (std::size_t j = 0; j < group; ++j)
                    for (std::size_t g = 0; g < registers; ++g) sum[j][g] = sum[j][g] + more[j][g];
                i = end;
            }
        Vector weight[group][registers];
        for (std::size_t g = 0; g < registers; ++g) {
            for (std::size_t j = 0; j < group; ++j) {
                weight[j][g] = Pack::set(current.triangle[j][j]) * sum[j][g];
                for (std::size_t l = j + 1; l < group; ++l)
                    weight[j][g] = Pack::fma(Pack::set(current.triangle[j][l]), sum[l][g], weight[j][g]);
            }
        }
        for (i = current.first; i < current.end; ++i) {
            Vector row[registers];
            for (std::size_t g = 0; g < registers; ++g) row[g] = Pack::load(x + i * lanes + g * width);
            for (std::size_t j = 0; j < group; ++j) {
                const Vector y = Pack::set(current.y[j][i]);
                for (std::size_t g = 0; g < registers; ++g) row[g] = Pack::fnma(y, weight[j][g], row[g]);
            }
            for (std::size_t g = 0; g < registers; ++g) Pack::store(x + i * lanes + g * width, row[g]);
        }
    }

    template <std::size_t part>
    SPIKED_KERNEL static void apply_to_lanes(const Group& current, Real* vectors, std::size_t wanted) {
        std::size_t lane = 0;
        if constexpr (Pack::many_registers && 2 * width <= lanes)
            for (; lane + width < wanted; lane += 2 * width) apply<2, part>(current, vectors + lane);
        for (; lane < wanted; lane += width) apply<1, part>(current, vectors + lane);
    }

    /// Reflector k is stored from place.column(k) on.
    template <std::size_t part, class Place>
    SPIKED_KERNEL static void apply_all(const Real* reflectors, const Place& place, const Real* scales,
                                        std::size_t count, std::size_t length, Real* vectors, std::size_t wanted) {
        for (std::size_t start = (count + group - 1) / group * group; start > 0;) {
            start -= group;
            Group current;
            gather(reflectors, place, scales, start, count, length, current);
            if (start > 0) prefetch(reflectors + place.column(start - group) + start - group, group * (length - start));
            apply_to_lanes<part>(current, vectors, wanted);
        }
    }
};

}  // namespace spiked::estimators::kernels

#pragma once
#include <cmath>

#include "estimators/decomposition_kernels.hpp"

#ifndef SPIKED_KERNEL
#define SPIKED_KERNEL
#endif

/// Householder bidiagonalisation in one pass over the block a column (fused as in Howell, Demmel, Fulton, Hammarling,
/// Marmol 2008 and Van Zee, van de Geijn, Quintana-Orti 2014): while the rank-2 update of the step before is applied to
/// four columns, their products with the new left reflector are formed, and from these the products of the block with
/// the row that the right reflector is made of. 4 fma an entry and step, one load and one store.
namespace spiked::estimators::kernels {

template <class Pack>
struct Bidiagonalisation {
    using Real = typename Pack::Real;
    using Vector = typename Pack::Vector;
    static constexpr std::size_t width = Pack::width;

    /// Squares below this, beside a largest entry of about 1, are as good as zero.
    static constexpr Real nothing = sizeof(Real) == 8 ? Real(1e-280) : Real(1e-32);

    SPIKED_KERNEL static std::size_t floor(std::size_t i) { return i / width * width; }

    /// What makes (head, tail) a multiple of the first unit vector: I - scale w w^T, w = (1, factor tail).
    struct Reflector {
        Real head = 0, scale = 0, factor = 0;
    };
    SPIKED_KERNEL static Reflector reflector(Real head, Real tail_square) {
        if (!(tail_square > nothing)) return {head, 0, 0};
        const double alpha = head;
        const double norm = __builtin_sqrt(alpha * alpha + static_cast<double>(tail_square));
        const double beta = alpha >= 0.0 ? -norm : norm;
        return {static_cast<Real>(beta), static_cast<Real>((beta - alpha) / beta),
                static_cast<Real>(1.0 / (alpha - beta))};
    }

    /// w <- reflector's vector: zero from `zero` on, 1 at `head`, then the tail times its factor.
    SPIKED_KERNEL static void form(Real* w, std::size_t zero, std::size_t head, std::size_t end, Real factor) {
        const std::size_t first = floor(head + 1);
        const Vector scaling = Pack::set(factor);
        for (std::size_t i = first; i < end; i += width) Pack::store(w + i, Pack::load(w + i) * scaling);
        for (std::size_t i = zero; i < head; ++i) w[i] = 0;
        w[head] = 1;
    }

    SPIKED_KERNEL static Real tail_square(const Real* w, std::size_t from, std::size_t end) {
        Vector sum = Pack::set(0);
        std::size_t i = floor(from);
        if (i < end) {
            const Vector x = Pack::from(Pack::load(w + i), from - i);
            sum = x * x;
        }
        for (i += width; i < end; i += width) {
            const Vector x = Pack::load(w + i);
            sum = Pack::fma(x, x, sum);
        }
        return Pack::sum(sum);
    }

    /// The pass over `wide` columns: a <- a - u y - z v, then x = a^T w.
    template <std::size_t wide, bool pending>
    SPIKED_KERNEL static void update_and_project(Real* a, std::size_t stride, std::size_t first, std::size_t end,
                                                 const Real* u, const Real* z, const Real* w, const Real* y,
                                                 const Real* v, Real* x) {
        Vector sum[wide];
        Vector by_u[wide];
        Vector by_z[wide];
        for (std::size_t c = 0; c < wide; ++c) {
            sum[c] = Pack::set(0);
            if constexpr (pending) by_u[c] = Pack::set(y[c]), by_z[c] = Pack::set(v[c]);
        }
        for (std::size_t i = first; i < end; i += width) {
            const Vector along = Pack::load(w + i);
            Vector column[wide];
            for (std::size_t c = 0; c < wide; ++c) column[c] = Pack::load(a + c * stride + i);
            if constexpr (pending) {
                const Vector left = Pack::load(u + i);
                const Vector right = Pack::load(z + i);
                for (std::size_t c = 0; c < wide; ++c) {
                    column[c] = Pack::fnma(left, by_u[c], column[c]);
                    column[c] = Pack::fnma(right, by_z[c], column[c]);
                    Pack::store(a + c * stride + i, column[c]);
                }
            }
            for (std::size_t c = 0; c < wide; ++c) sum[c] = Pack::fma(column[c], along, sum[c]);
        }
        for (std::size_t c = 0; c < wide; ++c) x[c] = Pack::sum(sum[c]);
    }

    /// q <- q + a r.
    template <std::size_t wide>
    SPIKED_KERNEL static void accumulate(const Real* a, std::size_t stride, std::size_t first, std::size_t end,
                                         const Real* r, Real* q) {
        Vector by[wide];
        for (std::size_t c = 0; c < wide; ++c) by[c] = Pack::set(r[c]);
        for (std::size_t i = first; i < end; i += width) {
            Vector sum = Pack::load(q + i);
            for (std::size_t c = 0; c < wide; ++c) sum = Pack::fma(Pack::load(a + c * stride + i), by[c], sum);
            Pack::store(q + i, sum);
        }
    }

    struct Step {
        std::size_t row, first, end;
        const Real* u;  ///< of the step before
        const Real* z;
        const Real* v;
        const Real* w;  ///< this step's left reflector
        Real scale;
        Real* y;  ///< of the step before, then of this one
        Real* r;  ///< this step's row
        Real* q;
    };

    template <std::size_t wide>
    SPIKED_KERNEL static void pass(const Reduction<Real>& block, const Step& step, std::size_t j) {
        Real* a = block.left + j * block.left_stride;
        Real x[wide];
        if (step.row == 0)
            update_and_project<wide, false>(a, block.left_stride, step.first, step.end, nullptr, nullptr, step.w,
                                            nullptr, nullptr, x);
        else
            update_and_project<wide, true>(a, block.left_stride, step.first, step.end, step.u, step.z, step.w,
                                           step.y + j, step.v + j, x);
        for (std::size_t c = 0; c < wide; ++c) {
            step.y[j + c] = step.scale * x[c];
            step.r[j + c] = a[c * block.left_stride + step.row] - step.y[j + c];
        }
        accumulate<wide>(a, block.left_stride, step.first, step.end, step.r + j, step.q);
    }

    SPIKED_KERNEL static Real product(const Real* a, const Real* b, std::size_t first, std::size_t end) {
        Vector sum = Pack::set(0);
        for (std::size_t i = floor(first); i < end; i += width)
            sum = Pack::fma(Pack::load(a + i), Pack::load(b + i), sum);
        return Pack::sum(sum);
    }

    /// z = by_q q + by_a a - by_w w from entry `from` on (0 before), then a <- a - w y - z. Returns the square of what
    /// is left of a after entry `from`.
    SPIKED_KERNEL static Real finish(Real* z, const Real* q, Real* a, const Real* w, Real by_q, Real by_a, Real by_w,
                                     Real y, std::size_t from, std::size_t end) {
        const Vector times_q = Pack::set(by_q);
        const Vector times_a = Pack::set(by_a);
        const Vector times_w = Pack::set(by_w);
        const Vector times_y = Pack::set(y);
        Vector sum = Pack::set(0);
        for (std::size_t i = floor(from); i < end; i += width) {
            const Vector column = Pack::load(a + i);
            const Vector along = Pack::load(w + i);
            Vector right = Pack::fma(times_a, column, times_q * Pack::load(q + i));
            right = Pack::fnma(times_w, along, right);
            if (i < from) right = Pack::from(right, from - i);
            Pack::store(z + i, right);
            Vector left = Pack::fnma(along, times_y, column) - right;
            Pack::store(a + i, left);
            if (i <= from) left = Pack::from(left, from + 1 - i);
            sum = Pack::fma(left, left, sum);
        }
        return Pack::sum(sum);
    }

    SPIKED_KERNEL static void reduce(const Reduction<Real>& block) {
        const std::size_t n = block.columns;
        Real* const z = block.row_work;
        Real* const q = block.row_work + block.left_stride;
        const auto group = [](std::size_t k) { return k / reflector_group * reflector_group; };
        Real left_square = tail_square(block.left, 1, block.rows);
        for (std::size_t k = 0; k < n; ++k) {
            Real* const column = block.left + k * block.left_stride;
            const Reflector left = reflector(column[k], left_square);
            form(column, floor(group(k)), k, block.rows, left.factor);
            block.diagonal[k] = left.head;
            block.left_scale[k] = left.scale;
            if (k + 1 == n) break;

            Real* const row = block.right + k * block.right_stride;
            Step step{k,
                      floor(k),
                      block.rows,
                      column - block.left_stride,
                      z,
                      row - block.right_stride,
                      column,
                      left.scale,
                      block.column_work,
                      row,
                      q};
            for (std::size_t i = step.first; i < block.rows; i += width) Pack::store(q + i, Pack::set(0));
            std::size_t j = k + 1;
            for (; j + 4 <= n; j += 4) pass<4>(block, step, j);
            if (n - j == 3) pass<3>(block, step, j);
            if (n - j == 2) pass<2>(block, step, j);
            if (n - j == 1) pass<1>(block, step, j);

            const Reflector right = reflector(row[k + 1], tail_square(row, k + 2, n));
            form(row, floor(group(k)), k + 1, n, right.factor);
            block.off_diagonal[k] = right.head;
            block.right_scale[k] = right.scale;
            const Real overlap = right.scale == 0 ? 0 : product(block.column_work, row, k + 1, n);
            left_square = finish(z, q, column + block.left_stride, column, right.scale * right.factor,
                                 -right.scale * right.factor * right.head, right.scale * overlap,
                                 block.column_work[k + 1], k + 1, block.rows);
        }
    }
};

}  // namespace spiked::estimators::kernels

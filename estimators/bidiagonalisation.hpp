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
///
/// Reflectors are not normalised: w is the column or row itself with beta taken off its head, so nothing is divided
/// and what the right reflector needs (its norm, its product with y) grows with the pass.
namespace spiked::estimators::kernels {

template <class Pack>
struct Bidiagonalisation {
    using Real = typename Pack::Real;
    using Vector = typename Pack::Vector;
    using Four = typename Pack::Four;
    using FourDoubles [[gnu::vector_size(32)]] = double;
    static constexpr std::size_t width = Pack::width;
    static constexpr std::size_t panel = reduction_panel;
    static constexpr std::size_t most_column_bytes = 512;

    /// Squares below this, beside a largest entry of about 1, are as good as zero.
    static constexpr double nothing = sizeof(Real) == 8 ? 1e-280 : 1e-32;

    SPIKED_KERNEL static std::size_t floor(std::size_t i) { return i / width * width; }

    /// I - scale w w^T with w = (head - beta, tail) makes (head, tail) beta times the first unit vector.
    struct Reflector {
        Real beta, scale;
    };
    SPIKED_KERNEL static Reflector reflector(Real head, double tail_square) {
        if (!(tail_square > nothing)) return {head, 0};
        const double alpha = head;
        const double square = alpha * alpha + tail_square;
        const double norm = __builtin_sqrt(square);
        return {static_cast<Real>(alpha >= 0.0 ? -norm : norm),
                static_cast<Real>(1.0 / (square + __builtin_fabs(alpha) * norm))};
    }

    /// Takes beta off the head of column or row k, and zero for what is before it in its group of reflectors.
    SPIKED_KERNEL static void form(Real* w, std::size_t k, std::size_t head, Real beta) {
        std::size_t i = floor(k / reflector_group * reflector_group);
        for (; i + width <= head; i += width) Pack::store(w + i, Pack::set(0));
        const Vector betas = Pack::set(beta);
        const Vector at_head = Pack::from(betas, head - i) - Pack::from(betas, head + 1 - i);
        Pack::store(w + i, Pack::from(Pack::load(w + i), head - i) - at_head);
    }

    SPIKED_KERNEL static inline __attribute__((always_inline)) double total(const FourDoubles& parts) {
        return (parts[0] + parts[2]) + (parts[1] + parts[3]);
    }

    SPIKED_KERNEL static double tail_square(const Real* w, std::size_t from, std::size_t end) {
        typename Pack::Squares sum = Pack::no_squares();
        for (std::size_t i = floor(from); i < end; i += width) {
            Vector x = Pack::load(w + i);
            if (i < from) x = Pack::from(x, from - i);
            Pack::add_square(sum, x);
        }
        return Pack::total(sum);
    }

    struct Step {
        std::size_t row, first, end;
        const Real* u;  ///< left reflector of the step before
        const Real* z;
        const Real* v;  ///< right reflector of the step before
        const Real* w;  ///< left reflector of this step
        Real scale;
        Real* y;  ///< of the step before, then of this one
        Real* r;  ///< this step's row
        Real* q;
    };

    /// a <- a - u y - z v for the columns of a panel, and a^T w.
    template <bool pending>
    SPIKED_KERNEL static void update_and_project(const Step& step, Real* a, std::size_t stride, std::size_t j,
                                                 Real* projections) {
        Vector sum[panel];
        Vector by_u[panel];
        Vector by_z[panel];
        for (std::size_t c = 0; c < panel; ++c) {
            sum[c] = Pack::set(0);
            if constexpr (pending) by_u[c] = Pack::set(step.y[j + c]), by_z[c] = Pack::set(step.v[j + c]);
        }
        for (std::size_t i = step.first; i < step.end; i += width) {
            const Vector along = Pack::load(step.w + i);
            Vector left;
            Vector right;
            if constexpr (pending) left = Pack::load(step.u + i), right = Pack::load(step.z + i);
            for (std::size_t c = 0; c < panel; ++c) {
                Vector column = Pack::load(a + c * stride + i);
                if constexpr (pending) {
                    column = Pack::fnma(left, by_u[c], column);
                    column = Pack::fnma(right, by_z[c], column);
                    Pack::store(a + c * stride + i, column);
                }
                sum[c] = Pack::fma(column, along, sum[c]);
            }
        }
        Pack::sums(sum[0], sum[1], sum[2], sum[3], projections);
    }

    /// q <- q + a r.
    template <std::size_t wide>
    SPIKED_KERNEL static void accumulate(const Step& step, const Real* a, std::size_t stride, std::size_t j) {
        Vector by[wide];
        for (std::size_t c = 0; c < wide; ++c) by[c] = Pack::set(step.r[j + c]);
        for (std::size_t i = step.first; i < step.end; i += width) {
            Vector sum = Pack::load(step.q + i);
            for (std::size_t c = 0; c < wide; ++c) sum = Pack::fma(Pack::load(a + c * stride + i), by[c], sum);
            Pack::store(step.q + i, sum);
        }
    }

    /// Of the row r that the right reflector is made of: its square without its head, its product with y. In double,
    /// because the rounding of many equal terms adds up, and a reflector is as orthogonal as the square is right.
    struct Row {
        FourDoubles squares{}, overlaps{};
    };

    /// A panel's part of y and r.
    template <bool pending>
    SPIKED_KERNEL static inline __attribute__((always_inline)) void project(const Step& step, Real* a,
                                                                            std::size_t stride, std::size_t j,
                                                                            Row& found) {
        Four x;
        update_and_project<pending>(step, a, stride, j, reinterpret_cast<Real*>(&x));
        const Four y = step.scale * x;
        const Real* const row = a + step.row;
        const Four r = Four{row[0], row[stride], row[2 * stride], row[3 * stride]} - step.w[step.row] * y;
        __builtin_memcpy(step.y + j, &y, sizeof y);
        __builtin_memcpy(step.r + j, &r, sizeof r);
        FourDoubles exact = __builtin_convertvector(r, FourDoubles);
        found.overlaps += __builtin_convertvector(y, FourDoubles) * exact;
        if (j == step.row + 1) exact[0] = 0;
        found.squares += exact * exact;
    }

    /// Two panels at a time where both stay in the first cache; their sums are awaited while the next are updated.
    template <bool pending>
    SPIKED_KERNEL static void pass(const Reduction<Real>& block, const Step& step, Row& found) {
        const std::size_t stride = block.left_stride;
        for (std::size_t i = step.first; i < step.end; i += width) Pack::store(step.q + i, Pack::set(0));
        Real* const left = block.left;
        std::size_t j = step.row + 1;
        if (block.rows * sizeof(Real) <= most_column_bytes) {
            std::size_t waiting = 0;
            for (; j + panel < block.columns; j += 2 * panel) {
                project<pending>(step, left + j * stride, stride, j, found);
                project<pending>(step, left + (j + panel) * stride, stride, j + panel, found);
                if (waiting > 0) accumulate<2 * panel>(step, left + waiting * stride, stride, waiting);
                waiting = j;
            }
            if (waiting > 0) accumulate<2 * panel>(step, left + waiting * stride, stride, waiting);
        }
        for (; j < block.columns; j += panel) {
            project<pending>(step, left + j * stride, stride, j, found);
            accumulate<panel>(step, left + j * stride, stride, j);
        }
    }

    /// z = scale (q - beta a - overlap w) from entry `from` on (0 before), then a <- a - w y - z head. Returns the
    /// square of what is left of a after entry `from`.
    SPIKED_KERNEL static double finish(const Step& step, Real* z, Real* a, Real scale, Real beta, Real overlap,
                                       Real head, Real y, std::size_t from) {
        const Vector by_q = Pack::set(scale);
        const Vector by_a = Pack::set(scale * beta);
        const Vector by_w = Pack::set(scale * overlap);
        const Vector times_y = Pack::set(y);
        const Vector times_head = Pack::set(head);
        typename Pack::Squares sum = Pack::no_squares();
        for (std::size_t i = floor(from); i < step.end; i += width) {
            const Vector column = Pack::load(a + i);
            const Vector along = Pack::load(step.w + i);
            Vector right = Pack::fnma(by_a, column, by_q * Pack::load(step.q + i));
            right = Pack::fnma(by_w, along, right);
            if (i < from) right = Pack::from(right, from - i);
            Pack::store(z + i, right);
            Vector left = Pack::fnma(right, times_head, Pack::fnma(along, times_y, column));
            Pack::store(a + i, left);
            if (i <= from) left = Pack::from(left, from + 1 - i);
            Pack::add_square(sum, left);
        }
        return Pack::total(sum);
    }

    SPIKED_KERNEL static void reduce(const Reduction<Real>& block) {
        const std::size_t n = block.columns;
        Real* const y = block.column_work;
        Real* const z = block.row_work;
        Real* const q = block.row_work + block.left_stride;
        for (std::size_t j = 0; j < block.right_stride; ++j) y[j] = 0;
        double left_square = tail_square(block.left, 1, block.rows);
        for (std::size_t k = 0; k < n; ++k) {
            Real* const column = block.left + k * block.left_stride;
            const Reflector left = reflector(column[k], left_square);
            form(column, k, k, left.beta);
            block.diagonal[k] = left.beta;
            block.left_scale[k] = left.scale;
            if (k + 1 == n) break;

            Real* const row = block.right + k * block.right_stride;
            const Step step{
                k, floor(k), block.rows, column - block.left_stride, z, row - block.right_stride, column, left.scale,
                y, row,      q};
            Row found;
            if (k == 0)
                pass<false>(block, step, found);
            else
                pass<true>(block, step, found);

            const Reflector right = reflector(row[k + 1], total(found.squares));
            form(row, k, k + 1, right.beta);
            block.off_diagonal[k] = right.beta;
            block.right_scale[k] = right.scale;
            left_square =
                finish(step, z, column + block.left_stride, right.scale, right.beta,
                       static_cast<Real>(total(found.overlaps)) - right.beta * y[k + 1], row[k + 1], y[k + 1], k + 1);
        }
    }
};

}  // namespace spiked::estimators::kernels

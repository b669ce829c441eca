#pragma once
#include "core/runtime/stop_point.hpp"
#include "estimators/svd/bidiagonalisation.hpp"

/// Householder tridiagonalisation of a symmetric matrix, whose columns are stored from their diagonal tile on, with one
/// pass over the matrix per column: while the rank-2 update of the previous step is applied, the product with the next
/// reflector is formed from both triangles at once. The cost per step and entry of the lower triangle is 4 fma, one
/// load and one store.
namespace spiked::estimators::kernels {

template <class Pack>
struct Tridiagonalisation {
    using Vector = typename Pack::Vector;
    using Columns = Bidiagonalisation<Pack>;
    static constexpr std::size_t width = Pack::width;
    static constexpr std::size_t wide = 4;  ///< columns that share loads
    static constexpr std::size_t tile = width > wide ? width : wide;

    struct Step {
        std::size_t first, end;
        const double* u;  ///< reflector of the previous step, with its z
        const double* z;
        const double* w;  ///< reflector of this step
        double* p;        ///< output: the matrix times w
    };

    /// For the rows `from` to `to` of a panel of columns: a <- a - u z^T - z u^T, sum += a^T w and, below the diagonal
    /// tile, p += a w.
    template <bool pending, bool below>
    SPIKED_KERNEL static inline __attribute__((always_inline)) void rows(const Step& step, double* a,
                                                                         std::size_t stride, std::size_t column,
                                                                         std::size_t from, std::size_t to,
                                                                         Vector (&sum)[wide]) {
        Vector by_u[wide];
        Vector by_z[wide];
        Vector by_w[wide];
        for (std::size_t c = 0; c < wide; ++c) {
            if constexpr (pending) by_u[c] = Pack::set(step.z[column + c]), by_z[c] = Pack::set(step.u[column + c]);
            if constexpr (below) by_w[c] = Pack::set(step.w[column + c]);
        }
        for (std::size_t i = from; i < to; i += width) {
            const Vector along = Pack::load(step.w + i);
            Vector u;
            Vector z;
            Vector p;
            if constexpr (pending) u = Pack::load(step.u + i), z = Pack::load(step.z + i);
            if constexpr (below) p = Pack::load(step.p + i);
            for (std::size_t c = 0; c < wide; ++c) {
                Vector entries = Pack::load(a + c * stride + i);
                if constexpr (pending) {
                    entries = Pack::fnma(u, by_u[c], entries);
                    entries = Pack::fnma(z, by_z[c], entries);
                    Pack::store(a + c * stride + i, entries);
                }
                sum[c] = Pack::fma(entries, along, sum[c]);
                if constexpr (below) p = Pack::fma(entries, by_w[c], p);
            }
            if constexpr (below) Pack::store(step.p + i, p);
        }
    }

    template <bool pending>
    SPIKED_KERNEL static void pass(const SymmetricReduction& matrix, const Step& step, bool leftward) {
        for (std::size_t i = step.first; i < step.end; i += width) Pack::store(step.p + i, Pack::set(0.0));
        const std::size_t panels = (matrix.size - step.first + wide - 1) / wide;
        for (std::size_t panel = 0; panel < panels; ++panel) {
            const std::size_t column = step.first + wide * (leftward ? panels - 1 - panel : panel);
            const std::size_t top = column / tile * tile;
            double* const a = matrix.entries + column * matrix.stride;
            Vector sum[wide];
            for (Vector& of_column : sum) of_column = Pack::set(0.0);
            rows<pending, false>(step, a, matrix.stride, column, top, top + tile, sum);
            rows<pending, true>(step, a, matrix.stride, column, top + tile, step.end, sum);
            double x[wide];
            Pack::sums(sum, x);
            for (std::size_t c = 0; c < wide; ++c) step.p[column + c] += x[c];
        }
    }

    SPIKED_KERNEL static double product(const double* a, const double* b, std::size_t from, std::size_t to) {
        Vector sum = Pack::set(0.0);
        for (std::size_t i = from; i < to; i += width) sum = Pack::fma(Pack::load(a + i), Pack::load(b + i), sum);
        return Pack::sum(sum);
    }

    SPIKED_KERNEL static void reduce(const SymmetricReduction& matrix) {
        const std::size_t n = matrix.size;
        const std::size_t end = (n + tile - 1) / tile * tile;
        const Packed<double> place(n);
        double* const z = matrix.work;
        double* const p = matrix.work + matrix.stride;
        double* w = matrix.reflectors;
        const double* u = nullptr;
        Columns::clear(w, 0, 1);
        Columns::copy(matrix.entries, w, 1, end);
        matrix.diagonal[0] = matrix.entries[0];
        double square = Columns::tail_square(w, 2, end);
        for (std::size_t k = 0; k + 1 < n; ++k) {
            stop_point();
            const auto [beta, scale] = Columns::reflector(w[k + 1], square);
            Columns::subtract_from_head(w, k + 1, beta);
            matrix.off_diagonal[k] = beta;
            matrix.scales[k] = scale;
            const Step step{(k + 1) / tile * tile, end, u, z, w, p};
            if (k == 0)
                pass<false>(matrix, step, false);
            else
                pass<true>(matrix, step, k % 2 == 1);
            const std::size_t next = k + 1;
            const double half = 0.5 * scale * scale * product(p, w, step.first, end);
            const double head = w[next];
            const double head_z = scale * p[next] - half * head;
            const double* const a = matrix.entries + next * matrix.stride;
            matrix.diagonal[next] = a[next] - 2.0 * head * head_z;
            double* const to = matrix.reflectors + place.column(next);
            if (next + 1 < n) Columns::clear(to, next, next + 1);
            typename Pack::Squares squares = Pack::no_squares();
            for (std::size_t i = step.first; i < end; i += width) {
                const Vector along = Pack::load(w + i);
                Vector over = Pack::fnma(Pack::set(half), along, Pack::set(scale) * Pack::load(p + i));
                if (i < next) over = Pack::from(over, next - i < width ? next - i : width);
                Pack::store(z + i, over);
                if (next + 1 == n || i + width <= next) continue;
                Vector column =
                    Pack::fnma(over, Pack::set(head), Pack::fnma(along, Pack::set(head_z), Pack::load(a + i)));
                if (i < next + 1) column = Pack::from(column, next + 1 - i);
                Pack::store(to + i, column);
                if (i < next + 2) column = Pack::from(column, next + 2 - i < width ? next + 2 - i : width);
                Pack::add_square(squares, column);
            }
            square = Pack::total(squares);
            u = w;
            w = to;
        }
    }
};

}  // namespace spiked::estimators::kernels

#pragma once
#include "core/runtime/stop_point.hpp"
#include "estimators/svd/bidiagonal_tolerances.hpp"
#include "estimators/svd/decomposition_kernels.hpp"

#ifndef SPIKED_KERNEL
#define SPIKED_KERNEL
#endif

/// Householder bidiagonalisation with one pass over the block per column (fused as in Howell, Demmel, Fulton,
/// Hammarling, Marmol 2008 and Van Zee, van de Geijn, Quintana-Orti 2014): while the rank-2 update of the previous step
/// is applied to a panel of columns, their products with the new left reflector are formed, and from these the products
/// of the block with the row that defines the right reflector. The cost per entry and step is 4 fma, one load and one
/// store.
///
/// Reflectors are not normalised: w is the column or row itself with beta subtracted from its head. Thus nothing is
/// divided, and the quantities that the right reflector needs (its norm, its product with y) are accumulated during the
/// pass. The pass multiplies by the unmodified column and corrects for beta afterwards, so that it need not wait for
/// the square root. Passes alternate between rightward and leftward, so that each finds in the L1 cache what the
/// previous one left there.
namespace spiked::estimators::kernels {

template <class Pack>
struct Bidiagonalisation {
    using Real = typename Pack::Real;
    using Vector = typename Pack::Vector;
    template <class Number, std::size_t size>
    struct Short {
        using Type [[gnu::vector_size(size * sizeof(Number))]] = Number;
    };
    static constexpr std::size_t width = Pack::width;
    static constexpr std::size_t short_column_bytes = 512;

    SPIKED_KERNEL static std::size_t floor(std::size_t i) { return i / width * width; }

    /// The reflector I - scale w w^T with w = (head - beta, tail) maps (head, tail) to beta times the first unit
    /// vector.
    struct Reflector {
        Real beta, scale;
    };
    SPIKED_KERNEL static Reflector reflector(Real head, double tail_square) {
        if (!(tail_square > bidiagonal::negligible_square<Real>)) return {head, 0};
        const double alpha = head;
        const double square = alpha * alpha + tail_square;
        const double norm = __builtin_sqrt(square);
        return {static_cast<Real>(alpha >= 0.0 ? -norm : norm),
                static_cast<Real>(1.0 / (square + __builtin_fabs(alpha) * norm))};
    }

    /// Sets the entries from the start of the group of reflector k to the register of its head to zero.
    SPIKED_KERNEL static void clear(Real* w, std::size_t k, std::size_t head) {
        for (std::size_t i = floor(k / reflector_group * reflector_group); i + width <= head; i += width)
            Pack::store(w + i, Pack::set(0));
    }

    /// Subtracts beta from the head of a column or row.
    SPIKED_KERNEL static void subtract_from_head(Real* w, std::size_t head, Real beta) {
        const std::size_t i = floor(head);
        const Vector betas = Pack::set(beta);
        const Vector at_head = Pack::from(betas, head - i) - Pack::from(betas, head + 1 - i);
        Pack::store(w + i, Pack::load(w + i) - at_head);
    }

    /// Copies a column or row from its head on; entries before the head become zero.
    SPIKED_KERNEL static void copy(const Real* from, Real* to, std::size_t head, std::size_t end) {
        std::size_t i = floor(head);
        Pack::store(to + i, Pack::from(Pack::load(from + i), head - i));
        for (i += width; i < end; i += width) Pack::store(to + i, Pack::load(from + i));
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
        const Real* u;  ///< left reflector of the previous step
        const Real* z;
        const Real* w;  ///< column of this step
        Reflector left;
        Real head;           ///< head of the left reflector
        std::size_t stride;  ///< stride of the block
        Real* y;             ///< first that of the previous step, then that of this one
        Real* r;             ///< first the right reflector of the previous step, then the row of this one
        Real* q;
    };

    /// Columns, from `first` on, that share the loads of u, z and w.
    struct Panel {
        Real* entries;
        std::size_t first;
    };

    /// Updates the columns of a panel, a <- a - u y - z v, and computes a^T w. With `waiting`, it also adds the
    /// contribution of an earlier panel: q <- q + b r.
    template <bool pending, bool waiting, std::size_t wide>
    SPIKED_KERNEL static inline __attribute__((always_inline)) void update_and_project(const Step& step,
                                                                                       const Panel& panel,
                                                                                       const Panel& earlier,
                                                                                       Vector (&sum)[wide]) {
        const std::size_t stride = step.stride;
        Real* const a = panel.entries;
        const Real* const b = earlier.entries;
        Vector by_u[wide];
        Vector by_z[wide];
        Vector by[wide];
        for (std::size_t c = 0; c < wide; ++c) {
            sum[c] = Pack::set(0);
            if constexpr (pending)
                by_u[c] = Pack::set(step.y[panel.first + c]), by_z[c] = Pack::set(step.r[panel.first + c]);
            if constexpr (waiting) by[c] = Pack::set(step.r[earlier.first + c]);
        }
        for (std::size_t i = step.first; i < step.end; i += width) {
            const Vector along = Pack::load(step.w + i);
            Vector left;
            Vector right;
            Vector q;
            if constexpr (pending) left = Pack::load(step.u + i), right = Pack::load(step.z + i);
            if constexpr (waiting) q = Pack::load(step.q + i);
            for (std::size_t c = 0; c < wide; ++c) {
                Vector column = Pack::load(a + c * stride + i);
                if constexpr (pending) {
                    column = Pack::fnma(left, by_u[c], column);
                    column = Pack::fnma(right, by_z[c], column);
                    Pack::store(a + c * stride + i, column);
                }
                sum[c] = Pack::fma(column, along, sum[c]);
                if constexpr (waiting) q = Pack::fma(Pack::load(b + c * stride + i), by[c], q);
            }
            if constexpr (waiting) Pack::store(step.q + i, q);
        }
    }

    /// Adds the contribution of a panel: q <- q + a r.
    template <std::size_t wide>
    SPIKED_KERNEL static inline __attribute__((always_inline)) void accumulate(const Step& step, const Panel& panel) {
        Vector by[wide];
        for (std::size_t c = 0; c < wide; ++c) by[c] = Pack::set(step.r[panel.first + c]);
        for (std::size_t i = step.first; i < step.end; i += width) {
            Vector sum = Pack::load(step.q + i);
            for (std::size_t c = 0; c < wide; ++c)
                sum = Pack::fma(Pack::load(panel.entries + c * step.stride + i), by[c], sum);
            Pack::store(step.q + i, sum);
        }
    }

    /// Sums over the row r that defines the right reflector: its squared norm without its head, and its product with y.
    /// They are in double, because the rounding errors of many equal terms add up, and a reflector is only as
    /// orthogonal as its squared norm is accurate.
    template <std::size_t wide>
    struct Sums {
        typename Short<double, wide>::Type squares{}, overlaps{};
    };
    struct Row {
        Sums<4> of_four;
        Sums<8> of_eight;
        template <std::size_t wide>
        SPIKED_KERNEL inline __attribute__((always_inline)) Sums<wide>& of() {
            if constexpr (wide == 4)
                return of_four;
            else
                return of_eight;
        }
    };
    template <std::size_t size>
    SPIKED_KERNEL static inline __attribute__((always_inline)) double total(
        const typename Short<double, size>::Type& parts) {
        double sum = 0.0;
        for (std::size_t c = 0; c < size; c += 4) sum += (parts[c] + parts[c + 2]) + (parts[c + 1] + parts[c + 3]);
        return sum;
    }

    /// Converts to double. Pack::widened is used where it exists, because compilers convert eight numbers in two
    /// halves.
    template <class Reals, class Doubles>
    SPIKED_KERNEL static inline __attribute__((always_inline)) void widen(const Reals& x, Doubles& to) {
        if constexpr (requires { Pack::widened(x); })
            to = Pack::widened(x);
        else
            to = __builtin_convertvector(x, Doubles);
    }

    /// Computes a panel's entries of y and r and, with `waiting`, the contribution of an earlier panel to q.
    template <bool pending, bool waiting, std::size_t wide>
    SPIKED_KERNEL static inline __attribute__((always_inline)) void project(const Step& step, const Panel& panel,
                                                                            const Panel& earlier, Row& found) {
        using Reals = typename Short<Real, wide>::Type;
        using Doubles = typename Short<double, wide>::Type;
        Vector sum[wide];
        update_and_project<pending, waiting, wide>(step, panel, earlier, sum);
        const Real* const row = panel.entries + step.row;
        Reals entries;
        for (std::size_t c = 0; c < wide; ++c) entries[c] = row[c * step.stride];
        Reals x;
        Pack::sums(sum, reinterpret_cast<Real*>(&x));
        const Reals y = step.left.scale * (x - step.left.beta * entries);
        const Reals r = entries - step.head * y;
        __builtin_memcpy(step.y + panel.first, &y, sizeof y);
        __builtin_memcpy(step.r + panel.first, &r, sizeof r);
        Sums<wide>& sums = found.template of<wide>();
        Doubles exact;
        Doubles along;
        widen(r, exact);
        widen(y, along);
        sums.overlaps += along * exact;
        if (panel.first == step.row + 1) exact[0] = 0;
        sums.squares += exact * exact;
    }

    /// The panels of `wide` columns of a step, counted from the left or from the right.
    template <std::size_t wide>
    struct Panels {
        SPIKED_KERNEL Panels(const Reduction<Real>& block, const Step& step)
            : entries(block.entries),
              stride(block.stride),
              start(step.row + 1),
              count((block.columns - start + wide - 1) / wide),
              leftward(step.row % 2 == 1) {}
        SPIKED_KERNEL Panel operator[](std::size_t i) const {
            const std::size_t first = start + wide * (leftward ? count - 1 - i : i);
            return {entries + first * stride, first};
        }
        Real* entries;
        std::size_t stride, start, count;
        bool leftward;
    };

    /// The contribution of a panel to q is added while the next panel is updated. This balances loads and fma, and
    /// nothing waits for the sums across registers.
    template <bool pending>
    SPIKED_KERNEL static void pass(const Reduction<Real>& block, const Step& step, Row& found) {
        const Panels<4> panels(block, step);
        project<pending, false, 4>(step, panels[0], panels[0], found);
        for (std::size_t i = 1; i < panels.count; ++i) project<pending, true, 4>(step, panels[i], panels[i - 1], found);
        accumulate<4>(step, panels[panels.count - 1]);
    }

    /// The same for short columns, where the overhead of a panel exceeds the work on its entries: panels are fewer and
    /// wider.
    template <bool pending>
    SPIKED_KERNEL static void pass_short(const Reduction<Real>& block, const Step& step, Row& found) {
        const Panels<8> panels(block, step);
        const std::size_t last = panels.start + 8 * (panels.count - 1);
        const bool narrow = last + 4 >= block.columns;
        for (std::size_t i = 0; i < panels.count; ++i) {
            const Panel panel = panels[i];
            if constexpr (Pack::many_registers) {
                if (narrow && panel.first == last)
                    project<pending, false, 4>(step, panel, panel, found);
                else
                    project<pending, false, 8>(step, panel, panel, found);
            } else {
                const Panel half{panel.entries + 4 * step.stride, panel.first + 4};
                project<pending, false, 4>(step, panel, panel, found);
                if (!narrow || panel.first != last) project<pending, false, 4>(step, half, half, found);
            }
            if (i > 0) accumulate<8>(step, panels[i - 1]);
        }
        accumulate<8>(step, panels[panels.count - 1]);
    }

    template <bool pending>
    SPIKED_KERNEL static void pass_any(const Reduction<Real>& block, const Step& step, Row& found) {
        for (std::size_t i = step.first; i < step.end; i += width) Pack::store(step.q + i, Pack::set(0));
        if (block.rows * sizeof(Real) <= short_column_bytes)
            pass_short<pending>(block, step, found);
        else
            pass<pending>(block, step, found);
    }

    /// Computes z = scale (q - beta a - overlap w) from entry `from` on (0 before), and writes the next column, a - w y
    /// - z head, to `to`. Returns the squared norm of this column after entry `from`.
    SPIKED_KERNEL static double finish(const Step& step, Real* z, const Real* a, Real* to, const Reflector& right,
                                       Real overlap, Real head, Real y, std::size_t from) {
        const Vector by_q = Pack::set(right.scale);
        const Vector by_a = Pack::set(right.scale * right.beta);
        const Vector by_w = Pack::set(right.scale * overlap);
        const Vector times_y = Pack::set(y);
        const Vector times_head = Pack::set(head);
        typename Pack::Squares sum = Pack::no_squares();
        for (std::size_t i = floor(from); i < step.end; i += width) {
            const Vector column = Pack::load(a + i);
            const Vector along = Pack::load(step.w + i);
            Vector over = Pack::fnma(by_a, column, by_q * Pack::load(step.q + i));
            over = Pack::fnma(by_w, along, over);
            if (i < from) over = Pack::from(over, from - i);
            Pack::store(z + i, over);
            Vector next = Pack::fnma(over, times_head, Pack::fnma(along, times_y, column));
            if (i < from) next = Pack::from(next, from - i);
            Pack::store(to + i, next);
            if (i <= from) next = Pack::from(next, from + 1 - i);
            Pack::add_square(sum, next);
        }
        return Pack::total(sum);
    }

    SPIKED_KERNEL static void reduce(const Reduction<Real>& block) {
        const std::size_t n = block.columns;
        Real* const y = block.column_work;
        Real* const r = block.column_work + (n + reduction_strip + width - 1) / width * width;
        Real* const z = block.row_work;
        Real* const q = block.row_work + block.stride;
        const Packed<Real> left_place(block.rows);
        const Packed<Real> right_place(n);
        Real* w = block.left;
        const Real* u = nullptr;
        copy(block.entries, w, 0, block.rows);
        double left_square = tail_square(w, 1, block.rows);
        for (std::size_t k = 0; k < n; ++k) {
            stop_point();
            const Reflector left = reflector(w[k], left_square);
            const Real head = w[k] - left.beta;
            clear(w, k, k);
            block.diagonal[k] = left.beta;
            block.left_scale[k] = left.scale;
            if (k + 1 == n) {
                subtract_from_head(w, k, left.beta);
                break;
            }
            const Step step{k, floor(k), block.rows, u, z, w, left, head, block.stride, y, r, q};
            Row found;
            if (k == 0)
                pass_any<false>(block, step, found);
            else
                pass_any<true>(block, step, found);
            subtract_from_head(w, k, left.beta);

            const double square = total<4>(found.of_four.squares) + total<8>(found.of_eight.squares);
            const double overlap = total<4>(found.of_four.overlaps) + total<8>(found.of_eight.overlaps);
            const Reflector right = reflector(r[k + 1], square);
            block.off_diagonal[k] = right.beta;
            block.right_scale[k] = right.scale;
            u = w;
            w = block.left + left_place.column(k + 1);
            left_square =
                finish(step, z, block.entries + (k + 1) * block.stride, w, right,
                       static_cast<Real>(overlap) - right.beta * y[k + 1], r[k + 1] - right.beta, y[k + 1], k + 1);
            Real* const row = block.right + right_place.column(k);
            clear(row, k, k + 1);
            copy(r, row, k + 1, n);
            subtract_from_head(row, k + 1, right.beta);
        }
    }
};

}  // namespace spiked::estimators::kernels

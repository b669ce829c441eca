#pragma once
#include "estimators/svd/bidiagonalisation.hpp"
#include "estimators/svd/reflectors.hpp"

/// Householder factorisation of a panel of columns with one pass over the panel per column: while the previous
/// reflector is applied to a column, its product with the next one is formed. Reflectors are made as in
/// bidiagonalisation.hpp.
namespace spiked::estimators::kernels {

template <class Pack>
struct PanelFactorisation {
    using Real = typename Pack::Real;
    using Vector = typename Pack::Vector;
    using Bidiagonal = Bidiagonalisation<Pack>;
    static constexpr std::size_t width = Pack::width;

    /// a <- a - u y for the column of the next reflector.
    SPIKED_KERNEL static void update(const Real* u, Real y, std::size_t first, std::size_t end, Real* a) {
        const Vector by = Pack::set(y);
        for (std::size_t i = first; i < end; i += width)
            Pack::store(a + i, Pack::fnma(Pack::load(u + i), by, Pack::load(a + i)));
    }

    /// The reflectors of a step: `u` of the previous one, not yet applied, and `w` with its scale.
    struct Step {
        const Real* u;
        const Real* w;
        Real scale;
        std::size_t first, end;
    };

    /// Updates `wide` columns, a <- a - u y, and computes y = scale a^T w for the next step.
    template <bool pending, std::size_t wide>
    SPIKED_KERNEL static inline __attribute__((always_inline)) void pass(const Step& step, Real* a, std::size_t stride,
                                                                         Real* y) {
        Vector by[wide];
        Vector sum[wide];
        for (std::size_t c = 0; c < wide; ++c) by[c] = Pack::set(y[c]), sum[c] = Pack::set(0);
        for (std::size_t i = step.first; i < step.end; i += width) {
            const Vector along = Pack::load(step.w + i);
            Vector before;
            if constexpr (pending) before = Pack::load(step.u + i);
            for (std::size_t c = 0; c < wide; ++c) {
                Vector column = Pack::load(a + c * stride + i);
                if constexpr (pending) {
                    column = Pack::fnma(before, by[c], column);
                    Pack::store(a + c * stride + i, column);
                }
                sum[c] = Pack::fma(column, along, sum[c]);
            }
        }
        if constexpr (wide == 1) {
            y[0] = step.scale * Pack::sum(sum[0]);
        } else {
            Real products[wide];
            Pack::sums(sum, products);
            for (std::size_t c = 0; c < wide; ++c) y[c] = step.scale * products[c];
        }
    }

    template <bool pending>
    SPIKED_KERNEL static void pass_all(const Panel<Real>& panel, const Step& step, std::size_t from) {
        const std::size_t stride = panel.stride;
        std::size_t c = from;
        if constexpr (Pack::many_registers)
            for (; c + 8 <= panel.columns; c += 8)
                pass<pending, 8>(step, panel.entries + c * stride, stride, panel.work + c);
        for (; c + 4 <= panel.columns; c += 4)
            pass<pending, 4>(step, panel.entries + c * stride, stride, panel.work + c);
        for (; c < panel.columns; ++c) pass<pending, 1>(step, panel.entries + c * stride, stride, panel.work + c);
    }

    SPIKED_KERNEL static void factor(const Panel<Real>& panel) {
        const std::size_t count = panel.rows < panel.columns ? panel.rows : panel.columns;
        const Real* u = nullptr;
        for (std::size_t j = 0; j < panel.columns; ++j) {
            Real* const w = panel.entries + j * panel.stride;
            Real* const column = panel.triangle + j * panel.columns;
            if (u != nullptr) {
                const std::size_t last = j < count ? j - 1 : count - 1;
                update(u, panel.work[j], Bidiagonal::floor(last), panel.rows, w);
            }
            for (std::size_t i = 0; i < j && i < count; ++i) column[i] = w[i];
            if (j >= count) continue;
            const auto reflector = Bidiagonal::reflector(w[j], Bidiagonal::tail_square(w, j + 1, panel.rows));
            column[j] = reflector.beta;
            panel.scales[j] = reflector.scale;
            for (std::size_t i = 0; i < j; ++i) w[i] = 0;
            Bidiagonal::subtract_from_head(w, j, reflector.beta);
            const Step step{u, w, reflector.scale, Bidiagonal::floor(u == nullptr ? j : j - 1), panel.rows};
            if (u == nullptr)
                pass_all<false>(panel, step, j + 1);
            else
                pass_all<true>(panel, step, j + 1);
            u = w;
        }
    }

    static constexpr std::size_t part = 64;  ///< rows whose products are added up by themselves
    struct Strided {
        std::size_t stride;
        [[nodiscard]] std::size_t column(std::size_t k) const { return k * stride; }
    };
    SPIKED_KERNEL static void apply(const Panel<Real>& panel, Real* vectors, std::size_t wanted) {
        const std::size_t count = panel.rows < panel.columns ? panel.rows : panel.columns;
        Reflectors<Pack>::template apply_all<part>(panel.entries, Strided{panel.stride}, panel.scales, count,
                                                   panel.rows, vectors, wanted);
    }
};

}  // namespace spiked::estimators::kernels

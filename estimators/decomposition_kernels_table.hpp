#pragma once
#include "estimators/bidiagonal_values.hpp"
#include "estimators/bidiagonalisation.hpp"
#include "estimators/reflectors.hpp"
#include "estimators/twisted_vectors.hpp"

/// The table of kernels for given registers: included by the one file of each instruction set.
namespace spiked::estimators::kernels {

template <class Pack>
SPIKED_KERNEL double largest(const typename Pack::Real* entries, std::size_t count) {
    using Real = typename Pack::Real;
    constexpr std::size_t width = Pack::width;
    typename Pack::Vector top[2] = {Pack::set(0), Pack::set(0)};
    typename Pack::Vector wrong[2] = {Pack::set(0), Pack::set(0)};  // 0 * x is NaN for NaN and infinity
    std::size_t i = 0;
    for (; i + 2 * width <= count; i += 2 * width)
        for (std::size_t g = 0; g < 2; ++g) {
            const auto x = Pack::load_anywhere(entries + i + g * width);
            top[g] = Pack::max(top[g], Pack::abs(x));
            wrong[g] = Pack::fma(x, Pack::set(0), wrong[g]);
        }
    Real tops[width];
    Pack::store_anywhere(tops, Pack::max(top[0], top[1]));
    Real most = 0;
    Real bad = Pack::sum(wrong[0] + wrong[1]);
    for (; i < count; ++i) {
        const Real size = entries[i] < 0 ? -entries[i] : entries[i];
        if (size > most) most = size;
        bad += entries[i] * 0;
    }
    for (const Real top_of_lane : tops)
        if (top_of_lane > most) most = top_of_lane;
    return static_cast<double>(most + bad);
}

template <class Pack>
SPIKED_KERNEL void bidiagonalise(const Reduction<typename Pack::Real>& block) {
    Bidiagonalisation<Pack>::reduce(block);
}

template <class Pack>
SPIKED_KERNEL void apply_reflectors(const typename Pack::Real* reflectors, std::size_t stride,
                                    const typename Pack::Real* scales, std::size_t count, std::size_t length,
                                    const Columns<typename Pack::Real>& columns) {
    Reflectors<Pack>::apply_all(reflectors, stride, scales, count, length, columns);
}

template <class Pack, class DoublePack>
const Kernels<typename Pack::Real>& kernels_for() {
    static constexpr Kernels<typename Pack::Real> kernels{
        bidiagonalise<Pack>,
        apply_reflectors<Pack>,
        largest<Pack>,
        RootFreeQl<DoublePack>::solve,
        SturmCounts<DoublePack>::count,
        TwistedVectors<DoublePack>::solve,
        TwistedVectors<DoublePack>::orthogonalise,
    };
    return kernels;
}

}  // namespace spiked::estimators::kernels

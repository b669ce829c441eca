#pragma once
#include "estimators/svd/bidiagonal_values.hpp"
#include "estimators/svd/bidiagonalisation.hpp"
#include "estimators/svd/reflectors.hpp"
#include "estimators/svd/tridiagonalisation.hpp"
#include "estimators/svd/twisted_vectors.hpp"
#include "estimators/svd/two_stage/bulge_chasing.hpp"
#include "estimators/svd/two_stage/panel_factorisation.hpp"
#include "estimators/svd/two_stage/panel_products.hpp"

/// The table of kernels for given registers. It is included by one source file for each instruction set.
namespace spiked::estimators::kernels {

template <class Pack>
SPIKED_KERNEL double scale(const typename Pack::Real* from, std::size_t from_stride, std::size_t rows,
                           std::size_t columns, typename Pack::Real factor, typename Pack::Real* to,
                           std::size_t to_stride) {
    using Real = typename Pack::Real;
    using Vector = typename Pack::Vector;
    constexpr std::size_t width = Pack::width;
    const Vector by = Pack::set(factor);
    Vector top[2] = {Pack::set(0), Pack::set(0)};
    Vector wrong[2] = {Pack::set(0), Pack::set(0)};  // 0 * x is NaN for NaN and infinity
    Real most = 0;
    Real bad = 0;
    for (std::size_t j = 0; j < columns; ++j) {
        const Real* const column = from + j * from_stride;
        Real* const scaled = to + j * to_stride;
        std::size_t i = 0;
        for (; i + 2 * width <= rows; i += 2 * width)
            for (std::size_t g = 0; g < 2; ++g) {
                const Vector x = Pack::load_anywhere(column + i + g * width);
                top[g] = Pack::max(top[g], Pack::abs(x));
                wrong[g] = Pack::fma(x, Pack::set(0), wrong[g]);
                Pack::store(scaled + i + g * width, by * x);
            }
        for (; i < rows; ++i) {
            const Real x = column[i];
            const Real size = x < 0 ? -x : x;
            if (size > most) most = size;
            bad += x * 0;
            scaled[i] = factor * x;
        }
    }
    Real tops[width];
    Pack::store_anywhere(tops, Pack::max(top[0], top[1]));
    for (const Real top_of_lane : tops)
        if (top_of_lane > most) most = top_of_lane;
    return static_cast<double>(most + (bad + Pack::sum(wrong[0] + wrong[1])));
}

template <class Pack>
SPIKED_KERNEL void bidiagonalise(const Reduction<typename Pack::Real>& block) {
    Bidiagonalisation<Pack>::reduce(block);
}

template <class Pack>
SPIKED_KERNEL void apply_reflectors(const typename Pack::Real* reflectors, const typename Pack::Real* scales,
                                    std::size_t count, std::size_t length, typename Pack::Real* vectors,
                                    std::size_t wanted) {
    using Real = typename Pack::Real;
    Reflectors<Pack>::template apply_all<0>(reflectors, Packed<Real>(length), scales, count, length, vectors, wanted);
}

/// A single register of lanes is faster than all of them and is used where it suffices, here and for vectors.
template <class Pack>
SPIKED_KERNEL void eigenvalues(TridiagonalBatch& batch) {
    bool beyond = false;
    for (std::size_t lane = Pack::width; lane < value_lanes; ++lane) beyond = beyond || batch.present[lane];
    if (beyond)
        RootFreeQl<Pack>::solve(batch);
    else
        RootFreeQl<Pack, 1>::solve(batch);
}

template <class Pack>
SPIKED_KERNEL void twisted_vectors(const GolubKahan& matrix, const double* eigenvalues, std::size_t wanted,
                                   double* even_norm, double* odd_norm, double* remainders) {
    if (wanted <= Pack::width)
        TwistedVectors<Pack, 1>::solve(matrix, eigenvalues, even_norm, odd_norm, remainders);
    else
        TwistedVectors<Pack, vector_lanes / Pack::width>::solve(matrix, eigenvalues, even_norm, odd_norm, remainders);
}

template <class Pack, class DoublePack>
SPIKED_KERNEL void scale_vectors(const GolubKahan& matrix, const double* right_scale, const double* left_scale,
                                 double least, typename Pack::Real* right, typename Pack::Real* left) {
    constexpr std::size_t parts = Pack::width / DoublePack::width;
    const auto zero = DoublePack::set(0.0);
    const auto limit = DoublePack::set(least);
    for (std::size_t i = 0; i < matrix.size; ++i) {
        const double* const scale = i % 2 == 0 ? right_scale : left_scale;
        typename Pack::Real* const to = (i % 2 == 0 ? right : left) + i / 2 * vector_lanes;
        for (std::size_t lane = 0; lane < vector_lanes; lane += Pack::width) {
            typename DoublePack::Vector entry[parts];
            for (std::size_t g = 0; g < parts; ++g) {
                const std::size_t at = lane + g * DoublePack::width;
                entry[g] = DoublePack::load(scale + at) * DoublePack::load(matrix.work + i * vector_lanes + at);
                entry[g] = DoublePack::where_less(DoublePack::abs(entry[g]), limit, zero, entry[g]);
            }
            Pack::store(to + lane, Pack::narrow(entry));
        }
    }
}

template <class Pack, class DoublePack>
const Kernels<typename Pack::Real>& kernels_for() {
    static constexpr Kernels<typename Pack::Real> kernels{
        bidiagonalise<Pack>,
        apply_reflectors<Pack>,
        PanelFactorisation<Pack>::factor,
        PanelFactorisation<Pack>::apply,
        PanelProducts<Pack>::project,
        PanelProducts<Pack>::multiply,
        BulgeChasing<Pack>::chase,
        BulgeChasing<Pack>::make_triangles,
        BulgeChasing<Pack>::apply,
        scale<Pack>,
        Tridiagonalisation<DoublePack>::reduce,
        eigenvalues<DoublePack>,
        SturmCounts<DoublePack>::count,
        twisted_vectors<DoublePack>,
        scale_vectors<Pack, DoublePack>,
        TwistedVectors<DoublePack, 1>::orthogonalise,
    };
    return kernels;
}

}  // namespace spiked::estimators::kernels

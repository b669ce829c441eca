#pragma once
#include "core/device/host_device.hpp"
#include "estimators/svd/decomposition_kernels.hpp"

#ifndef SPIKED_KERNEL
#define SPIKED_KERNEL SPIKED_DEVICE
#endif

/// Singular values of many bidiagonal matrices at once.
namespace spiked::estimators::kernels {

/// Eigenvalues of symmetric tridiagonal matrices by the root-free QL method of Pal, Walker and Kahan (Parlett, The
/// Symmetric Eigenvalue Problem, 8.15), one matrix per lane. A sweep runs over all lanes from the last row upwards.
/// Each lane has its own shift and its own end, the first row that is not yet deflated, so that no lane changes the
/// result of another one. The two divisions of a step are combined into one: with p = gamma^2 / c, the next p is n^2 /
/// (p (p + b)), n = p (a - shift) - b gamma. Works on the first `vectors` registers of lanes; on a GPU each lane has
/// its own thread.
template <class Pack, std::size_t vectors = value_lanes / Pack::width>
struct RootFreeQl {
    using Vector = typename Pack::Vector;
    static constexpr std::size_t width = Pack::width;
    static constexpr std::size_t lanes = vectors * width;
    static constexpr std::size_t stride = value_lanes;
    static constexpr double smallest_gamma = 0x1p-160;  ///< its sixth power does not underflow
    static constexpr double smallest_square = 0x1p-700;
    static constexpr std::size_t most_sweeps = 12;  ///< per row, on average

    struct Lanes {
        alignas(64) double end[lanes];  ///< first row that is not yet deflated
        alignas(64) double shift[lanes];
        alignas(64) double floor[lanes];  ///< squares of off-diagonal entries below this are zero
        bool running[lanes];
    };

    SPIKED_KERNEL static void deflate(TridiagonalBatch& batch, Lanes& state, std::size_t lane) {
        auto end = static_cast<std::size_t>(state.end[lane]);
        const double* const diagonal = batch.diagonal + lane;
        double* const off = batch.off_diagonal_squared + lane;
        while (end < batch.size) {
            const double here = diagonal[end * stride];
            if (end + 1 < batch.size) {
                const double product = __builtin_fabs(here * diagonal[(end + 1) * stride]);
                if (off[end * stride] > batch.tolerance * product + state.floor[lane]) break;
                off[end * stride] = 0.0;
            }
            batch.eigenvalues[lane * batch.size + end] = here;
            ++end;
        }
        state.end[lane] = static_cast<double>(end);
        if (end == batch.size) {
            state.running[lane] = false;
            batch.converged[lane] = true;
            state.shift[lane] = 0.0;
        }
    }

    /// The shift: of the two eigenvalues of the 2 x 2 matrix at the end, the one nearer to the diagonal entry of the
    /// end.
    SPIKED_KERNEL static void choose_shift(const TridiagonalBatch& batch, Lanes& state, std::size_t lane) {
        const std::size_t at = static_cast<std::size_t>(state.end[lane]) * stride + lane;
        const double square = batch.off_diagonal_squared[at];
        const double half = 0.5 * (batch.diagonal[at + stride] - batch.diagonal[at]);
        const double root = __builtin_sqrt(half * half + square);
        state.shift[lane] = batch.diagonal[at] - square / (half + (half >= 0.0 ? root : -root));
    }

    struct Running {
        Vector p[vectors], gamma[vectors], sine[vectors], shift[vectors];
    };

    /// Processes the rows `from` - 1 down to `to`. With `ragged`, some lanes end within this range.
    template <bool ragged>
    SPIKED_KERNEL static void sweep(TridiagonalBatch& batch, const Lanes& state, Running& run, std::size_t from,
                                    std::size_t to) {
        const Vector least = Pack::set(smallest_gamma);
        const Vector tiny = Pack::set(smallest_square);
        if (from <= to) return;
        // The entries of the next row are read before this row is written. The two never overlap, but a compiler does
        // not know this.
        Vector next_square[vectors], next_alpha[vectors];
        for (std::size_t g = 0; g < vectors; ++g) {
            next_square[g] = Pack::load(batch.off_diagonal_squared + (from - 1) * stride + g * width);
            next_alpha[g] = Pack::load(batch.diagonal + (from - 1) * stride + g * width);
        }
        for (std::size_t i = from; i-- > to;) {
            double* const diagonal = batch.diagonal + i * stride;
            double* const off = batch.off_diagonal_squared + i * stride;
            const std::size_t ahead = i > 0 ? i - 1 : 0;
            for (std::size_t g = 0; g < vectors; ++g) {
                Vector square = next_square[g];
                const Vector alpha = next_alpha[g];
                next_square[g] = Pack::load(batch.off_diagonal_squared + ahead * stride + g * width);
                next_alpha[g] = Pack::load(batch.diagonal + ahead * stride + g * width);
                if constexpr (ragged)
                    square = Pack::where_less(Pack::set(static_cast<double>(i)), Pack::load(state.end + g * width),
                                              Pack::set(0.0), square);
                const Vector p = run.p[g];
                const Vector r = p + square;
                const auto inverse = Pack::inverse(p * r);
                const Vector above = run.sine[g] * r;
                Pack::store(off + stride + g * width, Pack::where_less(above, tiny, Pack::set(0.0), above));
                Vector numerator = Pack::fma(p, alpha - run.shift[g], -(square * run.gamma[g]));
                const Vector bound = least * r;
                numerator = Pack::where_less(Pack::abs(numerator), bound, bound, numerator);
                const Vector over_r = Pack::times(p, inverse);
                const Vector gamma = numerator * over_r;
                run.sine[g] = square * over_r;
                Vector value = run.gamma[g] + (alpha - gamma);
                if constexpr (ragged)
                    value = Pack::where_equal(Pack::set(static_cast<double>(i + 1)), Pack::load(state.end + g * width),
                                              run.gamma[g] + run.shift[g], value);
                Pack::store(diagonal + stride + g * width, value);
                run.p[g] = Pack::times(numerator * numerator, inverse);
                run.gamma[g] = gamma;
            }
        }
    }

    SPIKED_KERNEL static void sweep_all(TridiagonalBatch& batch, const Lanes& state) {
        std::size_t first = batch.size;
        std::size_t last = 0;
        for (std::size_t lane = 0; lane < lanes; ++lane)
            if (state.running[lane]) {
                const auto end = static_cast<std::size_t>(state.end[lane]);
                if (end < first) first = end;
                if (end > last) last = end;
            }
        const std::size_t bottom = batch.size - 1;
        Running run;
        for (std::size_t g = 0; g < vectors; ++g) {
            run.shift[g] = Pack::load(state.shift + g * width);
            const Vector gamma = Pack::load(batch.diagonal + bottom * stride + g * width) - run.shift[g];
            const Vector least = Pack::set(smallest_gamma);
            run.gamma[g] = Pack::where_less(Pack::abs(gamma), least, least, gamma);
            run.p[g] = run.gamma[g] * run.gamma[g];
            run.sine[g] = Pack::set(0.0);
        }
        sweep<false>(batch, state, run, bottom, last);
        sweep<true>(batch, state, run, last, first);
        const Vector tiny = Pack::set(smallest_square);
        for (std::size_t g = 0; g < vectors; ++g) {
            const Vector above = run.sine[g] * run.p[g];
            Pack::store(batch.off_diagonal_squared + first * stride + g * width,
                        Pack::where_less(above, tiny, Pack::set(0.0), above));
            Pack::store(batch.diagonal + first * stride + g * width, run.gamma[g] + run.shift[g]);
        }
    }

    SPIKED_KERNEL static void solve(TridiagonalBatch& batch) {
        Lanes state;
        bool any = false;
        for (std::size_t lane = 0; lane < lanes; ++lane) {
            double largest = 0.0;
            for (std::size_t i = 0; i < batch.size; ++i) {
                const double size = __builtin_fabs(batch.diagonal[i * stride + lane]);
                if (size > largest) largest = size;
            }
            state.floor[lane] = 1e-40 * largest * largest;
            state.end[lane] = 0.0;
            state.shift[lane] = 0.0;
            state.running[lane] = batch.present[lane];
            batch.converged[lane] = false;
            if (batch.present[lane])
                deflate(batch, state, lane);
            else
                state.end[lane] = static_cast<double>(batch.size);
            any = any || state.running[lane];
        }
        for (std::size_t sweeps = 0; any && sweeps < most_sweeps * batch.size + 20; ++sweeps) {
            for (std::size_t lane = 0; lane < lanes; ++lane)
                if (state.running[lane]) choose_shift(batch, state, lane);
            sweep_all(batch, state);
            any = false;
            for (std::size_t lane = 0; lane < lanes; ++lane)
                if (state.running[lane]) {
                    deflate(batch, state, lane);
                    any = any || state.running[lane];
                }
        }
    }
};

/// Counts singular values below given points by the signs of the differential stationary quotient-difference transform
/// of B^T B - point^2 (Dhillon and Parlett 2004). The counts have high relative accuracy, however small the singular
/// values are.
template <class Pack, std::size_t vectors = value_lanes / Pack::width>
struct SturmCounts {
    using Vector = typename Pack::Vector;
    static constexpr std::size_t width = Pack::width;

    SPIKED_KERNEL static void count(std::size_t size, const double* diagonal_squared,
                                    const double* off_diagonal_squared, const double* points, double* counts) {
        const Vector zero = Pack::set(0.0);
        const Vector one = Pack::set(1.0);
        const Vector tiny = Pack::set(0x1p-900);
        Vector square[vectors];
        Vector carried[vectors];
        Vector found[vectors];
        for (std::size_t g = 0; g < vectors; ++g) {
            const Vector point = Pack::load(points + g * width);
            square[g] = point * point;
            carried[g] = -square[g];
            found[g] = zero;
        }
        for (std::size_t i = 0; i < size; ++i) {
            const Vector diagonal = Pack::set(diagonal_squared[i]);
            const Vector off = Pack::set(i + 1 < size ? off_diagonal_squared[i] : 0.0);
            for (std::size_t g = 0; g < vectors; ++g) {
                Vector pivot = diagonal + carried[g];
                pivot = Pack::where_less(Pack::abs(pivot), tiny, -tiny, pivot);
                found[g] = found[g] + Pack::where_less(pivot, zero, one, zero);
                carried[g] = Pack::fma(carried[g] / pivot, off, -square[g]);
            }
        }
        for (std::size_t g = 0; g < vectors; ++g) Pack::store(counts + g * width, found[g]);
    }
};

}  // namespace spiked::estimators::kernels

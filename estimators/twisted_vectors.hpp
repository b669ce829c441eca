#pragma once
#include "estimators/decomposition_kernels.hpp"

#ifndef SPIKED_KERNEL
#define SPIKED_KERNEL
#endif

/// Eigenvectors of a Golub-Kahan matrix by twisted factorisations (Dhillon and Parlett 2004), one eigenvalue a lane:
/// eliminated from both ends, the two eliminations meet at the row where the eigenvector is largest.
namespace spiked::estimators::kernels {

template <class Pack>
struct TwistedVectors {
    using Vector = typename Pack::Vector;
    static constexpr std::size_t width = Pack::width;
    static constexpr std::size_t lanes = vector_lanes;
    static constexpr std::size_t vectors = lanes / width;
    static constexpr double smallest_pivot = 0x1p-300;
    static constexpr double smallest_entry = 0x1p-100;

    SPIKED_KERNEL static Vector bounded(Vector pivot) {
        const Vector least = Pack::set(smallest_pivot);
        return Pack::where_less(Pack::abs(pivot), least, least, pivot);
    }

    /// Entries that decay to nothing would become denormal, which is slow.
    SPIKED_KERNEL static Vector flushed(Vector entry) {
        return Pack::where_less(Pack::abs(entry), Pack::set(smallest_entry), Pack::set(0.0), entry);
    }

    SPIKED_KERNEL static void solve(const GolubKahan& matrix, const double* eigenvalues, double* even_norm,
                                    double* odd_norm, double* miss) {
        const std::size_t n = matrix.size;
        const double* const off = matrix.off_diagonal;
        double* const down = matrix.work;            // multipliers from the first row on, later the vectors
        double* const up = matrix.work + n * lanes;  // multipliers from the last row on
        Vector value[vectors];
        Vector forward[vectors];
        Vector backward[vectors];
        for (std::size_t g = 0; g < vectors; ++g) {
            value[g] = Pack::load(eigenvalues + g * width);
            forward[g] = backward[g] = -value[g];
        }
        for (std::size_t i = 0; i + 1 < n; ++i) {
            const Vector first = Pack::set(off[i]);
            const Vector last = Pack::set(off[n - 2 - i]);
            for (std::size_t g = 0; g < vectors; ++g) {
                const Vector lower = first / bounded(forward[g]);
                const Vector upper = last / bounded(backward[g]);
                Pack::store(down + i * lanes + g * width, lower);
                Pack::store(up + (n - 2 - i) * lanes + g * width, upper);
                forward[g] = Pack::fnma(first, lower, -value[g]);
                backward[g] = Pack::fnma(last, upper, -value[g]);
            }
        }

        Vector smallest[vectors];
        Vector twist[vectors];
        for (std::size_t g = 0; g < vectors; ++g) {  // row 0: what the elimination from below leaves
            smallest[g] = Pack::fnma(Pack::set(off[0]), Pack::load(up + g * width), -value[g]);
            twist[g] = Pack::set(0.0);
        }
        for (std::size_t i = 1; i < n; ++i) {
            const Vector above = Pack::set(off[i - 1]);
            const Vector below = Pack::set(i + 1 < n ? off[i] : 0.0);
            const Vector row = Pack::set(static_cast<double>(i));
            for (std::size_t g = 0; g < vectors; ++g) {
                Vector left = Pack::fnma(above, Pack::load(down + (i - 1) * lanes + g * width), -value[g]);
                if (i + 1 < n) left = Pack::fnma(below, Pack::load(up + i * lanes + g * width), left);
                const Vector size = Pack::abs(left);
                const Vector best = Pack::abs(smallest[g]);
                twist[g] = Pack::where_less(size, best, row, twist[g]);
                smallest[g] = Pack::where_less(size, best, left, smallest[g]);
            }
        }

        const Vector zero = Pack::set(0.0);
        const Vector one = Pack::set(1.0);
        Vector entry[vectors];
        for (std::size_t g = 0; g < vectors; ++g) {
            Pack::store(miss + g * width, smallest[g]);
            entry[g] = zero;
        }
        for (std::size_t i = n; i-- > 0;) {
            const Vector row = Pack::set(static_cast<double>(i));
            for (std::size_t g = 0; g < vectors; ++g) {
                double* const at = down + i * lanes + g * width;
                const Vector lower = i + 1 < n ? Pack::load(at) : zero;
                Vector next = flushed(-(lower * entry[g]));
                next = Pack::where_less(row, twist[g], next, zero);
                entry[g] = Pack::where_equal(row, twist[g], one, next);
                Pack::store(at, entry[g]);
            }
        }
        Vector squares[2][vectors];
        for (std::size_t g = 0; g < vectors; ++g) squares[0][g] = squares[1][g] = entry[g] = zero;
        for (std::size_t i = 0; i < n; ++i) {
            const Vector row = Pack::set(static_cast<double>(i));
            for (std::size_t g = 0; g < vectors; ++g) {
                double* const at = down + i * lanes + g * width;
                Vector next = Pack::load(at);
                if (i > 0) {
                    const Vector grown = flushed(-(Pack::load(up + (i - 1) * lanes + g * width) * entry[g]));
                    next = Pack::where_less(twist[g], row, grown, next);
                }
                entry[g] = next;
                Pack::store(at, next);
                squares[i % 2][g] = Pack::fma(next, next, squares[i % 2][g]);
            }
        }
        for (std::size_t g = 0; g < vectors; ++g) {
            Pack::store(even_norm + g * width, squares[0][g]);
            Pack::store(odd_norm + g * width, squares[1][g]);
        }
    }

    SPIKED_KERNEL static double product(const double* a, const double* b, std::size_t length) {
        Vector sum = Pack::set(0.0);
        for (std::size_t i = 0; i < length; i += width) sum = Pack::fma(Pack::load(a + i), Pack::load(b + i), sum);
        return Pack::sum(sum);
    }

    /// Gram-Schmidt for the last of `count` columns, whose norms are 1. Returns the square of what was left of it.
    SPIKED_KERNEL static double orthogonalise(double* columns, std::size_t stride, std::size_t length,
                                              std::size_t count) {
        double* const last = columns + (count - 1) * stride;
        for (std::size_t c = 0; c + 1 < count; ++c) {
            const double* const other = columns + c * stride;
            const Vector overlap = Pack::set(product(other, last, length));
            for (std::size_t i = 0; i < length; i += width)
                Pack::store(last + i, Pack::fnma(overlap, Pack::load(other + i), Pack::load(last + i)));
        }
        const double square = product(last, last, length);
        const Vector scale = Pack::set(square > 0.0 ? 1.0 / __builtin_sqrt(square) : 0.0);
        for (std::size_t i = 0; i < length; i += width) Pack::store(last + i, scale * Pack::load(last + i));
        return square;
    }
};

}  // namespace spiked::estimators::kernels

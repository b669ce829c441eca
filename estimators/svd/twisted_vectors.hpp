#pragma once
#include "core/device/host_device.hpp"
#include "estimators/svd/decomposition_kernels.hpp"

#ifndef SPIKED_KERNEL
#define SPIKED_KERNEL SPIKED_DEVICE
#endif

/// Eigenvectors of a Golub-Kahan matrix by twisted factorisations (Dhillon and Parlett 2004), one eigenvalue per lane.
/// The matrix is eliminated from both ends, and the two eliminations meet at the row where the eigenvector is largest
/// (the twist).
namespace spiked::estimators::kernels {

/// Works on the first `vectors` registers of lanes.
template <class Pack, std::size_t vectors>
struct TwistedVectors {
    using Vector = typename Pack::Vector;
    static constexpr std::size_t width = Pack::width;
    static constexpr std::size_t lanes = vector_lanes;
    static constexpr double smallest_pivot = 0x1p-300;

    SPIKED_KERNEL static Vector bounded(Vector pivot) {
        const Vector least = Pack::set(smallest_pivot);
        return Pack::where_less(Pack::abs(pivot), least, least, pivot);
    }

    struct Eliminated {
        Vector first, second;  ///< multipliers of two rows
        Vector pivot;          ///< pivot that remains in the next row
    };

    /// Eliminates two rows, the first with pivot p: computes link / p, next / p' and -value - next^2 / p', with p' =
    /// -value - link^2 / p, by a single division.
    SPIKED_KERNEL static inline __attribute__((always_inline)) Eliminated eliminate(Vector value, Vector pivot,
                                                                                    Vector link, Vector next) {
        const Vector p = bounded(pivot);
        const Vector t = bounded(Pack::fma(value, p, link * link));  // -p p'
        const auto inverse = Pack::inverse(p * t);
        const Vector second = -(next * Pack::times(p * p, inverse));
        return {link * Pack::times(t, inverse), second, Pack::fnma(next, second, -value)};
    }

    /// Computes the multipliers of both eliminations. The multiplier at `up + i` belongs to row i + 1.
    SPIKED_KERNEL static void eliminate_all(const GolubKahan& matrix, const double* eigenvalues, double* down,
                                            double* up) {
        const std::size_t n = matrix.size;
        const double* const off = matrix.off_diagonal;
        Vector value[vectors];
        Vector forward[vectors];
        Vector backward[vectors];
        for (std::size_t g = 0; g < vectors; ++g) {
            value[g] = Pack::load(eigenvalues + g * width);
            forward[g] = backward[g] = -value[g];
        }
        for (std::size_t i = 0; i < n; i += 2) {
            const std::size_t last = n - 2 - i;
            const bool end = i + 2 == n;
            const Vector link = Pack::set(off[i]);
            const Vector next = Pack::set(end ? 0.0 : off[i + 1]);
            const Vector last_link = Pack::set(off[last]);
            const Vector last_next = Pack::set(end ? 0.0 : off[last - 1]);
            for (std::size_t g = 0; g < vectors; ++g) {
                const Eliminated lower = eliminate(value[g], forward[g], link, next);
                Pack::store(down + i * lanes + g * width, lower.first);
                Pack::store(down + (i + 1) * lanes + g * width, lower.second);
                forward[g] = lower.pivot;
                const Eliminated upper = eliminate(value[g], backward[g], last_link, last_next);
                Pack::store(up + last * lanes + g * width, upper.first);
                if (!end) Pack::store(up + (last - 1) * lanes + g * width, upper.second);
                backward[g] = upper.pivot;
            }
        }
    }

    /// Finds for each lane the row where the two eliminations leave the smallest remainder, and this remainder.
    SPIKED_KERNEL static void find_twists(const GolubKahan& matrix, const double* eigenvalues, const double* down,
                                          const double* up, double* twists, double* remainders) {
        const std::size_t n = matrix.size;
        const double* const off = matrix.off_diagonal;
        Vector smallest[vectors];
        Vector twist[vectors];
        for (std::size_t g = 0; g < vectors; ++g) {
            smallest[g] = Pack::set(0x1p1000);
            twist[g] = Pack::set(0.0);
        }
        for (std::size_t i = 0; i < n; ++i) {
            const Vector above = Pack::set(i == 0 ? 0.0 : off[i - 1]);
            const Vector below = Pack::set(i + 1 < n ? off[i] : 0.0);
            const Vector row = Pack::set(static_cast<double>(i));
            for (std::size_t g = 0; g < vectors; ++g) {
                Vector remainder = -Pack::load(eigenvalues + g * width);
                if (i > 0) remainder = Pack::fnma(above, Pack::load(down + (i - 1) * lanes + g * width), remainder);
                if (i + 1 < n) remainder = Pack::fnma(below, Pack::load(up + i * lanes + g * width), remainder);
                const Vector size = Pack::abs(remainder);
                const Vector best = Pack::abs(smallest[g]);
                twist[g] = Pack::where_less(size, best, row, twist[g]);
                smallest[g] = Pack::where_less(size, best, remainder, smallest[g]);
            }
        }
        for (std::size_t g = 0; g < vectors; ++g) {
            Pack::store(twists + g * width, twist[g]);
            Pack::store(remainders + g * width, smallest[g]);
        }
    }

    /// Turns multipliers into entries of the eigenvectors: 1 at the twist, entries above it from `down`, entries below
    /// it from `up`. Each array stays zero on the other side of the twist.
    SPIKED_KERNEL static void multiply_out(std::size_t n, const double* twists, double* down, double* up) {
        const Vector one = Pack::set(1.0);
        Vector rising[vectors];
        Vector falling[vectors];
        Vector twist[vectors];
        for (std::size_t g = 0; g < vectors; ++g) {
            twist[g] = Pack::load(twists + g * width);
            rising[g] = Pack::where_equal(twist[g], Pack::set(static_cast<double>(n - 1)), one, Pack::set(0.0));
            falling[g] = Pack::where_equal(twist[g], Pack::set(0.0), one, Pack::set(0.0));
            Pack::store(down + (n - 1) * lanes + g * width, rising[g]);
        }
        for (std::size_t i = 1; i < n; ++i) {
            const Vector row = Pack::set(static_cast<double>(i));
            const Vector row_above = Pack::set(static_cast<double>(n - 1 - i));
            for (std::size_t g = 0; g < vectors; ++g) {
                double* const below = up + (i - 1) * lanes + g * width;
                double* const above = down + (n - 1 - i) * lanes + g * width;
                const Vector entry = -(Pack::load(below) * falling[g]);
                Pack::store(below, entry);
                falling[g] = Pack::where_equal(row, twist[g], one, entry);
                rising[g] = Pack::where_equal(row_above, twist[g], one, -(Pack::load(above) * rising[g]));
                Pack::store(above, rising[g]);
            }
        }
    }

    SPIKED_KERNEL static void solve(const GolubKahan& matrix, const double* eigenvalues, double* even_norm,
                                    double* odd_norm, double* remainders) {
        const std::size_t n = matrix.size;
        double* const down = matrix.work;            // multipliers from the first row on, later the vectors
        double* const up = matrix.work + n * lanes;  // multipliers from the last row on
        alignas(64) double twists[lanes];
        eliminate_all(matrix, eigenvalues, down, up);
        find_twists(matrix, eigenvalues, down, up, twists, remainders);
        multiply_out(n, twists, down, up);
        join(n, down, up, even_norm, odd_norm);
    }

    /// Adds both parts of the vectors up in `down`, and sums the squares of their even and odd entries.
    SPIKED_KERNEL static void join(std::size_t n, double* down, const double* up, double* even_norm, double* odd_norm) {
        Vector squares[2][vectors];
        for (std::size_t g = 0; g < vectors; ++g) squares[0][g] = squares[1][g] = Pack::set(0.0);
        for (std::size_t i = 0; i < n; i += 2)  // n is even
            for (std::size_t odd = 0; odd < 2; ++odd)
                for (std::size_t g = 0; g < vectors; ++g) {
                    const std::size_t at = i + odd;
                    Vector entry = Pack::load(down + at * lanes + g * width);
                    if (at > 0) entry = entry + Pack::load(up + (at - 1) * lanes + g * width);
                    Pack::store(down + at * lanes + g * width, entry);
                    squares[odd][g] = Pack::fma(entry, entry, squares[odd][g]);
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

    /// Gram-Schmidt: makes the last of `count` columns of norm 1 orthogonal to the others and normalises it. Returns
    /// its squared norm before the normalisation.
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

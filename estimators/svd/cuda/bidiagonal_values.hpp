#pragma once
#include <cmath>

#include "core/device/team.hpp"
#include "estimators/svd/bidiagonal_tolerances.hpp"
#include "estimators/svd/bidiagonal_values.hpp"
#include "estimators/svd/cuda/decomposition_batch.hpp"
#include "estimators/svd/cuda/one_lane.hpp"

/// Singular values of the bidiagonal matrices of a batch, in double for both precisions, by the functions of the CPU
/// (estimators/svd/bidiagonal_values.hpp).
namespace spiked::estimators::cuda {

/// Kernel: eigenvalues of B B^T by root-free QL, one thread per matrix. Each step of QL waits for the previous one, so
/// the time depends on how fast a thread gets its numbers: they are in shared memory, of which a multiprocessor has
/// enough for three blocks of 128 x 128.
template <class Real>
struct TridiagonalEigenvalues {
    static constexpr unsigned threads = spiked::cuda::warp_size;
    static constexpr unsigned resident = 16;

    DecompositionBatch<Real> batch;

    [[nodiscard]] unsigned blocks() const { return (batch.size.count + threads - 1) / threads; }
    [[nodiscard]] std::size_t shared_bytes() const {
        return 2 * spiked::cuda::shared_bytes_for<double>(std::size_t{threads} * batch.size.short_side);
    }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned block) const {
        const std::size_t size = batch.size.short_side;
        const auto diagonals = team.template take<double>(threads * size);
        const auto off_diagonals = team.template take<double>(threads * size);
        const unsigned which = block * threads + team.rank();
        if (which >= batch.size.count || batch.status[which] != BlockStatus::fine) return;
        constexpr unsigned side_by_side = kernels::value_lanes;
        const std::size_t place = team.rank() / side_by_side * side_by_side * size + team.rank() % side_by_side;
        double* const eigenvalues = batch.eigenvalues + which * size;
        kernels::TridiagonalBatch matrix{};
        matrix.size = size;
        matrix.tolerance = bidiagonal::negligible_link<Real>;
        matrix.diagonal = spiked::cuda::raw(diagonals) + place;
        matrix.off_diagonal_squared = spiked::cuda::raw(off_diagonals) + place;
        matrix.eigenvalues = eigenvalues;
        matrix.present[0] = true;
        const double* const d = batch.diagonal + which * size;
        const double* const e = batch.off_diagonal + which * size;
        for (std::size_t i = 0; i < size; ++i) {
            // B B^T is stored from its last row upwards: its large entries are most often in the first rows, and QL
            // needs them last.
            const std::size_t row = size - 1 - i;
            const double square = d[row] * d[row];
            const double off = i == 0 ? 0.0 : e[row];
            const double before = row == 0 ? 0.0 : e[row - 1];
            matrix.diagonal[i * side_by_side] = square + off * off;
            matrix.off_diagonal_squared[i * side_by_side] = square * (before * before);
        }
        kernels::RootFreeQl<OneLane, 1>::solve(matrix);
        if (!matrix.converged[0]) eigenvalues[0] = NAN;
    }
};

/// Kernel: computes the singular values from these eigenvalues, in descending order, one warp per matrix. The small
/// values of a double block, and all values where QL did not converge, are computed by bisection, one thread per value.
template <class Real>
struct SingularValues {
    static constexpr unsigned threads = spiked::cuda::warp_size;
    static constexpr unsigned resident = 16;

    DecompositionBatch<Real> batch;

    [[nodiscard]] unsigned blocks() const { return batch.size.count; }
    [[nodiscard]] std::size_t shared_bytes() const {
        return 4 * spiked::cuda::shared_bytes_for<double>(batch.size.short_side);
    }

    /// Sorts in descending order: the position of each value is the number of values that precede it.
    template <class Team, class Array>
    SPIKED_DEVICE static void sort(Team& team, const Array& from, const Array& to, unsigned first, unsigned size) {
        team.warp_barrier();
        for (unsigned i = first + team.lane(); i < size; i += threads) {
            const double own = from[i];
            unsigned place = first;
            for (unsigned j = first; j < size; ++j) {
                const double other = from[j];
                place += other > own || (other == own && j < i);
            }
            to[place] = own;
        }
        team.warp_barrier();
    }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned block) const {
        const unsigned size = batch.size.short_side;
        const std::size_t first = std::size_t{block} * size;
        if (batch.status[block] != BlockStatus::fine) {
            for (unsigned i = team.lane(); i < size; i += threads)
                batch.scaled_values[first + i] = batch.values[first + i] = 0.0;
            return;
        }
        const auto found = team.template take<double>(size);
        const auto sorted = team.template take<double>(size);
        const auto diagonal = team.template take<double>(size);  // squares
        const auto off_diagonal = team.template take<double>(size);
        double largest = 0.0;
        double sum = 0.0;
        for (unsigned i = team.lane(); i < size; i += threads) {
            const double d = batch.diagonal[first + i];
            const double e = batch.off_diagonal[first + i];
            diagonal[i] = d * d;
            off_diagonal[i] = e * e;
            sum += d * d + e * e;
            largest = d * d > largest ? d * d : largest;
            largest = e * e > largest ? e * e : largest;
            const double eigenvalue = batch.eigenvalues[first + i];
            found[i] = eigenvalue > 0.0 ? std::sqrt(eigenvalue) : 0.0;
        }
        largest = spiked::cuda::warp_max(team, largest);
        sum = spiked::cuda::warp_sum(team, sum);

        unsigned first_small = size;
        double upper = 0.0;
        if (std::isnan(batch.eigenvalues[first])) {
            first_small = 0;
            upper = std::sqrt(sum) * bidiagonal::rounded_bound;
            team.warp_barrier();
        } else {
            sort(team, found, sorted, 0, size);
            if (sizeof(Real) == 8) {  // in float the reduction itself leaves an error of 1e-7 of the largest value
                const double limit = bidiagonal::too_small_for_squares * sorted[0];
                while (first_small > 0 && !(sorted[first_small - 1] > limit)) --first_small;
                upper = bidiagonal::generous_bound * limit;
            }
        }
        if (first_small < size) {
            const double precise = bidiagonal::epsilon * std::sqrt(largest);
            team.warp_barrier();
            for (unsigned i = first_small + team.lane(); i < size; i += threads) {
                const auto smaller = static_cast<double>(size - 1 - i);
                double low = 0.0;
                double high = upper;
                for (double width = upper; width > precise; width *= 0.5) {
                    const double middle = 0.5 * (low + high);
                    double below = 0.0;
                    kernels::SturmCounts<OneLane, 1>::count(size, spiked::cuda::raw(diagonal),
                                                            spiked::cuda::raw(off_diagonal), &middle, &below);
                    if (below > smaller)
                        high = middle;
                    else
                        low = middle;
                }
                found[i] = 0.5 * (low + high);
            }
            sort(team, found, sorted, first_small, size);
        }
        const double scale = std::ldexp(1.0, -batch.exponents[block]);
        for (unsigned i = team.lane(); i < size; i += threads) {
            const double value = sorted[i];
            batch.scaled_values[first + i] = value;
            batch.values[first + i] = value * scale;
        }
    }
};

}  // namespace spiked::estimators::cuda

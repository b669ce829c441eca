#pragma once
#include <cmath>

#include "core/device/team.hpp"
#include "estimators/svd/bidiagonal_tolerances.hpp"
#include "estimators/svd/cuda/decomposition_batch.hpp"
#include "estimators/svd/cuda/one_lane.hpp"
#include "estimators/svd/twisted_vectors.hpp"

namespace spiked::estimators::cuda {

/// Kernel: vectors of the largest singular values of the bidiagonal matrices, for blocks `first`, `first` + 1, .. of
/// the batch, by twisted factorisations of the Golub-Kahan matrix (estimators/svd/twisted_vectors.hpp), one thread per
/// vector and one warp per matrix. Vectors of close values are made orthogonal. A block whose vectors fail the checks
/// is left to the host.
template <class Real>
struct BidiagonalVectors {
    static constexpr unsigned threads = spiked::cuda::warp_size;
    static constexpr unsigned resident = 16;
    static constexpr unsigned slots = 8;  ///< of 32 rows

    DecompositionBatch<Real> batch;
    std::uint32_t first;

    /// The number of doubles that hold the multipliers of a block while its vectors are computed.
    [[nodiscard]] SPIKED_DEVICE static std::size_t work_of_block(const BatchSize& size) {
        return std::size_t{4} * size.short_side * kernels::vector_lanes *
               (size.vectors > kernels::vector_lanes ? 2 : 1);
    }
    /// Whether these are in shared memory, of which a multiprocessor has at least 99 KB for a block. Otherwise they are
    /// in vector_work.
    [[nodiscard]] SPIKED_DEVICE static bool works_in_shared(const BatchSize& size) {
        return work_of_block(size) * sizeof(double) <= (std::size_t{80} << 10);
    }
    /// Size of vector_work for a block, in doubles.
    [[nodiscard]] static std::size_t memory_of_block(const BatchSize& size) {
        return works_in_shared(size) ? 0 : work_of_block(size);
    }
    [[nodiscard]] std::size_t shared_bytes() const {
        return spiked::cuda::shared_bytes_for<double>(2 * batch.size.short_side) +
               spiked::cuda::shared_bytes_for<double>(works_in_shared(batch.size) ? work_of_block(batch.size) : 0);
    }

    /// Computes one vector and stores it in a column of bidiagonal_right and of bidiagonal_left.
    SPIKED_DEVICE bool find(const double* links, double* work, double value, double largest, double* right,
                            double* left) const {
        const std::size_t size = batch.size.short_side;
        const kernels::GolubKahan matrix{2 * size, links, work};
        double eigenvalue = value;
        double right_square = 0.0;
        double left_square = 0.0;
        for (int round = 0; round <= bidiagonal::last_round; ++round) {
            double remainder = 0.0;
            kernels::TwistedVectors<OneLane, 1>::solve(matrix, &eigenvalue, &right_square, &left_square, &remainder);
            const double square = right_square + left_square;
            const double residual = std::fabs(remainder) / std::sqrt(square);
            if (residual < bidiagonal::good_residual<Real> * largest) break;
            if (round == bidiagonal::last_round && !(residual < bidiagonal::acceptable_residual * largest))
                return false;
            if (round < bidiagonal::last_round) eigenvalue += remainder / square;  // Rayleigh quotient
        }
        if (!(std::fabs(right_square - left_square) < bidiagonal::unequal_halves * right_square)) return false;
        const double right_scale = 1.0 / std::sqrt(right_square);
        const double left_scale = 1.0 / std::sqrt(left_square);
        constexpr unsigned ahead = 4;  // number of entries that are read before the first of them is written
        for (std::size_t i = 0; i < size; i += ahead) {
            double x[ahead];
            double y[ahead];
            SPIKED_UNROLL
            for (unsigned r = 0; r < ahead; ++r) {
                const std::size_t at = i + r < size ? i + r : size - 1;
                x[r] = right_scale * work[2 * at * kernels::vector_lanes];
                y[r] = left_scale * work[(2 * at + 1) * kernels::vector_lanes];
            }
            SPIKED_UNROLL
            for (unsigned r = 0; r < ahead; ++r) {
                if (i + r >= size) break;
                right[i + r] = std::fabs(x[r]) < bidiagonal::smallest_entry ? 0.0 : x[r];
                left[i + r] = std::fabs(y[r]) < bidiagonal::smallest_entry ? 0.0 : y[r];
            }
        }
        return true;
    }

    /// Gram-Schmidt: makes column `last` orthogonal to those from `from` on. Returns false when little of it remains.
    template <class Team>
    SPIKED_DEVICE bool orthogonalise(Team& team, double* columns, unsigned from, unsigned last) const {
        const unsigned size = batch.size.short_side;
        double own[slots];
        for (unsigned t = 0; t < slots; ++t) {
            const unsigned i = team.lane() + threads * t;
            own[t] = i < size ? columns[std::size_t{last} * size + i] : 0.0;
        }
        double square = 0.0;
        for (unsigned c = from; c <= last; ++c) {
            double other[slots];
            double overlap = 0.0;
            for (unsigned t = 0; t < slots; ++t) {
                const unsigned i = team.lane() + threads * t;
                other[t] = c == last ? own[t] : i < size ? columns[std::size_t{c} * size + i] : 0.0;
                overlap = std::fma(other[t], own[t], overlap);
            }
            overlap = spiked::cuda::warp_sum(team, overlap);
            if (c == last)
                square = overlap;
            else
                for (unsigned t = 0; t < slots; ++t) own[t] = std::fma(-overlap, other[t], own[t]);
        }
        const double scale = square > 0.0 ? 1.0 / std::sqrt(square) : 0.0;
        for (unsigned t = 0; t < slots; ++t) {
            const unsigned i = team.lane() + threads * t;
            if (i < size) columns[std::size_t{last} * size + i] = scale * own[t];
        }
        team.warp_barrier();
        return square >= 0.5;
    }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned part) const {
        const unsigned block = first + part;
        if (batch.status[block] != BlockStatus::fine) return;
        const std::size_t size = batch.size.short_side;
        const unsigned wanted = batch.size.vectors;
        const double* const values = batch.scaled_values + block * size;
        const double largest = values[0];
        const auto links = team.template take<double>(2 * size);
        const bool in_shared = works_in_shared(batch.size);
        const auto shared_work = team.template take<double>(in_shared ? work_of_block(batch.size) : 0);
        for (unsigned i = team.lane(); i < size; i += threads) {
            links[2 * i] = batch.diagonal[block * size + i];
            links[2 * i + 1] = batch.off_diagonal[block * size + i];
        }
        team.warp_barrier();
        double* const right = batch.bidiagonal_right + part * wanted * size;
        double* const left = batch.bidiagonal_left + part * wanted * size;
        bool good = values[wanted - 1] > bidiagonal::smallest_for_twisted * largest;
        const unsigned lane = team.lane();
        if (good && lane < wanted) {
            constexpr unsigned lanes = kernels::vector_lanes;
            const std::size_t own = lane / lanes * (4 * size * lanes) + lane % lanes;
            const auto find_in = [&](double* work) {
                return find(spiked::cuda::raw(links), work + own, values[lane], largest, right + lane * size,
                            left + lane * size);
            };
            // Two calls, so that a compiler knows which memory each of them uses.
            good = in_shared ? find_in(spiked::cuda::raw(shared_work))
                             : find_in(batch.vector_work + part * work_of_block(batch.size));
        }
        team.warp_barrier();
        good = spiked::cuda::warp_max(team, good ? 0 : 1) == 0;
        if (good) {
            unsigned first_close = 0;
            for (unsigned i = 1; i < wanted; ++i) {
                while (values[first_close] - values[i] > bidiagonal::close<Real> * largest) ++first_close;
                if (first_close == i) continue;
                good = orthogonalise(team, right, first_close, i) && good;
                good = orthogonalise(team, left, first_close, i) && good;
            }
        }
        if (!good && lane == 0) batch.status[block] = BlockStatus::for_the_host;
    }
};

}  // namespace spiked::estimators::cuda

#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/device/team.hpp"
#include "estimators/svd/cuda/low_rank.hpp"

namespace spiked::estimators::cuda {

/// |X^ - X|_F^2 / |X|_F^2 of each block, with one thread block per matrix. The sums are in double, and their order
/// depends only on the shape: each thread adds the errors of its entries; then the 32 threads of a warp are added, then
/// the warps. Relative error: (entries of a thread + 16) epsilon.
template <class Real>
struct ErrorSums {
    static constexpr unsigned threads = 256;
    static constexpr unsigned warps = threads / spiked::cuda::warp_size;

    std::uint32_t count;
    std::uint32_t entries;  ///< per block
    const Real* truth;
    BlockStatus* status;  ///< fine, or not_finite if an entry is not finite or its square overflows double
    double* errors;       ///< |X^ - X|_F^2; this and the next two are 0 for blocks that are not_finite
    double* energies;     ///< |X|_F^2
    double* relative;     ///< if X is zero: 0 if X^ is zero too, otherwise infinity

    [[nodiscard]] std::size_t shared_bytes() const { return 2 * spiked::cuda::shared_bytes_for<double>(warps); }

    [[nodiscard]] SPIKED_DEVICE const Real* truth_of(unsigned block) const {
        return truth + std::size_t{block} * entries;
    }
    /// The sums of one thread.
    struct Sums {
        double error = 0.0;
        double energy = 0.0;

        SPIKED_DEVICE void add(Real true_entry, Real found) {
            const auto entry = static_cast<double>(true_entry);
            const double off = static_cast<double>(found) - entry;
            error = std::fma(off, off, error);
            energy = std::fma(entry, entry, energy);
        }
    };
    /// Adds the sums of all threads up and writes the results of the block.
    template <class Team>
    SPIKED_DEVICE void finish(Team& team, unsigned block, const Sums& sums) const {
        auto error_of = team.template take<double>(warps);
        auto energy_of = team.template take<double>(warps);
        double error = sums.error;
        double energy = sums.energy;
        error = spiked::cuda::warp_sum(team, error);
        energy = spiked::cuda::warp_sum(team, energy);
        if (team.lane() == 0) {
            error_of[team.warp()] = error;
            energy_of[team.warp()] = energy;
        }
        team.barrier();
        if (team.rank() != 0) return;
        for (unsigned w = 1; w < warps; ++w) {
            error += error_of[w];
            energy += energy_of[w];
        }
        constexpr double largest = std::numeric_limits<double>::max();
        const bool fine = error <= largest && energy <= largest;
        status[block] = fine ? BlockStatus::fine : BlockStatus::not_finite;
        errors[block] = fine ? error : 0.0;
        energies[block] = fine ? energy : 0.0;
        const double none = error == 0.0 ? 0.0 : std::numeric_limits<double>::infinity();
        relative[block] = !fine ? 0.0 : (energy > 0.0 ? error / energy : none);
    }
};

/// Kernel: the errors of blocks in memory.
template <class Real>
struct SquaredErrors {
    static constexpr unsigned threads = ErrorSums<Real>::threads;
    static constexpr unsigned resident = 8;

    ErrorSums<Real> sums;
    const Real* found;

    [[nodiscard]] unsigned blocks() const { return sums.count; }
    [[nodiscard]] std::size_t shared_bytes() const { return sums.shared_bytes(); }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned block) const {
        const Real* const own = found + std::size_t{block} * sums.entries;
        const Real* const truth = sums.truth_of(block);
        typename ErrorSums<Real>::Sums own_sums;
        for (unsigned i = team.rank(); i < sums.entries; i += threads) own_sums.add(truth[i], own[i]);
        sums.finish(team, block, own_sums);
    }
};

/// Kernel: the errors of low-rank estimates of up to 256 rows, which it computes from their components as SplitLowRank
/// does (estimators/svd/cuda/low_rank.hpp). A thread computes entries of one row.
template <class Real>
struct LowRankErrors {
    static constexpr unsigned threads = ErrorSums<Real>::threads;
    static constexpr unsigned resident = sizeof(Real) == 4 ? 6 : 4;
    static constexpr unsigned each = 8;  ///< entries that a thread computes at the same time, side by side

    ErrorSums<Real> sums;
    LowRankBlocks<Real> estimates;
    Real* estimate;  ///< the estimates; null when not wanted

    [[nodiscard]] unsigned blocks() const { return sums.count; }
    [[nodiscard]] std::size_t shared_bytes() const { return sums.shared_bytes(); }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned block) const {
        const unsigned rows = estimates.rows;
        const unsigned columns = estimates.columns;
        const unsigned rank = estimates.rank(block);
        const double* const shrunk = estimates.shrunk_of(block);
        const Real* const truth = sums.truth_of(block);
        const unsigned side_by_side = threads / rows;  // threads of a row
        const unsigned row = team.rank() % rows;
        const unsigned which = team.rank() / rows;
        const Real* const left = estimates.left_of(block) + row;
        typename ErrorSums<Real>::Sums own_sums;
        for (unsigned first = which * each; which < side_by_side && first < columns; first += side_by_side * each) {
            const Real* right = estimates.right_of(block) + first;
            const Real* const x = truth + std::size_t{first} * rows + row;
            const bool whole = first + each <= columns;
            Real entries[each] = {};
            for (unsigned k = 0; k < rank; ++k) {
                const Real weighted = static_cast<Real>(shrunk[k]) * left[k * rows];
                SPIKED_UNROLL
                for (unsigned t = 0; t < each; ++t)
                    if (whole || first + t < columns) entries[t] = std::fma(weighted, right[t], entries[t]);
                right += columns;
            }
            SPIKED_UNROLL
            for (unsigned t = 0; t < each; ++t)
                if (whole || first + t < columns) own_sums.add(x[t * rows], entries[t]);
            if (estimate == nullptr) continue;
            Real* const to = estimate + (std::size_t{block} * columns + first) * rows + row;
            for (unsigned t = 0; t < each && first + t < columns; ++t) to[t * rows] = entries[t];
        }
        sums.finish(team, block, own_sums);
    }
};

}  // namespace spiked::estimators::cuda

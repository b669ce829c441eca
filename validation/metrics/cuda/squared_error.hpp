#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/device/team.hpp"
#include "estimators/svd/cuda/decomposition_batch.hpp"

namespace spiked::estimators::cuda {

/// Kernel: |X^ - X|_F^2 / |X|_F^2 of each block, a thread block a matrix, summed in double in an order that depends on
/// the number of entries alone: thread r takes entries r, r + 256, .., then the 32 of a warp, then the warps. Error:
/// (entries / 256 + 16) epsilon relative.
template <class Real>
struct SquaredErrors {
    static constexpr unsigned threads = 256;
    static constexpr unsigned resident = 8;
    static constexpr unsigned warps = threads / spiked::cuda::warp_size;

    std::uint32_t count;
    std::uint32_t entries;  ///< of a block
    const Real* truth;
    const Real* found;
    BlockStatus* status;  ///< fine, or not_finite: an entry is, or the square of one is beyond double
    double* errors;       ///< |X^ - X|_F^2; 0 where not_finite, as the next two
    double* energies;     ///< |X|_F^2
    double* relative;     ///< 0 for a zero block found as zero; a zero block found as another one has infinity

    [[nodiscard]] unsigned blocks() const { return count; }
    [[nodiscard]] std::size_t shared_bytes() const { return 2 * spiked::cuda::shared_room<double>(warps); }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned block) const {
        auto error_of = team.template take<double>(warps);
        auto energy_of = team.template take<double>(warps);
        const Real* const x = truth + std::size_t{block} * entries;
        const Real* const other = found + std::size_t{block} * entries;
        double error = 0.0;
        double energy = 0.0;
        for (unsigned i = team.rank(); i < entries; i += threads) {
            const auto entry = static_cast<double>(x[i]);
            const double off = static_cast<double>(other[i]) - entry;
            error = std::fma(off, off, error);
            energy = std::fma(entry, entry, energy);
        }
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

}  // namespace spiked::estimators::cuda

#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/device/team.hpp"
#include "estimators/svd/cuda/decomposition_batch.hpp"

namespace spiked::estimators::cuda {

/// Kernel: |X^ - X|_F^2 / |X|_F^2 of each block, with one thread block per matrix. The sums are in double, and their
/// order depends only on the number of entries: thread r adds entries r, r + 256, ..; then the 32 threads of a warp are
/// added, then the warps. Relative error: (entries / 256 + 16) epsilon.
template <class Real>
struct SquaredErrors {
    static constexpr unsigned threads = 256;
    static constexpr unsigned resident = 8;
    static constexpr unsigned warps = threads / spiked::cuda::warp_size;

    std::uint32_t count;
    std::uint32_t entries;  ///< per block
    const Real* truth;
    const Real* found;
    BlockStatus* status;  ///< fine, or not_finite if an entry is not finite or its square overflows double
    double* errors;       ///< |X^ - X|_F^2; this and the next two are 0 for blocks that are not_finite
    double* energies;     ///< |X|_F^2
    double* relative;     ///< if X is zero: 0 if X^ is zero too, otherwise infinity

    [[nodiscard]] unsigned blocks() const { return count; }
    [[nodiscard]] std::size_t shared_bytes() const { return 2 * spiked::cuda::shared_bytes_for<double>(warps); }

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

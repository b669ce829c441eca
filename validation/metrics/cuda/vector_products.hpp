#pragma once
#include <cstddef>
#include <cstdint>

#include "core/device/team.hpp"

namespace spiked::estimators::cuda {

/// Kernel: inner products of the observed leading singular vectors of each block with the true ones, u_i^T U_k and
/// v_i^T V_k, for all pairs up to `spikes`, in double; one warp for each i of each side.
template <class Real>
struct VectorProducts {
    static constexpr unsigned threads = 128;
    static constexpr unsigned resident = 8;
    static constexpr unsigned warps = threads / spiked::cuda::warp_size;

    std::uint32_t count;
    std::uint32_t rows;
    std::uint32_t columns;
    std::uint32_t spikes;
    std::uint32_t vectors;  ///< stored per block, at least `spikes`
    const Real* left;       ///< rows x vectors
    const Real* right;
    const double* true_left;  ///< rows x spikes
    const double* true_right;
    double* left_products;  ///< spikes x spikes per block: column i holds u_i^T U_1, u_i^T U_2, ..
    double* right_products;

    [[nodiscard]] unsigned blocks() const { return (2 * count * spikes + warps - 1) / warps; }
    [[nodiscard]] std::size_t shared_bytes() const { return 0; }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned part) const {
        const unsigned which = part * warps + team.warp();
        if (which >= 2 * count * spikes) return;
        const bool of_rows = which < count * spikes;
        const std::size_t pair = of_rows ? which : which - count * spikes;
        const std::size_t block = pair / spikes;
        const unsigned length = of_rows ? rows : columns;
        const Real* const found = (of_rows ? left : right) + (block * vectors + pair % spikes) * length;
        const double* const truth = (of_rows ? true_left : true_right) + block * spikes * length;
        double* const to = (of_rows ? left_products : right_products) + pair * spikes;
        for (unsigned k = 0; k < spikes; ++k) {
            double sum = 0.0;
            for (unsigned at = team.lane(); at < length; at += spiked::cuda::warp_size)
                sum += static_cast<double>(found[at]) * truth[std::size_t{k} * length + at];
            sum = spiked::cuda::warp_sum(team, sum);
            if (team.lane() == 0) to[k] = sum;
        }
    }
};

}  // namespace spiked::estimators::cuda

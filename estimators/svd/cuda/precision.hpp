#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/device/team.hpp"

/// Additional kernels for float blocks: the steps of AnalysedBlock between a sample in double and a decomposition in
/// float.
namespace spiked::estimators::cuda {

/// Kernel: converts doubles to floats.
struct Narrow {
    static constexpr unsigned threads = 256;
    static constexpr unsigned resident = 8;

    std::uint64_t count;
    const double* from;
    float* to;

    [[nodiscard]] unsigned blocks() const { return static_cast<unsigned>((count + threads - 1) / threads); }
    [[nodiscard]] std::size_t shared_bytes() const { return 0; }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned part) const {
        const std::uint64_t at = std::uint64_t{part} * threads + team.rank();
        if (at < count) to[at] = static_cast<float>(from[at]);
    }
};

/// Kernel: sets singular values of float blocks that are within the rounding error of float of 0 to 0.
struct DropRounding {
    static constexpr unsigned threads = 256;
    static constexpr unsigned resident = 8;

    std::uint32_t count;
    std::uint32_t short_side;
    std::uint32_t long_side;
    double* values;  ///< descending

    [[nodiscard]] unsigned blocks() const { return (count * short_side + threads - 1) / threads; }
    [[nodiscard]] std::size_t shared_bytes() const { return 0; }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned part) const {
        const unsigned at = part * threads + team.rank();
        if (at >= count * short_side || at % short_side == 0) return;
        const double largest = values[at - at % short_side];
        const double floor =
            static_cast<double>(long_side) * static_cast<double>(std::numeric_limits<float>::epsilon()) * largest;
        if (values[at] <= floor) values[at] = 0.0;
    }
};

}  // namespace spiked::estimators::cuda

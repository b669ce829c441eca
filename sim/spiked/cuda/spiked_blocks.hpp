#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "core/device/team.hpp"

namespace spiked::sim {

/// A kernel that turns white entries x_ij into samples of the spiked model in the eigenbases of its covariances
/// (Colouring::eigenbasis, ../spiked_sampler.hpp). Each column-major rows x columns block is the signal
/// U diag(strengths) V^T plus the noise x_ij / sqrt(columns) sqrt(a_i) sqrt(b_j). In double, the noise equals that of
/// `sample` bit for bit, and the signal equals it up to the rounding of its sum.
template <class Real>
struct SpikedBlocks {
    static constexpr unsigned threads = 128;
    static constexpr unsigned resident = 12;
    static constexpr unsigned each = 8;  ///< consecutive columns of one row that a thread computes

    std::uint32_t count;
    std::uint32_t rows;
    std::uint32_t columns;
    std::uint32_t rank;
    Real scale;                ///< sqrt(columns)
    const Real* row_roots;     ///< sqrt(a_i)
    const Real* column_roots;  ///< sqrt(b_j)
    const Real* strengths;
    const Real* left;   ///< rows x rank of each block, in the eigenbasis
    const Real* right;  ///< columns x rank
    const Real* white;  ///< x_ij
    Real* observed;     ///< may be equal to white; this and the next outputs are not written where null
    Real* signal;
    float* observed_as_float = nullptr;
    float* signal_as_float = nullptr;

    [[nodiscard]] SPIKED_DEVICE unsigned parts_down() const { return (rows + threads - 1) / threads; }
    [[nodiscard]] SPIKED_DEVICE unsigned parts() const { return parts_down() * ((columns + each - 1) / each); }
    [[nodiscard]] unsigned blocks() const { return count * parts(); }
    [[nodiscard]] std::size_t shared_bytes() const { return 0; }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned part) const {
        const std::size_t block = part / parts();
        const std::size_t corner = block * rows * columns;
        const unsigned row = part % parts() % parts_down() * threads + team.rank();
        const unsigned first = part % parts() / parts_down() * each;
        if (row >= rows) return;
        Real sums[each] = {};
        for (unsigned k = 0; k < rank; ++k) {
            const Real u = strengths[k] * left[(block * rank + k) * rows + row];
            const Real* const v = right + (block * rank + k) * columns + first;
            SPIKED_UNROLL
            for (unsigned c = 0; c < each; ++c)
                if (first + c < columns) sums[c] = std::fma(u, v[c], sums[c]);
        }
        const Real row_root = row_roots[row];
        const Real inverse = Real(1) / scale;
        // x / scale with correct rounding, from the inverse and two remainders (Markstein 1990).
        const auto scaled = [&](Real x) {
            Real quotient = x * inverse;
            quotient = std::fma(std::fma(-scale, quotient, x), inverse, quotient);
            return std::fma(std::fma(-scale, quotient, x), inverse, quotient);
        };
        SPIKED_UNROLL
        for (unsigned c = 0; c < each; ++c) {
            if (first + c >= columns) continue;
            const std::size_t at = corner + std::size_t{first + c} * rows + row;
            const Real entry = sums[c] + scaled(white[at]) * row_root * column_roots[first + c];
            if (observed != nullptr) observed[at] = entry;
            if (signal != nullptr) signal[at] = sums[c];
            if (observed_as_float != nullptr) observed_as_float[at] = static_cast<float>(entry);
            if (signal_as_float != nullptr) signal_as_float[at] = static_cast<float>(sums[c]);
        }
    }
};

}  // namespace spiked::sim

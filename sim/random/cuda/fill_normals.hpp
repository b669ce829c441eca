#pragma once
#include <cstddef>
#include <cstdint>

#include "core/device/team.hpp"
#include "sim/random/block_normals.hpp"

namespace spiked::stream {

/// Kernel: entries 0, 1, .. of the streams of `count` replicates from `first_replicate` on. They are bit-equal to
/// fill_normal of each of these streams, and are then rounded to `Out`. The replicates follow each other in `out`. Each
/// thread computes the normals of one word block.
template <class Real, class Out = Real>
struct FillNormals {
    static constexpr unsigned threads = 256;
    static constexpr unsigned resident = 4;
    static constexpr unsigned block_entries = sizeof(Real) == 8 ? 2 : 4;

    PhiloxKey key;       ///< the key of the streams, which depends on seed and cell
    std::uint32_t role;  ///< the role of the streams, the second counter word
    std::uint64_t first_replicate;
    std::uint32_t count;
    std::uint32_t entries;  ///< entries per replicate
    Out* out;

    /// The number of word blocks per replicate.
    [[nodiscard]] SPIKED_DEVICE std::uint32_t word_blocks() const {
        return (entries + block_entries - 1) / block_entries;
    }
    [[nodiscard]] unsigned blocks() const {
        return static_cast<unsigned>((std::uint64_t{word_blocks()} * count + threads - 1) / threads);
    }
    [[nodiscard]] std::size_t shared_bytes() const { return 0; }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned block) const {
        const std::uint32_t blocks_per_replicate = word_blocks();
        const std::uint64_t at = std::uint64_t{block} * threads + team.rank();
        const std::uint64_t index = at / blocks_per_replicate;
        if (index >= count) return;
        const auto element = static_cast<std::uint32_t>(at % blocks_per_replicate);
        const std::uint64_t replicate = first_replicate + index;
        Real normals[block_entries];
        normals_of_block(philox_4x32_10({element, role, static_cast<std::uint32_t>(replicate),
                                         static_cast<std::uint32_t>(replicate >> 32)},
                                        key),
                         normals);
        const std::uint32_t first = element * block_entries;
        Out* const to = out + index * entries + first;
        for (unsigned i = 0; i < block_entries; ++i)
            if (first + i < entries) to[i] = static_cast<Out>(normals[i]);
    }
};

}  // namespace spiked::stream

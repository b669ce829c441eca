#pragma once
#include <cstddef>
#include <cstdint>

#include "core/device/team.hpp"
#include "sim/random/block_normals.hpp"

namespace spiked::stream {

/// Kernel: entries 0, 1, .. of the streams of `count` replicates from `first_replicate` on, bit-equal to fill_normal of
/// each of these streams and then rounded to `Out`; a thread makes the normals of one word block. Replicate after
/// replicate in `out`.
template <class Real, class Out = Real>
struct FillNormals {
    static constexpr unsigned threads = 256;
    static constexpr unsigned resident = 4;
    static constexpr unsigned block_entries = sizeof(Real) == 8 ? 2 : 4;

    PhiloxKey key;       ///< of the cell
    std::uint32_t role;  ///< of the streams
    std::uint64_t first_replicate;
    std::uint32_t count;
    std::uint32_t entries;  ///< of a replicate
    Out* out;

    /// Of a replicate.
    [[nodiscard]] SPIKED_DEVICE std::uint32_t word_blocks() const {
        return (entries + block_entries - 1) / block_entries;
    }
    [[nodiscard]] unsigned blocks() const {
        return static_cast<unsigned>((std::uint64_t{word_blocks()} * count + threads - 1) / threads);
    }
    [[nodiscard]] std::size_t shared_bytes() const { return 0; }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned block) const {
        const std::uint32_t each = word_blocks();
        const std::uint64_t at = std::uint64_t{block} * threads + team.rank();
        const std::uint64_t which = at / each;
        if (which >= count) return;
        const auto element = static_cast<std::uint32_t>(at % each);
        const std::uint64_t replicate = first_replicate + which;
        Real normals[block_entries];
        normals_of_block(philox_4x32_10({element, role, static_cast<std::uint32_t>(replicate),
                                         static_cast<std::uint32_t>(replicate >> 32)},
                                        key),
                         normals);
        const std::uint32_t first = element * block_entries;
        Out* const to = out + which * entries + first;
        for (unsigned i = 0; i < block_entries; ++i)
            if (first + i < entries) to[i] = static_cast<Out>(normals[i]);
    }
};

}  // namespace spiked::stream

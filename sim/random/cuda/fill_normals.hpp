#pragma once
#include <cstddef>
#include <cstdint>

#include "core/device/team.hpp"
#include "sim/random/block_normals.hpp"

namespace spiked::stream {

/// Kernel: entries 0, 1, .. of the streams of `count` replicates from `first_replicate` on. They are bit-equal to
/// fill_normal of each of these streams, and are then rounded to `Out`. The replicates follow each other in `out`. Each
/// thread computes the normals of `each` word blocks, so that it divides, and loads the coefficients, once for all.
template <class Real, class Out = Real>
struct FillNormals {
    static constexpr unsigned threads = 256;
    static constexpr unsigned resident = 6;
    static constexpr unsigned each = 8;
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
        constexpr std::uint64_t together = threads * each;
        return static_cast<unsigned>((std::uint64_t{word_blocks()} * count + together - 1) / together);
    }
    [[nodiscard]] std::size_t shared_bytes() const { return 0; }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned block) const {
        each_word_block(team, block,
                        [&](std::uint32_t index, std::uint32_t first, const Real(&normals)[block_entries]) {
                            Out* const to = out + std::size_t{index} * entries;
                            SPIKED_UNROLL
                            for (unsigned i = 0; i < block_entries; ++i)
                                if (first + i < entries) to[first + i] = static_cast<Out>(normals[i]);
                        });
    }

    /// Calls put(index of the replicate in the batch, first entry, normals) for the word blocks of this thread.
    template <class Team, class Put>
    SPIKED_DEVICE void each_word_block(const Team& team, unsigned block, const Put& put) const {
        const std::uint32_t per_replicate = word_blocks();
        const std::uint64_t first = std::uint64_t{block} * threads * each + team.rank();
        auto index = static_cast<std::uint32_t>(first / per_replicate);
        auto element = static_cast<std::uint32_t>(first % per_replicate);
        const std::uint32_t replicates_on = threads / per_replicate;
        const std::uint32_t elements_on = threads % per_replicate;
        SPIKED_UNROLL_BY(1)
        for (unsigned i = 0; i < each && index < count; ++i) {
            const std::uint64_t replicate = first_replicate + index;
            Real normals[block_entries];
            normals_of_block(philox_4x32_10({element, role, static_cast<std::uint32_t>(replicate),
                                             static_cast<std::uint32_t>(replicate >> 32)},
                                            key),
                             normals);
            put(index, element * block_entries, normals);
            index += replicates_on;
            element += elements_on;
            if (element >= per_replicate) {
                element -= per_replicate;
                ++index;
            }
        }
    }
};

}  // namespace spiked::stream

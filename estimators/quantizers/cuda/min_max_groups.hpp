#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "estimators/quantizers/cuda/turboquant.hpp"

/// kivi (../kivi.hpp) without kept tokens, group numbers in fp16, in float: FindGroups, then PackGroups; back:
/// UnpackGroups. The bytes and the decoded entries are those of the CPU's float path.
namespace spiked::estimators::cuda {

/// The groups of the entries of a block that share their scales.
struct MinMaxGroups {
    std::uint32_t size = 0;     ///< entries of a group; the last one of a channel or token may have fewer
    bool along_tokens = false;  ///< along the tokens of one channel, otherwise along the channels of one token
    std::uint32_t rows = 0;
    std::uint32_t dimension = 0;

    [[nodiscard]] SPIKED_DEVICE std::uint32_t length() const { return along_tokens ? rows : dimension; }
    [[nodiscard]] SPIKED_DEVICE std::uint32_t of_a_line() const { return (length() + size - 1) / size; }
    [[nodiscard]] SPIKED_DEVICE std::uint32_t count() const { return (along_tokens ? dimension : rows) * of_a_line(); }
    [[nodiscard]] SPIKED_DEVICE std::size_t entries() const { return std::size_t{rows} * dimension; }
    [[nodiscard]] SPIKED_DEVICE std::uint32_t group_of(std::size_t entry) const {
        const auto t = static_cast<std::uint32_t>(entry % rows);
        const auto j = static_cast<std::uint32_t>(entry / rows);
        return along_tokens ? j * of_a_line() + t / size : t * of_a_line() + j / size;
    }
    [[nodiscard]] SPIKED_DEVICE std::size_t bytes(unsigned bits) const {
        return 4 * std::size_t{count()} + (entries() * bits + 7) / 8;
    }
};

/// Kernel: minimum and scale of each group, one thread block per matrix.
struct FindGroups {
    static constexpr unsigned threads = 128;
    static constexpr unsigned resident = 8;
    static constexpr unsigned warps = threads / spiked::cuda::warp_size;

    std::uint32_t count;
    MinMaxGroups groups;
    std::uint32_t bits;
    const float* from;
    CodingStatus* status;
    std::uint8_t*
        bytes;  ///< zeros of the groups, then scales: the first 4 groups.count() bytes of each block are written
    std::size_t stride;

    [[nodiscard]] unsigned blocks() const { return count; }
    [[nodiscard]] std::size_t shared_bytes() const {
        return spiked::cuda::shared_bytes_for<unsigned>(warps) + 2 * spiked::cuda::shared_bytes_for<double>(warps);
    }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned block) const {
        auto worst_of = team.template take<unsigned>(warps);
        auto largest_of = team.template take<double>(warps);
        auto moved_of = team.template take<double>(warps);
        const float* const entries = from + block * groups.entries();
        std::uint8_t* const to = bytes + block * stride;
        const double top = static_cast<double>((1U << bits) - 1U);
        const std::size_t step = groups.along_tokens ? 1 : groups.rows;
        unsigned worst = 0;
        double largest = 0.0;
        double moved = 0.0;
        for (std::uint32_t g = team.rank(); g < groups.count(); g += threads) {
            const std::uint32_t line = g / groups.of_a_line();
            const std::uint32_t begin = g % groups.of_a_line() * groups.size;
            const std::uint32_t end = begin + groups.size < groups.length() ? begin + groups.size : groups.length();
            const float* const at = entries + (groups.along_tokens ? std::size_t{line} * groups.rows : line);
            float low = at[begin * step];
            float high = low;
            float wrong = 0.0F;
            for (std::uint32_t i = begin; i < end; ++i) {
                const float x = at[i * step];
                wrong += x * 0.0F;
                low = x < low ? x : low;
                high = x > high ? x : high;
            }
            const double zero = low;
            const double scale = (static_cast<double>(high) - static_cast<double>(low)) / top;
            const std::uint16_t stored_zero = to_float16(zero);
            const std::uint16_t stored_scale = to_float16(scale);
            put_float16(to + 2 * std::size_t{g}, stored_zero);
            put_float16(to + 2 * (std::size_t{groups.count()} + g), stored_scale);
            const bool fits = (stored_zero & 0x7FFFU) < 0x7C00U && stored_scale < 0x7C00U;
            const auto now = static_cast<unsigned>(
                wrong != 0.0F ? CodingStatus::not_finite : (fits ? CodingStatus::coded : CodingStatus::norm_too_large));
            worst = now > worst ? now : worst;
            if (now != 0) continue;
            const double range = top * scale;
            largest = larger(largest, larger(std::fabs(zero), std::fabs(zero + range)));
            moved = larger(moved, larger(std::fabs(from_float16(stored_zero) - zero),
                                         std::fabs(top * from_float16(stored_scale) - range)));
        }
        worst = spiked::cuda::warp_max(team, worst);
        largest = spiked::cuda::warp_max(team, largest);
        moved = spiked::cuda::warp_max(team, moved);
        if (team.lane() == 0) {
            worst_of[team.warp()] = worst;
            largest_of[team.warp()] = largest;
            moved_of[team.warp()] = moved;
        }
        team.barrier();
        for (unsigned w = 0; w < warps; ++w) {
            const unsigned other = worst_of[w];
            worst = other > worst ? other : worst;
            largest = larger(largest, largest_of[w]);
            moved = larger(moved, moved_of[w]);
        }
        auto answer = static_cast<CodingStatus>(worst);
        if (answer == CodingStatus::coded && moved > 0x1p-7 * largest) answer = CodingStatus::norm_too_small;
        if (team.rank() == 0) status[block] = answer;
        if (answer == CodingStatus::coded) return;
        for (std::uint32_t g = team.rank(); g < 2 * groups.count(); g += threads)
            put_float16(to + 2 * std::size_t{g}, 0);
    }

private:
    SPIKED_DEVICE static double larger(double a, double b) { return a > b ? a : b; }
};

/// Shared part of PackGroups and UnpackGroups: a thread processes 8 entries, whose codes are whole bytes.
struct GroupCodes {
    static constexpr unsigned threads = 256;
    static constexpr unsigned per_thread = 8;

    std::uint32_t count;
    MinMaxGroups groups;
    std::uint32_t bits;
    std::uint8_t* bytes;
    std::size_t stride;

    [[nodiscard]] SPIKED_DEVICE unsigned parts() const {
        return static_cast<unsigned>((groups.entries() + per_thread * threads - 1) / (per_thread * threads));
    }
    struct Place {
        std::size_t block, first;  ///< entry of the block
        unsigned here;
        std::uint8_t* numbers;
        std::uint8_t* codes;
        unsigned code_bytes;
    };
    template <class Team>
    SPIKED_DEVICE Place place(Team& team, unsigned part) const {
        Place at{};
        at.block = part / parts();
        at.first = (std::size_t{part % parts()} * threads + team.rank()) * per_thread;
        if (at.first >= groups.entries()) return at;
        at.here =
            static_cast<unsigned>(groups.entries() - at.first < per_thread ? groups.entries() - at.first : per_thread);
        at.numbers = bytes + at.block * stride;
        at.codes = at.numbers + 4 * std::size_t{groups.count()} + at.first / per_thread * bits;
        at.code_bytes = (at.here * bits + 7) / 8;
        return at;
    }
    struct Group {
        float zero, scale;
    };
    [[nodiscard]] SPIKED_DEVICE Group group_at(const Place& at, std::size_t entry) const {
        const std::size_t g = groups.group_of(entry);
        return {static_cast<float>(get_float16(at.numbers + 2 * g)),
                static_cast<float>(get_float16(at.numbers + 2 * (groups.count() + g)))};
    }
};

/// Kernel: the code of every entry, stored after the numbers of the groups.
struct PackGroups {
    static constexpr unsigned threads = GroupCodes::threads;
    static constexpr unsigned resident = 8;

    GroupCodes codes;
    const CodingStatus* status;
    const float* from;

    [[nodiscard]] unsigned blocks() const { return codes.count * codes.parts(); }
    [[nodiscard]] std::size_t shared_bytes() const { return 0; }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned part) const {
        const GroupCodes::Place at = codes.place(team, part);
        if (at.here == 0) return;
        const float top = static_cast<float>((1U << codes.bits) - 1U);
        std::uint64_t word = 0;
        for (unsigned i = 0; i < at.here && status[at.block] == CodingStatus::coded; ++i) {
            const auto [zero, scale] = codes.group_at(at, at.first + i);
            float code = scale > 0.0F ? (from[at.block * codes.groups.entries() + at.first + i] - zero) / scale : 0.0F;
            code = code < 0.0F ? 0.0F : (code > top ? top : code);
            word |= static_cast<std::uint64_t>(std::nearbyint(code)) << (i * codes.bits);
        }
        for (unsigned i = 0; i < at.code_bytes; ++i) at.codes[i] = static_cast<std::uint8_t>(word >> (8 * i));
    }
};

/// Kernel: decodes the bytes of a block.
struct UnpackGroups {
    static constexpr unsigned threads = GroupCodes::threads;
    static constexpr unsigned resident = 8;

    GroupCodes codes;
    float* to;

    [[nodiscard]] unsigned blocks() const { return codes.count * codes.parts(); }
    [[nodiscard]] std::size_t shared_bytes() const { return 0; }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned part) const {
        const GroupCodes::Place at = codes.place(team, part);
        if (at.here == 0) return;
        std::uint64_t word = 0;
        for (unsigned i = 0; i < at.code_bytes; ++i) word |= std::uint64_t{at.codes[i]} << (8 * i);
        for (unsigned i = 0; i < at.here; ++i) {
            const auto [zero, scale] = codes.group_at(at, at.first + i);
            const auto code = static_cast<float>(word >> (i * codes.bits) & ((1U << codes.bits) - 1U));
            to[at.block * codes.groups.entries() + at.first + i] = code * scale + zero;
        }
    }
};

}  // namespace spiked::estimators::cuda

#pragma once
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "core/device/team.hpp"
#include "sim/random/address.hpp"

namespace spiked::estimators::cuda {

/// The parameters of a HadamardRotation (../hadamard.hpp) for a kernel: its sizes and the address of its signs.
struct HadamardPlan {
    std::uint32_t dimension = 0;
    std::uint32_t width = 0;  ///< number of entries that a transform mixes: the largest power of two
    std::uint32_t rounds = 0;
    bool walks = false;  ///< true for fht-kac where the dimension is not a power of two
    double scale = 1.0;  ///< scale of all rounds, where every round mixes all entries
    double each = 1.0;   ///< scale of one round
    stream::PhiloxKey key{};
    std::uint32_t role = 0;
    std::uint64_t replicate = 0;

    /// The rounds are 1 or 2 for rht1 and rht2 (HadamardRotation rejects dimensions that are not powers of two), 4 for
    /// fht-kac.
    HadamardPlan() = default;
    HadamardPlan(const stream::Stream& stream, std::uint32_t length, unsigned count)
        : dimension(length),
          width(std::bit_floor(length)),
          rounds(count),
          walks(width != length),
          each(1.0 / std::sqrt(static_cast<double>(width))),
          key(stream.key()) {
        const stream::PhiloxCounter counter = stream.counter(0);
        role = counter[1];
        replicate = counter[2] | std::uint64_t{counter[3]} << 32;
        if (!walks) scale = std::pow(each, static_cast<double>(rounds));
    }
};

/// Kernel: rotates the rows x of column-major blocks, rows x dimension each, to R x or, with `back`, to R^T x;
/// bit-identical to HadamardRotation. Block b is rotated by the rotation of replicate `plan.replicate` or, with
/// `each_its_own`, of `plan.replicate` + b, or of `replicates` of its own. It works in place where to == from.
///
/// A thread block holds 32 rows in shared memory, column by column, as the CPU does. Up to three stages are done
/// between two barriers, no two lanes use the same bank, and 32 neighbouring numbers are read and written at once.
template <class Real>
struct TurnByHadamard {
    static constexpr unsigned strip_rows = spiked::cuda::warp_size;
    static constexpr unsigned warps = 8;
    static constexpr unsigned threads = warps * spiked::cuda::warp_size;
    static constexpr unsigned resident = 4;
    /// The strip has 128 KiB for this dimension.
    static constexpr std::uint32_t most_dimension = 4096 / sizeof(Real);

    HadamardPlan plan;
    bool back;
    bool each_its_own;
    std::uint32_t count;
    std::uint32_t rows;  ///< of each block
    const Real* from;
    Real* to;
    const std::uint64_t* replicates = nullptr;  ///< of each block, in place of `plan.replicate`

    [[nodiscard]] SPIKED_DEVICE std::uint32_t strips() const { return (rows + strip_rows - 1) / strip_rows; }
    [[nodiscard]] unsigned blocks() const { return count * strips(); }
    [[nodiscard]] std::size_t shared_bytes() const {
        return spiked::cuda::shared_bytes_for<std::uint32_t>(sign_words()) +
               spiked::cuda::shared_bytes_for<Real>(std::size_t{plan.dimension} * strip_rows);
    }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned part) const {
        const unsigned block = part / strips();
        const unsigned row = part % strips() * strip_rows + team.lane();
        const bool there = row < rows;
        const std::size_t corner = std::size_t{block} * rows * plan.dimension + row;
        auto signs = team.template take<std::uint32_t>(sign_words());
        auto strip = team.template take<Real>(std::size_t{plan.dimension} * strip_rows);
        draw_signs(team, signs,
                   replicates != nullptr ? replicates[block] : plan.replicate + (each_its_own ? block : 0));
        team.barrier();

        const auto scale = static_cast<Real>(plan.scale);
        for (unsigned j = team.warp(); j < plan.dimension; j += warps) {
            const Real x = there ? from[corner + std::size_t{j} * rows] : Real{0};
            strip[j * strip_rows + team.lane()] = (!back && minus(signs, 0, j) ? -scale : scale) * x;
        }
        team.barrier();
        for (unsigned step = 0; step < plan.rounds; ++step) {
            const unsigned round = back ? plan.rounds - 1 - step : step;
            if (plan.walks && back) walk(team, strip);
            if (!back && step > 0) flip_signs(team, strip, signs, round);
            const unsigned first = plan.walks && round % 2 != 0 ? plan.dimension - plan.width : 0;
            butterflies(team, strip, first);
            if (plan.walks) {
                const auto factor = static_cast<Real>(plan.each);
                for (unsigned j = team.warp(); j < plan.width; j += warps) {
                    const unsigned at = (first + j) * strip_rows + team.lane();
                    const Real x = strip[at];
                    strip[at] = x * factor;
                }
                team.barrier();
            }
            if (plan.walks && !back) walk(team, strip);
            if (back && step + 1 < plan.rounds) flip_signs(team, strip, signs, round);
        }
        if (!there) return;
        for (unsigned j = team.warp(); j < plan.dimension; j += warps) {
            const Real x = strip[j * strip_rows + team.lane()];
            to[corner + std::size_t{j} * rows] = back && minus(signs, 0, j) ? -x : x;
        }
    }

private:
    [[nodiscard]] SPIKED_DEVICE unsigned sign_elements() const { return (plan.dimension + 127) / 128; }
    [[nodiscard]] SPIKED_DEVICE unsigned sign_words() const { return 4 * sign_elements() * plan.rounds; }

    template <class Team, class Signs>
    SPIKED_DEVICE void draw_signs(Team& team, Signs& signs, std::uint64_t replicate) const {
        for (unsigned i = team.rank(); i < sign_elements() * plan.rounds; i += threads) {
            const stream::PhiloxCounter words = stream::philox_4x32_10(
                {i % sign_elements(), plan.role | (i / sign_elements()) << 16, static_cast<std::uint32_t>(replicate),
                 static_cast<std::uint32_t>(replicate >> 32)},
                plan.key);
            SPIKED_UNROLL
            for (unsigned k = 0; k < 4; ++k) signs[4 * i + k] = words[k];
        }
    }
    template <class Signs>
    SPIKED_DEVICE bool minus(const Signs& signs, unsigned round, unsigned j) const {
        const std::uint32_t word = signs[4 * sign_elements() * round + j / 32];
        return (word >> (j % 32) & 1U) != 0;
    }

    template <class Team, class Strip, class Signs>
    SPIKED_DEVICE void flip_signs(Team& team, Strip& strip, const Signs& signs, unsigned round) const {
        for (unsigned j = team.warp(); j < plan.dimension; j += warps) {
            if (!minus(signs, round, j)) continue;
            const unsigned at = j * strip_rows + team.lane();
            const Real x = strip[at];
            strip[at] = -x;
        }
        team.barrier();
    }

    template <class Team, class Strip>
    SPIKED_DEVICE void walk(Team& team, Strip& strip) const {
        const auto root = static_cast<Real>(0.70710678118654752440);  // sqrt(1/2)
        const unsigned half = plan.dimension / 2;
        for (unsigned i = team.warp(); i < half; i += warps) {
            const unsigned one = i * strip_rows + team.lane();
            const unsigned other = (plan.dimension - half + i) * strip_rows + team.lane();
            Real a = strip[one];
            Real b = strip[other];
            a *= root;
            b *= root;
            strip[one] = a + b;
            strip[other] = a - b;
        }
        team.barrier();
    }

    template <class Team, class Strip>
    SPIKED_DEVICE void butterflies(Team& team, Strip& strip, unsigned first) const {
        unsigned shift = 0;  // number of finished stages: the next butterflies are 2^shift columns apart
        while ((plan.width >> shift) > 1) {
            const bool three = (plan.width >> shift) >= 8;
            if (three)
                stages<3>(team, strip, first, shift);
            else
                stages<1>(team, strip, first, shift);
            shift += three ? 3 : 1;
        }
    }

    template <unsigned depth, class Team, class Strip>
    SPIKED_DEVICE void stages(Team& team, Strip& strip, unsigned first, unsigned shift) const {
        constexpr unsigned width = 1U << depth;
        const unsigned apart = strip_rows << shift;
        for (unsigned group = team.warp(); group < plan.width / width; group += warps) {
            const unsigned column = first + (group >> shift << (shift + depth)) + (group & ((1U << shift) - 1U));
            const unsigned at = column * strip_rows + team.lane();
            Real x[width];
            SPIKED_UNROLL
            for (unsigned i = 0; i < width; ++i) x[i] = strip[at + i * apart];
            SPIKED_UNROLL
            for (unsigned level = 0; level < depth; ++level) {
                SPIKED_UNROLL
                for (unsigned i = 0; i < width; ++i) {
                    const unsigned step = 1U << level;
                    if ((i & step) != 0) continue;
                    const Real sum = x[i] + x[i + step];
                    x[i + step] = x[i] - x[i + step];
                    x[i] = sum;
                }
            }
            SPIKED_UNROLL
            for (unsigned i = 0; i < width; ++i) strip[at + i * apart] = x[i];
        }
        team.barrier();
    }
};

}  // namespace spiked::estimators::cuda

#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/device/float16.hpp"
#include "core/device/team.hpp"
#include "estimators/coding/row_scale.hpp"

/// Kernels of the quantizers of ../turboquant.hpp, in float with norms in fp16; row_codec.hpp has their order. The
/// bytes are those of the CPU's float path, except that a coordinate next to a threshold may get the index on its other
/// side where the rotation is a product of matrices; with a Hadamard rotation all bits are those of the CPU.
namespace spiked::estimators::cuda {

/// The outcome for a block. For all but `coded` the bytes are not valid, and the norms are 0, so that it decodes to
/// zeros.
enum class CodingStatus : std::uint8_t {
    coded = 0,
    norm_too_large = 1,  ///< for fp16
    for_the_host = 2,    ///< a norm below 1e-15 or above 1e18: the CPU codes such blocks in double
    not_finite = 3,      ///< an entry is NaN or infinite
    norm_too_small = 4   ///< the largest norm would be stored with less than 8 bits, or as 0
};

/// The number of bytes of one block.
[[nodiscard]] SPIKED_DEVICE constexpr std::size_t turboquant_bytes(std::size_t rows, std::size_t dimension,
                                                                   unsigned bits) {
    return 2 * rows + (rows * dimension * bits + 7) / 8;
}

/// Writes and reads a number in fp16 at any position among the bytes of a block.
SPIKED_DEVICE inline void put_float16(std::uint8_t* to, std::uint16_t stored) {
    to[0] = static_cast<std::uint8_t>(stored);
    to[1] = static_cast<std::uint8_t>(stored >> 8);
}
[[nodiscard]] SPIKED_DEVICE inline double get_float16(const std::uint8_t* at) {
    return from_float16(static_cast<std::uint16_t>(at[0] | unsigned{at[1]} << 8));
}

/// Stores a number in fp16 for each row of a block, and checks that fp16 can represent them.
struct StoredNorms {
    static constexpr unsigned threads = 128;
    static constexpr unsigned warps = threads / spiked::cuda::warp_size;

    std::uint32_t rows;
    bool all_may_vanish;  ///< no norm is rejected as too small
    bool after_others;    ///< follows other kernels: blocks for which they failed fail here too
    CodingStatus* status;
    std::uint8_t* bytes;  ///< the first 2 rows bytes of each block are written
    std::size_t stride;   ///< distance between blocks

    [[nodiscard]] static std::size_t shared_bytes() {
        return spiked::cuda::shared_bytes_for<unsigned>(warps) + spiked::cuda::shared_bytes_for<double>(warps);
    }

    /// Run by one thread block; norm(t) is called once, and clear(t) if the block is not coded.
    template <class Team, class Norm, class Clear>
    SPIKED_DEVICE void write(Team& team, unsigned block, const Norm& norm_of, const Clear& clear) const {
        auto worst_of = team.template take<unsigned>(warps);
        auto largest_of = team.template take<double>(warps);
        unsigned worst = after_others ? static_cast<unsigned>(status[block]) : 0;
        double largest = 0.0;
        for (unsigned t = team.rank(); t < rows; t += threads) {
            const double norm = norm_of(t);
            const std::uint16_t stored = to_float16(norm);
            const unsigned now = static_cast<unsigned>(status_of(norm, stored));
            worst = now > worst ? now : worst;
            largest = norm > largest ? norm : largest;
            put(block, t, stored);
        }
        worst = spiked::cuda::warp_max(team, worst);
        largest = spiked::cuda::warp_max(team, largest);
        if (team.lane() == 0) {
            worst_of[team.warp()] = worst;
            largest_of[team.warp()] = largest;
        }
        team.barrier();
        for (unsigned w = 0; w < warps; ++w) {
            const unsigned other_worst = worst_of[w];
            const double other_largest = largest_of[w];
            worst = other_worst > worst ? other_worst : worst;
            largest = other_largest > largest ? other_largest : largest;
        }
        auto answer = static_cast<CodingStatus>(worst);
        if (answer == CodingStatus::coded && !all_may_vanish &&
            std::fabs(from_float16(to_float16(largest)) - largest) > largest * 0x1p-8)
            answer = CodingStatus::norm_too_small;
        if (team.rank() == 0) status[block] = answer;
        if (answer == CodingStatus::coded) return;
        for (unsigned t = team.rank(); t < rows; t += threads) {
            put(block, t, 0);
            clear(t);
        }
    }

private:
    SPIKED_DEVICE void put(std::size_t block, unsigned t, std::uint16_t stored) const {
        put_float16(bytes + block * stride + 2 * std::size_t{t}, stored);
    }
    SPIKED_DEVICE static CodingStatus status_of(double norm, std::uint16_t stored) {
        if (!(norm <= std::numeric_limits<double>::max())) return CodingStatus::not_finite;
        if (norm != 0.0 && (norm < 1e-15 || norm > 1e18)) return CodingStatus::for_the_host;
        return stored >= 0x7C00U ? CodingStatus::norm_too_large : CodingStatus::coded;
    }
};

/// Kernel: norms of the rows of column-major blocks, one thread block per matrix. A norm is equal to that of the CPU
/// bit for bit: squares are added in float, column after column.
struct ScaleRows {
    static constexpr unsigned threads = StoredNorms::threads;
    static constexpr unsigned resident = 8;

    std::uint32_t count;
    std::uint32_t dimension;
    double unit;  ///< sqrt(dimension)
    const float* from;
    StoredNorms stored;
    float* factors;           ///< per row: the factor to unit variance, 0 for a zero row
    double* norms = nullptr;  ///< the unrounded norms, if not null

    [[nodiscard]] unsigned blocks() const { return count; }
    [[nodiscard]] std::size_t shared_bytes() const { return StoredNorms::shared_bytes(); }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned block) const {
        const std::size_t first = std::size_t{block} * stored.rows;
        stored.write(
            team, block,
            [&](unsigned t) {
                const double norm = norm_of(from + first * dimension + t);
                factors[first + t] = norm == 0.0 ? 0.0F : static_cast<float>(unit / norm);
                if (norms != nullptr) norms[first + t] = norm;
                return norm;
            },
            [&](unsigned t) { factors[first + t] = 0.0F; });
    }

private:
    SPIKED_DEVICE double norm_of(const float* row) const {
        float squares = 0.0F;
        for (unsigned j = 0; j < dimension; ++j) {
            const float x = row[std::size_t{j} * stored.rows];
            squares += x * x;
        }
        const float least = std::numeric_limits<float>::min() / std::numeric_limits<float>::epsilon();
        if (squares > least && squares <= std::numeric_limits<float>::max())
            return std::sqrt(static_cast<double>(squares));
        // In double the squares of floats do not overflow.
        double wide = 0.0;
        for (unsigned j = 0; j < dimension; ++j) {
            const double x = row[std::size_t{j} * stored.rows];
            wide += x * x;
        }
        return std::sqrt(wide);
    }
};

/// Index i of a block's packed indices.
[[nodiscard]] SPIKED_DEVICE inline unsigned packed_cell(const std::uint8_t* cells, std::size_t i, unsigned bits) {
    const std::size_t at = i * bits;
    unsigned word = cells[at / 8];
    if (at % 8 + bits > 8) word |= unsigned{cells[at / 8 + 1]} << 8;
    return word >> (at % 8) & ((1U << bits) - 1U);
}

/// Kernel: replaces the norms of coded blocks by another scale of their rows, computed from the coordinates and their
/// levels. One thread block per matrix; products are added in float, column after column, as on the CPU.
struct RescaleRows {
    static constexpr unsigned threads = StoredNorms::threads;
    static constexpr unsigned resident = 8;

    std::uint32_t count;
    std::uint32_t dimension;
    std::uint32_t bits;
    RowScale scale;
    double unit;  ///< sqrt(dimension)
    const float* levels;
    const float* coordinates;  ///< the rotated rows
    const double* norms;       ///< from ScaleRows
    float* factors;
    StoredNorms stored;

    [[nodiscard]] unsigned blocks() const { return count; }
    [[nodiscard]] std::size_t shared_bytes() const { return StoredNorms::shared_bytes(); }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned block) const {
        const std::size_t first = std::size_t{block} * stored.rows;
        const std::uint8_t* const cells = stored.bytes + block * stored.stride + 2 * std::size_t{stored.rows};
        const bool failed = stored.status[block] != CodingStatus::coded;
        stored.write(
            team, block,
            [&](unsigned t) {
                const double norm = norms[first + t];
                if (failed || norm == 0.0) return 0.0;
                float across = 0.0F;
                float energy = 0.0F;
                for (unsigned j = 0; j < dimension; ++j) {
                    const std::size_t i = std::size_t{j} * stored.rows + t;
                    const float level = levels[packed_cell(cells, i, bits)];
                    across += coordinates[first * dimension + i] * level;
                    energy += level * level;
                }
                return stored_scale(scale, norm, static_cast<double>(dimension),
                                    unit / norm * static_cast<double>(across), static_cast<double>(energy));
            },
            [&](unsigned t) { factors[first + t] = 0.0F; });
    }
};

/// Kernel: the residual of the coordinates: these minus level times stored norm over sqrt(dimension).
struct TakeLevels {
    static constexpr unsigned threads = 256;
    static constexpr unsigned resident = 8;

    std::uint32_t count;
    std::uint32_t rows;
    std::uint32_t dimension;
    std::uint32_t bits;
    double per_unit;  ///< 1 / sqrt(dimension)
    const float* levels;
    const std::uint8_t* bytes;
    std::size_t stride;
    const float* coordinates;
    float* left_over;

    [[nodiscard]] SPIKED_DEVICE std::size_t entries() const { return std::size_t{rows} * dimension; }
    [[nodiscard]] unsigned blocks() const { return static_cast<unsigned>((count * entries() + threads - 1) / threads); }
    [[nodiscard]] std::size_t shared_bytes() const { return 0; }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned part) const {
        const std::size_t at = std::size_t{part} * threads + team.rank();
        if (at >= count * entries()) return;
        const std::size_t i = at % entries();
        const std::uint8_t* const norms = bytes + at / entries() * stride;
        const std::size_t t = i % rows;
        const float level = levels[packed_cell(norms + 2 * std::size_t{rows}, i, bits)];
        left_over[at] = coordinates[at] + level * static_cast<float>(get_float16(norms + 2 * t) * -per_unit);
    }
};

/// Kernel: to += from.
struct AddEntries {
    static constexpr unsigned threads = 256;
    static constexpr unsigned resident = 8;

    std::uint64_t count;
    const float* from;
    float* to;

    [[nodiscard]] unsigned blocks() const { return static_cast<unsigned>((count + threads - 1) / threads); }
    [[nodiscard]] std::size_t shared_bytes() const { return 0; }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned part) const {
        const std::uint64_t at = std::uint64_t{part} * threads + team.rank();
        if (at < count) to[at] += from[at];
    }
};

/// Kernel: the index of every coordinate times its row's factor, packed without gaps after the norms; a thread
/// processes 8 of them.
struct PackCells {
    static constexpr unsigned threads = 256;
    static constexpr unsigned resident = 8;
    static constexpr unsigned per_thread = 8;
    static constexpr unsigned most_levels = 256;

    std::uint32_t count;
    std::uint32_t rows;
    std::uint32_t dimension;
    std::uint32_t bits;
    const float* thresholds;  ///< 2^bits - 1, ascending
    const CodingStatus* status;
    const float* factors;
    const float* coordinates;
    std::uint8_t* bytes;
    std::size_t stride;

    [[nodiscard]] SPIKED_DEVICE std::size_t entries() const { return std::size_t{rows} * dimension; }
    /// Thread blocks per matrix.
    [[nodiscard]] SPIKED_DEVICE unsigned parts() const {
        return static_cast<unsigned>((entries() + per_thread * threads - 1) / (per_thread * threads));
    }
    [[nodiscard]] unsigned blocks() const { return count * parts(); }
    [[nodiscard]] std::size_t shared_bytes() const { return spiked::cuda::shared_bytes_for<float>(most_levels); }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned part) const {
        auto table = team.template take<float>(most_levels);
        const unsigned cells = 1U << bits;
        for (unsigned i = team.rank(); i < cells - 1; i += threads) table[i] = thresholds[i];
        team.barrier();
        const std::size_t block = part / parts();
        const std::size_t first = (std::size_t{part % parts()} * threads + team.rank()) * per_thread;
        if (first >= entries()) return;
        const unsigned here = static_cast<unsigned>(entries() - first < per_thread ? entries() - first : per_thread);
        std::uint64_t word = 0;
        if (status[block] == CodingStatus::coded) {
            const float* const from = coordinates + block * entries() + first;
            auto t = static_cast<unsigned>(first) % rows;
            for (unsigned i = 0; i < here; ++i) {
                const float value = from[i] * factors[block * rows + t];
                unsigned cell = 0;
                for (unsigned step = cells / 2; step > 0; step /= 2) {
                    const float threshold = table[cell + step - 1];
                    cell += value > threshold ? step : 0;
                }
                word |= std::uint64_t{cell} << (i * bits);
                t = t + 1 == rows ? 0 : t + 1;
            }
        }
        std::uint8_t* const to = bytes + block * stride + 2 * std::size_t{rows} + first / per_thread * bits;
        for (unsigned i = 0; i < (here * bits + 7) / 8; ++i) to[i] = static_cast<std::uint8_t>(word >> (8 * i));
    }
};

/// Kernel: the decoded coordinates of a block before the inverse rotation: the level of each index times its row's norm
/// over sqrt(dimension).
struct UnpackLevels {
    static constexpr unsigned threads = 256;
    static constexpr unsigned resident = 8;
    static constexpr unsigned per_thread = 8;
    static constexpr unsigned most_levels = 256;

    std::uint32_t count;
    std::uint32_t rows;
    std::uint32_t dimension;
    std::uint32_t bits;
    double per_unit;      ///< 1 / sqrt(dimension)
    const float* levels;  ///< 2^bits
    const std::uint8_t* bytes;
    std::size_t stride;
    float* coordinates;

    [[nodiscard]] SPIKED_DEVICE std::size_t entries() const { return std::size_t{rows} * dimension; }
    [[nodiscard]] SPIKED_DEVICE unsigned parts() const {
        return static_cast<unsigned>((entries() + per_thread * threads - 1) / (per_thread * threads));
    }
    [[nodiscard]] unsigned blocks() const { return count * parts(); }
    [[nodiscard]] std::size_t shared_bytes() const { return spiked::cuda::shared_bytes_for<float>(most_levels); }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned part) const {
        auto table = team.template take<float>(most_levels);
        for (unsigned i = team.rank(); i < 1U << bits; i += threads) table[i] = levels[i];
        team.barrier();
        const std::size_t block = part / parts();
        const std::uint8_t* const norms = bytes + block * stride;
        const std::uint8_t* const cells = norms + 2 * std::size_t{rows};
        float* const to = coordinates + block * entries();
        const std::size_t first = std::size_t{part % parts()} * threads * per_thread + team.rank();
        const auto scale_of = [&](unsigned row) { return static_cast<float>(get_float16(norms + 2 * row) * per_unit); };
        auto row = static_cast<unsigned>(first) % rows;
        const unsigned rows_on = threads % rows;
        float scale = scale_of(row);
        SPIKED_UNROLL
        for (unsigned i = 0; i < per_thread; ++i) {  // neighbouring threads process neighbouring entries
            const std::size_t at = first + std::size_t{i} * threads;
            if (at >= entries()) break;
            const std::size_t bit = at * bits;
            unsigned word = cells[bit / 8];
            if (bit % 8 + bits > 8) word |= unsigned{cells[bit / 8 + 1]} << 8U;
            const float level = table[word >> bit % 8 & ((1U << bits) - 1U)];
            to[at] = level * scale;
            if (rows_on == 0) continue;  // the next entry lies in the same row
            row += rows_on;
            if (row >= rows) row -= rows;
            scale = scale_of(row);
        }
    }
};

}  // namespace spiked::estimators::cuda

#include "estimators/coding/cell_search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/runtime/error.hpp"
#include "core/runtime/processor.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace spiked::estimators {
namespace {

/// Largest number of bits, that is depth of the search tree, for which the nodes of each depth fit into a register.
constexpr unsigned most_fast_bits = 4;
using Tree = std::array<std::array<float, 8>, 4>;

#if defined(__x86_64__)
/// Quantizes values eight at a time and returns how many it has quantized.
__attribute__((target("avx2"))) std::size_t quantize_eights(const Tree& tree, const std::vector<float>& levels,
                                                            unsigned bits, std::span<const float> values,
                                                            std::uint8_t* cells, float* decoded) {
    const __m256 nodes[most_fast_bits] = {_mm256_loadu_ps(tree[0].data()), _mm256_loadu_ps(tree[1].data()),
                                          _mm256_loadu_ps(tree[2].data()), _mm256_loadu_ps(tree[3].data())};
    float padded[16] = {};
    std::copy(levels.begin(), levels.end(), padded);
    const __m256 low_levels = _mm256_loadu_ps(padded);
    const __m256 high_levels = _mm256_loadu_ps(padded + 8);
    std::size_t i = 0;
    for (; i + 8 <= values.size(); i += 8) {
        const __m256 value = _mm256_loadu_ps(values.data() + i);
        __m256i cell = _mm256_setzero_si256();
        for (unsigned depth = 0; depth < bits; ++depth) {
            const __m256 above = _mm256_cmp_ps(value, _mm256_permutevar8x32_ps(nodes[depth], cell), _CMP_GT_OQ);
            cell = _mm256_sub_epi32(_mm256_add_epi32(cell, cell), _mm256_castps_si256(above));
        }
        const __m256 level =
            _mm256_blendv_ps(_mm256_permutevar8x32_ps(low_levels, cell), _mm256_permutevar8x32_ps(high_levels, cell),
                             _mm256_castsi256_ps(_mm256_slli_epi32(cell, 28)));
        _mm256_storeu_ps(decoded + i, level);
        const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(cell), _mm256_extracti128_si256(cell, 1));
        _mm_storel_epi64(reinterpret_cast<__m128i*>(cells + i), _mm_packus_epi16(words, words));
    }
    return i;
}

// The kernels for blocks process, in columns of `rows` entries, as many rows as fill whole registers; they return this
// number of rows.

template <unsigned bits>
__attribute__((target("avx2"))) std::size_t find_eights(const Tree& tree, std::span<const float> block,
                                                        std::span<const float> factors, std::uint8_t* cells) {
    const __m256 nodes[most_fast_bits] = {_mm256_loadu_ps(tree[0].data()), _mm256_loadu_ps(tree[1].data()),
                                          _mm256_loadu_ps(tree[2].data()), _mm256_loadu_ps(tree[3].data())};
    const std::size_t rows = factors.size();
    const std::size_t whole = rows / 8 * 8;
    for (std::size_t column = 0; column < block.size(); column += rows)
        for (std::size_t t = 0; t < whole; t += 8) {
            const __m256 value =
                _mm256_mul_ps(_mm256_loadu_ps(block.data() + column + t), _mm256_loadu_ps(factors.data() + t));
            __m256i cell = _mm256_setzero_si256();
            for (unsigned depth = 0; depth < bits; ++depth) {
                const __m256 above = _mm256_cmp_ps(value, _mm256_permutevar8x32_ps(nodes[depth], cell), _CMP_GT_OQ);
                cell = _mm256_sub_epi32(_mm256_add_epi32(cell, cell), _mm256_castps_si256(above));
            }
            const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(cell), _mm256_extracti128_si256(cell, 1));
            _mm_storel_epi64(reinterpret_cast<__m128i*>(cells + column + t), _mm_packus_epi16(words, words));
        }
    return whole;
}

template <bool add>
__attribute__((target("avx2"))) std::size_t place_eights(const std::vector<float>& levels, const std::uint8_t* cells,
                                                         std::span<const float> factors, std::span<float> block) {
    float padded[16] = {};
    std::copy(levels.begin(), levels.end(), padded);
    const __m256 low_levels = _mm256_loadu_ps(padded);
    const __m256 high_levels = _mm256_loadu_ps(padded + 8);
    const std::size_t rows = factors.size();
    const std::size_t whole = rows / 8 * 8;
    for (std::size_t column = 0; column < block.size(); column += rows)
        for (std::size_t t = 0; t < whole; t += 8) {
            const __m256i cell =
                _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(cells + column + t)));
            const __m256 level = _mm256_blendv_ps(_mm256_permutevar8x32_ps(low_levels, cell),
                                                  _mm256_permutevar8x32_ps(high_levels, cell),
                                                  _mm256_castsi256_ps(_mm256_slli_epi32(cell, 28)));
            __m256 value = _mm256_mul_ps(level, _mm256_loadu_ps(factors.data() + t));
            if constexpr (add) value = _mm256_add_ps(value, _mm256_loadu_ps(block.data() + column + t));
            _mm256_storeu_ps(block.data() + column + t, value);
        }
    return whole;
}

// With sixteen values at a time, a tree of 15 thresholds fits into one register.
bool has_avx512() { return processor().avx512f && processor().avx512bw; }

// Without a mask these intrinsics start from a register that the compiler regards as uninitialised.
constexpr __mmask16 every = 0xFFFF;

template <unsigned bits>
__attribute__((target("avx512f,avx512bw"))) std::size_t find_sixteens(const Tree& tree, std::span<const float> block,
                                                                      std::span<const float> factors,
                                                                      std::uint8_t* cells) {
    float padded[most_fast_bits][16] = {};
    for (unsigned depth = 0; depth < bits; ++depth) std::copy(tree[depth].begin(), tree[depth].end(), padded[depth]);
    const __m512 nodes[most_fast_bits] = {_mm512_loadu_ps(padded[0]), _mm512_loadu_ps(padded[1]),
                                          _mm512_loadu_ps(padded[2]), _mm512_loadu_ps(padded[3])};
    const __m512i one = _mm512_set1_epi32(1);
    const std::size_t rows = factors.size();
    const std::size_t whole = rows / 16 * 16;
    for (std::size_t column = 0; column < block.size(); column += rows)
        for (std::size_t t = 0; t < whole; t += 16) {
            const __m512 value =
                _mm512_mul_ps(_mm512_loadu_ps(block.data() + column + t), _mm512_loadu_ps(factors.data() + t));
            __m512i cell = _mm512_setzero_si512();
            for (unsigned depth = 0; depth < bits; ++depth) {
                const __mmask16 above =
                    _mm512_cmp_ps_mask(value, _mm512_maskz_permutexvar_ps(every, cell, nodes[depth]), _CMP_GT_OQ);
                cell = _mm512_add_epi32(cell, cell);
                cell = _mm512_mask_add_epi32(cell, above, cell, one);
            }
            _mm_storeu_si128(reinterpret_cast<__m128i*>(cells + column + t), _mm512_maskz_cvtepi32_epi8(every, cell));
        }
    return whole;
}

template <bool add>
__attribute__((target("avx512f,avx512bw"))) std::size_t place_sixteens(const std::vector<float>& levels,
                                                                       const std::uint8_t* cells,
                                                                       std::span<const float> factors,
                                                                       std::span<float> block) {
    float padded[16] = {};
    std::copy(levels.begin(), levels.end(), padded);
    const __m512 table = _mm512_loadu_ps(padded);
    const std::size_t rows = factors.size();
    const std::size_t whole = rows / 16 * 16;
    for (std::size_t column = 0; column < block.size(); column += rows)
        for (std::size_t t = 0; t < whole; t += 16) {
            const __m512i cell = _mm512_maskz_cvtepu8_epi32(
                every, _mm_loadu_si128(reinterpret_cast<const __m128i*>(cells + column + t)));
            __m512 value =
                _mm512_mul_ps(_mm512_maskz_permutexvar_ps(every, cell, table), _mm512_loadu_ps(factors.data() + t));
            if constexpr (add) value = _mm512_add_ps(value, _mm512_loadu_ps(block.data() + column + t));
            _mm512_storeu_ps(block.data() + column + t, value);
        }
    return whole;
}

using Find = std::size_t (*)(const Tree&, std::span<const float>, std::span<const float>, std::uint8_t*);
constexpr Find find_by_eights[] = {find_eights<1>, find_eights<2>, find_eights<3>, find_eights<4>};
constexpr Find find_by_sixteens[] = {find_sixteens<1>, find_sixteens<2>, find_sixteens<3>, find_sixteens<4>};
#endif

void require_block(std::size_t entries, std::size_t cells, std::size_t rows) {
    if (cells != entries || (rows == 0 ? entries : entries % rows) != 0)
        throw precondition_error("{} entries, {} cells and {} rows", entries, cells, rows);
}

/// Sets or adds levels in as many rows of a block as fill whole registers, and returns this number; the other rows are
/// processed entry by entry.
template <bool add>
std::size_t place_rows([[maybe_unused]] unsigned bits, [[maybe_unused]] const std::vector<float>& levels,
                       [[maybe_unused]] std::span<const std::uint8_t> cells,
                       [[maybe_unused]] std::span<const float> factors, [[maybe_unused]] std::span<float> block) {
#if defined(__x86_64__)
    if (bits <= most_fast_bits && factors.size() % 16 == 0 && has_avx512())
        return place_sixteens<add>(levels, cells.data(), factors, block);
    if (bits <= most_fast_bits && processor().avx2) return place_eights<add>(levels, cells.data(), factors, block);
#endif
    return 0;
}

}  // namespace

CellSearch::CellSearch(const theory::Codebook& codebook)
    : bits_(static_cast<unsigned>(codebook.bits)),
      thresholds_(codebook.thresholds.begin(), codebook.thresholds.end()),
      levels_(codebook.levels.begin(), codebook.levels.end()) {
    if (bits_ > most_fast_bits) {
        make_grid();
        return;
    }
    for (unsigned depth = 0; depth < bits_; ++depth)
        for (std::size_t node = 0; node < std::size_t{1} << depth; ++node)
            tree_[depth][node] = thresholds_[((2 * node + 1) << (bits_ - 1 - depth)) - 1];
}

void CellSearch::quantize(std::span<const float> values, std::span<std::uint8_t> cells, std::span<float> levels) const {
    if (cells.size() != values.size() || levels.size() != values.size())
        throw precondition_error("{} values, {} cells and {} levels", values.size(), cells.size(), levels.size());
    std::size_t i = 0;
#if defined(__x86_64__)
    if (bits_ <= most_fast_bits && processor().avx2)
        i = quantize_eights(tree_, levels_, bits_, values, cells.data(), levels.data());
#endif
    for (; i < values.size(); ++i) {
        const std::size_t cell = cell_of_one(values[i]);
        cells[i] = static_cast<std::uint8_t>(cell);
        levels[i] = levels_[cell];
    }
}

void CellSearch::make_grid() {
    float gap = std::numeric_limits<float>::infinity();
    for (std::size_t i = 1; i < thresholds_.size(); ++i) gap = std::min(gap, thresholds_[i] - thresholds_[i - 1]);
    const float range = thresholds_.back() - thresholds_.front();
    // Intervals of half the smallest gap leave room for the rounding of a value's position in the grid.
    const float count = std::ceil(range / (0.5F * gap)) + 2.0F;
    constexpr float most = 16384.0F;
    if (!(count <= most)) return;
    grid_.first = thresholds_.front();
    grid_.last = thresholds_.back();
    grid_.per_unit = 2.0F / gap;
    grid_.cells.resize(static_cast<std::size_t>(count));
    for (std::size_t g = 0; g < grid_.cells.size(); ++g) {
        const float left = grid_.first + (static_cast<float>(g) - 0.25F) / grid_.per_unit;
        grid_.cells[g] = static_cast<std::uint8_t>(std::lower_bound(thresholds_.begin(), thresholds_.end() - 1, left) -
                                                   thresholds_.begin());
    }
}

std::size_t CellSearch::cell_of_one(float value) const {
    if (!grid_.cells.empty()) {
        // With this order of the arguments a NaN becomes the first interval.
        const float inside = std::min(grid_.last, std::max(grid_.first, value));
        const std::size_t cell = grid_.cells[static_cast<std::size_t>((inside - grid_.first) * grid_.per_unit)];
        return cell + (value > thresholds_[cell] ? 1 : 0);
    }
    std::size_t cell = 0;
    for (std::size_t step = levels_.size() / 2; step > 0; step /= 2)
        cell += value > thresholds_[cell + step - 1] ? step : 0;
    return cell;
}

void CellSearch::find(std::span<const float> block, std::span<const float> factors,
                      std::span<std::uint8_t> cells) const {
    const std::size_t rows = factors.size();
    require_block(block.size(), cells.size(), rows);
    std::size_t done = 0;
#if defined(__x86_64__)
    if (bits_ <= most_fast_bits && rows % 16 == 0 && has_avx512())
        done = find_by_sixteens[bits_ - 1](tree_, block, factors, cells.data());
    else if (bits_ <= most_fast_bits && processor().avx2)
        done = find_by_eights[bits_ - 1](tree_, block, factors, cells.data());
#endif
    if (done == rows) return;
    for (std::size_t column = 0; column < block.size(); column += rows)
        for (std::size_t t = done; t < rows; ++t)
            cells[column + t] = static_cast<std::uint8_t>(cell_of_one(block[column + t] * factors[t]));
}

void CellSearch::set_levels(std::span<const std::uint8_t> cells, std::span<const float> factors,
                            std::span<float> block) const {
    const std::size_t rows = factors.size();
    require_block(block.size(), cells.size(), rows);
    const std::size_t done = place_rows<false>(bits_, levels_, cells, factors, block);
    if (done == rows) return;
    for (std::size_t column = 0; column < block.size(); column += rows)
        for (std::size_t t = done; t < rows; ++t) block[column + t] = levels_[cells[column + t]] * factors[t];
}

void CellSearch::add_levels(std::span<const std::uint8_t> cells, std::span<const float> factors,
                            std::span<float> block) const {
    const std::size_t rows = factors.size();
    require_block(block.size(), cells.size(), rows);
    const std::size_t done = place_rows<true>(bits_, levels_, cells, factors, block);
    if (done == rows) return;
    for (std::size_t column = 0; column < block.size(); column += rows)
        for (std::size_t t = done; t < rows; ++t) block[column + t] += levels_[cells[column + t]] * factors[t];
}

}  // namespace spiked::estimators

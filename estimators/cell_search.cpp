#include "estimators/cell_search.hpp"

#include "theory/base/error.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace spiked::estimators {
namespace {

/// Depths of a search tree whose nodes fit a register.
constexpr unsigned most_fast_bits = 4;

#if defined(__x86_64__)
bool has_avx2() {
    static const bool found = __builtin_cpu_supports("avx2");
    return found;
}

/// Takes values eight at a time and returns how many it took.
__attribute__((target("avx2"))) std::size_t quantize_eights(const std::array<std::array<float, 8>, 4>& tree,
                                                            const std::vector<float>& levels, unsigned bits,
                                                            std::span<const float> values, std::uint8_t* cells,
                                                            float* decoded) {
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
#endif

}  // namespace

CellSearch::CellSearch(const theory::Codebook& codebook)
    : bits_(static_cast<unsigned>(codebook.bits)),
      thresholds_(codebook.thresholds.begin(), codebook.thresholds.end()),
      levels_(codebook.levels.begin(), codebook.levels.end()) {
    if (bits_ > most_fast_bits) return;
    for (unsigned depth = 0; depth < bits_; ++depth)
        for (std::size_t node = 0; node < std::size_t{1} << depth; ++node)
            tree_[depth][node] = thresholds_[((2 * node + 1) << (bits_ - 1 - depth)) - 1];
}

void CellSearch::quantize(std::span<const float> values, std::span<std::uint8_t> cells, std::span<float> levels) const {
    if (cells.size() != values.size() || levels.size() != values.size())
        throw bug("{} values, {} cells and {} levels", values.size(), cells.size(), levels.size());
    std::size_t i = 0;
#if defined(__x86_64__)
    if (bits_ <= most_fast_bits && has_avx2())
        i = quantize_eights(tree_, levels_, bits_, values, cells.data(), levels.data());
#endif
    for (; i < values.size(); ++i) {
        std::size_t cell = 0;
        for (std::size_t step = levels_.size() / 2; step > 0; step /= 2)
            cell += values[i] > thresholds_[cell + step - 1] ? step : 0;
        cells[i] = static_cast<std::uint8_t>(cell);
        levels[i] = levels_[cell];
    }
}

}  // namespace spiked::estimators

#include "core/runtime/processor.hpp"
#include "sim/random/normal_paths.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

// Only functions that are local to this file may use these instructions, because a processor without them runs the
// other functions.
#define SPIKED_DEVICE __attribute__((target("avx2,fma"), always_inline))
#include "sim/random/box_muller.hpp"

namespace spiked::stream::detail {
namespace {

using Lanes64 [[gnu::vector_size(32)]] = std::uint64_t;
using Lanes32 [[gnu::vector_size(32)]] = std::uint32_t;

struct Avx2Double {
    using Real = __m256d;
    using Bits = Lanes64;
    using Word = __m256i;  // in the lower half of each 64 bits; the upper half is arbitrary
    static constexpr std::uint64_t sign = std::uint64_t{1} << 63;

    SPIKED_DEVICE static Real constant(double x) { return _mm256_set1_pd(x); }
    SPIKED_DEVICE static Real fma(Real a, Real b, Real c) { return _mm256_fmadd_pd(a, b, c); }
    SPIKED_DEVICE static Real sqrt(Real x) { return _mm256_sqrt_pd(x); }
    SPIKED_DEVICE static Bits to_bits(Real x) { return reinterpret_cast<Bits>(x); }
    SPIKED_DEVICE static Real from_bits(Bits bits) { return reinterpret_cast<Real>(bits); }
    SPIKED_DEVICE static Real choose(Bits top, Real yes, Real no) { return _mm256_blendv_pd(no, yes, from_bits(top)); }
    /// Places the words in the last bits of 2^20 and of 1/2, where the spacings of doubles are 2^-32 and 2^-53; every
    /// sum is exact.
    SPIKED_DEVICE static Real fraction(Word low, Word high) {
        const __m256i upper = _mm256_blend_epi32(high, _mm256_set1_epi64x(0x4130000000000000), 0xAA);
        const __m256i lower =
            _mm256_blend_epi32(_mm256_srli_epi32(low, 11), _mm256_set1_epi64x(0x3FE0000000000000), 0xAA);
        return (_mm256_castsi256_pd(upper) - _mm256_set1_pd(0x1p20 + 0.5)) + _mm256_castsi256_pd(lower);
    }
};

struct Avx2Float {
    using Real = __m256;
    using Bits = Lanes32;
    static constexpr std::uint32_t sign = std::uint32_t{1} << 31;

    SPIKED_DEVICE static Real constant(float x) { return _mm256_set1_ps(x); }
    SPIKED_DEVICE static Real fma(Real a, Real b, Real c) { return _mm256_fmadd_ps(a, b, c); }
    SPIKED_DEVICE static Real sqrt(Real x) { return _mm256_sqrt_ps(x); }
    SPIKED_DEVICE static Bits to_bits(Real x) { return reinterpret_cast<Bits>(x); }
    SPIKED_DEVICE static Real from_bits(Bits bits) { return reinterpret_cast<Real>(bits); }
    SPIKED_DEVICE static Real choose(Bits top, Real yes, Real no) { return _mm256_blendv_ps(no, yes, from_bits(top)); }
    SPIKED_DEVICE static Real of_signed(Bits bits) { return _mm256_cvtepi32_ps(reinterpret_cast<__m256i>(bits)); }
};

/// Four word blocks; the lower halves of `word[j]` hold word j of each.
struct FourBlocks {
    __m256i word[4];
};

/// The order in which two FourBlocks hold the eight blocks of a group, chosen so that the stores need no shuffle across
/// the halves of a register.
template <class Real>
inline constexpr int block_order[8] = {};
template <>
inline constexpr int block_order<double>[8] = {0, 2, 1, 3, 4, 6, 5, 7};
template <>
inline constexpr int block_order<float>[8] = {0, 4, 1, 5, 2, 6, 3, 7};

/// Philox4x32-10 (philox.hpp) for blocks that differ only in the first counter word: half of the first two rounds is
/// the same for all of them and is done once.
struct Philox {
    __m256i keys[10][2];
    __m256i word_2_part, word_0_part, other_word_2_part, word_3;

    SPIKED_DEVICE static __m256i product_0(__m256i word) {
        return _mm256_mul_epu32(word, _mm256_set1_epi64x(0xD2511F53));
    }
    SPIKED_DEVICE static __m256i product_1(__m256i word) {
        return _mm256_mul_epu32(word, _mm256_set1_epi64x(0xCD9E8D57));
    }
    SPIKED_DEVICE static __m256i upper(__m256i product) { return _mm256_srli_epi64(product, 32); }

    SPIKED_DEVICE Philox(PhiloxCounter counter, PhiloxKey key) {
        for (auto& pair : keys) {
            pair[0] = _mm256_set1_epi32(static_cast<int>(key[0]));
            pair[1] = _mm256_set1_epi32(static_cast<int>(key[1]));
            key[0] += 0x9E3779B9U;
            key[1] += 0xBB67AE85U;
        }
        const __m256i product = product_1(_mm256_set1_epi64x(counter[2]));
        const __m256i word_0 = upper(product) ^ _mm256_set1_epi64x(counter[1]) ^ keys[0][0];
        word_2_part = _mm256_set1_epi64x(counter[3]) ^ keys[0][1];
        word_0_part = product ^ keys[1][0];
        word_3 = product_0(word_0);
        other_word_2_part = upper(word_3) ^ keys[1][1];
    }

    SPIKED_DEVICE FourBlocks two_rounds(__m256i element) const {
        const __m256i first = product_0(element);
        const __m256i second = product_1(upper(first) ^ word_2_part);
        return {{upper(second) ^ word_0_part, second, first ^ other_word_2_part, word_3}};
    }
    SPIKED_DEVICE void next_round(FourBlocks& blocks, int round) const {
        auto& word = blocks.word;
        const __m256i from_0 = product_0(word[0]);
        const __m256i from_2 = product_1(word[2]);
        word[0] = upper(from_2) ^ word[1] ^ keys[round][0];
        word[2] = upper(from_0) ^ word[3] ^ keys[round][1];
        word[1] = from_2;
        word[3] = from_0;
    }
};

SPIKED_DEVICE inline void four_to_normals(const FourBlocks& blocks, double* out) {
    __m256d even, odd;
    box_muller::double_normals<Avx2Double>(blocks.word[0], blocks.word[1], blocks.word[2], blocks.word[3], even, odd);
    _mm256_storeu_pd(out, _mm256_unpacklo_pd(even, odd));
    _mm256_storeu_pd(out + 4, _mm256_unpackhi_pd(even, odd));
}

SPIKED_DEVICE inline void to_normals(const FourBlocks& a, const FourBlocks& b, double* out) {
    four_to_normals(a, out);
    four_to_normals(b, out + 8);
}

SPIKED_DEVICE inline Lanes32 interleaved(__m256i a, __m256i b) {
    return reinterpret_cast<Lanes32>(_mm256_blend_epi32(a, _mm256_slli_epi64(b, 32), 0xAA));
}

SPIKED_DEVICE inline void to_normals(const FourBlocks& a, const FourBlocks& b, float* out) {
    __m256 x0, x1, x2, x3;
    box_muller::float_normals<Avx2Float>(interleaved(a.word[0], b.word[0]), interleaved(a.word[1], b.word[1]), x0, x1);
    box_muller::float_normals<Avx2Float>(interleaved(a.word[2], b.word[2]), interleaved(a.word[3], b.word[3]), x2, x3);
    const __m256d low_01 = _mm256_castps_pd(_mm256_unpacklo_ps(x0, x1));
    const __m256d low_23 = _mm256_castps_pd(_mm256_unpacklo_ps(x2, x3));
    const __m256d high_01 = _mm256_castps_pd(_mm256_unpackhi_ps(x0, x1));
    const __m256d high_23 = _mm256_castps_pd(_mm256_unpackhi_ps(x2, x3));
    _mm256_storeu_ps(out, _mm256_castpd_ps(_mm256_unpacklo_pd(low_01, low_23)));
    _mm256_storeu_ps(out + 8, _mm256_castpd_ps(_mm256_unpackhi_pd(low_01, low_23)));
    _mm256_storeu_ps(out + 16, _mm256_castpd_ps(_mm256_unpacklo_pd(high_01, high_23)));
    _mm256_storeu_ps(out + 24, _mm256_castpd_ps(_mm256_unpackhi_pd(high_01, high_23)));
}

template <class Real>
__attribute__((target("avx2,fma"))) void avx2_from_words(const WordGroup& words, Real* out) {
    FourBlocks a, b;
    const auto& order = block_order<Real>;
    for (std::size_t j = 0; j < 4; ++j) {
        a.word[j] = _mm256_setr_epi64x(words[order[0]][j], words[order[1]][j], words[order[2]][j], words[order[3]][j]);
        b.word[j] = _mm256_setr_epi64x(words[order[4]][j], words[order[5]][j], words[order[6]][j], words[order[7]][j]);
    }
    to_normals(a, b, out);
}

template <class Real>
__attribute__((target("avx2,fma"))) void avx2_groups(PhiloxCounter counter, PhiloxKey key, std::size_t groups,
                                                     Real* out) {
    const Philox philox(counter, key);
    const auto& order = block_order<Real>;
    __m256i element_a =
        _mm256_add_epi32(_mm256_set1_epi64x(counter[0]), _mm256_setr_epi64x(order[0], order[1], order[2], order[3]));
    __m256i element_b =
        _mm256_add_epi32(_mm256_set1_epi64x(counter[0]), _mm256_setr_epi64x(order[4], order[5], order[6], order[7]));
    const __m256i step = _mm256_set1_epi64x(group_blocks);
    for (std::size_t group = 0; group < groups; ++group) {
        FourBlocks a = philox.two_rounds(element_a);
        FourBlocks b = philox.two_rounds(element_b);
        for (int round = 2; round < 10; ++round) {
            philox.next_round(a, round);
            philox.next_round(b, round);
        }
        to_normals(a, b, out);
        out += group_blocks * block_normals<Real>;
        element_a = _mm256_add_epi32(element_a, step);
        element_b = _mm256_add_epi32(element_b, step);
    }
}

}  // namespace

template <class Real>
const NormalPath<Real>* avx2_path() {
    static constexpr NormalPath<Real> path{avx2_from_words<Real>, avx2_groups<Real>};
    return processor().avx2 && processor().fma ? &path : nullptr;
}

}  // namespace spiked::stream::detail
#else
namespace spiked::stream::detail {

template <class Real>
const NormalPath<Real>* avx2_path() {
    return nullptr;
}

}  // namespace spiked::stream::detail
#endif

namespace spiked::stream::detail {
template const NormalPath<double>* avx2_path();
template const NormalPath<float>* avx2_path();
}  // namespace spiked::stream::detail

#include "core/runtime/processor.hpp"
#include "estimators/svd/decomposition_kernels.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

// These instructions may be used only by functions that are compiled in this file alone, because a processor without
// them must never run such a function.
#define SPIKED_KERNEL __attribute__((target("avx512f,avx512dq,avx512vl,avx2,fma")))
#include "estimators/svd/decomposition_kernels_table.hpp"

namespace spiked::estimators::kernels {
namespace {

#define SPIKED_INLINE SPIKED_KERNEL static inline __attribute__((always_inline))

struct Avx512Double {
    using Real = double;
    using Vector = __m512d;
    static constexpr std::size_t width = 8;
    static constexpr bool many_registers = true;

    SPIKED_INLINE Vector set(Real x) { return _mm512_set1_pd(x); }
    SPIKED_INLINE Vector load(const Real* from) { return _mm512_load_pd(from); }
    SPIKED_INLINE void store(Real* to, Vector x) { _mm512_store_pd(to, x); }
    SPIKED_INLINE Vector load_anywhere(const Real* from) { return _mm512_loadu_pd(from); }
    SPIKED_INLINE void store_anywhere(Real* to, Vector x) { _mm512_storeu_pd(to, x); }
    SPIKED_INLINE Vector fma(Vector a, Vector b, Vector c) { return _mm512_fmadd_pd(a, b, c); }
    SPIKED_INLINE Vector fnma(Vector a, Vector b, Vector c) { return _mm512_fnmadd_pd(a, b, c); }
    SPIKED_INLINE Vector where_less(Vector a, Vector b, Vector yes, Vector no) {
        return _mm512_mask_blend_pd(_mm512_cmp_pd_mask(a, b, _CMP_LT_OQ), no, yes);
    }
    SPIKED_INLINE Vector where_equal(Vector a, Vector b, Vector yes, Vector no) {
        return _mm512_mask_blend_pd(_mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ), no, yes);
    }
    SPIKED_INLINE Vector abs(Vector x) { return _mm512_abs_pd(x); }
    SPIKED_INLINE Vector max(Vector a, Vector b) { return _mm512_maskz_max_pd(0xFF, a, b); }
    /// 1 / x for |x| from 2^-1000 to 2^1000, as a first guess g and a correction c, 1 / x = g (1 + c). With the error e
    /// < 2^-14 of the guess, c = e + e^2 + e^3. This takes half the time of a division, and a product need not wait for
    /// c.
    struct Inverse {
        Vector guess, correction;
    };
    SPIKED_INLINE Inverse inverse(Vector x) {
        const Vector guess = _mm512_maskz_rcp14_pd(0xFF, x);
        const Vector error = fnma(x, guess, set(1.0));
        return {guess, fma(error * error, error + set(1.0), error)};
    }
    SPIKED_INLINE Vector times(Vector x, const Inverse& y) {
        const Vector product = x * y.guess;
        return fma(product, y.correction, product);
    }
    SPIKED_INLINE Vector narrow(const Vector (&from)[1]) { return from[0]; }
    SPIKED_INLINE Real sum(Vector x) {
        const __m256d quarter =
            _mm256_add_pd(_mm512_maskz_extractf64x4_pd(0xF, x, 0), _mm512_maskz_extractf64x4_pd(0xF, x, 1));
        const __m128d half = _mm_add_pd(_mm256_castpd256_pd128(quarter), _mm256_extractf128_pd(quarter, 1));
        return _mm_cvtsd_f64(_mm_add_sd(half, _mm_unpackhi_pd(half, half)));
    }
    SPIKED_INLINE __m256d halved(Vector x) {
        return _mm256_add_pd(_mm512_maskz_extractf64x4_pd(0xF, x, 0), _mm512_maskz_extractf64x4_pd(0xF, x, 1));
    }
    SPIKED_INLINE void sums(const Vector (&of)[4], Real* to) {
        const __m256d ab = _mm256_hadd_pd(halved(of[0]), halved(of[1]));
        const __m256d cd = _mm256_hadd_pd(halved(of[2]), halved(of[3]));
        _mm256_storeu_pd(to, _mm256_add_pd(_mm256_permute2f128_pd(ab, cd, 0x20), _mm256_permute2f128_pd(ab, cd, 0x31)));
    }
    /// Sums of neighbouring entries: of a in even positions, of b in odd ones.
    SPIKED_INLINE Vector neighbours(Vector a, Vector b) {
        return __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14) +
               __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15);
    }
    /// Sums of neighbouring quarters of a, then of b.
    SPIKED_INLINE Vector quarters(Vector a, Vector b) {
        return __builtin_shufflevector(a, b, 0, 1, 4, 5, 8, 9, 12, 13) +
               __builtin_shufflevector(a, b, 2, 3, 6, 7, 10, 11, 14, 15);
    }
    SPIKED_INLINE void sums(const Vector (&of)[8], Real* to) {
        const Vector first = quarters(neighbours(of[0], of[1]), neighbours(of[2], of[3]));
        const Vector second = quarters(neighbours(of[4], of[5]), neighbours(of[6], of[7]));
        store_anywhere(to, quarters(first, second));
    }
    using Squares = Vector;
    SPIKED_INLINE Squares no_squares() { return set(0.0); }
    SPIKED_INLINE void add_square(Squares& to, Vector x) { to = fma(x, x, to); }
    SPIKED_INLINE double total(const Squares& of) { return sum(of); }
    SPIKED_INLINE Vector from(Vector x, std::size_t count) {
        return _mm512_maskz_mov_pd(static_cast<__mmask8>(0xFFU << count), x);
    }
};

struct Avx512Float {
    using Real = float;
    using Vector = __m512;
    static constexpr std::size_t width = 16;
    static constexpr bool many_registers = true;

    SPIKED_INLINE Vector set(Real x) { return _mm512_set1_ps(x); }
    SPIKED_INLINE Vector load(const Real* from) { return _mm512_load_ps(from); }
    SPIKED_INLINE void store(Real* to, Vector x) { _mm512_store_ps(to, x); }
    SPIKED_INLINE Vector load_anywhere(const Real* from) { return _mm512_loadu_ps(from); }
    SPIKED_INLINE void store_anywhere(Real* to, Vector x) { _mm512_storeu_ps(to, x); }
    SPIKED_INLINE Vector fma(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
    SPIKED_INLINE Vector fnma(Vector a, Vector b, Vector c) { return _mm512_fnmadd_ps(a, b, c); }
    SPIKED_INLINE Vector abs(Vector x) { return _mm512_abs_ps(x); }
    SPIKED_INLINE Vector max(Vector a, Vector b) { return _mm512_maskz_max_ps(0xFFFF, a, b); }
    SPIKED_INLINE Vector narrow(const Avx512Double::Vector (&from)[2]) {
        return __builtin_shufflevector(_mm512_maskz_cvtpd_ps(0xFF, from[0]), _mm512_maskz_cvtpd_ps(0xFF, from[1]), 0, 1,
                                       2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    }
    SPIKED_INLINE Real sum(Vector x) {
        const __m256 quarter =
            _mm256_add_ps(_mm512_maskz_extractf32x8_ps(0xFF, x, 0), _mm512_maskz_extractf32x8_ps(0xFF, x, 1));
        __m128 half = _mm_add_ps(_mm256_castps256_ps128(quarter), _mm256_extractf128_ps(quarter, 1));
        half = _mm_add_ps(half, _mm_movehl_ps(half, half));
        return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
    }
    SPIKED_INLINE __m256 halved(Vector x) {
        return _mm256_add_ps(_mm512_maskz_extractf32x8_ps(0xFF, x, 0), _mm512_maskz_extractf32x8_ps(0xFF, x, 1));
    }
    SPIKED_INLINE void sums(const Vector (&of)[4], Real* to) {
        const __m256 abcd =
            _mm256_hadd_ps(_mm256_hadd_ps(halved(of[0]), halved(of[1])), _mm256_hadd_ps(halved(of[2]), halved(of[3])));
        _mm_storeu_ps(to, _mm_add_ps(_mm256_castps256_ps128(abcd), _mm256_extractf128_ps(abcd, 1)));
    }
    /// Sums of pairs in each quarter: of a, b, a, b.
    SPIKED_INLINE Vector pairs(Vector a, Vector b) {
        return __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29) +
               __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
    }
    /// Sums of quarters: of a, b, c, d in each quarter.
    SPIKED_INLINE Vector four(Vector a, Vector b, Vector c, Vector d) {
        const Vector ab = pairs(a, b);
        const Vector cd = pairs(c, d);
        return __builtin_shufflevector(ab, cd, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29) +
               __builtin_shufflevector(ab, cd, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
    }
    SPIKED_INLINE void sums(const Vector (&of)[8], Real* to) {
        const Vector first = four(of[0], of[1], of[2], of[3]);
        const Vector second = four(of[4], of[5], of[6], of[7]);
        const Vector halves =
            __builtin_shufflevector(first, second, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27) +
            __builtin_shufflevector(first, second, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
        const __m256 even = __builtin_shufflevector(halves, halves, 0, 1, 2, 3, 8, 9, 10, 11);
        const __m256 odd = __builtin_shufflevector(halves, halves, 4, 5, 6, 7, 12, 13, 14, 15);
        _mm256_storeu_ps(to, _mm256_add_ps(even, odd));
    }
    SPIKED_INLINE Avx512Double::Vector widened(__m256 x) { return _mm512_maskz_cvtps_pd(0xFF, x); }
    struct Squares {
        Avx512Double::Vector low, high;
    };
    SPIKED_INLINE Squares no_squares() { return {Avx512Double::set(0.0), Avx512Double::set(0.0)}; }
    SPIKED_INLINE void add_square(Squares& to, Vector x) {
        const auto low = _mm512_maskz_cvtps_pd(0xFF, _mm512_maskz_extractf32x8_ps(0xFF, x, 0));
        const auto high = _mm512_maskz_cvtps_pd(0xFF, _mm512_maskz_extractf32x8_ps(0xFF, x, 1));
        to = {Avx512Double::fma(low, low, to.low), Avx512Double::fma(high, high, to.high)};
    }
    SPIKED_INLINE double total(const Squares& of) { return Avx512Double::sum(of.low + of.high); }
    SPIKED_INLINE Vector from(Vector x, std::size_t count) {
        return _mm512_maskz_mov_ps(static_cast<__mmask16>(0xFFFFU << count), x);
    }
};

bool found() { return processor().avx512f && processor().avx512dq && processor().avx512vl; }

}  // namespace

template <>
const Kernels<double>* avx512() {
    return found() ? &kernels_for<Avx512Double, Avx512Double>() : nullptr;
}
template <>
const Kernels<float>* avx512() {
    return found() ? &kernels_for<Avx512Float, Avx512Double>() : nullptr;
}

}  // namespace spiked::estimators::kernels
#else
namespace spiked::estimators::kernels {

template <>
const Kernels<double>* avx512() {
    return nullptr;
}
template <>
const Kernels<float>* avx512() {
    return nullptr;
}

}  // namespace spiked::estimators::kernels
#endif

#include "estimators/decomposition_kernels.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

// Only functions that exist in this file alone may use these instructions: a processor without them runs others.
#define SPIKED_KERNEL __attribute__((target("avx512f,avx512dq,avx512vl,avx2,fma")))
#include "estimators/decomposition_kernels_table.hpp"

namespace spiked::estimators::kernels {
namespace {

#define SPIKED_INLINE SPIKED_KERNEL static inline __attribute__((always_inline))

struct Avx512Double {
    using Real = double;
    using Vector = __m512d;
    using Four = __m256d;
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
    SPIKED_INLINE Real sum(Vector x) {
        const __m256d quarter =
            _mm256_add_pd(_mm512_maskz_extractf64x4_pd(0xF, x, 0), _mm512_maskz_extractf64x4_pd(0xF, x, 1));
        const __m128d half = _mm_add_pd(_mm256_castpd256_pd128(quarter), _mm256_extractf128_pd(quarter, 1));
        return _mm_cvtsd_f64(_mm_add_sd(half, _mm_unpackhi_pd(half, half)));
    }
    SPIKED_INLINE __m256d halved(Vector x) {
        return _mm256_add_pd(_mm512_maskz_extractf64x4_pd(0xF, x, 0), _mm512_maskz_extractf64x4_pd(0xF, x, 1));
    }
    SPIKED_INLINE void sums(Vector a, Vector b, Vector c, Vector d, Real* to) {
        const __m256d ab = _mm256_hadd_pd(halved(a), halved(b));
        const __m256d cd = _mm256_hadd_pd(halved(c), halved(d));
        _mm256_storeu_pd(to, _mm256_add_pd(_mm256_permute2f128_pd(ab, cd, 0x20), _mm256_permute2f128_pd(ab, cd, 0x31)));
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
    using Four = __m128;
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
    SPIKED_INLINE void sums(Vector a, Vector b, Vector c, Vector d, Real* to) {
        const __m256 abcd = _mm256_hadd_ps(_mm256_hadd_ps(halved(a), halved(b)), _mm256_hadd_ps(halved(c), halved(d)));
        _mm_storeu_ps(to, _mm_add_ps(_mm256_castps256_ps128(abcd), _mm256_extractf128_ps(abcd, 1)));
    }
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

bool found() {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}

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

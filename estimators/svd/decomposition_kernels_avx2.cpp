#include "core/runtime/processor.hpp"
#include "estimators/svd/decomposition_kernels.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

// These instructions may be used only by functions that are compiled in this file alone, because a processor without
// them must never run such a function.
#define SPIKED_KERNEL __attribute__((target("avx2,fma")))
#include "estimators/svd/decomposition_kernels_table.hpp"

namespace spiked::estimators::kernels {
namespace {

#define SPIKED_INLINE SPIKED_KERNEL static inline __attribute__((always_inline))

struct Avx2Double {
    using Real = double;
    using Vector = __m256d;
    static constexpr std::size_t width = 4;
    static constexpr bool many_registers = false;

    SPIKED_INLINE Vector set(Real x) { return _mm256_set1_pd(x); }
    SPIKED_INLINE Vector load(const Real* from) { return _mm256_load_pd(from); }
    SPIKED_INLINE void store(Real* to, Vector x) { _mm256_store_pd(to, x); }
    SPIKED_INLINE Vector load_anywhere(const Real* from) { return _mm256_loadu_pd(from); }
    SPIKED_INLINE void store_anywhere(Real* to, Vector x) { _mm256_storeu_pd(to, x); }
    SPIKED_INLINE Vector fma(Vector a, Vector b, Vector c) { return _mm256_fmadd_pd(a, b, c); }
    SPIKED_INLINE Vector fnma(Vector a, Vector b, Vector c) { return _mm256_fnmadd_pd(a, b, c); }
    SPIKED_INLINE Vector where_less(Vector a, Vector b, Vector yes, Vector no) {
        return _mm256_blendv_pd(no, yes, _mm256_cmp_pd(a, b, _CMP_LT_OQ));
    }
    SPIKED_INLINE Vector where_equal(Vector a, Vector b, Vector yes, Vector no) {
        return _mm256_blendv_pd(no, yes, _mm256_cmp_pd(a, b, _CMP_EQ_OQ));
    }
    SPIKED_INLINE Vector abs(Vector x) { return _mm256_andnot_pd(_mm256_set1_pd(-0.0), x); }
    SPIKED_INLINE Vector max(Vector a, Vector b) { return _mm256_max_pd(a, b); }
    using Inverse = Vector;
    SPIKED_INLINE Inverse inverse(Vector x) { return set(1.0) / x; }
    SPIKED_INLINE Vector times(Vector x, Inverse y) { return x * y; }
    SPIKED_INLINE Vector narrow(const Vector (&from)[1]) { return from[0]; }
    SPIKED_INLINE Real sum(Vector x) {
        const __m128d half = _mm_add_pd(_mm256_castpd256_pd128(x), _mm256_extractf128_pd(x, 1));
        return _mm_cvtsd_f64(_mm_add_sd(half, _mm_unpackhi_pd(half, half)));
    }
    SPIKED_INLINE void sums(const Vector (&of)[4], Real* to) {
        const __m256d ab = _mm256_hadd_pd(of[0], of[1]);
        const __m256d cd = _mm256_hadd_pd(of[2], of[3]);
        _mm256_storeu_pd(to, _mm256_add_pd(_mm256_permute2f128_pd(ab, cd, 0x20), _mm256_permute2f128_pd(ab, cd, 0x31)));
    }
    using Squares = Vector;
    SPIKED_INLINE Squares no_squares() { return set(0.0); }
    SPIKED_INLINE void add_square(Squares& to, Vector x) { to = fma(x, x, to); }
    SPIKED_INLINE double total(const Squares& of) { return sum(of); }
    SPIKED_INLINE Vector from(Vector x, std::size_t count) {
        const __m256i first = _mm256_set1_epi64x(static_cast<long long>(count));
        const __m256i kept = _mm256_cmpgt_epi64(first, _mm256_setr_epi64x(0, 1, 2, 3));
        return _mm256_andnot_pd(_mm256_castsi256_pd(kept), x);
    }
};

struct Avx2Float {
    using Real = float;
    using Vector = __m256;
    static constexpr std::size_t width = 8;
    static constexpr bool many_registers = false;

    SPIKED_INLINE Vector set(Real x) { return _mm256_set1_ps(x); }
    SPIKED_INLINE Vector load(const Real* from) { return _mm256_load_ps(from); }
    SPIKED_INLINE void store(Real* to, Vector x) { _mm256_store_ps(to, x); }
    SPIKED_INLINE Vector load_anywhere(const Real* from) { return _mm256_loadu_ps(from); }
    SPIKED_INLINE void store_anywhere(Real* to, Vector x) { _mm256_storeu_ps(to, x); }
    SPIKED_INLINE Vector fma(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
    SPIKED_INLINE Vector fnma(Vector a, Vector b, Vector c) { return _mm256_fnmadd_ps(a, b, c); }
    SPIKED_INLINE Vector abs(Vector x) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0F), x); }
    SPIKED_INLINE Vector max(Vector a, Vector b) { return _mm256_max_ps(a, b); }
    SPIKED_INLINE Vector narrow(const Avx2Double::Vector (&from)[2]) {
        return _mm256_set_m128(_mm256_cvtpd_ps(from[1]), _mm256_cvtpd_ps(from[0]));
    }
    SPIKED_INLINE Real sum(Vector x) {
        __m128 half = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
        half = _mm_add_ps(half, _mm_movehl_ps(half, half));
        return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
    }
    SPIKED_INLINE void sums(const Vector (&of)[4], Real* to) {
        const __m256 abcd = _mm256_hadd_ps(_mm256_hadd_ps(of[0], of[1]), _mm256_hadd_ps(of[2], of[3]));
        _mm_storeu_ps(to, _mm_add_ps(_mm256_castps256_ps128(abcd), _mm256_extractf128_ps(abcd, 1)));
    }
    struct Squares {
        Avx2Double::Vector low, high;
    };
    SPIKED_INLINE Squares no_squares() { return {Avx2Double::set(0.0), Avx2Double::set(0.0)}; }
    SPIKED_INLINE void add_square(Squares& to, Vector x) {
        const auto low = _mm256_cvtps_pd(_mm256_castps256_ps128(x));
        const auto high = _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
        to = {Avx2Double::fma(low, low, to.low), Avx2Double::fma(high, high, to.high)};
    }
    SPIKED_INLINE double total(const Squares& of) { return Avx2Double::sum(of.low + of.high); }
    SPIKED_INLINE Vector from(Vector x, std::size_t count) {
        const __m256i first = _mm256_set1_epi32(static_cast<int>(count));
        const __m256i kept = _mm256_cmpgt_epi32(first, _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
        return _mm256_andnot_ps(_mm256_castsi256_ps(kept), x);
    }
};

bool found() { return processor().avx2 && processor().fma; }

}  // namespace

template <>
const Kernels<double>* avx2() {
    return found() ? &kernels_for<Avx2Double, Avx2Double>() : nullptr;
}
template <>
const Kernels<float>* avx2() {
    return found() ? &kernels_for<Avx2Float, Avx2Double>() : nullptr;
}

}  // namespace spiked::estimators::kernels
#else
namespace spiked::estimators::kernels {

template <>
const Kernels<double>* avx2() {
    return nullptr;
}
template <>
const Kernels<float>* avx2() {
    return nullptr;
}

}  // namespace spiked::estimators::kernels
#endif

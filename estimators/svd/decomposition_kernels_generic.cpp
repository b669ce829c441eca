#include <cstring>

#include "estimators/svd/decomposition_kernels_table.hpp"

namespace spiked::estimators::kernels {
namespace {

#define SPIKED_INLINE static inline __attribute__((always_inline))

/// Registers of 16 bytes, which every processor has. Without an fma instruction, fma and fnma round twice.
template <class Number, class Bits>
struct Plain {
    using Real = Number;
    using Vector [[gnu::vector_size(16)]] = Number;
    using Mask [[gnu::vector_size(16)]] = Bits;
    static constexpr std::size_t width = 16 / sizeof(Real);
    static constexpr bool many_registers = false;

    SPIKED_INLINE Vector set(Real x) { return Vector{} + x; }
    SPIKED_INLINE Vector load(const Real* from) { return load_anywhere(from); }
    SPIKED_INLINE void store(Real* to, Vector x) { store_anywhere(to, x); }
    SPIKED_INLINE Vector load_anywhere(const Real* from) {
        Vector x;
        __builtin_memcpy(&x, from, sizeof x);
        return x;
    }
    SPIKED_INLINE void store_anywhere(Real* to, Vector x) { __builtin_memcpy(to, &x, sizeof x); }
    SPIKED_INLINE Vector fma(Vector a, Vector b, Vector c) { return a * b + c; }
    SPIKED_INLINE Vector fnma(Vector a, Vector b, Vector c) { return c - a * b; }
    SPIKED_INLINE Vector choose(Mask mask, Vector yes, Vector no) {
        return reinterpret_cast<Vector>((mask & reinterpret_cast<Mask>(yes)) | (~mask & reinterpret_cast<Mask>(no)));
    }
    SPIKED_INLINE Vector where_less(Vector a, Vector b, Vector yes, Vector no) {
        return choose(reinterpret_cast<Mask>(a < b), yes, no);
    }
    SPIKED_INLINE Vector where_equal(Vector a, Vector b, Vector yes, Vector no) {
        return choose(reinterpret_cast<Mask>(a == b), yes, no);
    }
    SPIKED_INLINE Vector abs(Vector x) {
        const Mask all_but_sign = Mask{} + static_cast<Bits>(~(Bits{1} << (8 * sizeof(Bits) - 1)));
        return reinterpret_cast<Vector>(reinterpret_cast<Mask>(x) & all_but_sign);
    }
    SPIKED_INLINE Vector max(Vector a, Vector b) { return where_less(a, b, b, a); }
    using Inverse = Vector;
    SPIKED_INLINE Inverse inverse(Vector x) { return set(1) / x; }
    SPIKED_INLINE Vector times(Vector x, Inverse y) { return x * y; }
    SPIKED_INLINE Real sum(Vector x) {
        Real total = x[0];
        for (std::size_t i = 1; i < width; ++i) total += x[i];
        return total;
    }
    SPIKED_INLINE void sums(const Vector (&of)[4], Real* to) {
        for (std::size_t i = 0; i < 4; ++i) to[i] = sum(of[i]);
    }
    template <class Wide, std::size_t parts>
    SPIKED_INLINE Vector narrow(const Wide (&from)[parts]) {
        Vector x;
        for (std::size_t i = 0; i < width; ++i)
            x[i] = static_cast<Real>(from[i / (width / parts)][i % (width / parts)]);
        return x;
    }
    /// A sum of squares in double.
    using Squares = double;
    SPIKED_INLINE Squares no_squares() { return 0.0; }
    SPIKED_INLINE void add_square(Squares& sum, Vector x) {
        for (std::size_t i = 0; i < width; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    }
    SPIKED_INLINE double total(const Squares& sum) { return sum; }
    /// x with its first `count` entries set to zero.
    SPIKED_INLINE Vector from(Vector x, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) x[i] = 0;
        return x;
    }
};

}  // namespace

template <>
const Kernels<double>* generic() {
    return &kernels_for<Plain<double, unsigned long long>, Plain<double, unsigned long long>>();
}
template <>
const Kernels<float>* generic() {
    return &kernels_for<Plain<float, unsigned>, Plain<double, unsigned long long>>();
}

namespace {

/// The first path, the widest instructions first, that the processor has and `wanted` accepts.
template <class Real, class Wanted>
Path<Real> first_path(const Wanted& wanted) {
    const Path<Real> all[] = {{"avx512", avx512<Real>()}, {"avx2", avx2<Real>()}, {"generic", generic<Real>()}};
    for (const Path<Real>& path : all)
        if (path.kernels != nullptr && wanted(path)) return path;
    return {"none", nullptr};
}

}  // namespace

template <class Real>
Path<Real> best_path() {
    return first_path<Real>([](const Path<Real>&) { return true; });
}
template <class Real>
Path<Real> path_named(const char* name) {
    return first_path<Real>([&](const Path<Real>& path) { return std::strcmp(path.name, name) == 0; });
}
template Path<float> best_path();
template Path<double> best_path();
template Path<float> path_named(const char*);
template Path<double> path_named(const char*);

}  // namespace spiked::estimators::kernels

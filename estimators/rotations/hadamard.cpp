#include "estimators/rotations/hadamard.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/runtime/error.hpp"
#include "core/runtime/processor.hpp"

namespace spiked::estimators {
namespace {

#define SPIKED_INLINE inline __attribute__((always_inline))

/// Entry j of a number of rows. A strip has `dimension` of these columns, and every butterfly adds whole registers.
template <class Real>
constexpr std::size_t lanes = 128 / sizeof(Real);
template <class Real>
struct alignas(64) StripColumn {
    Real entry[lanes<Real>];
};

/// Part of a strip column, as wide as a register; where registers are narrower the compiler uses two.
template <class Real, std::size_t bytes>
struct Wide {
    using Entries [[gnu::vector_size(bytes), gnu::may_alias]] = Real;
};

template <class Entries>
SPIKED_INLINE void butterfly(Entries& a, Entries& b) {
    const Entries sum = a + b;
    b = a - b;
    a = sum;
}

/// Performs `depth` stages in one pass, from stride `half` on; registers hold 2^depth entries.
template <unsigned depth, class Entries>
SPIKED_INLINE void stages(Entries* strip, std::size_t half, const Entries* end) {
    constexpr std::size_t width = std::size_t{1} << depth;
    for (auto* block = strip; block < end; block += width * half)
        for (auto* at = block; at < block + half; ++at) {
            Entries x[width];
            for (std::size_t i = 0; i < width; ++i) x[i] = at[i * half];
            for (std::size_t step = 1; step < width; step *= 2)
                for (std::size_t i = 0; i < width; ++i)
                    if ((i & step) == 0) butterfly(x[i], x[i + step]);
            for (std::size_t i = 0; i < width; ++i) at[i * half] = x[i];
        }
}

template <class Entries, class Real>
SPIKED_INLINE void butterflies(StripColumn<Real>* columns, std::size_t dimension) {
    constexpr std::size_t registers = sizeof(StripColumn<Real>) / sizeof(Entries);
    auto* const strip = reinterpret_cast<Entries*>(columns);
    const auto* const end = strip + dimension * registers;
    std::size_t half = registers;
    int remaining = std::countr_zero(dimension);
    for (; remaining % 3 != 0; remaining -= 2, half *= 4) {
        if (remaining == 1) return stages<1>(strip, half, end);
        stages<2>(strip, half, end);
    }
    for (; remaining > 0; remaining -= 3, half *= 8) stages<3>(strip, half, end);
}

template <class Entries, class Real>
SPIKED_INLINE void multiply(StripColumn<Real>& column, Real factor) {
    auto* const at = reinterpret_cast<Entries*>(&column);
    for (std::size_t i = 0; i < sizeof column / sizeof *at; ++i) at[i] *= factor;
}

/// Copies a strip column times a factor, or as many of its rows as the block has.
template <class Entries, class Real>
SPIKED_INLINE void copy_column(const Real* from, Real* to, Real factor, std::size_t count) {
    if (count < lanes<Real>) {
        for (std::size_t i = 0; i < count; ++i) to[i] = factor * from[i];
        return;
    }
    for (std::size_t i = 0; i < lanes<Real>; i += sizeof(Entries) / sizeof(Real)) {
        Entries some;
        std::memcpy(&some, from + i, sizeof some);
        some *= factor;
        std::memcpy(to + i, &some, sizeof some);
    }
}

/// The transformation of a block.
struct Rounds {
    const float* signs;
    std::size_t dimension;
    unsigned count;
    bool walks;
    bool back;

    [[nodiscard]] const float* signs_of(unsigned round) const { return signs + number_of(round) * dimension; }
    [[nodiscard]] unsigned number_of(unsigned round) const { return back ? count - 1 - round : round; }
    /// The number of entries that one transform mixes, and the index of the first of them.
    [[nodiscard]] std::size_t width() const { return std::bit_floor(dimension); }
    [[nodiscard]] std::size_t offset(unsigned round) const {
        return number_of(round) % 2 == 0 ? 0 : dimension - width();
    }
};

/// Rotates entry i against entry d - floor(d / 2) + i by 45 degrees; this is its own inverse.
template <class Entries, class Real>
SPIKED_INLINE void walk(StripColumn<Real>* strip, std::size_t dimension) {
    const Real root = static_cast<Real>(std::sqrt(0.5));
    for (std::size_t i = 0; i < dimension / 2; ++i) {
        auto* const a = reinterpret_cast<Entries*>(strip + i);
        auto* const b = reinterpret_cast<Entries*>(strip + (dimension - dimension / 2 + i));
        for (std::size_t j = 0; j < sizeof(StripColumn<Real>) / sizeof(Entries); ++j) {
            a[j] *= root;
            b[j] *= root;
            butterfly(a[j], b[j]);
        }
    }
}

/// Transforms `count` rows, at most `lanes`, of a column-major block. The result goes to the same rows of another block
/// or of the same one, or stays in the strip when `to` is null. Entries of a row are `stride` apart.
template <class Entries, class Real>
SPIKED_INLINE void transform(const Rounds& rounds, const Real* from, Real* to, std::size_t stride, std::size_t count,
                             StripColumn<Real>* strip) {
    const auto dimension = rounds.dimension;
    const std::size_t width = rounds.width();
    // Where every round mixes all entries, the scales of the rounds are combined into one.
    const double each = 1.0 / std::sqrt(static_cast<double>(width));
    const auto scale = static_cast<Real>(rounds.walks ? 1.0 : std::pow(each, rounds.count));
    // The first signs are applied when the strip is loaded, the last signs of the inverse when it is stored.
    const float* first_signs = rounds.signs_of(0);
    for (std::size_t j = 0; j < dimension; ++j) {
        const Real factor = rounds.back ? scale : scale * static_cast<Real>(first_signs[j]);
        copy_column<Entries>(from + j * stride, strip[j].entry, factor, count);
    }
    for (unsigned round = 0; round < rounds.count; ++round) {
        const float* signs = rounds.signs_of(round);
        if (rounds.walks && rounds.back) walk<Entries>(strip, dimension);
        if (!rounds.back && round > 0)
            for (std::size_t j = 0; j < dimension; ++j) multiply<Entries>(strip[j], static_cast<Real>(signs[j]));
        StripColumn<Real>* const mixed = strip + (rounds.walks ? rounds.offset(round) : 0);
        butterflies<Entries>(mixed, width);
        if (rounds.walks)
            for (std::size_t j = 0; j < width; ++j) multiply<Entries>(mixed[j], static_cast<Real>(each));
        if (rounds.walks && !rounds.back) walk<Entries>(strip, dimension);
        if (rounds.back && round + 1 < rounds.count)
            for (std::size_t j = 0; j < dimension; ++j) multiply<Entries>(strip[j], static_cast<Real>(signs[j]));
    }
    if (to == nullptr) return;
    const float* last_signs = rounds.signs_of(rounds.count - 1);
    for (std::size_t j = 0; j < dimension; ++j)
        copy_column<Entries>(strip[j].entry, to + j * stride, rounds.back ? static_cast<Real>(last_signs[j]) : Real{1},
                             count);
}

template <class Real>
using Transform = void (*)(const Rounds&, const Real*, Real*, std::size_t, std::size_t, StripColumn<Real>*);

template <class Real>
void plain_transform(const Rounds& rounds, const Real* from, Real* to, std::size_t stride, std::size_t count,
                     StripColumn<Real>* strip) {
    transform<typename Wide<Real, 32>::Entries>(rounds, from, to, stride, count, strip);
}

#if defined(__x86_64__)
template <class Real>
__attribute__((target("avx2"))) void avx2_transform(const Rounds& rounds, const Real* from, Real* to,
                                                    std::size_t stride, std::size_t count, StripColumn<Real>* strip) {
    transform<typename Wide<Real, 32>::Entries>(rounds, from, to, stride, count, strip);
}

template <class Real>
__attribute__((target("avx512f"))) void avx512_transform(const Rounds& rounds, const Real* from, Real* to,
                                                         std::size_t stride, std::size_t count,
                                                         StripColumn<Real>* strip) {
    transform<typename Wide<Real, 64>::Entries>(rounds, from, to, stride, count, strip);
}
#endif

template <class Real>
Transform<Real> best_transform() {
#if defined(__x86_64__)
    if (processor().avx512f) return avx512_transform<Real>;
    if (processor().avx2) return avx2_transform<Real>;
#endif
    return plain_transform<Real>;
}

void require_length(std::size_t length, const Rounds& rounds) {
    if (length != rounds.dimension)
        throw precondition_error("rows of length {} given to a rotation of dimension {}", length, rounds.dimension);
}

template <class Real>
void transform_rows(const Rounds& rounds, const arma::Mat<Real>& from, arma::Mat<Real>& to) {
    require_length(from.n_cols, rounds);
    static const Transform<Real> path = best_transform<Real>();
    std::vector<StripColumn<Real>> strip(rounds.dimension);
    for (arma::uword first = 0; first < from.n_rows; first += lanes<Real>)
        path(rounds, from.memptr() + first, to.memptr() + first, from.n_rows,
             std::min<std::size_t>(lanes<Real>, from.n_rows - first), strip.data());
}

}  // namespace

HadamardRotation::HadamardRotation(const stream::Stream& stream, std::size_t dimension, unsigned rounds)
    : HadamardRotation(stream, dimension, rounds, false) {
    if (!std::has_single_bit(dimension))
        throw usage_error(
            "a Hadamard rotation of dimension {} is not supported (it must be a power of two): use fht-kac or haar",
            dimension);
}

HadamardRotation HadamardRotation::kac(const stream::Stream& stream, std::size_t dimension) {
    // Where one transform mixes all entries, a walk would undo its last butterfly, so the four rounds have none.
    return {stream, dimension, 4, !std::has_single_bit(dimension)};
}

HadamardRotation::HadamardRotation(const stream::Stream& stream, std::size_t dimension, unsigned rounds, bool walks)
    : dimension_(dimension), rounds_(rounds), walks_(walks), signs_(dimension * rounds) {
    for (unsigned round = 0; round < rounds; ++round)
        for (std::size_t j = 0; j < dimension; ++j) {
            const auto words = stream.words(static_cast<std::uint32_t>(j / 128), static_cast<std::uint16_t>(round));
            const bool minus = (words[j % 128 / 32] >> (j % 32) & 1U) != 0;
            signs_[round * dimension + j] = minus ? -1.0F : 1.0F;
        }
}

void HadamardRotation::rotate(arma::mat& rows) const {
    transform_rows<double>({signs_.data(), dimension_, rounds_, walks_, false}, rows, rows);
}
void HadamardRotation::rotate(arma::fmat& rows) const {
    transform_rows<float>({signs_.data(), dimension_, rounds_, walks_, false}, rows, rows);
}
void HadamardRotation::rotate_back(arma::mat& rows) const {
    transform_rows<double>({signs_.data(), dimension_, rounds_, walks_, true}, rows, rows);
}
void HadamardRotation::rotate_back(arma::fmat& rows) const {
    transform_rows<float>({signs_.data(), dimension_, rounds_, walks_, true}, rows, rows);
}

void HadamardRotation::rotate_strips(const arma::fmat& rows, const TakeStrip& take) const {
    static_assert(lanes<float> == strip_rows);
    const Rounds rounds{signs_.data(), dimension_, rounds_, walks_, false};
    require_length(rows.n_cols, rounds);
    static const Transform<float> path = best_transform<float>();
    std::vector<StripColumn<float>> strip(dimension_);
    for (arma::uword first = 0; first < rows.n_rows; first += strip_rows) {
        const auto count = std::min<std::size_t>(strip_rows, rows.n_rows - first);
        path(rounds, rows.memptr() + first, nullptr, rows.n_rows, count, strip.data());
        take(first, count, {strip.front().entry, strip_rows * dimension_});
    }
}

arma::fmat HadamardRotation::rotated(const arma::fmat& rows) const {
    arma::fmat result(arma::size(rows), arma::fill::none);
    transform_rows<float>({signs_.data(), dimension_, rounds_, walks_, false}, rows, result);
    return result;
}

}  // namespace spiked::estimators

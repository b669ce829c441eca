#include "estimators/hadamard.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "theory/base/error.hpp"

namespace spiked::estimators {
namespace {

#define SPIKED_INLINE inline __attribute__((always_inline))

/// Entry j of so many rows; a strip has `dimension` of them, and every butterfly adds whole registers.
constexpr std::size_t lanes = 16;
template <class Real>
struct alignas(64) Line {
    Real entry[lanes];
};

/// Part of a line; where registers are narrower the compiler takes two.
template <class Real>
struct Wide;
template <>
struct Wide<float> {
    using Entries [[gnu::vector_size(32), gnu::may_alias]] = float;
};
template <>
struct Wide<double> {
    using Entries [[gnu::vector_size(32), gnu::may_alias]] = double;
};

template <class Entries>
SPIKED_INLINE void butterfly(Entries& a, Entries& b) {
    const Entries sum = a + b;
    b = a - b;
    a = sum;
}

/// `depth` stages in one pass, from stride `half` on; registers hold 2^depth entries.
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

template <class Real>
SPIKED_INLINE void butterflies(Line<Real>* lines, std::size_t dimension) {
    using Entries = typename Wide<Real>::Entries;
    constexpr std::size_t line = sizeof(Line<Real>) / sizeof(Entries);
    auto* const strip = reinterpret_cast<Entries*>(lines);
    const auto* const end = strip + dimension * line;
    std::size_t half = line;
    int left = std::countr_zero(dimension);
    for (; left % 3 != 0; left -= 2, half *= 4) {
        if (left == 1) return stages<1>(strip, half, end);
        stages<2>(strip, half, end);
    }
    for (; left > 0; left -= 3, half *= 8) stages<3>(strip, half, end);
}

template <class Real>
SPIKED_INLINE void multiply(Line<Real>& line, Real factor) {
    auto* const at = reinterpret_cast<typename Wide<Real>::Entries*>(&line);
    for (std::size_t i = 0; i < sizeof line / sizeof *at; ++i) at[i] *= factor;
}

template <class Real>
SPIKED_INLINE void copy_line(const Real* from, Real* to) {
    using Entries = typename Wide<Real>::Entries;
    for (std::size_t i = 0; i < lanes; i += sizeof(Entries) / sizeof(Real)) {
        Entries some;
        std::memcpy(&some, from + i, sizeof some);
        std::memcpy(to + i, &some, sizeof some);
    }
}

/// What happens to a block, as data.
struct Rounds {
    const float* signs;
    std::size_t dimension;
    unsigned count;
    bool walks;
    bool back;

    [[nodiscard]] const float* signs_of(unsigned round) const { return signs + number_of(round) * dimension; }
    [[nodiscard]] unsigned number_of(unsigned round) const { return back ? count - 1 - round : round; }
    /// Entries that one transform mixes, and the first of them.
    [[nodiscard]] std::size_t width() const { return std::bit_floor(dimension); }
    [[nodiscard]] std::size_t offset(unsigned round) const {
        return number_of(round) % 2 == 0 ? 0 : dimension - width();
    }
};

/// Entry i against entry d - floor(d / 2) + i, by 45 degrees; its own inverse.
template <class Real>
SPIKED_INLINE void walk(Line<Real>* strip, std::size_t dimension) {
    using Entries = typename Wide<Real>::Entries;
    const Real root = static_cast<Real>(std::sqrt(0.5));
    for (std::size_t i = 0; i < dimension / 2; ++i) {
        auto* const a = reinterpret_cast<Entries*>(strip + i);
        auto* const b = reinterpret_cast<Entries*>(strip + (dimension - dimension / 2 + i));
        for (std::size_t j = 0; j < sizeof(Line<Real>) / sizeof(Entries); ++j) {
            a[j] *= root;
            b[j] *= root;
            butterfly(a[j], b[j]);
        }
    }
}

/// The rows from `first` on, at most `lanes`, of a column-major block; entries of one row are `stride` apart.
template <class Real>
SPIKED_INLINE void transform(const Rounds& rounds, Real* first, std::size_t stride, std::size_t count,
                             Line<Real>* strip) {
    const auto dimension = rounds.dimension;
    const std::size_t width = rounds.width();
    // Where every round mixes all entries, their scales are one.
    const double each = 1.0 / std::sqrt(static_cast<double>(width));
    const auto scale = static_cast<Real>(rounds.walks ? 1.0 : std::pow(each, rounds.count));
    for (std::size_t j = 0; j < dimension; ++j) {
        if (count == lanes)
            copy_line(first + j * stride, strip[j].entry);
        else
            std::copy_n(first + j * stride, count, strip[j].entry);
        if (!rounds.walks) multiply(strip[j], scale);
    }
    for (unsigned round = 0; round < rounds.count; ++round) {
        const float* signs = rounds.signs_of(round);
        if (rounds.walks && rounds.back) walk(strip, dimension);
        if (!rounds.back)
            for (std::size_t j = 0; j < dimension; ++j) multiply(strip[j], static_cast<Real>(signs[j]));
        Line<Real>* const mixed = strip + (rounds.walks ? rounds.offset(round) : 0);
        butterflies(mixed, width);
        if (rounds.walks)
            for (std::size_t j = 0; j < width; ++j) multiply(mixed[j], static_cast<Real>(each));
        if (rounds.walks && !rounds.back) walk(strip, dimension);
        if (rounds.back)
            for (std::size_t j = 0; j < dimension; ++j) multiply(strip[j], static_cast<Real>(signs[j]));
    }
    for (std::size_t j = 0; j < dimension; ++j)
        if (count == lanes)
            copy_line(strip[j].entry, first + j * stride);
        else
            std::copy_n(strip[j].entry, count, first + j * stride);
}

template <class Real>
void plain_transform(const Rounds& rounds, Real* first, std::size_t stride, std::size_t count, Line<Real>* strip) {
    transform(rounds, first, stride, count, strip);
}

#if defined(__x86_64__)
template <class Real>
__attribute__((target("avx2"))) void avx2_transform(const Rounds& rounds, Real* first, std::size_t stride,
                                                    std::size_t count, Line<Real>* strip) {
    transform(rounds, first, stride, count, strip);
}
#endif

template <class Real>
auto best_transform() {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) return avx2_transform<Real>;
#endif
    return plain_transform<Real>;
}

template <class Real>
void transform_rows(const Rounds& rounds, arma::Mat<Real>& rows) {
    if (rows.n_cols != rounds.dimension)
        throw bug("rows of length {} given to a rotation of dimension {}", rows.n_cols, rounds.dimension);
    static const auto path = best_transform<Real>();
    std::vector<Line<Real>> strip(rounds.dimension);
    for (arma::uword first = 0; first < rows.n_rows; first += lanes)
        path(rounds, rows.memptr() + first, rows.n_rows, std::min<std::size_t>(lanes, rows.n_rows - first),
             strip.data());
}

}  // namespace

HadamardRotation::HadamardRotation(const stream::Stream& stream, std::size_t dimension, unsigned rounds)
    : HadamardRotation(stream, dimension, rounds, false) {
    if (!std::has_single_bit(dimension))
        throw usage_error(
            "no Hadamard matrix of size {} is known here (it must be a power of two): rotate by fht-kac or haar",
            dimension);
}

HadamardRotation HadamardRotation::kac(const stream::Stream& stream, std::size_t dimension) {
    // Where one transform mixes all entries, a walk would undo its last butterfly: four rounds without.
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
    transform_rows<double>({signs_.data(), dimension_, rounds_, walks_, false}, rows);
}
void HadamardRotation::rotate(arma::fmat& rows) const {
    transform_rows<float>({signs_.data(), dimension_, rounds_, walks_, false}, rows);
}
void HadamardRotation::rotate_back(arma::mat& rows) const {
    transform_rows<double>({signs_.data(), dimension_, rounds_, walks_, true}, rows);
}
void HadamardRotation::rotate_back(arma::fmat& rows) const {
    transform_rows<float>({signs_.data(), dimension_, rounds_, walks_, true}, rows);
}

}  // namespace spiked::estimators

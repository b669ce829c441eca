#include "estimators/quantizers/sign_sketch.hpp"

#include "estimators/quantizers/common_specs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <memory>
#include <numbers>

#include "core/runtime/error.hpp"
#include "core/runtime/processor.hpp"
#include "estimators/coding/byte_stream.hpp"
#include "estimators/coding/row_norms.hpp"
#include "sim/random/haar.hpp"
#include "sim/random/normal.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace spiked::estimators {
namespace {

/// E sqrt(d) |u_1| for u uniform on the sphere in d dimensions; sqrt(2 / pi) in the limit.
double mean_size_of_coordinate(double d) {
    return std::sqrt(d / std::numbers::pi) * boost::math::tgamma_delta_ratio(0.5 * d, 0.5);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) void pack_avx2(const float* values, std::span<std::uint8_t> bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<std::uint8_t>(
            _mm256_movemask_ps(_mm256_cmp_ps(_mm256_loadu_ps(values + 8 * i), _mm256_setzero_ps(), _CMP_GT_OQ)));
}

/// Columns have `sizes.size()` rows, a multiple of 8.
__attribute__((target("avx2"))) void unpack_avx2(std::span<const std::uint8_t> bytes, std::span<const float> sizes,
                                                 float* values) {
    const __m256i positions = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    const __m256 minus = _mm256_set1_ps(-0.0F);
    const std::size_t eights = sizes.size() / 8;
    for (std::size_t first = 0; first < bytes.size(); first += eights)
        for (std::size_t i = 0; i < eights; ++i) {
            const __m256i bits = _mm256_and_si256(_mm256_set1_epi32(bytes[first + i]), positions);
            const __m256 flip =
                _mm256_and_ps(minus, _mm256_castsi256_ps(_mm256_cmpeq_epi32(bits, _mm256_setzero_si256())));
            _mm256_storeu_ps(values + 8 * (first + i), _mm256_xor_ps(flip, _mm256_loadu_ps(sizes.data() + 8 * i)));
        }
}
#endif

template <class Real>
void pack_signs(const Real* values, std::span<std::uint8_t> bytes) {
#if defined(__x86_64__)
    if constexpr (std::is_same_v<Real, float>)
        if (processor().avx2) return pack_avx2(values, bytes);
#endif
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        unsigned byte = 0;
        for (unsigned bit = 0; bit < 8; ++bit) byte |= (values[8 * i + bit] > Real{0} ? 1U : 0U) << bit;
        bytes[i] = static_cast<std::uint8_t>(byte);
    }
}

template <class Real>
void write_signs_of(BitWriter& writer, const arma::Mat<Real>& rows, const arma::Mat<Real>& sketch) {
    const arma::Mat<Real> projected = rows * sketch;
    std::vector<std::uint8_t> bytes(projected.n_elem / 8);
    pack_signs(projected.memptr(), bytes);
    writer.write_cells(Item::signs, bytes, 8);
    for (arma::uword i = 8 * bytes.size(); i < projected.n_elem; ++i)
        writer.write(Item::signs, projected[i] > Real{0} ? 1 : 0, 1);
}

/// Sets entry (t, j) to sizes[t], or to -sizes[t] where its bit is 0.
template <class Real>
void read_signs(BitReader& reader, const std::vector<Real>& sizes, arma::Mat<Real>& signs) {
    std::vector<std::uint8_t> bytes(signs.n_elem / 8);
    reader.read_cells(bytes, 8);
#if defined(__x86_64__)
    if constexpr (std::is_same_v<Real, float>)
        if (sizes.size() % 8 == 0 && processor().avx2) return unpack_avx2(bytes, sizes, signs.memptr());
#endif
    std::size_t t = 0;
    for (arma::uword i = 0; i < signs.n_elem; ++i) {
        const bool plus = i / 8 < bytes.size() ? (bytes[i / 8] >> (i % 8) & 1U) != 0 : reader.read(1) != 0;
        signs[i] = plus ? sizes[t] : -sizes[t];
        if (++t == sizes.size()) t = 0;
    }
}

template <class Real>
void add_directions_of(BitReader& reader, const std::vector<double>& norms, const arma::Mat<Real>& sketch,
                       double factor, arma::Mat<Real>& rows) {
    std::vector<Real> sizes(norms.size());
    for (std::size_t t = 0; t < sizes.size(); ++t) sizes[t] = static_cast<Real>(norms[t] * factor);
    arma::Mat<Real> signs(rows.n_rows, sketch.n_cols, arma::fill::none);
    read_signs(reader, sizes, signs);
    rows += signs * sketch.t();
}

struct SignSketchSetup {
    std::size_t dimension;
    NumberFormat norm;
    Underflow underflow;
    SignSketch sketch;
};

template <class Real>
Encoded encode(const SignSketchSetup& setup, const arma::Mat<Real>& rows) {
    require_length(rows.n_cols, setup.dimension);
    BitWriter writer;
    write_numbers(writer, Item::norms, row_norms(rows), setup.norm, "row norm", setup.underflow);
    setup.sketch.write_signs(writer, rows);
    return finished(writer);
}

template <class Real>
arma::Mat<Real> decode(const SignSketchSetup& setup, std::span<const std::uint8_t> bytes, std::size_t rows) {
    BitReader reader(bytes);
    std::vector<double> norms(rows);
    read_numbers(reader, norms, setup.norm);
    arma::Mat<Real> decoded(rows, setup.dimension, arma::fill::zeros);
    setup.sketch.add_directions(reader, norms, decoded);
    reader.require_end();
    return decoded;
}

}  // namespace


SignSketch::SignSketch(const SketchOptions& options, std::size_t dimension, std::size_t sketch_rows)
    : sketch_(dimension, sketch_rows) {
    const auto stream = [&options](const std::string& cell) {
        return stream::Stream(options.seed, cell, stream::Role::projection, options.index);
    };
    const double m = static_cast<double>(sketch_rows);
    if (options.projection == ProjectionKind::gaussian) {
        stream::fill_normal(stream("quantizer"), {sketch_.memptr(), sketch_.n_elem});
        factor_ = std::sqrt(0.5 * std::numbers::pi) / m;
    } else {
        const double d = static_cast<double>(dimension);
        for (std::size_t first = 0; first < sketch_rows; first += dimension) {
            const std::size_t count = std::min(dimension, sketch_rows - first);
            sketch_.cols(first, first + count - 1) =
                std::sqrt(d) *
                stream::haar_frame(stream(fmt::format("quantizer sketch {}", first / dimension)), dimension, count);
        }
        factor_ = 1.0 / (m * mean_size_of_coordinate(d));
    }
    sketch_float_ = arma::conv_to<arma::fmat>::from(sketch_);
}

void SignSketch::write_signs(BitWriter& writer, const arma::mat& rows) const { write_signs_of(writer, rows, sketch_); }
void SignSketch::write_signs(BitWriter& writer, const arma::fmat& rows) const {
    write_signs_of(writer, rows, sketch_float_);
}
void SignSketch::add_directions(BitReader& reader, const std::vector<double>& norms, arma::mat& rows) const {
    add_directions_of(reader, norms, sketch_, factor_, rows);
}
void SignSketch::add_directions(BitReader& reader, const std::vector<double>& norms, arma::fmat& rows) const {
    add_directions_of(reader, norms, sketch_float_, factor_, rows);
}

RowQuantizer qjl(std::size_t dimension, unsigned bits, const SketchOptions& options) {
    const auto setup = std::make_shared<const SignSketchSetup>(SignSketchSetup{
        dimension, options.norms.format, options.norms.underflow, SignSketch(options, dimension, dimension * bits)});
    return {
        "qjl", [setup](const arma::mat& rows) { return encode(*setup, rows); },
        [setup](std::span<const std::uint8_t> bytes, std::size_t rows) { return decode<double>(*setup, bytes, rows); },
        [setup](const arma::fmat& rows) { return encode(*setup, rows); },
        [setup](std::span<const std::uint8_t> bytes, std::size_t rows) { return decode<float>(*setup, bytes, rows); }};
}

std::map<std::string, arma::mat> sketch_matrix(const SketchOptions& options, std::size_t dimension,
                                               std::size_t sketch_rows) {
    return {{fmt::format("projection:{}:{}x{}{}", enum_name(options.projection), sketch_rows, dimension,
                         index_suffix(options.index)),
             SignSketch(options, dimension, sketch_rows).directions()}};
}

static SketchOptions sketch_options(const NameOptions& named, const QuantizerOptions& options) {
    return {named.choice_or_default<ProjectionKind>("projection"), options.seed, options.rotation_index,
            scalar_options(options)};
}

QuantizerFamily qjl_family() {
    return {.entry = {{"qjl",
                       "norm and signs of a random sketch of a row: for inner products, not for reconstruction",
                       {projection_spec(), norm_spec()},
                       "Zandieh et al. 2024"},
                      "signs an entry: B d of them a row"},
            .make =
                [](const NameOptions& named, std::size_t dimension, double bits, const QuantizerOptions& options) {
                    return qjl(dimension, static_cast<unsigned>(bits), sketch_options(named, options));
                },
            .matrices =
                [](const NameOptions& named, std::size_t dimension, double bits, const QuantizerOptions& options) {
                    return sketch_matrix(sketch_options(named, options), dimension,
                                         static_cast<std::size_t>(bits) * dimension);
                }};
}

}  // namespace spiked::estimators

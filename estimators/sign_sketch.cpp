#include "estimators/sign_sketch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <memory>
#include <numbers>

#include "estimators/byte_stream.hpp"
#include "estimators/row_norms.hpp"
#include "sim/stream/haar.hpp"
#include "sim/stream/normal.hpp"
#include "theory/base/error.hpp"
#include "theory/base/names.hpp"

namespace spiked::estimators {
namespace {

/// E sqrt(d) |u_1| for u uniform on the sphere in d dimensions; sqrt(2 / pi) in the limit.
double mean_size_of_coordinate(double d) {
    return std::sqrt(d / std::numbers::pi) * boost::math::tgamma_delta_ratio(0.5 * d, 0.5);
}

template <class Real>
arma::Mat<std::uint8_t> signs_of(const arma::Mat<Real>& rows, const arma::Mat<Real>& sketch) {
    const arma::Mat<Real> projected = rows * sketch;
    arma::Mat<std::uint8_t> signs(projected.n_rows, projected.n_cols);
    for (arma::uword i = 0; i < signs.n_elem; ++i) signs[i] = projected[i] > Real{0} ? 1 : 0;
    return signs;
}

template <class Real>
arma::Mat<Real> directions_of(const arma::Mat<std::uint8_t>& signs, const arma::Mat<Real>& sketch, double factor) {
    arma::Mat<Real> plus_minus(signs.n_rows, signs.n_cols);
    const auto size = static_cast<Real>(factor);
    for (arma::uword i = 0; i < signs.n_elem; ++i) plus_minus[i] = signs[i] != 0 ? size : -size;
    return plus_minus * sketch.t();
}

struct Setup {
    std::size_t dimension;
    NumberFormat norm;
    SignSketch sketch;
};

template <class Real>
Encoded encode(const Setup& setup, const arma::Mat<Real>& rows) {
    require_rows(rows, setup.dimension);
    BitWriter writer;
    write_numbers(writer, Item::norms, row_norms(rows), setup.norm, "row norm");
    const arma::Mat<std::uint8_t> signs = setup.sketch.signs(rows);
    writer.write_cells(Item::signs, {signs.memptr(), signs.n_elem}, 1);
    writer.align();
    const Ledger ledger = writer.ledger();
    return {writer.take_bytes(), ledger};
}

template <class Real>
arma::Mat<Real> decode(const Setup& setup, std::span<const std::uint8_t> bytes, std::size_t rows) {
    BitReader reader(bytes);
    std::vector<double> norms(rows);
    read_numbers(reader, norms, setup.norm);
    arma::Mat<std::uint8_t> signs(rows, setup.sketch.sketch_rows());
    reader.read_cells({signs.memptr(), signs.n_elem}, 1);
    arma::Mat<Real> decoded;
    if constexpr (std::is_same_v<Real, float>)
        decoded = setup.sketch.directions_float(signs);
    else
        decoded = setup.sketch.directions(signs);
    scale_rows(decoded, norms, 1.0);
    return decoded;
}

}  // namespace

ProjectionKind projection_kind(std::string_view name) {
    const std::vector<std::string> names = {"gaussian", "orthogonal"};
    for (std::size_t i = 0; i < names.size(); ++i)
        if (name == names[i]) return static_cast<ProjectionKind>(i);
    throw usage_error("unknown projection \"{}\"{}", name, suggestion(name, names));
}

SignSketch::SignSketch(ProjectionKind kind, const QuantizerOptions& options, std::size_t dimension,
                       std::size_t sketch_rows)
    : sketch_(dimension, sketch_rows) {
    const auto stream = [&options](const std::string& cell) {
        return stream::Stream(options.seed, cell, stream::Role::projection, options.rotation_index);
    };
    const double m = static_cast<double>(sketch_rows);
    if (kind == ProjectionKind::gaussian) {
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

arma::Mat<std::uint8_t> SignSketch::signs(const arma::mat& rows) const { return signs_of(rows, sketch_); }
arma::Mat<std::uint8_t> SignSketch::signs(const arma::fmat& rows) const { return signs_of(rows, sketch_float_); }
arma::mat SignSketch::directions(const arma::Mat<std::uint8_t>& signs) const {
    return directions_of(signs, sketch_, factor_);
}
arma::fmat SignSketch::directions_float(const arma::Mat<std::uint8_t>& signs) const {
    return directions_of(signs, sketch_float_, factor_);
}

RowQuantizer qjl(std::size_t dimension, unsigned bits, const QuantizerOptions& options, ProjectionKind projection) {
    const auto setup = std::make_shared<const Setup>(
        Setup{dimension, options.norm, SignSketch(projection, options, dimension, dimension * bits)});
    return {
        "qjl", [setup](const arma::mat& rows) { return encode(*setup, rows); },
        [setup](std::span<const std::uint8_t> bytes, std::size_t rows) { return decode<double>(*setup, bytes, rows); },
        [setup](const arma::fmat& rows) { return encode(*setup, rows); },
        [setup](std::span<const std::uint8_t> bytes, std::size_t rows) { return decode<float>(*setup, bytes, rows); }};
}

}  // namespace spiked::estimators

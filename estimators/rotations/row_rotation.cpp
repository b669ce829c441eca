#include "estimators/rotations/row_rotation.hpp"

#include <cmath>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/runtime/error.hpp"
#include "core/text/name_options.hpp"
#include "estimators/coding/row_norms.hpp"
#include "sim/random/haar.hpp"

namespace spiked::estimators {
namespace {

// The matrix R^T in the precision of the rows.
template <class Real, class Matrix>
const arma::Mat<Real>& in_precision(const Matrix& matrix) {
    if constexpr (std::is_same_v<Real, float>)
        return matrix.transposed_float;
    else
        return matrix.transposed;
}

template <class Real, class Rotation>
arma::Mat<Real> rotated_rows(const Rotation& rotation, const arma::Mat<Real>& rows) {
    return std::visit(
        [&](const auto& kind) -> arma::Mat<Real> {
            using Kind = std::decay_t<decltype(kind)>;
            if constexpr (std::is_same_v<Kind, std::monostate>) {
                return rows;
            } else if constexpr (std::is_same_v<Kind, HadamardRotation> && std::is_same_v<Real, float>) {
                return kind.rotated(rows);
            } else if constexpr (std::is_same_v<Kind, HadamardRotation>) {
                arma::Mat<Real> result = rows;
                kind.rotate(result);
                return result;
            } else {
                return rows * in_precision<Real>(kind);
            }
        },
        rotation);
}

template <class Real, class Rotation>
arma::Mat<Real> rotated_back_rows(const Rotation& rotation, arma::Mat<Real> rows) {
    return std::visit(
        [&](const auto& kind) -> arma::Mat<Real> {
            using Kind = std::decay_t<decltype(kind)>;
            if constexpr (std::is_same_v<Kind, std::monostate>) {
                return std::move(rows);
            } else if constexpr (std::is_same_v<Kind, HadamardRotation>) {
                kind.rotate_back(rows);
                return std::move(rows);
            } else {
                return rows * in_precision<Real>(kind).t();
            }
        },
        rotation);
}

}  // namespace

RotationKind rotation_kind(std::string_view name) { return enum_named<RotationKind>(name, "rotation"); }

std::string_view name_of(RotationKind kind) { return enum_name(kind); }

RowRotation::RowRotation(RotationKind kind, const stream::Stream& stream, std::size_t dimension) {
    switch (kind) {
        case RotationKind::haar: {
            Matrix matrix;
            matrix.transposed = stream::haar_frame(stream, dimension, dimension).t();
            matrix.transposed_float = arma::conv_to<arma::fmat>::from(matrix.transposed);
            rotation_ = std::move(matrix);
            break;
        }
        case RotationKind::rht1:
            rotation_ = HadamardRotation(stream, dimension, 1);
            break;
        case RotationKind::rht2:
            rotation_ = HadamardRotation(stream, dimension, 2);
            break;
        case RotationKind::fht_kac:
            rotation_ = HadamardRotation::kac(stream, dimension);
            break;
        case RotationKind::identity:
            break;
    }
}

arma::mat RowRotation::rotate(const arma::mat& rows) const { return rotated_rows<double>(rotation_, rows); }
arma::fmat RowRotation::rotate(const arma::fmat& rows) const { return rotated_rows<float>(rotation_, rows); }
arma::mat RowRotation::rotate_back(arma::mat rows) const {
    return rotated_back_rows<double>(rotation_, std::move(rows));
}
arma::fmat RowRotation::rotate_back(arma::fmat rows) const {
    return rotated_back_rows<float>(rotation_, std::move(rows));
}

UnitRows unit_rows(const arma::mat& rows, const RowRotation& rotation) {
    UnitRows unit{row_norms(rows), rows};
    std::vector<double> scales(unit.norms.size());
    for (std::size_t t = 0; t < scales.size(); ++t) {
        if (unit.norms[t] == 0.0) continue;
        scales[t] = std::sqrt(static_cast<double>(rows.n_cols)) / unit.norms[t];
        if (std::isfinite(scales[t])) continue;
        // The reciprocal of such a small norm overflows, but the quotients do not.
        unit.coordinates.row(t) /= unit.norms[t];
        scales[t] = std::sqrt(static_cast<double>(rows.n_cols));
    }
    scale_rows(unit.coordinates, scales, 1.0);
    unit.coordinates = rotation.rotate(unit.coordinates);
    return unit;
}

arma::mat from_unit_rows(arma::mat coordinates, const std::vector<double>& scales, const RowRotation& rotation) {
    scale_rows(coordinates, scales, 1.0 / std::sqrt(static_cast<double>(coordinates.n_cols)));
    return rotation.rotate_back(std::move(coordinates));
}

RowRotation row_rotation(const RotationOptions& options, std::size_t dimension) {
    return {options.kind, stream::Stream(options.seed, "quantizer", stream::Role::rotation, options.index), dimension};
}

}  // namespace spiked::estimators

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

// In the order of the enumeration.
const std::vector<std::string> rotation_words = {"haar", "rht1", "rht2", "fht-kac", "identity"};

template <class Real, class Matrix>
const arma::Mat<Real>& in_precision(const Matrix& matrix) {
    if constexpr (std::is_same_v<Real, float>)
        return matrix.transposed_float;
    else
        return matrix.transposed;
}

template <class Real, class Rotation>
arma::Mat<Real> turned(const Rotation& rotation, const arma::Mat<Real>& rows) {
    return std::visit(
        [&](const auto& how) -> arma::Mat<Real> {
            using How = std::decay_t<decltype(how)>;
            if constexpr (std::is_same_v<How, std::monostate>) {
                return rows;
            } else if constexpr (std::is_same_v<How, HadamardRotation> && std::is_same_v<Real, float>) {
                return how.rotated(rows);
            } else if constexpr (std::is_same_v<How, HadamardRotation>) {
                arma::Mat<Real> result = rows;
                how.rotate(result);
                return result;
            } else {
                return rows * in_precision<Real>(how);
            }
        },
        rotation);
}

template <class Real, class Rotation>
arma::Mat<Real> turned_back(const Rotation& rotation, arma::Mat<Real> rows) {
    return std::visit(
        [&](const auto& how) -> arma::Mat<Real> {
            using How = std::decay_t<decltype(how)>;
            if constexpr (std::is_same_v<How, std::monostate>) {
                return std::move(rows);
            } else if constexpr (std::is_same_v<How, HadamardRotation>) {
                how.rotate_back(rows);
                return std::move(rows);
            } else {
                return rows * in_precision<Real>(how).t();
            }
        },
        rotation);
}

}  // namespace

RotationKind rotation_kind(std::string_view name) {
    return static_cast<RotationKind>(position_of(name, "rotation", rotation_words));
}

std::string_view name_of(RotationKind kind) { return rotation_words[static_cast<std::size_t>(kind)]; }

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

arma::mat RowRotation::rotate(const arma::mat& rows) const { return turned<double>(rotation_, rows); }
arma::fmat RowRotation::rotate(const arma::fmat& rows) const { return turned<float>(rotation_, rows); }
arma::mat RowRotation::rotate_back(arma::mat rows) const { return turned_back<double>(rotation_, std::move(rows)); }
arma::fmat RowRotation::rotate_back(arma::fmat rows) const { return turned_back<float>(rotation_, std::move(rows)); }

UnitRows unit_rows(const arma::mat& rows, const RowRotation& rotation) {
    UnitRows unit{row_norms(rows), rows};
    std::vector<double> to_unit(unit.norms.size());
    for (std::size_t t = 0; t < to_unit.size(); ++t) {
        if (unit.norms[t] == 0.0) continue;
        to_unit[t] = std::sqrt(static_cast<double>(rows.n_cols)) / unit.norms[t];
        if (std::isfinite(to_unit[t])) continue;
        // The reciprocal of so small a norm overflows, the quotients do not.
        unit.coordinates.row(t) /= unit.norms[t];
        to_unit[t] = std::sqrt(static_cast<double>(rows.n_cols));
    }
    scale_rows(unit.coordinates, to_unit, 1.0);
    unit.coordinates = rotation.rotate(unit.coordinates);
    return unit;
}

arma::mat from_unit_rows(arma::mat coordinates, const std::vector<double>& scales, const RowRotation& rotation) {
    scale_rows(coordinates, scales, 1.0 / std::sqrt(static_cast<double>(coordinates.n_cols)));
    return rotation.rotate_back(std::move(coordinates));
}

}  // namespace spiked::estimators

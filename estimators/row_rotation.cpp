#include "estimators/row_rotation.hpp"

#include <string>
#include <type_traits>
#include <vector>

#include "sim/stream/haar.hpp"
#include "theory/base/error.hpp"
#include "theory/base/names.hpp"

namespace spiked::estimators {
namespace {

template <class Real, class Matrix>
const arma::Mat<Real>& in_precision(const Matrix& matrix) {
    if constexpr (std::is_same_v<Real, float>)
        return matrix.transposed_float;
    else
        return matrix.transposed;
}

template <class Real, class Rotation>
arma::Mat<Real> turned(const Rotation& rotation, const arma::Mat<Real>& rows, bool back) {
    return std::visit(
        [&](const auto& how) -> arma::Mat<Real> {
            using How = std::decay_t<decltype(how)>;
            if constexpr (std::is_same_v<How, std::monostate>) {
                return rows;
            } else if constexpr (std::is_same_v<How, HadamardRotation>) {
                arma::Mat<Real> result = rows;
                if (back)
                    how.rotate_back(result);
                else
                    how.rotate(result);
                return result;
            } else {
                const arma::Mat<Real>& transposed = in_precision<Real>(how);
                if (back) return rows * transposed.t();
                return rows * transposed;
            }
        },
        rotation);
}

}  // namespace

RotationKind rotation_kind(std::string_view name) {
    const std::vector<std::string> names = {"haar", "rht1", "rht2", "fht-kac", "identity"};
    for (std::size_t i = 0; i < names.size(); ++i)
        if (name == names[i]) return static_cast<RotationKind>(i);
    throw usage_error("unknown rotation \"{}\"{}", name, suggestion(name, names));
}

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

arma::mat RowRotation::rotate(const arma::mat& rows) const { return turned<double>(rotation_, rows, false); }
arma::fmat RowRotation::rotate(const arma::fmat& rows) const { return turned<float>(rotation_, rows, false); }
arma::mat RowRotation::rotate_back(const arma::mat& rows) const { return turned<double>(rotation_, rows, true); }
arma::fmat RowRotation::rotate_back(const arma::fmat& rows) const { return turned<float>(rotation_, rows, true); }

}  // namespace spiked::estimators

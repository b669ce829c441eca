#pragma once
#include <armadillo>
#include <string_view>
#include <variant>
#include <vector>

#include "core/text/enum_names.hpp"
#include "estimators/rotations/hadamard.hpp"

namespace spiked::estimators {

/// The rotation of rows before their entries are coded: a Haar matrix, a randomised Hadamard transform of one or two
/// rounds (dimension a power of two), its variant for any dimension, or none.
enum class RotationKind { haar, rht1, rht2, fht_kac, identity };
[[nodiscard]] RotationKind rotation_kind(std::string_view name);  ///< throws usage_error
[[nodiscard]] std::string_view name_of(RotationKind kind);

/// A rotation R, a pure function of kind, stream and dimension. It is not stored with the data.
class RowRotation {
public:
    /// Throws usage_error when the kind does not support the dimension.
    RowRotation(RotationKind kind, const stream::Stream& stream, std::size_t dimension);

    /// Every row x of an m x dimension block becomes R x, or R^T x. A Haar rotation is one matrix product.
    [[nodiscard]] arma::mat rotate(const arma::mat& rows) const;
    [[nodiscard]] arma::fmat rotate(const arma::fmat& rows) const;
    [[nodiscard]] arma::mat rotate_back(arma::mat rows) const;
    [[nodiscard]] arma::fmat rotate_back(arma::fmat rows) const;

    /// The Hadamard rotation, which can pass on its rows strip by strip; null for the other kinds.
    [[nodiscard]] const HadamardRotation* hadamard() const { return std::get_if<HadamardRotation>(&rotation_); }

private:
    struct Matrix {
        arma::mat transposed;  ///< R^T
        arma::fmat transposed_float;
    };
    std::variant<std::monostate, Matrix, HadamardRotation> rotation_;
};

/// Rows as norms and directions at unit variance. The coordinates are sqrt(d) R x / |x|, or 0 for a row that is too
/// small for its direction to be known and whose norm counts as 0.
struct UnitRows {
    std::vector<double> norms;
    arma::mat coordinates;
};
/// Throws what row_norms throws.
[[nodiscard]] UnitRows unit_rows(const arma::mat& rows, const RowRotation& rotation);
/// The inverse: row t is scales[t] / sqrt(d) R^T times its coordinates.
[[nodiscard]] arma::mat from_unit_rows(arma::mat coordinates, const std::vector<double>& scales,
                                       const RowRotation& rotation);

/// The random rotation of a quantizer: its kind, the seed, and the index of the rotation among those of this seed, one
/// per layer, head and side.
struct RotationOptions {
    RotationKind kind = RotationKind::haar;
    stream::StudySeed seed;
    std::uint64_t index = 0;
};
[[nodiscard]] RowRotation row_rotation(const RotationOptions& options, std::size_t dimension);

}  // namespace spiked::estimators

template <>
struct spiked::EnumNames<spiked::estimators::RotationKind> {
    static constexpr EnumName<spiked::estimators::RotationKind> table[] = {
        {spiked::estimators::RotationKind::haar, "haar", "orthogonal"},
        {spiked::estimators::RotationKind::rht1, "rht1", "hadamard"},
        {spiked::estimators::RotationKind::rht2, "rht2"},
        {spiked::estimators::RotationKind::fht_kac, "fht-kac"},
        {spiked::estimators::RotationKind::identity, "identity"}};
};

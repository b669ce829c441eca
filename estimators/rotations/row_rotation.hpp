#pragma once
#include <armadillo>
#include <string_view>
#include <variant>
#include <vector>

#include "estimators/rotations/hadamard.hpp"

namespace spiked::estimators {

/// How rows are turned before their entries are coded: by a Haar matrix, by a randomised Hadamard transform of one or
/// two rounds (a power of two), by its relative for any dimension, or not at all.
enum class RotationKind { haar, rht1, rht2, fht_kac, identity };
[[nodiscard]] RotationKind rotation_kind(std::string_view name);  ///< throws usage_error
[[nodiscard]] std::string_view name_of(RotationKind kind);

/// One rotation R, a pure function of kind, stream and dimension; nothing of it is stored with the data.
class RowRotation {
public:
    /// Throws usage_error when the kind does not fit the dimension.
    RowRotation(RotationKind kind, const stream::Stream& stream, std::size_t dimension);

    /// Every row x of an m x dimension block becomes R x, or R^T x. Haar: one product of matrices.
    [[nodiscard]] arma::mat rotate(const arma::mat& rows) const;
    [[nodiscard]] arma::fmat rotate(const arma::fmat& rows) const;
    [[nodiscard]] arma::mat rotate_back(arma::mat rows) const;
    [[nodiscard]] arma::fmat rotate_back(arma::fmat rows) const;

    /// The rotation where it can hand its rows over strip by strip, else none.
    [[nodiscard]] const HadamardRotation* hadamard() const { return std::get_if<HadamardRotation>(&rotation_); }

private:
    struct Matrix {
        arma::mat transposed;  ///< R^T
        arma::fmat transposed_float;
    };
    std::variant<std::monostate, Matrix, HadamardRotation> rotation_;
};

/// Rows as norms and directions at unit variance: coordinates sqrt(d) R x / |x|, or 0 of a row too small for its
/// direction to be known, whose norm counts as 0.
struct UnitRows {
    std::vector<double> norms;
    arma::mat coordinates;
};
/// Throws what row_norms throws.
[[nodiscard]] UnitRows unit_rows(const arma::mat& rows, const RowRotation& rotation);
/// The way back: row t is scales[t] / sqrt(d) R^T of its coordinates.
[[nodiscard]] arma::mat from_unit_rows(arma::mat coordinates, const std::vector<double>& scales,
                                       const RowRotation& rotation);

}  // namespace spiked::estimators

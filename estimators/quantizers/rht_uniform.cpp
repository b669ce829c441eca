#include "estimators/quantizers/rht_uniform.hpp"

#include <bit>
#include <memory>

#include "estimators/quantizers/kivi.hpp"

namespace spiked::estimators {

RowQuantizer rht_uniform(std::size_t dimension, unsigned bits, const QuantizerOptions& options) {
    QuantizerOptions own = options;
    own.axis = GroupAxis::value;
    own.residual = 0;
    own.rotation = std::has_single_bit(dimension) ? RotationKind::rht1 : RotationKind::fht_kac;
    const auto rotation = std::make_shared<const RowRotation>(row_rotation(own, dimension));
    const RowQuantizer groups = kivi(dimension, bits, own);
    return {"rht-uniform",
            [=](const arma::mat& rows) {
                require_length(rows.n_cols, dimension);
                return groups.encode(rotation->rotate(rows));
            },
            [=](std::span<const std::uint8_t> bytes, std::size_t rows) {
                return rotation->rotate_back(groups.decode(bytes, rows));
            },
            [=](const arma::fmat& rows) {
                require_length(rows.n_cols, dimension);
                return groups.encode_float(rotation->rotate(rows));
            },
            [=](std::span<const std::uint8_t> bytes, std::size_t rows) {
                return rotation->rotate_back(groups.decode_float(bytes, rows));
            }};
}

}  // namespace spiked::estimators

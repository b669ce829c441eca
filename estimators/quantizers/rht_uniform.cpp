#include "estimators/quantizers/rht_uniform.hpp"

#include "estimators/quantizers/quantizer_family.hpp"

#include <bit>
#include <memory>

#include "estimators/quantizers/kivi.hpp"

namespace spiked::estimators {

RowQuantizer rht_uniform(std::size_t dimension, unsigned bits, const RhtUniformOptions& options) {
    const RotationKind kind = std::has_single_bit(dimension) ? RotationKind::rht1 : RotationKind::fht_kac;
    const auto rotation = std::make_shared<const RowRotation>(
        row_rotation(RotationOptions{kind, options.seed, options.index}, dimension));
    const RowQuantizer groups = kivi(dimension, bits, {.group = options.group, .scales = options.scales});
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

QuantizerFamily rht_uniform_family() {
    return {{{"rht-uniform",
              "one randomised Hadamard round, then minimum and scale of groups along the row",
              {group_spec(), signed_norm_spec()},
              "Ashkboos et al. 2024 (QuaRot)",
              {"quarot", "rtn", "uniform"}},
             "code bits"},
            [](const NameOptions& named, std::size_t dimension, double bits, const QuantizerOptions& options) {
                require_signs(named, options);
                return rht_uniform(
                    dimension, static_cast<unsigned>(bits),
                    {options.seed, options.rotation_index, group_of(named, options), scalar_options(options)});
            }};
}

}  // namespace spiked::estimators

#include <bit>
#include <memory>

#include "estimators/quantizers/common_specs.hpp"
#include "estimators/quantizers/groups/kivi.hpp"
#include "estimators/quantizers/row_quantizer.hpp"

namespace spiked::estimators {
namespace {

struct RhtUniformOptions {
    stream::StudySeed seed;
    std::uint64_t index = 0;  ///< which rotation of the seed
    std::size_t group = 64;   ///< entries of a row that share a minimum and a scale
    ScalarOptions scales;
};

RotationOptions one_round(std::size_t dimension, const stream::StudySeed& seed, std::uint64_t index) {
    return {std::has_single_bit(dimension) ? RotationKind::rht1 : RotationKind::fht_kac, seed, index};
}

/// Rows rotated by a randomised Hadamard transform, then min-max groups along the row as in kivi (kivi.hpp).
///
/// Source: QuaRot (Ashkboos et al. 2024) and the KV quantization of public inference engines. One round, FHT-Kac where
/// the dimension is not a power of two; --rotation has no effect. Stored: the data of kivi along channels. Bits B + 2 f
/// / G. For 2 bits and groups of 64 the relative error is about 45 %, that of min-max groups of normal entries
/// (theory::min_max_relative_mse). Throws the errors of kivi.
RowQuantizer rht_uniform(std::size_t dimension, unsigned bits, const RhtUniformOptions& options) {
    const auto rotation =
        std::make_shared<const RowRotation>(row_rotation(one_round(dimension, options.seed, options.index), dimension));
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

}  // namespace

QuantizerFamily rht_uniform_family() {
    return {
        .entry =
            {{"rht-uniform",
              "one randomised Hadamard round, then uniform levels from minimum to maximum of each group along the row",
              {group_spec(), signed_norm_spec()},
              "Ashkboos et al. 2024 (QuaRot)",
              {"quarot", "rtn", "uniform"}},
             "code bits"},
        .make =
            [](const NameOptions& named, std::size_t dimension, double bits, const QuantizerOptions& options) {
                require_signs(named, options);
                return rht_uniform(
                    dimension, static_cast<unsigned>(bits),
                    {options.seed, options.rotation_index, group_of(named, options), scalar_options(options)});
            },
        .matrices =
            [](const NameOptions&, std::size_t dimension, double, const QuantizerOptions& options) {
                return rotation_matrix(one_round(dimension, options.seed, options.rotation_index), dimension);
            }};
}

}  // namespace spiked::estimators

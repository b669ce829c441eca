#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/json.hpp"
#include "estimators/coding/factor_codec.hpp"
#include "estimators/coding/number_format.hpp"
#include "estimators/rotations/row_rotation.hpp"
#include "sim/random/address.hpp"
#include "theory/quantization/quantizer_errors.hpp"

namespace spiked::estimators {

using CodebookKind = theory::CodebookLaw;
[[nodiscard]] CodebookKind codebook_kind(std::string_view name);  ///< throws usage_error
[[nodiscard]] std::string_view name_of(CodebookKind kind);

/// Groups of a min-max quantizer lie along the tokens of one channel (key) or along the channels of one token (value).
enum class GroupAxis { key, value };
[[nodiscard]] const std::vector<std::string>& group_axes();  ///< their names, in this order
[[nodiscard]] GroupAxis group_axis(std::string_view name);   ///< throws usage_error
[[nodiscard]] std::string_view name_of(GroupAxis axis);

struct QuantizerOptions {
    RotationKind rotation = RotationKind::haar;
    CodebookKind codebook = CodebookKind::sphere;  ///< law of a rotated coordinate: exact at this d, or its limit
    NumberFormat norm = NumberFormat::fp16;
    unsigned factor_bits = 4;  ///< per entry of a stored singular vector
    FactorCodebook factor_codebook = FactorCodebook::normal;
    bool open_loop =
        false;  ///< the residual is formed before the factors are coded, so their error stays: to show why not
    std::size_t group = 64;  ///< entries that share a scale
    GroupAxis axis = GroupAxis::value;
    std::size_t residual = 0;  ///< R, from which KIVI has how many last tokens of a sequence stay in fp16 (kept_tail)
    /// So many of the last rows instead: of a block that is a part of a sequence.
    std::optional<std::size_t> kept = {};
    stream::StudySeed seed;
    /// Of norms and group scales: allowed where rows are what a larger part left over.
    Underflow underflow = Underflow::refused;
    std::uint64_t rotation_index = 0;  ///< which rotation of the seed: one a layer, head and side
};

/// How a low-rank part is stored beside rows with these options.
[[nodiscard]] FactorOptions factor_options(const QuantizerOptions& options);

/// What of the options can change a number.
[[nodiscard]] Json quantizer_json(const QuantizerOptions& options);

}  // namespace spiked::estimators

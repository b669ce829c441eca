#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/enum_names.hpp"
#include "core/text/json.hpp"
#include "core/text/json_fields.hpp"
#include "core/text/option_spec.hpp"
#include "estimators/coding/factor_codec.hpp"
#include "estimators/coding/number_format.hpp"
#include "estimators/rotations/row_rotation.hpp"
#include "sim/random/address.hpp"
#include "theory/quantization/quantizer_errors.hpp"

namespace spiked::estimators {

using CodebookKind = theory::CodebookLaw;
[[nodiscard]] CodebookKind codebook_kind(std::string_view name);  ///< throws usage_error
[[nodiscard]] std::string_view name_of(CodebookKind kind);

/// The groups of a min-max quantizer run along the tokens of one channel (key) or along the channels of one token
/// (value).
enum class GroupAxis { key, value };
[[nodiscard]] GroupAxis group_axis(std::string_view name);  ///< throws usage_error
[[nodiscard]] std::string_view name_of(GroupAxis axis);

/// The options of a command, which it gives to all its methods at once. Each quantizer makes its own options of them
/// and of those in its name (QuantizerSpec): TurboquantOptions, KiviOptions, ... The options among the members have an
/// entry in a table in quantizer_options.cpp, from which their specs and their JSON follow.
struct QuantizerOptions {
    RotationKind rotation = RotationKind::haar;
    CodebookKind codebook = CodebookKind::sphere;  ///< law of a rotated coordinate: exact at this d, or its limit
    NumberFormat norm = NumberFormat::fp16;
    unsigned factor_bits = 4;  ///< per entry of a stored singular vector
    FactorCodebook factor_codebook = FactorCodebook::normal;
    /// The residual is formed before the factors are coded, so that their error remains; only for comparison.
    bool open_loop = false;
    std::size_t group = 64;  ///< entries that share a scale
    GroupAxis axis = GroupAxis::value;
    std::size_t residual = 0;  ///< R, which determines how many last tokens KIVI stores in fp16 (kept_tail)

    // No options: these follow from the rows.

    /// The number of last rows in fp16, instead of `residual`; for a block that is a part of a sequence.
    std::optional<std::size_t> kept = {};
    stream::StudySeed seed;
    /// Underflow of norms and group scales: allowed where rows are the residual of a larger part.
    Underflow underflow = Underflow::rejected;
    std::uint64_t rotation_index = 0;  ///< which rotation of the seed: one per layer, head and side
};

/// The rotation and the format of scalars that these options select.
[[nodiscard]] RotationOptions rotation_options(const QuantizerOptions& options);
[[nodiscard]] ScalarOptions scalar_options(const QuantizerOptions& options);
[[nodiscard]] RowRotation row_rotation(const QuantizerOptions& options, std::size_t dimension);
/// The format of a low-rank part that is stored beside rows with these options.
[[nodiscard]] FactorOptions factor_options(const QuantizerOptions& options);

/// The options that every command with a quantizer has, with their defaults: `--rotation`, `--codebook`, `--norm`,
/// `--group`, `--axis`, `--residual`, then those of low-rank parts. A quantizer lists those that have an effect on it.
[[nodiscard]] const std::vector<OptionSpec>& quantizer_option_specs();
/// Throws precondition_error for an option that is not one of them.
[[nodiscard]] const OptionSpec& quantizer_option(std::string_view key);

/// Sets the option with this key, for example `--norm`, to the name of a choice, to a whole number, or to true or false
/// for a switch. Throws usage_error for an unknown name, precondition_error for a value of another type.
void set_option(QuantizerOptions& options, std::string_view key, const Json& value);

// Options in documents. A document has the options of its list, in the order of the list, under the keys of json_key.
// Lists never change, because files are compared and read by them; a new format has a new list.

/// The options in measurements of dumps and models, whose axis is that of each tensor.
inline constexpr std::string_view options_in_stores[] = {"--rotation",        "--codebook",  "--norm",  "--factor-bits",
                                                         "--factor-codebook", "--open-loop", "--group", "--residual"};
/// The options in a `.spkv` file, whose axis is that of each tensor.
inline constexpr std::string_view options_in_containers[] = {
    "--rotation", "--codebook", "--norm", "--group", "--residual", "--factor-bits", "--factor-codebook", "--open-loop"};
inline constexpr std::string_view options_in_golden_vectors[] = {
    "--rotation", "--codebook", "--norm", "--group", "--axis", "--residual", "--factor-bits", "--factor-codebook"};

[[nodiscard]] Json quantizer_json(const QuantizerOptions& options, std::span<const std::string_view> list);
/// Reads what quantizer_json wrote with this list; other options have their defaults. Throws the input_errors of
/// JsonFields for an option that is missing, unknown or out of range.
[[nodiscard]] QuantizerOptions parse_quantizer_json(const JsonFields& fields, std::span<const std::string_view> list);

}  // namespace spiked::estimators

template <>
struct spiked::EnumNames<spiked::theory::CodebookLaw> {
    static constexpr EnumName<spiked::theory::CodebookLaw> table[] = {
        {spiked::theory::CodebookLaw::sphere, "sphere"}, {spiked::theory::CodebookLaw::normal, "normal", "gaussian"}};
};

template <>
struct spiked::EnumNames<spiked::estimators::GroupAxis> {
    static constexpr EnumName<spiked::estimators::GroupAxis> table[] = {
        {spiked::estimators::GroupAxis::key, "key"}, {spiked::estimators::GroupAxis::value, "value"}};
};

template <>
struct spiked::EnumNames<spiked::theory::SketchRows> {
    static constexpr EnumName<spiked::theory::SketchRows> table[] = {
        {spiked::theory::SketchRows::gaussian, "gaussian", "normal"},
        {spiked::theory::SketchRows::orthogonal, "orthogonal", "haar"}};
};

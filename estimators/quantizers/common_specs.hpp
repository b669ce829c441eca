#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/text/name_options.hpp"
#include "estimators/coding/row_scale.hpp"
#include "estimators/quantizers/quantizer_table.hpp"

namespace spiked::estimators {

// The specs of options that several quantizers have: first options of commands only, then options that a name may
// contain.

[[nodiscard]] OptionSpec rotation_spec();
[[nodiscard]] OptionSpec codebook_spec();
[[nodiscard]] OptionSpec norm_spec();
/// The same without log8, which has no sign; for quantizers that store minima, means or centres.
[[nodiscard]] OptionSpec signed_norm_spec();
[[nodiscard]] OptionSpec group_spec();
[[nodiscard]] OptionSpec axis_spec();
[[nodiscard]] OptionSpec residual_spec();
[[nodiscard]] OptionSpec projection_spec();
/// The choice of the scale of a row; the first choice is the default.
[[nodiscard]] OptionSpec scale_spec(const std::vector<RowScale>& choices);

/// The group and axis in the name, or those of the options.
[[nodiscard]] std::size_t group_of(const NameOptions& named, const QuantizerOptions& options);
[[nodiscard]] GroupAxis axis_of(const NameOptions& named, const QuantizerOptions& options);
/// Throws usage_error for norms in log8.
void require_signs(const NameOptions& named, const QuantizerOptions& options);

// Matrices that several quantizers have.

/// The matrix Q of a rotation, which takes a row x to Q x; none for the identity.
[[nodiscard]] NamedMatrices rotation_matrix(const RotationOptions& rotation, std::size_t dimension);
/// The part of a name that says which one of its kind a matrix is: empty for the first, else `:INDEX`.
[[nodiscard]] std::string index_suffix(std::uint64_t index);
/// The law of the levels, `sphere:8`.
[[nodiscard]] std::string codebook_text(CodebookKind codebook, std::size_t dimension);

}  // namespace spiked::estimators

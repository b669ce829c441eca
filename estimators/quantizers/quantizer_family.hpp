#pragma once
#include <string>
#include <vector>

#include "core/text/name_options.hpp"
#include "estimators/quantizers/row_quantizer.hpp"

namespace spiked::estimators {

/// An entry of the table of row quantizers: its description for users, and the function that makes a quantizer from a
/// name. Each quantizer defines its own in its own file; row_quantizer.cpp lists them.
struct QuantizerFamily {
    QuantizerEntry entry;
    /// `bits` have been checked against the entry.
    RowQuantizer (*make)(const NameOptions& named, std::size_t dimension, double bits, const QuantizerOptions& options);
    /// The number of last tokens of a sequence that are stored in fp16; null: none.
    std::size_t (*tail)(const NameOptions& named, const QuantizerOptions& options, std::size_t tokens) = nullptr;
};

// Options that several quantizers have: first options of commands only, then options that a name may contain.

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
[[nodiscard]] OptionSpec scale_spec(std::vector<std::string> choices);

/// The group and axis in the name, or those of the options.
[[nodiscard]] std::size_t group_of(const NameOptions& named, const QuantizerOptions& options);
[[nodiscard]] GroupAxis axis_of(const NameOptions& named, const QuantizerOptions& options);
/// Throws usage_error for norms in log8.
void require_signs(const NameOptions& named, const QuantizerOptions& options);

}  // namespace spiked::estimators

#pragma once
#include <string>
#include <vector>

#include "core/text/name_options.hpp"
#include "estimators/quantizers/row_quantizer.hpp"

namespace spiked::estimators {

/// An entry of the table of row quantizers: what users read of it, and how a name becomes one. Each quantizer declares
/// its own, in its own file; row_quantizer.cpp lists them.
struct QuantizerFamily {
    QuantizerEntry entry;
    /// `bits` have been checked against the entry.
    RowQuantizer (*make)(const NameOptions& named, std::size_t dimension, double bits, const QuantizerOptions& options);
    /// How many of the last tokens of a sequence stay in fp16; null: none.
    std::size_t (*tail)(const NameOptions& named, const QuantizerOptions& options, std::size_t tokens) = nullptr;
};

// Options that several quantizers have: of commands alone, then in the name.

[[nodiscard]] OptionSpec rotation_spec();
[[nodiscard]] OptionSpec codebook_spec();
[[nodiscard]] OptionSpec norm_spec();
/// Without log8, which holds no signs: of quantizers that store minima, means or centres.
[[nodiscard]] OptionSpec signed_norm_spec();
[[nodiscard]] OptionSpec group_spec();
[[nodiscard]] OptionSpec axis_spec();
[[nodiscard]] OptionSpec residual_spec();
[[nodiscard]] OptionSpec projection_spec();
/// Which scale a row has; the first choice is the default.
[[nodiscard]] OptionSpec scale_spec(std::vector<std::string> choices);

/// The group and axis in the name, or those of the options.
[[nodiscard]] std::size_t group_of(const NameOptions& named, const QuantizerOptions& options);
[[nodiscard]] GroupAxis axis_of(const NameOptions& named, const QuantizerOptions& options);
/// Throws usage_error for norms in log8.
void require_signs(const NameOptions& named, const QuantizerOptions& options);

}  // namespace spiked::estimators

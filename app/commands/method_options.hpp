#pragma once
#include "app/cli/command.hpp"
#include "estimators/quantizers/quantizer_options.hpp"

namespace spiked::app {

/// The options that every command with a quantizer takes, and their values.
[[nodiscard]] const std::vector<OptionSpec>& quantizer_options();
[[nodiscard]] estimators::QuantizerOptions read_quantizer_options(const Arguments& arguments);

/// Throws usage_error for a given option that has no effect on any of the methods.
void reject_unused_options(const Arguments& arguments, const std::vector<std::string>& methods);

/// `--residual` of commands on whole sequences.
[[nodiscard]] OptionSpec residual_option();

/// The value of `--method` of a command that takes one method. Throws usage_error.
[[nodiscard]] std::string one_method(const Arguments& arguments);

/// The bit widths; whether a method supports them is checked by the method. Throws usage_error.
[[nodiscard]] std::vector<double> read_bits(const Arguments& arguments);

}  // namespace spiked::app

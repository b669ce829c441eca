#pragma once
#include "app/command.hpp"
#include "estimators/row_quantizer.hpp"

namespace spiked::app {

/// The options that every command with a quantizer takes, and what they say.
[[nodiscard]] const std::vector<Option>& quantizer_options();
[[nodiscard]] estimators::QuantizerOptions read_quantizer_options(const Arguments& arguments);

/// `--residual` of commands on whole sequences.
[[nodiscard]] Option residual_option();

/// Bit widths; methods say which of them they take. Throws usage_error.
[[nodiscard]] std::vector<double> read_bits(const Arguments& arguments);

}  // namespace spiked::app

#pragma once
#include "app/cli/command.hpp"
#include "estimators/compressors/compressor.hpp"
#include "estimators/quantizers/quantizer_options.hpp"

namespace spiked::app {

/// The options that every command with a quantizer takes, and their values.
[[nodiscard]] const std::vector<OptionSpec>& quantizer_options();
[[nodiscard]] estimators::QuantizerOptions read_quantizer_options(const Arguments& arguments);

/// Throws usage_error for a given option that has no effect on the method, or on any of several.
void reject_unused_options(const Arguments& arguments, const estimators::MethodSpec& method);
void reject_unused_options(const Arguments& arguments, const std::vector<std::string>& methods);

/// Throws usage_error for a given --seed where the method draws nothing: a cache method without a quantizer in it.
void reject_unused_seed(const Arguments& arguments, const std::string& method);

/// An option of quantizers, whose help names those on which it has an effect where they also take it in their names.
[[nodiscard]] OptionSpec command_option(std::string_view key);

/// `--bits` with one number, and with several where all cache methods are accepted; `caches`: the names of those that
/// are.
[[nodiscard]] OptionSpec bits_option(std::string fallback, const std::vector<std::string>& caches = {});
[[nodiscard]] OptionSpec several_bits_option(std::string fallback);

/// `--residual` of commands on whole sequences.
[[nodiscard]] OptionSpec residual_option();

/// The value of `--method` of a command that takes one method. Throws usage_error.
[[nodiscard]] std::string one_method(const Arguments& arguments);

}  // namespace spiked::app

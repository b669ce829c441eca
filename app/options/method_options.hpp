#pragma once
#include "app/cli/command.hpp"
#include "estimators/caches/eviction.hpp"
#include "estimators/compressors/compressor.hpp"
#include "estimators/quantizers/quantizer_options.hpp"

namespace spiked::app {

/// The options that every command with a quantizer takes, and their values.
[[nodiscard]] const std::vector<OptionSpec>& quantizer_options();
[[nodiscard]] estimators::QuantizerOptions read_quantizer_options(const Arguments& arguments);

/// A method, and the options that have an effect on it.
struct UsedOptions {
    std::string method;  ///< as written
    std::vector<OptionSpec> options;
};
[[nodiscard]] UsedOptions used_by(const estimators::MethodSpec& method);
[[nodiscard]] UsedOptions used_by(const estimators::CacheMethod& method);
[[nodiscard]] UsedOptions used_by(const estimators::KeptAndCoded& how);

/// Throws usage_error for a given option that has no effect on any of the methods.
void reject_unused_options(const Arguments& arguments, const std::vector<UsedOptions>& methods);
/// Throws usage_error for a given --seed where the method draws no random numbers.
void reject_unused_seed(const Arguments& arguments, const std::string& method, bool draws);

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

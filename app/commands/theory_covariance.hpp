#pragma once
#include <vector>

#include "app/cli/command.hpp"

namespace spiked::app {

/// The options of `spiked theory` for samples of a spiked covariance (Johnstone's model).
[[nodiscard]] std::vector<OptionSpec> covariance_options();
/// Throws usage_error where --noise-variance is given alone, which has no effect then.
void reject_covariance_options(const Arguments& arguments);
/// `spiked theory --population`. `samples` and `features` are those of --size, 0 without it.
int run_covariance_theory(const Arguments& arguments, std::size_t samples, std::size_t features);

}  // namespace spiked::app

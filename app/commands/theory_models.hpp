#pragma once
#include <vector>

#include "app/cli/command.hpp"

namespace spiked::app {

// The models of `spiked theory` beside separable covariance. Each has options that belong to it, and one of them asks
// for it; the sizes are those of --size, 0 without it.

/// Noise with a variance profile: --variances.
[[nodiscard]] std::vector<OptionSpec> profile_options();
/// Throws usage_error where one of them but --variances is given, which has no effect alone.
void reject_profile_options(const Arguments& arguments);
int run_profile_theory(const Arguments& arguments, std::size_t rows, std::size_t columns);

/// Samples of a spiked covariance (Johnstone's model): --population.
[[nodiscard]] std::vector<OptionSpec> covariance_options();
/// Throws usage_error where --noise-variance is given alone, which has no effect then.
void reject_covariance_options(const Arguments& arguments);
int run_covariance_theory(const Arguments& arguments, std::size_t samples, std::size_t features);

}  // namespace spiked::app

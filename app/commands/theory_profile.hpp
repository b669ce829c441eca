#pragma once
#include <vector>

#include "app/cli/command.hpp"

namespace spiked::app {

/// The options of `spiked theory` for noise with a variance profile.
[[nodiscard]] std::vector<OptionSpec> profile_options();
/// Throws usage_error where one of them but --variances is given, which has no effect alone.
void reject_profile_options(const Arguments& arguments);
/// `spiked theory --variances`. `rows` and `columns` are those of --size, 0 without it.
int run_profile_theory(const Arguments& arguments, std::size_t rows, std::size_t columns);

}  // namespace spiked::app

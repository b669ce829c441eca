#pragma once
#include <string_view>
#include <vector>

#include "app/cli/command.hpp"
#include "theory/laws/quantities.hpp"

namespace spiked::app {

// The models of `spiked theory` beside separable covariance. Each has options that belong to it, and one of them asks
// for it; the sizes are those of --size, 0 without it.

/// --aspect, or the ratio of the sizes. Throws usage_error where neither is given; `of` says what it is a ratio of.
[[nodiscard]] AspectRatio read_aspect(const Arguments& arguments, std::size_t rows, std::size_t columns,
                                      std::string_view of = "rows over columns",
                                      std::string_view example = "--aspect 0.5 or --size 64x128");

/// Noise with a variance profile: --variances.
[[nodiscard]] std::vector<OptionSpec> profile_options();
int run_profile_theory(const Arguments& arguments, std::size_t rows, std::size_t columns);

/// Samples of a spiked covariance (Johnstone's model): --population.
[[nodiscard]] std::vector<OptionSpec> covariance_options();
int run_covariance_theory(const Arguments& arguments, std::size_t samples, std::size_t features);

/// Symmetric and Hermitian matrices (the spiked Wigner model): --symmetric.
[[nodiscard]] std::vector<OptionSpec> symmetric_theory_options();
/// Throws usage_error for a strength below 0, which this model alone has.
void reject_negative_strengths(const Arguments& arguments);
int run_symmetric_theory(const Arguments& arguments, std::size_t rows, std::size_t columns);

}  // namespace spiked::app

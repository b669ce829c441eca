#pragma once
#include <optional>
#include <string>
#include <vector>

#include "app/cli/command.hpp"
#include "validation/claims/claims.hpp"
#include "validation/store/sqlite.hpp"

namespace spiked::app {

/// The claims that can be judged and replayed from a store of claims: those of this program, and those on dumps of the
/// store that are where they were, with the content that was judged. Prints a note for each other dump. Empty for a
/// store of another kind.
[[nodiscard]] std::vector<validation::Claim> claims_of(const Arguments& arguments, validation::Database& store);

/// The option --false-alarm RATE of a command on finished stores.
[[nodiscard]] OptionSpec false_alarm_option(std::string what);

/// The rate of --false-alarm, if it is given. Throws usage_error for one that is no probability.
[[nodiscard]] std::optional<double> false_alarm_of(const Arguments& arguments);

/// A store, judged again where --false-alarm is given. Throws usage_error where it holds nothing to judge.
[[nodiscard]] validation::Database open_judged(const Arguments& arguments, const std::string& path);

}  // namespace spiked::app

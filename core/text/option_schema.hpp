#pragma once
#include "core/text/json.hpp"
#include "core/text/option_spec.hpp"

namespace spiked {

/// The description of an option for programs, an object with
///   key      as written: `margin`, `--bits`; empty for the value that follows a name
///   where    `value`: directly after a name, svd:1; `word`: a bare word in a name; `key`: key=value in a name, or
///            a key of a table in a study; `command`: an option of commands
///   type     `switch` (no value), `text`, `integer`, `number` or `choice`
///   default  as the help shows it, a text such as `4` or `p^(-1/3)`; null where there is none
///   help     a phrase, may be empty
/// and, only where they apply,
///   value                the value as the help writes it: `M`, `p|d|K`
///   choices              the names that are accepted; with `other_values`: true, other values too, which are of
///                        `other_type`: `text`, `integer` or `number`
///   minimum, exclusive_minimum, maximum, exclusive_maximum   the limits of numbers
///   list                 true: several values, separated by commas
///   names                the lists of `spiked list` that hold accepted names
///   suffixes             of the files that are accepted
///   repeatable           true: may be given more than once
///   command_option       the option of commands with the same effect, `--group`
[[nodiscard]] Json option_schema(const OptionSpec& option);

/// The same of several options, as an array.
[[nodiscard]] Json option_schema(const std::vector<OptionSpec>& options);

}  // namespace spiked

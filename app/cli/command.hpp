#pragma once
#include <cstddef>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text/json.hpp"
#include "core/text/option_spec.hpp"

namespace spiked::app {

/// The arguments of one call, checked against the options of its command.
class Arguments {
public:
    std::vector<std::string> positionals;
    std::map<std::string, std::vector<std::string>> given;
    std::map<std::string, std::string> fallbacks;

    [[nodiscard]] bool has(std::string_view option) const { return given.contains(std::string(option)); }
    /// Returns the given value or the default; empty when there is neither.
    [[nodiscard]] std::string text(std::string_view option) const;
    /// Returns every value of a repeatable option, split at commas.
    [[nodiscard]] std::vector<std::string> list(std::string_view option) const;
    // For options whose specs accept such numbers only, and which are given or have a default.

    [[nodiscard]] double number(std::string_view option) const;
    [[nodiscard]] std::vector<double> numbers(std::string_view option) const;
    [[nodiscard]] std::size_t count(std::string_view option) const;
    [[nodiscard]] std::vector<std::size_t> counts(std::string_view option) const;
    [[nodiscard]] bool json() const { return has("--json"); }
    [[nodiscard]] bool verbose() const { return has("--verbose"); }
    [[nodiscard]] bool quiet() const { return has("--quiet"); }
};

/// A subcommand as data; `run` returns the exit code.
struct Command {
    std::string name;  ///< one or two words
    std::string summary;
    std::vector<std::string> examples;
    ValueSpec positionals;  ///< of every positional argument
    std::size_t least_positionals = 0;
    std::size_t most_positionals = 0;
    std::vector<OptionSpec> options;
    int (*run)(const Arguments&);
    std::vector<std::string> positional_names = {};  ///< where each has one of its own; else all are positionals.shown
    std::string topic = {};                          ///< its heading in the help on all commands
};

/// The positional arguments as the usage line shows them: `STORE.spiked...`, `[DUMP...]`, `A.spiked B.spiked`.
[[nodiscard]] std::string positional_form(const Command& command);

/// Every subcommand, in the order of the help.
[[nodiscard]] const std::vector<Command>& commands();

/// Options that every command takes.
[[nodiscard]] const std::vector<OptionSpec>& common_options();

/// The options of a command: its own, then the common ones.
[[nodiscard]] std::vector<OptionSpec> all_options(const Command& command);

/// Parses the arguments after the name of the command. Throws usage_error, which suggests the nearest option or value,
/// for arguments that the specs do not accept.
[[nodiscard]] Arguments parse(const Command& command, const std::vector<std::string>& words);

[[nodiscard]] std::string help(const Command& command);
/// The help on all commands, or on those of a group (`kv`, `bench`).
[[nodiscard]] std::string overview(const std::string& group = "");
/// All commands for programs (`spiked help --json`): names, summaries, examples, numbers of positional arguments,
/// options (option_schema) and helps without the common options, which stand at the end.
[[nodiscard]] Json commands_json();

/// Writes text for people to standard output, wrapped to the width of a terminal, and checks that it was written;
/// control characters become `?`. Throws output_error.
void print_text(std::string_view text);
/// The same for data that programs read: every byte is written as it is.
void print_data(std::string_view text);
void print_json(const Json& document);

/// Throws usage_error when an output file would replace another file that the command reads or writes.
void keep_apart(const std::string& output, const std::string& other);

/// The options of all groups, in their order.
[[nodiscard]] std::vector<OptionSpec> joined(std::initializer_list<std::vector<OptionSpec>> groups);

/// Lets the option exclude all others of the list but those in `kept` and those that need it: the option of a model of
/// its own, for which only few of the others mean something.
void exclude_others(std::vector<OptionSpec>& options, std::string_view name, const std::vector<std::string>& kept,
                    const std::string& why);

/// `--device`; without a fallback a command does something else where it is not given.
[[nodiscard]] OptionSpec device_option(std::string help, std::string fallback = "");
/// `--plot`, a picture of this.
[[nodiscard]] OptionSpec plot_option(const std::string& what);
/// `--threads`; `what` is what does not depend on it, with its verb.
[[nodiscard]] OptionSpec threads_option(std::string_view what = "results do", std::string fallback = "0");

/// Prints a note on standard error, unless --quiet is given.
void print_note(const Arguments& arguments, std::string_view text);

}  // namespace spiked::app

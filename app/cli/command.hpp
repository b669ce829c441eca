#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text/json.hpp"
#include "core/text/option_spec.hpp"

namespace spiked::app {

/// The words of one call, checked against the command's options.
class Arguments {
public:
    std::vector<std::string> positionals;
    std::map<std::string, std::vector<std::string>> given;
    std::map<std::string, std::string> fallbacks;

    [[nodiscard]] bool has(std::string_view option) const { return given.contains(std::string(option)); }
    /// The value given or the fallback; empty when there is neither.
    [[nodiscard]] std::string text(std::string_view option) const;
    /// Every value of a repeatable option, split at commas.
    [[nodiscard]] std::vector<std::string> list(std::string_view option) const;
    /// Throw usage_error naming the option when the text is no such number.
    [[nodiscard]] double number(std::string_view option) const;
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
    ValueSpec positionals;  ///< `shown` stands in the usage line
    std::size_t least_positionals = 0;
    std::size_t most_positionals = 0;
    std::vector<OptionSpec> options;
    int (*run)(const Arguments&);
};

/// Every subcommand, in the order of the help.
[[nodiscard]] const std::vector<Command>& commands();

/// Options every command takes.
[[nodiscard]] const std::vector<OptionSpec>& common_options();

/// Those of a command: its own, then the common ones.
[[nodiscard]] std::vector<OptionSpec> all_options(const Command& command);

/// Parses the words after the command's name. Throws usage_error with the nearest legal option, or word of one.
[[nodiscard]] Arguments parse(const Command& command, const std::vector<std::string>& words);

[[nodiscard]] std::string help(const Command& command);
/// Of all commands, or of those of a group: `kv`, `bench`.
[[nodiscard]] std::string overview(const std::string& group = "");
/// What each exit code means.
[[nodiscard]] const std::vector<std::pair<int, std::string>>& exit_codes();

/// Writes lines for people to standard output and makes sure they arrived; what a terminal would obey becomes `?`.
/// Throws write_error.
void print_text(std::string_view text);
/// The same for what programs read: every byte as it is.
void print_data(std::string_view text);
void print_json(const Json& document);

/// Throws usage_error when an output would replace something the command reads or keeps.
void keep_apart(const std::string& output, const std::string& other);

/// A remark for a person, on standard error, unless --quiet.
void print_note(const Arguments& arguments, std::string_view text);

}  // namespace spiked::app

#include "app/cli/command.hpp"

#include <fmt/ranges.h>

#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <utility>

#include "app/cli/exit_code.hpp"
#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "core/text/option_schema.hpp"
#include "core/text/printable.hpp"
#include "core/text/terminal.hpp"
#include "core/text/wrapping.hpp"

namespace spiked::app {
namespace {

constexpr std::size_t help_width = 80;
constexpr std::size_t help_indent = 32;  ///< column in which the description of an option begins

/// An option and its description, broken between words.
std::string option_lines(const OptionSpec& option) {
    std::string line = "  " + option.key;
    if (!option.value.shown.empty()) line = wrapped_text(line + " ", option.value.shown, help_width, 4);
    std::string text;
    if (line.size() > help_indent - 2) text = std::exchange(line, "") + "\n";
    line.resize(help_indent, ' ');
    const std::string fallback = option.fallback.empty() ? "" : fmt::format(" [{}]", option.fallback);
    return text + wrapped_text(line, option.help + fallback, help_width, help_indent) + "\n";
}

std::string option_lines(const std::vector<OptionSpec>& options) {
    std::string text;
    for (const auto& option : options) text += option_lines(option);
    return text;
}

/// The options under their headings; those without one come first.
std::string grouped_options(const std::vector<OptionSpec>& options) {
    std::vector<std::string> headings{""};
    for (const auto& option : options)
        if (std::find(headings.begin(), headings.end(), option.group) == headings.end())
            headings.push_back(option.group);
    std::string text;
    for (const auto& heading : headings) {
        std::string lines;
        for (const auto& option : options)
            if (option.group == heading) lines += option_lines(option);
        if (!lines.empty()) text += (heading.empty() ? "Options" : heading) + "\n" + lines + "\n";
    }
    return text;
}

std::string usage(const Command& command) {
    const std::string form = positional_form(command);
    return fmt::format("spiked {} {}[options]", command.name, form.empty() ? "" : form + " ");
}

/// An example, where it is too long in several lines that a shell joins: each but the first begins with an option or a
/// command that follows.
std::string example_lines(const std::string& example) {
    std::string text;
    std::string line = "  ";
    bool quoted = false;
    std::string part;
    const auto add = [&] {
        if (line.size() + part.size() + 2 > help_width && line.size() > 6) {
            text += line.substr(0, line.find_last_not_of(' ') + 1) + " \\\n";
            line = "      ";
        }
        line += std::exchange(part, "");
    };
    for (std::size_t at = 0; at < example.size(); ++at) {
        quoted = quoted != (example[at] == '\'');
        const bool begins = !quoted && at > 0 && example[at - 1] == ' ' && (example[at] == '-' || example[at] == '&');
        if (begins) add();
        part += example[at];
    }
    add();
    return text + line + "\n";
}

/// The help without the common options.
std::string own_help(const Command& command) {
    std::string text = wrapped_text("", command.summary, help_width, 0) + "\n\nExamples\n";
    for (const auto& example : command.examples) text += example_lines(example);
    text += "\nUsage\n" + wrapped_text("  ", usage(command), help_width, 6) + "\n\n";
    return text + grouped_options(command.options);
}

[[noreturn]] void reject_option(const Command& command, const std::string& written) {
    std::vector<std::string> legal;
    for (const auto& option : all_options(command)) legal.push_back(long_name(option));
    std::vector<std::string> owners;
    for (const auto& other : commands())
        for (const auto& option : other.options)
            if (long_name(option) == written) owners.push_back(other.name);
    if (!owners.empty() && nearest(written, legal) == std::nullopt)
        throw usage_error("{}: {} is an option of {}, not of this command: see spiked {} --help", command.name, written,
                          fmt::join(owners, ", "), command.name);
    throw usage_error("{}: unknown option \"{}\"{}", command.name, written, suggestion(written, legal));
}

[[noreturn]] void reject_missing_value(const Command& command, const OptionSpec& option) {
    throw usage_error("{}: {} has no value: write {} {}", command.name, long_name(option), long_name(option),
                      option.value.shown);
}

/// The suffix of a file name (`.npz` of `folder/data.npz:x`) if some command reads or writes such files, else "".
std::string known_suffix(const std::string& path) {
    static const std::set<std::string> known = [] {
        std::set<std::string> all = {".json", ".tex"};
        for (const auto& command : commands()) {
            all.insert(command.positionals.suffixes.begin(), command.positionals.suffixes.end());
            for (const auto& option : command.options)
                all.insert(option.value.suffixes.begin(), option.value.suffixes.end());
        }
        return all;
    }();
    const std::string file = std::filesystem::path(path).filename().string();
    const std::size_t dot = file.rfind('.', file.find(':'));
    if (dot == std::string::npos || dot == 0) return "";
    std::string suffix = file.substr(dot, file.find(':', dot) - dot);
    return known.contains(suffix) ? suffix : "";
}

bool is_other_kind(const std::string& path, const std::vector<std::string>& legal) {
    const std::string suffix = known_suffix(path);
    return !legal.empty() && !suffix.empty() && std::find(legal.begin(), legal.end(), suffix) == legal.end();
}

/// Whether the suffix is one that other programs use for plain text or bytes. No option expects such a file.
bool is_plain_file(const std::string& path) {
    return path.ends_with(".txt") || path.ends_with(".bin") || path.ends_with(".dat");
}

/// Throws when a file has the wrong kind for the command, as in `show data.npy`; the message names the commands that
/// read such a file.
void reject_other_kind(const Command& command, const std::string& path) {
    if (!is_other_kind(path, command.positionals.suffixes)) return;
    std::vector<std::string> readers;
    for (const auto& other : commands()) {
        const auto& read = other.positionals.suffixes;
        if (std::find(read.begin(), read.end(), known_suffix(path)) != read.end()) readers.push_back(other.name);
    }
    const auto& own = command.positionals.suffixes;
    const auto reads = [&](const char* suffix) { return std::find(own.begin(), own.end(), suffix) != own.end(); };
    // The reader of matrices knows more about such a file than its suffix says.
    if (readers.empty() && reads(".npy") && std::filesystem::exists(path)) return;
    const std::string message =
        fmt::format("{}: {} stands where {} is expected{}", command.name, path, positional_form(command),
                    readers.empty() ? ": name a file of that kind"
                                    : fmt::format(" ({} is read by {}): name a file of that kind", known_suffix(path),
                                                  fmt::join(readers, ", ")));
    throw Error(reads(".toml") ? ErrorKind::usage : ErrorKind::input, message);
}

/// The options and positionals as written, without a check of their values.
Arguments read_words(const Command& command, const std::vector<OptionSpec>& options,
                     const std::vector<std::string>& words) {
    CLI::App app;
    app.set_help_flag("");
    app.allow_extras();
    Arguments arguments;
    std::map<std::string, CLI::Option*> handles;
    std::map<std::string, std::vector<std::string>> values;
    for (const auto& option : options) {
        const std::string name = long_name(option);
        if (option.value.kind == ValueSpec::Kind::none)
            handles[name] = app.add_flag(option.key)->disable_flag_override();
        else
            handles[name] = app.add_option(option.key, values[name])->expected(1)->take_all()->allow_extra_args(false);
        if (!option.fallback.empty()) arguments.fallbacks[name] = option.fallback;
    }
    try {
        app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    } catch (const CLI::ArgumentMismatch& error) {
        for (const auto& option : options)
            if (std::string_view(error.what()).starts_with(long_name(option) + ":") &&
                option.value.kind != ValueSpec::Kind::none)
                reject_missing_value(command, option);
        throw usage_error("{}: {}: see spiked {} --help", command.name, error.what(), command.name);
    } catch (const CLI::ParseError& error) {
        throw usage_error("{}: {}: see spiked {} --help", command.name, error.what(), command.name);
    }
    for (const auto& option : options) {
        const std::string name = long_name(option);
        if (handles[name]->count() == 0) continue;
        arguments.given[name] = values[name];
        // The next option was taken as the value, or a shell variable was empty.
        for (const auto& value : values[name])
            if (value.empty() || handles.contains(value)) reject_missing_value(command, option);
        if (option.value.kind != ValueSpec::Kind::none && !option.repeatable && values[name].size() > 1)
            throw usage_error("{}: {} was given {} times (it takes one value): give it once", command.name, name,
                              values[name].size());
    }
    for (const auto& word : app.remaining()) {
        if (word.size() > 1 && word.front() == '-' && !to_number(word)) {
            reject_option(command, word.substr(0, word.find('=')));
        }
        arguments.positionals.push_back(word);
    }
    return arguments;
}

/// Rejects the second value of `--bits 2 3`, where a comma is missing.
void reject_lone_values(const Command& command, const std::vector<OptionSpec>& options,
                        const std::vector<std::string>& words) {
    // In `--bits 2 3` the 3 is not a file, and neither is a name without a suffix.
    const auto is_file = [](const std::string& word) {
        std::error_code none;
        return word.find_first_of("./") != std::string::npos || std::filesystem::exists(word, none);
    };
    for (std::size_t at = 2; at < words.size(); ++at)
        for (const auto& option : options)
            if (option.repeatable && words[at - 2] == long_name(option) && !words[at].starts_with("-") &&
                (to_number(words[at]) ||
                 (option.value.list && !command.positionals.suffixes.empty() && !is_file(words[at]))))
                throw usage_error("{}: \"{}\" stands alone (several values are one argument): write {} {}{}{}",
                                  command.name, words[at], words[at - 2], words[at - 1],
                                  words[at - 1].ends_with(',') ? "" : ",", words[at]);
}

/// Rejects options whose value is a file of another kind.
void reject_other_files(const Command& command, const std::vector<OptionSpec>& options, const Arguments& arguments) {
    for (const auto& option : options) {
        const auto& legal = option.value.suffixes;
        const auto given = arguments.given.find(long_name(option));
        if (given == arguments.given.end()) continue;
        for (const auto& path : given->second)
            if (is_other_kind(path, legal) || (!legal.empty() && is_plain_file(path)))
                throw usage_error("{}: {} stands where {} is expected: {}FILE{}", command.name, path,
                                  option.value.shown, std::filesystem::exists(path) ? "give a " : "name it ",
                                  legal.front());
    }
}

/// Rejects values that the specs of the positionals and options do not accept.
void reject_other_values(const Command& command, const std::vector<OptionSpec>& options, const Arguments& arguments) {
    const std::string place = command.name + ": ";
    for (const auto& one : arguments.positionals) require_accepted({"", command.positionals}, one, place);
    for (const auto& option : options) {
        const std::string name = long_name(option);
        if (!arguments.has(name)) continue;
        for (const auto& one : option.value.list ? arguments.list(name) : arguments.given.at(name))
            require_accepted(option, one, place);
    }
}

/// The option with this name as users write it: `--size NxD`.
std::string with_value(const std::vector<OptionSpec>& options, const std::string& name) {
    for (const auto& option : options)
        if (long_name(option) == name && !option.value.shown.empty()) return name + " " + option.value.shown;
    return name;
}

/// Rejects options that cannot be given together, and those that have no effect without another.
void reject_combinations(const std::vector<OptionSpec>& options, const Arguments& arguments) {
    const auto given = [&](const std::string& key) {
        return key.starts_with('-') ? arguments.has(key) : !arguments.positionals.empty();
    };
    const auto each_given = [&](const auto& visit) {
        for (const auto& option : options)
            if (const std::string name = long_name(option); arguments.has(name)) visit(name, option);
    };
    each_given([&](const std::string& name, const OptionSpec& option) {
        for (const auto& other : option.excludes.keys)
            if (given(other))
                throw usage_error("{} and {} exclude each other ({}): leave one of them out", other, name,
                                  option.excludes.why);
    });
    each_given([&](const std::string& name, const OptionSpec& option) {
        for (const auto& other : option.needs.keys)
            if (!given(other))
                throw usage_error("{} has no effect without {} ({}): add {}, or leave {} out", name, other,
                                  option.needs.why, with_value(options, other), name);
    });
}

}  // namespace

std::string positional_form(const Command& command) {
    if (!command.positional_names.empty()) return fmt::format("{}", fmt::join(command.positional_names, " "));
    if (command.positionals.shown.empty()) return "";
    const std::string form = command.positionals.shown + (command.most_positionals > 1 ? "..." : "");
    return command.least_positionals == 0 ? "[" + form + "]" : form;
}

std::vector<OptionSpec> joined(std::initializer_list<std::vector<OptionSpec>> groups) {
    std::vector<OptionSpec> all;
    for (const auto& group : groups) all.insert(all.end(), group.begin(), group.end());
    return all;
}

std::vector<OptionSpec> all_options(const Command& command) { return joined({command.options, common_options()}); }

const std::vector<OptionSpec>& common_options() {
    static const std::vector<OptionSpec> options = {
        {"--json", {}, "print one JSON document instead of text"},
        {"-q,--quiet", {}, "no progress, no notes"},
        {"-v,--verbose", {}, "also say what build this is and how long it took"},
        {"--progress", one_of({"auto", "bar", "lines", "none"}), "how to show progress", "auto"},
        {"--color", one_of({"auto", "always", "never"}), "colour on a terminal; NO_COLOR turns it off", "auto"},
        {"-h,--help", {}, "this text"},
    };
    return options;
}

Arguments parse(const Command& command, const std::vector<std::string>& words) {
    const std::vector<OptionSpec> options = all_options(command);
    Arguments arguments = read_words(command, options, words);
    if (arguments.has("--help")) return arguments;
    if (const std::size_t given = arguments.positionals.size(); given < command.least_positionals)
        throw usage_error(
            "{}: {} is missing: usage is {}", command.name,
            command.positional_names.empty() ? command.positionals.shown : command.positional_names[given],
            usage(command));
    reject_lone_values(command, options, words);
    if (arguments.positionals.size() > command.most_positionals)
        throw usage_error("{}: \"{}\" is one argument too many: usage is {}", command.name,
                          arguments.positionals[command.most_positionals], usage(command));
    for (const auto& path : arguments.positionals) reject_other_kind(command, path);
    reject_other_files(command, options, arguments);
    reject_other_values(command, options, arguments);
    reject_combinations(options, arguments);
    return arguments;
}

std::string help(const Command& command) {
    return own_help(command) + "Common options\n" + option_lines(common_options());
}

Json commands_json() {
    Json all = Json::array();
    for (const auto& command : commands())
        all.push(Json::object({{"name", command.name},
                               {"summary", command.summary},
                               {"examples", Json::Array(command.examples.begin(), command.examples.end())},
                               {"usage", usage(command)},
                               {"least_arguments", command.least_positionals},
                               {"most_arguments", command.most_positionals},
                               {"options", option_schema(command.options)},
                               {"help", own_help(command)}}));
    Json codes = Json::array();
    for (const auto& [code, meaning] : exit_codes)
        codes.push(Json::object({{"code", static_cast<int>(code)}, {"meaning", std::string(meaning)}}));
    return Json::object({{"schema", "spiked.commands/1"},
                         {"commands", std::move(all)},
                         {"common_options", option_schema(common_options())},
                         {"common_help", option_lines(common_options())},
                         {"exit_codes", std::move(codes)}});
}

std::string overview(const std::string& group) {
    std::string text = group.empty()
                           ? "spiked: find the components of a noisy matrix, compress KV caches with every\n"
                             "stored bit counted, and test statements of random matrix theory by simulation.\n\n"
                             "Examples\n"
                             "  spiked spectrum data.csv\n"
                             "  spiked kv frontier dump.safetensors --layers 0 --at 2.5\n"
                           : fmt::format("spiked {} COMMAND\n\nCommands\n", group);
    std::string topic;
    for (const auto& command : commands()) {
        if (!group.empty() && !command.name.starts_with(group + " ")) continue;
        if (group.empty() && command.topic != topic) text += "\n" + command.topic + "\n";
        topic = command.topic;
        text += wrapped_text(fmt::format("  {:<17}", command.name), command.summary, help_width, 19) + "\n";
    }
    text += "\nspiked COMMAND --help shows examples first. spiked --version [--json] says what\nthis build is.\n";
    std::string codes;
    for (const auto& [code, meaning] : exit_codes)
        codes += fmt::format("{}{} {}", code == ExitCode::fine ? "" : ", ", static_cast<int>(code), meaning);
    return text + wrapped_text("Exit codes: ", codes + ".", help_width, 12) + "\n";
}

void print_text(std::string_view text) { print_data(wrapped_lines(without_control_characters(text), table_columns())); }

void print_data(std::string_view text) {
    errno = 0;
    const bool whole = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
    if (whole && std::fflush(stdout) == 0) return;
    // A reader such as head closes the pipe early and has all it needs, so only the exit code reports it.
    if (errno == EPIPE) throw Error(ErrorKind::output, "");
    throw output_error("standard output cannot be written ({}): free space or choose another target",
                       std::strerror(errno));
}

void print_json(const Json& document) { print_data(document.text(2) + "\n"); }

OptionSpec device_option(std::string help, std::string fallback) {
    return {"--device", one_of_or({"auto", "cpu", "emulated"}, "cuda:0"), std::move(help), std::move(fallback)};
}

void exclude_others(std::vector<OptionSpec>& options, std::string_view name, const std::vector<std::string>& kept,
                    const std::string& why) {
    OtherOptions others{.why = why};
    const auto holds = [](const std::vector<std::string>& keys, std::string_view key) {
        return std::ranges::find(keys, key) != keys.end();
    };
    for (const auto& option : options)
        if (const std::string key = long_name(option);
            key != name && !holds(kept, key) && !holds(option.needs.keys, name))
            others.keys.push_back(key);
    for (auto& option : options)
        if (long_name(option) == name) option.excludes = others;
}

OptionSpec plot_option(const std::string& what) {
    return {"--plot", file_with({".svg", ".png", ".pdf"}), what + ": .svg, .png or .pdf"};
}

OptionSpec threads_option(std::string_view what, std::string fallback) {
    return {"--threads", whole("N"),
            fmt::format("threads to compute with, 0: one for each processor; {} not depend on it", what),
            std::move(fallback)};
}

void keep_apart(const std::string& output, const std::string& other) {
    namespace fs = std::filesystem;
    if (output.empty() || other.empty() || other == ":memory:") return;
    std::error_code absent;
    const bool same = fs::equivalent(output, other, absent) ||
                      fs::absolute(output).lexically_normal() == fs::absolute(other).lexically_normal();
    if (same)
        throw usage_error("{}: writing there would destroy {} (they are one file): choose another name", output, other);
}

void print_note(const Arguments& arguments, std::string_view text) {
    if (arguments.quiet()) return;
    const std::string lines = wrapped_lines(without_control_characters(text), terminal_columns(STDERR_FILENO));
    std::fprintf(stderr, "%s\n", lines.c_str());
}

}  // namespace spiked::app

#include "app/cli/entry.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <map>
#include <new>

#include "app/cli/build_info.hpp"
#include "app/cli/command.hpp"
#include "app/cli/exit_code.hpp"
#include "app/cli/stop_requests.hpp"
#include "core/files/mapped_file.hpp"
#include "core/runtime/blas_buffers.hpp"
#include "core/runtime/error.hpp"
#include "core/runtime/memory.hpp"
#include "core/text/names.hpp"
#include "core/text/printable.hpp"
#include "core/text/terminal.hpp"

namespace spiked::app {
namespace {

bool flag(const std::vector<std::string>& words, std::string_view name) {
    return std::find(words.begin(), words.end(), name) != words.end();
}

/// Whether the word is the first word of several commands, as `kv` is of `kv run`.
bool is_group(const std::string& word) {
    const auto& all = commands();
    return std::any_of(all.begin(), all.end(), [&](const Command& one) { return one.name.starts_with(word + " "); });
}

bool asks_for_help(const std::string& word) { return word == "-h" || word == "--help" || word == "help"; }

/// The command whose name is the first one or two words.
const Command& find_command(std::vector<std::string>& words) {
    const bool grouped = is_group(words.front()) && words.size() > 1;
    std::vector<std::string> names;
    for (const auto& command : commands()) {
        const auto parts = split(command.name, ' ');
        if (words.size() >= parts.size() && std::equal(parts.begin(), parts.end(), words.begin())) {
            words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(parts.size()));
            return command;
        }
        if (!grouped || command.name.starts_with(words.front() + " ")) names.push_back(command.name);
    }
    if (words.front().starts_with("-")) {
        const auto command = std::find_if(words.begin(), words.end(), [&](const auto& word) {
            return is_group(word) || std::find(names.begin(), names.end(), word) != names.end();
        });
        if (command != words.end())
            throw usage_error("{} stands before the command: write spiked {} first and its options after it",
                              words.front(), *command);
        const std::vector<std::string> alone = {"--help", "--version"};
        throw usage_error("{} is no command{}", words.front(), suggestion(words.front(), alone));
    }
    const std::string written = words.front() + (grouped ? " " + words[1] : "");
    // `inspect` stands for `kv inspect`, and `version` for `--version`.
    std::map<std::string, std::string> meant = {{"help", "help"}, {"version", "--version"}};
    for (const auto& name : names) meant.emplace(name.substr(name.find(' ') + 1), name);
    for (const auto& name : names) meant[name] = name;
    std::vector<std::string> words_known;
    for (const auto& [word, name] : meant) words_known.push_back(word);
    const auto near = nearest(written, words_known);
    throw usage_error("unknown command \"{}\"{}", written,
                      near ? fmt::format("; did you mean \"{}\"?", meant.at(*near)) : suggestion("", names));
}

int dispatch(std::vector<std::string> words) {
    if (words.size() == 2 && asks_for_help(words.front()) && words.back() == "--json") {
        print_json(commands_json());
        return 0;
    }
    if (words.size() > 1 && words.front() == "help") {
        words.erase(words.begin());
        if (!is_group(words.front()) || words.size() > 1) words.emplace_back("--help");
    }
    if (words.empty() || asks_for_help(words.front())) {
        print_text(overview());
        return 0;
    }
    if (is_group(words.front()) && (words.size() == 1 || asks_for_help(words[1]))) {
        print_text(overview(words.front()));
        return 0;
    }
    if (flag(words, "--version")) {
        if (flag(words, "--json"))
            print_json(build_json());
        else
            print_text(version_line());
        return 0;
    }
    const Command& command = find_command(words);
    const Arguments arguments = parse(command, words);
    if (arguments.has("--help")) {
        print_text(help(command));
        return 0;
    }
    leave_stop_requests();
    if (arguments.verbose())
        print_note(arguments, version_line() + "BLAS: " + blas_description() + ", " + blas_threads());
    const auto start = std::chrono::steady_clock::now();
    hold_blas_buffers(1);
    const int code = command.run(arguments);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (arguments.verbose()) print_note(arguments, fmt::format("exit {} after {:.2f} s", code, took.count()));
    return code;
}

/// Shortens a long message: it may quote text of any length from a user or a file.
std::string cut(std::string line) {
    constexpr std::size_t longest = 2000;
    if (line.size() <= longest) return line;
    line.resize(longest);
    trim_partial_character(line);
    return line + " ...";
}

int report(bool json, bool colour, ExitCode code, const std::string& message, bool lines = false) {
    if (message.empty()) return static_cast<int>(code);
    std::vector<std::string> parts = split(lines ? message : one_line(message), '\n');
    for (auto& part : parts) part = cut(without_control_characters(part));
    const std::string shown = fmt::format("{}", fmt::join(parts, "\n"));
    // fputs, because fmt::print throws when nothing can be written; the exit code still reports the error.
    std::fputs(fmt::format("{}spiked:{} {}\n", colour ? "\033[31m" : "", colour ? "\033[0m" : "", shown).c_str(),
               stderr);
    if (json && code != ExitCode::cannot_write)
        std::puts(
            Json::object({{"schema", "spiked.error/1"}, {"exit_code", static_cast<int>(code)}, {"error", message}})
                .text(2)
                .c_str());
    return static_cast<int>(code);
}

bool wants_colour(const std::vector<std::string>& words) {
    if (flag(words, "--color=never") || std::getenv("NO_COLOR") != nullptr) return false;
    for (std::size_t i = 0; i + 1 < words.size(); ++i)
        if (words[i] == "--color" && words[i + 1] != "auto") return words[i + 1] == "always";
    return flag(words, "--color=always") || isatty(STDERR_FILENO) != 0;
}

/// Opens /dev/null in place of closed standard streams. A file gets the first free descriptor, so that otherwise
/// messages for a closed stream would go into the next file that is opened. The mode is the opposite of the stream's,
/// so that using it fails as it would on a closed stream.
void keep_standard_streams() {
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (fcntl(stream, F_GETFD) < 0) (void)open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

/// Raises the limit on open files: every dump of a study stays open, and shells allow fewer files than the system does.
void allow_many_files() {
    constexpr rlim_t least = 32;  // a store, its journal and lock, the libraries
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    if (limit.rlim_max < least)
        throw usage_error("{} files may be open at once ({} are needed): raise ulimit -n", limit.rlim_max, least);
    limit.rlim_cur = std::max(limit.rlim_cur, std::min<rlim_t>(limit.rlim_max, 1 << 20));
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

std::string memory_message() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return fmt::format(
        "out of memory (more needed beside the {} MiB in use, {} MiB allowed): raise the limit or use less data",
        usage.ru_maxrss >> 10, allowed_memory() >> 20);
}

}  // namespace

int run_command_line(int argc, char** argv) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    const bool json = flag(words, "--json");
    const bool colour = wants_colour(words);
    keep_standard_streams();
    // Without these signals a failed write returns an error, which is reported in a message.
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGXFSZ, SIG_IGN);
    end_where_mapped_files_shrink(static_cast<int>(ExitCode::unusable_input));
    remember_command_line(argc, argv);
    set_table_columns(terminal_columns(STDOUT_FILENO));
    use_one_blas_thread();
    try {
        allow_many_files();
        return dispatch(words);
    } catch (const Errors& error) {
        return report(json, colour, exit_code(error.kind()), error.what(), true);
    } catch (const Error& error) {
        const std::string advice = error.kind() == ErrorKind::internal ? ": please report it with the command" : "";
        return report(json, colour, exit_code(error.kind()), error.what() + advice);
    } catch (const std::bad_alloc&) {
        return report(json, colour, ExitCode::out_of_memory, memory_message());
    } catch (const std::filesystem::filesystem_error& error) {
        const std::string path = error.path1().string();
        return report(json, colour, ExitCode::unusable_input,
                      fmt::format("{}: cannot be reached ({}): check the path, its folders and their permissions",
                                  path.empty() ? "the current folder" : path, error.code().message()));
    } catch (const std::exception& error) {
        return report(json, colour, ExitCode::internal_error,
                      fmt::format("unexpected: {}: please report it with the command", error.what()));
    }
}

}  // namespace spiked::app

#pragma once
#include <fmt/core.h>

#include <stdexcept>
#include <string>

namespace spiked {

/// What the process tells its caller; the numbers are part of the interface.
enum class ExitCode : int {
    fine = 0,
    check_failed = 1,
    usage = 2,
    inconclusive = 3,
    unusable_input = 4,
    too_many_failures = 5,
    cannot_write = 6,
    out_of_memory = 7,
    bug = 70,
    stopped = 75,
};

/// The one exception that reaches a user. The message is one line: `problem (why): what to do`.
class Error : public std::runtime_error {
public:
    Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
    [[nodiscard]] ExitCode code() const noexcept { return code_; }

private:
    ExitCode code_;
};

/// Several at once, a line each.
class Errors : public Error {
    using Error::Error;
};

/// The words typed, or the study file, are wrong; nothing ran.
template <class... Args>
[[nodiscard]] Error usage_error(fmt::format_string<Args...> format, Args&&... args) {
    return {ExitCode::usage, fmt::format(format, std::forward<Args>(args)...)};
}

/// A file or matrix cannot be used as it is.
template <class... Args>
[[nodiscard]] Error input_error(fmt::format_string<Args...> format, Args&&... args) {
    return {ExitCode::unusable_input, fmt::format(format, std::forward<Args>(args)...)};
}

/// An output cannot be written.
template <class... Args>
[[nodiscard]] Error write_error(fmt::format_string<Args...> format, Args&&... args) {
    return {ExitCode::cannot_write, fmt::format(format, std::forward<Args>(args)...)};
}

/// A promise inside the program was broken: always a defect of ours.
template <class... Args>
[[nodiscard]] Error bug(fmt::format_string<Args...> format, Args&&... args) {
    return {ExitCode::bug, fmt::format(format, std::forward<Args>(args)...)};
}

/// Runs the work; what goes wrong in it names the place, whose words are made only then.
template <class Place, class Work>
auto located(const Place& place, const Work& work) {
    try {
        return work();
    } catch (const Error& error) {
        throw Error(error.code(), fmt::format("{}: {}", place(), error.what()));
    }
}

}  // namespace spiked

#pragma once
#include <fmt/core.h>

#include <stdexcept>
#include <string>

namespace spiked {

/// The exit codes of the process; the numbers are part of the interface.
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

/// The exception type whose message is shown to users. The message is one line: `problem (why): what to do`.
class Error : public std::runtime_error {
public:
    Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
    [[nodiscard]] ExitCode code() const noexcept { return code_; }

private:
    ExitCode code_;
};

/// Several errors in one exception, one line each.
class Errors : public Error {
    using Error::Error;
};

/// The command line or the study file is wrong; nothing has run.
template <class... Args>
[[nodiscard]] Error usage_error(fmt::format_string<Args...> format, Args&&... args) {
    return {ExitCode::usage, fmt::format(format, std::forward<Args>(args)...)};
}

/// An input file or matrix cannot be used.
template <class... Args>
[[nodiscard]] Error input_error(fmt::format_string<Args...> format, Args&&... args) {
    return {ExitCode::unusable_input, fmt::format(format, std::forward<Args>(args)...)};
}

/// An output cannot be written.
template <class... Args>
[[nodiscard]] Error write_error(fmt::format_string<Args...> format, Args&&... args) {
    return {ExitCode::cannot_write, fmt::format(format, std::forward<Args>(args)...)};
}

/// An internal invariant was violated, which is always a defect of the program.
template <class... Args>
[[nodiscard]] Error bug(fmt::format_string<Args...> format, Args&&... args) {
    return {ExitCode::bug, fmt::format(format, std::forward<Args>(args)...)};
}

/// Runs the work and puts the result of `place()` (for example a file and a tensor) in front of the message of an Error
/// that it throws. `place` is called only then.
template <class Place, class Work>
auto located(const Place& place, const Work& work) {
    try {
        return work();
    } catch (const Error& error) {
        throw Error(error.code(), fmt::format("{}: {}", place(), error.what()));
    }
}

}  // namespace spiked

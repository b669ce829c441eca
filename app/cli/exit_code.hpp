#pragma once
#include <array>
#include <string_view>
#include <utility>

#include "core/runtime/error.hpp"

namespace spiked::app {

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
    internal_error = 70,
    stopped = 75,
};

/// What each exit code means, for help and manual page.
inline constexpr std::array<std::pair<ExitCode, std::string_view>, 10> exit_codes = {{
    {ExitCode::fine, "fine"},
    {ExitCode::check_failed, "a check failed"},
    {ExitCode::usage, "usage"},
    {ExitCode::inconclusive, "inconclusive (--strict)"},
    {ExitCode::unusable_input, "unusable input"},
    {ExitCode::too_many_failures, "too many failures"},
    {ExitCode::cannot_write, "cannot write"},
    {ExitCode::out_of_memory, "out of memory"},
    {ExitCode::internal_error, "bug"},
    {ExitCode::stopped, "stopped, can be resumed"},
}};

/// The exit code of a process that ends with an error of this kind.
[[nodiscard]] constexpr ExitCode exit_code(ErrorKind kind) {
    switch (kind) {
        case ErrorKind::usage:
            return ExitCode::usage;
        case ErrorKind::input:
            return ExitCode::unusable_input;
        case ErrorKind::output:
            return ExitCode::cannot_write;
        case ErrorKind::memory:
            return ExitCode::out_of_memory;
        case ErrorKind::stopped:
            return ExitCode::stopped;
        case ErrorKind::internal:
            break;
    }
    return ExitCode::internal_error;
}

}  // namespace spiked::app

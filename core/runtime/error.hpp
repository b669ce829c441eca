#pragma once
#include <fmt/core.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace spiked {

/// What an error is about, which decides what a caller can do; `app/cli/exit_code.hpp` gives each its exit code.
enum class ErrorKind : std::uint8_t {
    usage,     ///< the command line or the study file is wrong; nothing has run
    input,     ///< an input file or matrix cannot be used
    output,    ///< an output cannot be written
    memory,    ///< the work needs more memory than it may use
    stopped,   ///< the work was stopped as asked
    internal,  ///< the program contradicts itself, which is always a defect of the program
};

/// The exception type whose message is shown to users. The message is one line: `problem (why): what to do`.
class Error : public std::runtime_error {
public:
    Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
    [[nodiscard]] ErrorKind kind() const noexcept { return kind_; }

private:
    ErrorKind kind_;
};

/// Several errors in one exception, one line each.
class Errors : public Error {
    using Error::Error;
};

/// An Error of the kind usage.
template <class... Args>
[[nodiscard]] Error usage_error(fmt::format_string<Args...> format, Args&&... args) {
    return {ErrorKind::usage, fmt::format(format, std::forward<Args>(args)...)};
}

/// An Error of the kind input.
template <class... Args>
[[nodiscard]] Error input_error(fmt::format_string<Args...> format, Args&&... args) {
    return {ErrorKind::input, fmt::format(format, std::forward<Args>(args)...)};
}

/// An Error of the kind output.
template <class... Args>
[[nodiscard]] Error output_error(fmt::format_string<Args...> format, Args&&... args) {
    return {ErrorKind::output, fmt::format(format, std::forward<Args>(args)...)};
}

/// A format string of fmt and the place in the source where it is written.
template <class... Args>
struct LocatedFormat {
    template <class Text>
    FMT_CONSTEVAL LocatedFormat(const Text& written, const char* in_file = __builtin_FILE(),
                                int at_line = __builtin_LINE())
        : text(written), file(in_file), line(at_line) {}

    fmt::format_string<Args...> text;
    const char* file;
    int line;
};

/// An Error of the kind internal, whose message begins with the place of the check and what has failed there.
template <class... Args>
[[nodiscard]] Error internal_error(std::string_view failed, const LocatedFormat<Args...>& format, Args&&... args) {
    return {ErrorKind::internal, fmt::format("{}:{}: {} failed: {}", format.file, format.line, failed,
                                             fmt::format(format.text, std::forward<Args>(args)...))};
}

/// The caller of a function broke what the function requires.
template <class... Args>
[[nodiscard]] Error precondition_error(LocatedFormat<std::type_identity_t<Args>...> format, Args&&... args) {
    return internal_error<Args...>("precondition", format, std::forward<Args>(args)...);
}

/// A function cannot give what it promises, although it was called as it requires.
template <class... Args>
[[nodiscard]] Error postcondition_error(LocatedFormat<std::type_identity_t<Args>...> format, Args&&... args) {
    return internal_error<Args...>("postcondition", format, std::forward<Args>(args)...);
}

/// Data from within the program (a table, a message of another process, an answer of a library) are not as they must
/// be.
template <class... Args>
[[nodiscard]] Error data_error(LocatedFormat<std::type_identity_t<Args>...> format, Args&&... args) {
    return internal_error<Args...>("data check", format, std::forward<Args>(args)...);
}

/// Runs the work and puts the result of `place()` (for example a file and a tensor) in front of the message of an Error
/// that it throws. `place` is called only then.
template <class Place, class Work>
auto located(const Place& place, const Work& work) {
    try {
        return work();
    } catch (const Error& error) {
        throw Error(error.kind(), fmt::format("{}: {}", place(), error.what()));
    }
}

}  // namespace spiked

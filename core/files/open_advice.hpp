#pragma once
#include <cerrno>

namespace spiked {

/// The advice in the error message for a file that cannot be opened, by errno.
[[nodiscard]] inline const char* open_advice(int error) {
    if (error == EMFILE || error == ENFILE) return "name fewer files, or raise ulimit -n";
    return error == ENOENT || error == ENOTDIR ? "check the path" : "check its permissions";
}

}  // namespace spiked

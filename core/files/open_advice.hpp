#pragma once
#include <cerrno>

namespace spiked {

/// What to do about a file that cannot be opened, by errno.
[[nodiscard]] inline const char* open_advice(int why) {
    if (why == EMFILE || why == ENFILE) return "name fewer files, or raise ulimit -n";
    return why == ENOENT || why == ENOTDIR ? "check the path" : "check its permissions";
}

}  // namespace spiked

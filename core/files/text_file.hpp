#pragma once
#include <cstdint>
#include <string>

namespace spiked {

/// The content of a small regular file. Throws input_error when it cannot be read or is longer than `most` bytes, the
/// limit for such a file; `what` names its kind in the message ("a study file").
[[nodiscard]] std::string read_text_file(const std::string& path, std::uint64_t most, const char* what);

}  // namespace spiked

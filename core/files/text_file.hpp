#pragma once
#include <cstdint>
#include <string>

namespace spiked {

/// A small regular file whole. Throws input_error when it cannot be read, and when it is longer than `most` bytes:
/// `what` ("a study file") is not.
[[nodiscard]] std::string read_text_file(const std::string& path, std::uint64_t most, const char* what);

}  // namespace spiked

#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace spiked {

using Sha256 = std::array<std::uint8_t, 32>;

[[nodiscard]] Sha256 sha256(std::string_view bytes);
/// The digest of a regular file, read in chunks up to the size that it had when it was opened. Throws input_error when
/// the file cannot be read.
[[nodiscard]] Sha256 sha256_of_file(const std::string& path);
[[nodiscard]] std::string hex(const Sha256& digest);

}  // namespace spiked

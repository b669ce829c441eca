#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace spiked::sim {

/// Unpacks a zlib stream until `most` bytes are there or it ends. Memory grows with the bytes that are unpacked. Throws
/// input_error for damaged bytes; a stream that is cut off gives what it has.
[[nodiscard]] std::vector<std::byte> inflated(std::span<const std::byte> packed, std::size_t most,
                                              const std::string& where);

}  // namespace spiked::sim

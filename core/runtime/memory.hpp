#pragma once
#include <cstdint>

namespace spiked {

/// The number of bytes that this process may use: the smallest of its address space limit (ulimit -v), the limit of its
/// control group, and the machine's memory with swap.
[[nodiscard]] std::uint64_t allowed_memory();

}  // namespace spiked

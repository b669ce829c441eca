#pragma once
#include <cstdint>

namespace spiked {

/// Bytes that this process may have: the least of its address space (ulimit -v), its control group and the machine's
/// memory with swap.
[[nodiscard]] std::uint64_t allowed_memory();

}  // namespace spiked

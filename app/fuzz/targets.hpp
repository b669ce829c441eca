#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace spiked::app {

/// A reader that must take any bytes: what it cannot use it refuses with an Error that tells a user what is wrong.
struct FuzzTarget {
    const char* name;
    const char* reads;
    void (*read)(std::span<const std::uint8_t> bytes);
};

/// Everything that reads what a program did not write itself.
[[nodiscard]] const std::vector<FuzzTarget>& fuzz_targets();

/// Whether the reader took the bytes; false when it refused them. Any other end (an Error that blames us, another
/// exception) is a finding and goes on to the caller.
[[nodiscard]] bool takes(const FuzzTarget& target, std::span<const std::uint8_t> bytes);

}  // namespace spiked::app

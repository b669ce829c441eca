#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace spiked::app {

/// A reader that must handle any bytes: it rejects unusable input with an Error that says what is wrong.
struct FuzzTarget {
    const char* name;
    const char* reads;
    void (*read)(std::span<const std::uint8_t> bytes);
};

/// The readers of all data that may come from outside the program.
[[nodiscard]] const std::vector<FuzzTarget>& fuzz_targets();

/// Whether the reader accepts the bytes; false when it rejects them. Any other exception (an internal Error, or one of
/// another type) is a finding and is passed on to the caller.
[[nodiscard]] bool accepts(const FuzzTarget& target, std::span<const std::uint8_t> bytes);

}  // namespace spiked::app

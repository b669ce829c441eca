#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace spiked::app {

/// A reader that must handle any bytes: it rejects unusable input with an Error that says what is wrong.
struct FuzzTarget {
    std::string name;
    std::string reads;
    std::function<void(std::span<const std::uint8_t> bytes)> read;
};

/// The readers of all data that may come from outside the program; those of files of matrices come from the table of
/// formats, each under the suffix of its files.
[[nodiscard]] const std::vector<FuzzTarget>& fuzz_targets();

/// Whether the reader accepts the bytes; false when it rejects them. Any other exception (an internal Error, or one of
/// another type) is a finding and is passed on to the caller.
[[nodiscard]] bool accepts(const FuzzTarget& target, std::span<const std::uint8_t> bytes);

}  // namespace spiked::app

#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "sim/random/philox.hpp"

namespace spiked::stream {

/// A seed of 128 bits, written as 0x and up to 32 hex digits.
struct StudySeed {
    std::array<std::uint8_t, 16> bytes{};

    /// Throws usage_error when the text is not such a number.
    [[nodiscard]] static StudySeed parse(std::string_view text);
    /// A seed from the machine's source of randomness.
    [[nodiscard]] static StudySeed fresh();
    [[nodiscard]] std::string text() const;
};

/// The purpose of a stream. The numbers are part of the address of every draw: append new ones, and never renumber,
/// since that would change all results.
enum class Role : std::uint16_t {
    noise = 1,
    left_vectors = 2,
    right_vectors = 3,
    rotation = 4,
    row_basis = 5,
    column_basis = 6,
    projection = 7,
    channel = 8,
    token_order = 9,
    resampling = 10,
    query = 11,
    missing = 12,
};

/// A stream of addressed random numbers. They are a pure function of (seed, cell, role, replicate, element), and do not
/// depend on the thread, rank or device that draws them or on the order of the draws.
///
/// Key = first 64 bits of SHA-256(seed bytes, SHA-256(cell)); counter = (element, role | draw << 16, replicate).
class Stream {
public:
    Stream(const StudySeed& seed, std::string_view cell, Role role, std::uint64_t replicate);

    /// Four random words for one element; `draw` counts the calls when an element needs more than four words.
    [[nodiscard]] PhiloxCounter words(std::uint32_t element, std::uint16_t draw = 0) const {
        return philox_4x32_10(counter(element, draw), key_);
    }
    /// The Philox counter of these words.
    [[nodiscard]] PhiloxCounter counter(std::uint32_t element, std::uint16_t draw = 0) const {
        return {element, static_cast<std::uint32_t>(role_) | static_cast<std::uint32_t>(draw) << 16,
                static_cast<std::uint32_t>(replicate_), static_cast<std::uint32_t>(replicate_ >> 32)};
    }
    [[nodiscard]] PhiloxKey key() const { return key_; }

private:
    PhiloxKey key_;
    Role role_;
    std::uint64_t replicate_;
};

}  // namespace spiked::stream

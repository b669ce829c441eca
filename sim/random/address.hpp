#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "sim/random/philox.hpp"

namespace spiked::stream {

/// 128 bits, written as 0x and up to 32 hex digits.
struct StudySeed {
    std::array<std::uint8_t, 16> bytes{};

    /// Throws usage_error when the text is not such a number.
    [[nodiscard]] static StudySeed parse(std::string_view text);
    /// From the machine's own randomness.
    [[nodiscard]] static StudySeed fresh();
    [[nodiscard]] std::string text() const;
};

/// What a stream is for. The numbers are part of every result ever made: append, never renumber.
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
};

/// An address of randomness: numbers are a pure function of (seed, cell, role, replicate, element), whatever thread,
/// rank or device asks, and in whatever order.
///
/// Key = first 64 bits of SHA-256(seed bytes, SHA-256(cell)); counter = (element, role | draw << 16, replicate).
class Stream {
public:
    Stream(const StudySeed& seed, std::string_view cell, Role role, std::uint64_t replicate);

    /// Four words of one element; `draw` counts the calls when an element needs more than four.
    [[nodiscard]] PhiloxCounter words(std::uint32_t element, std::uint16_t draw = 0) const {
        return philox_4x32_10(counter(element, draw), key_);
    }
    /// What Philox makes those words of.
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

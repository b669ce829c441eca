#pragma once
#include <bit>
#include <cstdint>

namespace spiked {

/// Conversions between IEEE binary16 or bfloat16 and double, rounding to nearest even. They are plain and exact, and
/// the reference for every faster implementation. Overflow gives infinity, as in hardware; callers that must not lose a
/// value test it first.
[[nodiscard]] constexpr double from_float16(std::uint16_t bits) {
    const std::uint64_t sign = std::uint64_t{bits & 0x8000U} << 48;
    const unsigned exponent = (bits >> 10) & 0x1FU;
    const std::uint64_t fraction = bits & 0x3FFU;
    if (exponent == 0x1F) return std::bit_cast<double>(sign | 0x7FF0000000000000ULL | (fraction << 42));
    if (exponent == 0) {
        const double magnitude = static_cast<double>(fraction) * 0x1p-24;
        return sign != 0 ? -magnitude : magnitude;
    }
    return std::bit_cast<double>(sign | (std::uint64_t{exponent + 1008U} << 52) | (fraction << 42));
}

[[nodiscard]] constexpr double from_bfloat16(std::uint16_t bits) {
    return static_cast<double>(std::bit_cast<float>(std::uint32_t{bits} << 16));
}

namespace detail {

/// The packed bits (sign, exponent, fraction) of the nearest value in a binary format with these numbers of fraction
/// and exponent bits.
[[nodiscard]] constexpr std::uint16_t pack_small_float(double value, int fraction_bits, int exponent_bits) {
    const std::uint64_t all = std::bit_cast<std::uint64_t>(value);
    const auto sign = static_cast<std::uint16_t>((all >> 48) & 0x8000U);
    const std::uint64_t magnitude = all & 0x7FFFFFFFFFFFFFFFULL;
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const auto infinity = static_cast<std::uint16_t>(((1U << exponent_bits) - 1U) << fraction_bits);
    if (magnitude > 0x7FF0000000000000ULL)
        return static_cast<std::uint16_t>(sign | infinity | 1U << (fraction_bits - 1));
    if (magnitude == 0x7FF0000000000000ULL) return static_cast<std::uint16_t>(sign | infinity);
    int exponent = static_cast<int>(magnitude >> 52) - 1023;
    if (exponent < -1000) return sign;
    const std::uint64_t significand = (magnitude & 0xFFFFFFFFFFFFFULL) | 0x10000000000000ULL;
    int drop = 52 - fraction_bits;
    int stored = exponent + bias;
    if (stored < 1) {
        drop += 1 - stored;
        stored = 1;
        if (drop > 54) return sign;
    }
    std::uint64_t kept = significand >> drop;
    const std::uint64_t rest = significand & ((1ULL << drop) - 1);
    const std::uint64_t half = 1ULL << (drop - 1);
    if (rest > half || (rest == half && (kept & 1U) != 0)) ++kept;
    // The hidden bit of a subnormal stays zero; adding lets a carry move into the exponent.
    const std::uint64_t packed = (std::uint64_t(stored - 1) << fraction_bits) + kept;
    if (packed >= infinity) return static_cast<std::uint16_t>(sign | infinity);
    return static_cast<std::uint16_t>(sign | packed);
}

}  // namespace detail

[[nodiscard]] constexpr std::uint16_t to_float16(double value) { return detail::pack_small_float(value, 10, 5); }
[[nodiscard]] constexpr std::uint16_t to_bfloat16(double value) { return detail::pack_small_float(value, 7, 8); }

}  // namespace spiked

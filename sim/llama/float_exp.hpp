#pragma once
#include <bit>
#include <cstdint>

namespace spiked::sim {

/// exp(x), without branches or calls, so that compilers vectorise loops over it. Relative error below 1e-7 where the
/// result is a normal number, absolute error below 2e-45 where it is smaller. 0 below -104, infinity above 88.73, NaN
/// for NaN. Without contraction of products and sums, all instruction sets give the same bits.
/// Source: reduction to |r| <= ln(2)/2 (Cody and Waite 1980); the polynomial is the minimax one of its degree for the
/// relative error, 3e-9, by the exchange algorithm of Remez.
[[gnu::always_inline]] inline float float_exp(float x) {
    // Beyond 110 in magnitude the result is 0 or infinity anyway. NaN stays. Compilers turn comparisons of whole
    // numbers into masks, those of floats into branches, because these may raise a floating-point exception.
    constexpr std::int32_t infinity = 0x7f800000;
    constexpr std::int32_t most = std::bit_cast<std::int32_t>(110.0F);
    const std::int32_t bits = std::bit_cast<std::int32_t>(x);
    std::int32_t magnitude = bits & 0x7fffffff;
    const std::int32_t limit = magnitude > infinity ? magnitude : most;
    magnitude = magnitude > limit ? limit : magnitude;
    x = std::bit_cast<float>(magnitude | (bits & ~0x7fffffff));
    // Adding 1.5 * 2^23 rounds to a whole number, which is then in the lowest bits of the sum.
    constexpr float shift = 12582912.0F;
    const float shifted = x * 1.44269504F + shift;
    const float whole = shifted - shift;
    // ln(2) in two parts; the product with the first is exact.
    const float r = (x - whole * 0.693359375F) - whole * -2.12194440e-4F;
    float p = 0x1.6a23d0p-10F;
    p = p * r + 0x1.123a20p-7F;
    p = p * r + 0x1.5558f2p-5F;
    p = p * r + 0x1.555492p-3F;
    p = p * r + 0x1.fffffcp-2F;
    p = p * (r * r) + r + 1.0F;
    // 2^whole in two factors, because it may lie outside the range of normal numbers.
    const std::int32_t exponent = std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(shift);
    const std::int32_t half = exponent >> 1;
    const float first = std::bit_cast<float>((half + 127) << 23);
    const float second = std::bit_cast<float>((exponent - half + 127) << 23);
    return p * first * second;
}

}  // namespace spiked::sim

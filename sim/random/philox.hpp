#pragma once
#include <array>
#include <cstdint>

namespace spiked::stream {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

/// Philox4x32 with 10 rounds (Salmon et al., SC 2011): four random words, which are a pure function of counter and key.
/// The words are those of Random123 and of the CUDA generator of the same name.
[[nodiscard]] constexpr PhiloxCounter philox_4x32_10(PhiloxCounter counter, PhiloxKey key) {
    constexpr std::uint64_t multiplier_0 = 0xD2511F53U;
    constexpr std::uint64_t multiplier_1 = 0xCD9E8D57U;
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t product_0 = multiplier_0 * counter[0];
        const std::uint64_t product_1 = multiplier_1 * counter[2];
        counter = {
            static_cast<std::uint32_t>(product_1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(product_1),
            static_cast<std::uint32_t>(product_0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(product_0)};
        key[0] += 0x9E3779B9U;
        key[1] += 0xBB67AE85U;
    }
    return counter;
}

}  // namespace spiked::stream

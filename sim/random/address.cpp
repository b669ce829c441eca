#include "sim/random/address.hpp"

#include <fmt/format.h>

#include <random>

#include "core/files/sha256.hpp"
#include "core/runtime/error.hpp"

namespace spiked::stream {

StudySeed StudySeed::parse(std::string_view text) {
    std::string_view digits = text;
    if (digits.starts_with("0x") || digits.starts_with("0X")) digits.remove_prefix(2);
    StudySeed seed;
    std::size_t position = 0;
    for (auto at = digits.rbegin(); at != digits.rend(); ++at, ++position) {
        const char lower = static_cast<char>(*at | 0x20);
        const bool decimal = *at >= '0' && *at <= '9';
        if (position >= 32 || !(decimal || (lower >= 'a' && lower <= 'f')))
            throw usage_error(
                "seed \"{}\" is not usable (it must be up to 32 hex digits, with or without 0x in front): give for "
                "example 0x5eed",
                text);
        const int value = decimal ? *at - '0' : lower - 'a' + 10;
        seed.bytes[15 - position / 2] |= static_cast<std::uint8_t>(value << (position % 2 * 4));
    }
    if (digits.empty()) throw usage_error("the seed is empty: give for example 0x5eed");
    return seed;
}

StudySeed StudySeed::fresh() {
    std::random_device source;
    StudySeed seed;
    for (auto& byte : seed.bytes) byte = static_cast<std::uint8_t>(source());
    return seed;
}

std::string StudySeed::text() const {
    std::string text = "0x";
    for (const auto byte : bytes) text += fmt::format("{:02x}", byte);
    return text;
}

Stream::Stream(const StudySeed& seed, std::string_view cell, Role role, std::uint64_t replicate)
    : key_{}, role_(role), replicate_(replicate) {
    const Sha256 cell_hash = sha256(cell);
    std::string bytes(seed.bytes.begin(), seed.bytes.end());
    bytes.append(cell_hash.begin(), cell_hash.end());
    const Sha256 digest = sha256(bytes);
    for (std::size_t i = 0; i < 4; ++i) {
        key_[0] |= std::uint32_t{digest[i]} << (8 * i);
        key_[1] |= std::uint32_t{digest[4 + i]} << (8 * i);
    }
}

}  // namespace spiked::stream

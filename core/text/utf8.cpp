#include "core/text/utf8.hpp"

namespace spiked {

Character first_character(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(0);
    const Character none{1, first, false};
    if (first < 0x80) return {1, first, true};
    const std::size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4 || text.size() < bytes) return none;
    char32_t code = first & (0xFFU >> (bytes + 1));
    for (std::size_t i = 1; i < bytes; ++i) {
        if ((byte(i) & 0xC0U) != 0x80) return none;
        code = code << 6U | (byte(i) & 0x3FU);
    }
    const bool overlong = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
    const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
    const bool no_character = code == 0xFFFE || code == 0xFFFF;  // XML forbids these
    if (overlong || surrogate || no_character || code > 0x10FFFF) return none;
    return {bytes, code, true};
}

bool is_control(char32_t code) {
    const auto within = [&](char32_t first, char32_t last) { return code >= first && code <= last; };
    return code < 0x20 || within(0x7F, 0x9F) || code == 0x61C || within(0x200E, 0x200F) || within(0x202A, 0x202E) ||
           within(0x2066, 0x2069);
}

}  // namespace spiked

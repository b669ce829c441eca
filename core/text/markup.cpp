#include "core/text/markup.hpp"

#include <algorithm>
#include <cstddef>

#include "core/text/utf8.hpp"

namespace spiked {

std::string xml_text(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const Character character = first_character(text);
        const char32_t c = character.code;
        const bool control = (c < 0x20 && c != '\n' && c != '\t') || (c >= 0x7F && c <= 0x9F);
        out += character.valid && !control ? text.substr(0, character.bytes) : "\xEF\xBF\xBD";
        text.remove_prefix(character.bytes);
    }
    return out;
}

std::string escape(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (const char c : xml_text(text)) {
        switch (c) {
            case '&':
                out += "&amp;";
                break;
            case '<':
                out += "&lt;";
                break;
            case '>':
                out += "&gt;";
                break;
            case '"':
                out += "&quot;";
                break;
            case '\'':
                out += "&#39;";
                break;
            default:
                out += c;
        }
    }
    return out;
}

std::string base64(std::span<const std::uint8_t> bytes) {
    static constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    out.reserve((bytes.size() + 2) / 3 * 4);
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        const std::size_t have = std::min<std::size_t>(3, bytes.size() - i);
        std::uint32_t word = 0;
        for (std::size_t j = 0; j < 3; ++j) word = word << 8 | (j < have ? bytes[i + j] : 0U);
        for (std::size_t j = 0; j < 4; ++j) out += j <= have ? digits[word >> (18 - 6 * j) & 63U] : '=';
    }
    return out;
}

}  // namespace spiked

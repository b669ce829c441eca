#pragma once
#include <cstddef>
#include <string_view>

namespace spiked {

/// The character at the front of a text.
struct Character {
    std::size_t bytes = 1;
    char32_t code = 0;
    bool valid = false;  ///< false: the first byte begins no character of UTF-8 (RFC 3629), or U+FFFE or U+FFFF, which
                         ///< are none; bytes is 1 then
};
/// `text` must not be empty.
[[nodiscard]] Character first_character(std::string_view text);

/// Whether a terminal obeys the character and does not show it: a control character (C0, DEL, C1), or one that changes
/// the direction of writing.
[[nodiscard]] bool is_obeyed(char32_t code);

}  // namespace spiked

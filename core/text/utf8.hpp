#pragma once
#include <cstddef>
#include <string_view>

namespace spiked {

/// The character at the front of a text.
struct Character {
    std::size_t bytes = 1;
    char32_t code = 0;
    /// False when the first byte begins no valid UTF-8 character (RFC 3629), or begins U+FFFE or U+FFFF, which are not
    /// characters; `bytes` is 1 then.
    bool valid = false;
};
/// `text` must not be empty.
[[nodiscard]] Character first_character(std::string_view text);

/// Whether a terminal acts on the character instead of printing it: a control character (C0, DEL, C1), or one that
/// changes the direction of writing.
[[nodiscard]] bool is_control(char32_t code);

}  // namespace spiked

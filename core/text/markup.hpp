#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace spiked {

/// Text as XML may hold it, without regard to markup: U+FFFD for bytes that are no UTF-8 and for control characters.
[[nodiscard]] std::string xml_text(std::string_view text);

/// Text as HTML, for element content and quoted attributes alike: the only way text of a store reaches a page; what
/// xml_text replaces is replaced.
[[nodiscard]] std::string escape(std::string_view text);

[[nodiscard]] std::string base64(std::span<const std::uint8_t> bytes);

}  // namespace spiked

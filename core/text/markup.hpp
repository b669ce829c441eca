#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace spiked {

/// The text with U+FFFD in place of control characters and bytes that are not UTF-8, which XML forbids. Markup is not
/// escaped.
[[nodiscard]] std::string xml_text(std::string_view text);

/// The text escaped for HTML, both for element content and for quoted attributes, after xml_text. All text of a store
/// passes through this function on its way to a page.
[[nodiscard]] std::string escape(std::string_view text);

[[nodiscard]] std::string base64(std::span<const std::uint8_t> bytes);

}  // namespace spiked

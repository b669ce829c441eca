#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spiked {

/// A name from a file for a one-line message: in quotes, with control characters escaped, cut at 80 bytes.
[[nodiscard]] std::string in_quotes(std::string_view name);
/// The name without quotes, for a table.
[[nodiscard]] std::string printable(std::string_view name);

/// Text of a user or a file that is safe to print on a terminal, with `?` in place of control characters and bytes that
/// are not UTF-8. Line breaks are kept.
[[nodiscard]] std::string without_control_characters(std::string_view text);
/// The same on one line, with blanks for line breaks.
[[nodiscard]] std::string one_line(std::string text);

/// Removes an incomplete UTF-8 character from the end of a text that was cut at some byte.
void trim_partial_character(std::string& cut);

/// A shape as `[2, 512, 128]`.
[[nodiscard]] std::string shape_text(std::span<const std::size_t> shape);

/// A size as `4370000000 bytes (4.37 GB)`; small sizes lack the part in parentheses.
[[nodiscard]] std::string bytes_text(std::uint64_t bytes);

/// suggestion() for names that come from a file, of which there may be many: at most ten are listed.
[[nodiscard]] std::string name_hint(std::string_view name, const std::vector<std::string>& names);

/// The names as `"a", "b", "c" and 97 more`, of which at most ten are listed.
[[nodiscard]] std::string list_text(const std::vector<std::string>& names);

}  // namespace spiked

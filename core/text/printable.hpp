#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spiked {

/// A name out of a file as it may stand in a one-line message: in quotes, control characters escaped, cut at 80 bytes.
[[nodiscard]] std::string in_quotes(std::string_view name);
/// The same without quotes, for a table.
[[nodiscard]] std::string printable(std::string_view name);

/// Text of a user or a file as a terminal may show it: `?` for what it would obey and for what is no UTF-8; lines stay
/// lines.
[[nodiscard]] std::string without_control_characters(std::string_view text);
/// The same on one line, with blanks for line breaks.
[[nodiscard]] std::string one_line(std::string text);

/// Takes half a character of UTF-8 from the end of a text that was cut at some byte.
void leave_whole_characters(std::string& cut);

/// `[2, 512, 128]`.
[[nodiscard]] std::string shape_text(std::span<const std::size_t> shape);

/// `4370000000 bytes (4.37 GB)`; short sizes without the second part.
[[nodiscard]] std::string bytes_text(std::uint64_t bytes);

/// suggestion() for names that come from a file and may be many: at most ten are listed.
[[nodiscard]] std::string name_hint(std::string_view typed, const std::vector<std::string>& names);

/// `"a", "b", "c" and 97 more`, ten at most.
[[nodiscard]] std::string list_text(const std::vector<std::string>& names);

}  // namespace spiked

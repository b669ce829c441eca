#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace spiked {

/// The words of `text` behind `begin`, in lines of at most `columns` bytes where words allow it. Further lines begin
/// with `indent` blanks. A word that is longer than a line is broken after its commas and bars.
[[nodiscard]] std::string wrapped_text(std::string begin, std::string_view text, std::size_t columns,
                                       std::size_t indent);

/// A text for a terminal of `columns`: lines that are longer are wrapped, and go on below the words of their first
/// line, behind its blanks or its columns of names. Lines with a command to copy stay whole, and so does every line
/// when `columns` is 0.
[[nodiscard]] std::string wrapped_lines(const std::string& text, std::size_t columns);

}  // namespace spiked

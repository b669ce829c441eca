#pragma once
#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace spiked::sim {

/// A cell of a line of text, without its quotes and the blanks around it.
struct TableCell {
    std::string_view text;
    std::size_t column = 1;  ///< where it begins in its line, from 1
    bool quoted = false;
};

/// The position of the quote that closes the one at `open`, where a doubled quote is a character; npos without one.
[[nodiscard]] std::size_t closing_quote(std::string_view line, std::size_t open);

/// Calls `use` for each cell of a line until it returns false. The delimiter ' ' stands for any number of blanks and
/// tabs. Takes no memory, because a list of cells would take many times the bytes of the line.
template <class Use>
void each_cell(std::string_view line, char delimiter, const Use& use) {
    const bool blanks = delimiter == ' ';
    const auto is_blank = [&](std::size_t at) { return line[at] == ' ' || (line[at] == '\t' && delimiter != '\t'); };
    std::size_t at = 0;
    while (true) {
        while (at < line.size() && is_blank(at)) ++at;
        if (blanks && at == line.size()) return;
        TableCell cell{{}, at + 1, false};
        std::size_t end = line.size();
        if (at < line.size() && (line[at] == '"' || line[at] == '\''))
            if (const std::size_t close = closing_quote(line, at); close != std::string_view::npos) {
                end = close + 1;
                while (!blanks && end < line.size() && is_blank(end)) ++end;
                cell.quoted = end == line.size() || line[end] == delimiter || (blanks && is_blank(end));
                if (cell.quoted) cell.text = line.substr(at + 1, close - at - 1);
            }
        if (!cell.quoted) {
            end = std::min(blanks ? line.find_first_of(" \t", at) : line.find(delimiter, at), line.size());
            std::size_t last = end;
            while (last > at && is_blank(last - 1)) --last;
            cell.text = line.substr(at, last - at);
        }
        if (!use(cell) || end >= line.size()) return;
        at = end + 1;
    }
}

/// The number of cells of a line, at most `most`.
[[nodiscard]] std::size_t count_cells(std::string_view line, char delimiter, std::size_t most = std::string_view::npos);

/// The text as a number with a decimal point; NaN and infinities are numbers, what is too large for a double is none.
[[nodiscard]] std::optional<double> number_with_point(std::string_view text);
/// The same with a decimal comma; NaN and infinities are none.
[[nodiscard]] std::optional<double> number_with_comma(std::string_view text);

/// Whether the text stands for a value that is not there or not finite, as programs write it: empty, NA, NaN, ?, Inf.
[[nodiscard]] bool is_missing(std::string_view text);
/// Whether it is a whole number, written with digits only.
[[nodiscard]] bool is_digits(std::string_view text);
/// Whether commas stand where they separate thousands: 1,234 and 12,345,678.9, not 0,123.
[[nodiscard]] bool has_thousands(std::string_view text, char separator);

/// How a delimiter or a decimal mark is named in messages and options.
[[nodiscard]] std::string delimiter_text(char delimiter);
[[nodiscard]] std::string delimiter_option(char delimiter);

}  // namespace spiked::sim

#pragma once
#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/tables/table_words.hpp"

namespace spiked::sim {

/// The text without the blanks and tabs around it.
[[nodiscard]] inline std::string_view without_blanks(std::string_view text) {
    const std::size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
    return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

/// A cell of a line of text, without its quotes and the blanks within and around them.
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
                if (cell.quoted) cell.text = without_blanks(line.substr(at + 1, close - at - 1));
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

/// The text as a number with a decimal point and an exponent behind E or Fortran's D; NaN and infinities are numbers,
/// what is too large for a double is none.
[[nodiscard]] std::optional<double> number_with_point(std::string_view text);
/// The same with a decimal comma; NaN and infinities are none.
[[nodiscard]] std::optional<double> number_with_comma(std::string_view text);
/// The same with this mark; with a point where none has been met.
[[nodiscard]] std::optional<double> number_with(std::string_view text, std::optional<char> decimal);

/// Whether it is a whole number, written with digits only.
[[nodiscard]] bool is_digits(std::string_view text);
/// Whether commas stand where they separate thousands: 1,234 and 12,345,678.9, not 0,123.
[[nodiscard]] bool has_thousands(std::string_view text, char separator);

/// How a text that begins like a number writes one in a way that is not read (12%, $3.50, 1 234, 3/8, <5, True, 0x1F, 5
/// mg, [1, 2], np.float64(1.5)); empty for numbers and for names, dates and times.
[[nodiscard]] std::string unread_notation(std::string_view text);
/// The text, such as "::", that separates the numbers of a line which has no delimiter and no other text; empty for
/// other lines, dates and times.
[[nodiscard]] std::string_view other_separator(std::string_view line);
/// Whether it is several numbers with decimal points without a blank between them: -10.00-100.00.
[[nodiscard]] bool has_touching_numbers(std::string_view text);

/// Whether the line holds nothing, or only delimiters, as spreadsheets write empty rows.
[[nodiscard]] bool is_empty_line(std::string_view line);
/// The length of the mark (#, %, !, @, // or ; and a blank) with which a comment begins; 0 for other texts and for
/// missing values such as #N/A.
[[nodiscard]] std::size_t comment_mark(std::string_view text);
/// Whether the line, which is not empty, begins like a comment.
[[nodiscard]] bool begins_comment(std::string_view line);
/// The end of a line behind a digit and a blank that begins like a comment (#, %, ! or //); empty without one.
[[nodiscard]] std::string_view comment_behind(std::string_view line);
/// Whether a double quote that begins a cell does not close in the line.
[[nodiscard]] bool opens_quote(std::string_view line);

/// The number of cells of a line from which its form is recognised.
inline constexpr std::size_t cells_looked_at = 4096;

enum class CellKind { number, missing, text };

/// Whether it begins like a number: a word that does may be a damaged number.
[[nodiscard]] bool begins_number(std::string_view text);

/// How a message offers the option by which missing values are accepted; empty without one.
[[nodiscard]] std::string missing_advice(const std::string& option);

/// The cells of a table that hold no number, as they are met.
class MissingCells {
public:
    /// Whether they are kept as NaN, and by which option they could be (MatrixReading).
    MissingCells(bool keep, std::string option) : keep_(keep), option_(std::move(option)) {}

    /// The number that stands for the cell in the matrix. `corner` is whether it may be that above an index.
    template <class Place>
    double add(const TableCell& cell, bool corner, const Place& place) {
        const bool infinite = is_infinite(cell.text);
        infinite_ += infinite;
        kept_corner_ = kept_corner_ || (keep_ && corner);
        if (keep_ && !infinite) return std::numeric_limits<double>::quiet_NaN();
        if (count_++ == 0) set_first(cell, corner, place());
        return 0.0;
    }
    [[nodiscard]] bool keeps_corner() const { return kept_corner_; }
    /// Throws input_error where cells cannot be kept.
    void reject(std::size_t rows) const;

private:
    void set_first(const TableCell& cell, bool corner, std::string place);

    bool keep_;
    std::string option_;
    std::size_t count_ = 0;  ///< that are not kept
    std::size_t infinite_ = 0;
    bool corner_ = false;  ///< of the first of them
    bool kept_corner_ = false;
    std::string place_;
    std::string text_;
};

/// The cells of a line by kinds.
struct LineSummary {
    std::size_t cells = 0;
    std::size_t numbers = 0;
    std::size_t words = 0;
    std::size_t like_numbers = 0;  ///< words without quotes that begin like numbers
    std::size_t quoted = 0;        ///< numbers in quotes
    std::size_t digits = 0;        ///< numbers written with digits only
    std::size_t missing = 0;       ///< but not empty
    bool increases = true;         ///< each cell is a number above the one before
    bool decreases = true;         ///< each cell is a number below the one before
    bool years = true;             ///< the cells are consecutive years
    double last_number = 0.0;      ///< of the cells so far
    bool counts = true;            ///< the cells are 0, 1, 2, ... or 1, 2, 3, ...
    double first_number = -1;      ///< of the cells that count
    std::string first;             ///< the first cell
    CellKind first_kind = CellKind::missing;
    bool first_quoted = false;
};

/// What the numbers of the first column may be.
struct FirstColumn {
    bool counts = true;     ///< 0, 1, 2, ... or 1, 2, 3, ..., written with digits
    bool whole = true;      ///< written with digits
    bool padded = false;    ///< some have a zero in front
    std::size_t width = 0;  ///< bytes of the first
    bool same_width = true;
    bool increases = true;
    bool even = true;  ///< the steps are equal to within rounding, and not 0
    double first = 0.0;
    double last = 0.0;
    double step = 0.0;  ///< the first

    void add(std::size_t row, double value, std::string_view text);
};

/// The line from its cell `from` on. `limit` is for lines of data, of which some cells tell the form.
[[nodiscard]] LineSummary summary_of(std::string_view line, char delimiter, std::optional<char> decimal,
                                     std::size_t from = 0, std::size_t limit = std::string_view::npos);

/// The number of columns at the beginning that name the rows, because more than half of the lines hold text there; 0
/// where no column is left.
[[nodiscard]] std::size_t name_columns(const std::vector<std::string_view>& lines, char delimiter,
                                       std::optional<char> decimal, std::size_t columns);

/// What the numbers of the first lines show about the decimal mark.
struct MarksSeen {
    std::string point;           ///< the first number with a decimal point
    std::string comma;           ///< the first number with a decimal comma
    bool only_thousands = true;  ///< all marks may separate thousands
    std::size_t numbers = 0;
    std::size_t digits = 0;  ///< numbers written with digits only
};

[[nodiscard]] MarksSeen marks_in(const std::vector<std::string_view>& lines, char delimiter);

/// How a delimiter is named in messages.
[[nodiscard]] std::string delimiter_text(char delimiter);

}  // namespace spiked::sim

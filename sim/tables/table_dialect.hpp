#pragma once
#include <armadillo>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spiked::sim {

/// How a text table is read where the file alone does not decide; empty fields are recognised from the file.
struct TableDialect {
    std::optional<char> delimiter;
    std::optional<char> decimal;
    std::optional<bool> header;
    std::optional<bool> index;
};

struct TextLine {
    std::string text;
    std::size_t number = 0;  ///< from 1
};

/// How the lines of a table are read, as far as its first lines tell.
struct TableForm {
    char delimiter = ',';
    std::optional<char> decimal;  ///< empty where no number has a mark
    std::size_t columns = 0;      ///< cells of a row, the index among them
    bool trailing = false;        ///< each row ends with a delimiter
    bool header = false;
    std::size_t index = 0;        ///< cells at the beginning of each row that name it and are left out
    bool may_count = false;       ///< the first column is left out if it only counts the rows
    std::string header_note;      ///< why the first line is a header, or may be one, where it is not plain to see
    bool quoted_index = false;    ///< only its quotes tell that the first column is an index of numbers
    bool repeated_names = false;  ///< the header has a name twice
    std::string first_name;       ///< of the first column, where there is a header
    bool guessed = false;         ///< whether the numbers of a line were taken for a header
    bool quoted = false;          ///< numbers are in quotes
};

/// Recognises the form of a table from its first lines that are neither blank nor comments; fields of `given` are
/// taken as they are. If `counts`, lines and columns of numbers that only count are surroundings, and commas that
/// may be delimiters or decimal marks are errors. Throws input_error where two readings are equally likely.
[[nodiscard]] TableForm recognise_table(const std::string& path, const std::vector<TextLine>& lines,
                                        const TableDialect& given, bool counts);

/// Moves lines that begin with a comment mark into the sample where they are part of the table: the last one before it
/// if it names the columns, and those after it if the sample is a header alone and they have as many cells.
void take_hashed_lines(std::vector<TextLine>& sample, std::vector<TextLine>& hashed);
/// Removes the semicolon at the end of each line, as MATLAB writes it between rows. Returns false, and changes nothing,
/// unless every line ends in its first semicolon.
[[nodiscard]] bool strip_row_ends(std::vector<TextLine>& lines);
/// The line with blanks in place of the bars (|) at its two ends, as Markdown has them; unchanged if one is missing.
[[nodiscard]] std::string without_bars(std::string_view line);
/// Does this to every line. Returns false, and changes nothing, if a line has no such bars.
[[nodiscard]] bool strip_bars(std::vector<TextLine>& lines);
/// The factor in the line "1.0e+03 *" that MATLAB prints above the numbers of a matrix; nothing for other lines.
[[nodiscard]] std::optional<double> printed_factor(std::string_view line);
/// Whether the line is "x =", as MATLAB and Octave print above a matrix, or "2x3 Matrix{Float64}:", as Julia does.
[[nodiscard]] bool names_variable(std::string_view line);
/// Throws input_error where the line shows that a table was printed only in part, or its columns in several parts, and
/// for a rule of dashes.
void reject_printed_part(const std::string& path, const TextLine& line);
/// The first two cells of the rows of a table, which may name the row and the column of a third.
class LongKeys {
public:
    void add(std::size_t cell, std::string_view text);
    /// Whether each pair is there once and each name twice on average; dates and times name rows only.
    [[nodiscard]] bool are_places() const;

private:
    std::vector<std::size_t> keys_[2];  ///< hashes
    bool times_ = false;
};
/// Whether the first two of three or four columns are the places of entries: whole numbers, each pair once.
[[nodiscard]] bool holds_places(const arma::mat& rows);
/// A note on columns that count and on a second header, which may be no data. `in_front` is the number of columns
/// in front of the matrix, which were an index; `repeated_names` is whether the header has a name twice.
[[nodiscard]] std::vector<std::string> doubtful_lines(const arma::mat& rows, std::size_t in_front, bool header,
                                                      bool repeated_names);
/// A note on a last row (column) that is the sum or the mean of the others; empty for others.
[[nodiscard]] std::string last_line_note(const arma::mat& matrix, bool rows);

}  // namespace spiked::sim

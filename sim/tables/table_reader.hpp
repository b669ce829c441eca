#pragma once
#include <armadillo>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/tables/table_dialect.hpp"

namespace spiked::sim {

/// Why the number in this cell of its line (counted from 0, without the index) is not legal; empty where it is.
using CellCheck = std::function<std::string(std::size_t cell, double value)>;

struct TableReading {
    TableDialect dialect;
    /// Whether lines and columns that only count (0, 1, 2, ...) may be numbers of columns and rows instead of data; not
    /// in a list of value,weight.
    bool counts = true;
    CellCheck check = {};
    bool keep_missing = false;        ///< missing values are NaN, and only infinite ones are errors
    std::string missing_option = {};  ///< as in MatrixReading
};

struct Table {
    arma::mat matrix;
    /// Sentences on the form of the table, on lines left out and on numbers that may be surroundings; none for numbers
    /// between commas without a header.
    std::vector<std::string> notes;
    /// Whether numbers were taken for a header or an index although the file does not say so.
    bool guessed = false;
    bool of_text = false;  ///< false where read_matrix took the numbers from another format
};

/// Calls its argument for each line of a text.
using TextLines = std::function<void(const std::function<void(std::string_view)>&)>;

/// The table in these lines; `path` names their file in messages. The form is recognised (`recognise_table`) as far as
/// the dialect does not state it: the delimiter (comma, semicolon, tab, bar or blanks), the decimal mark, quotes, a
/// header, an index, delimiters at the end of lines. Left out are empty lines, and lines that begin with a comment mark
/// (`comment_mark`) unless the other lines have the same form, a name and numbers; a note counts those between rows.
/// What MATLAB prints above a matrix is understood: its name, and a factor by which the numbers are multiplied. Throws
/// an input_error with file:line:column for a cell that is not a number, for a line with another number of cells, and
/// for missing (unless they are kept) and infinite values, with their number, and for lists of triplets (name of a row,
/// name of a column, number). Takes some 20 bytes of memory for each byte of text.
[[nodiscard]] Table table_of_lines(const std::string& path, const TableReading& reading, const TextLines& lines);

}  // namespace spiked::sim

#pragma once
#include <armadillo>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/tables/table_cells.hpp"
#include "sim/tables/table_dialect.hpp"

// Notes on the form in which a table was read, and on numbers that may be no data.

namespace spiked::sim {

/// Rows or columns whose names tell that they may be no data.
struct NamedLines {
    std::size_t count = 0;
    std::string first;  ///< its name and its place

    void add(std::string_view name, std::string_view what, std::size_t place);
    [[nodiscard]] std::string note(std::string_view what, std::string_view like) const;
};

/// The findings about a table and what is around its rows.
struct TableFindings {
    double factor = 1.0;  ///< printed above the numbers
    std::size_t factor_line = 0;
    std::size_t comments = 0;  ///< left out behind the first row
    std::size_t first_comment = 0;
    std::size_t gaps = 0;   ///< empty lines between others
    std::size_t a_gap = 0;  ///< the first one, not behind a header
    bool gap_behind_first = false;
    bool row_ends = false;      ///< a semicolon ends each line
    bool bars = false;          ///< a bar is at both ends of each line
    bool empty_corner = false;  ///< the first cell is a missing value that is kept
    bool counted = false;       ///< the first column counts the rows and was left out
    bool fractions = false;     ///< not all numbers are whole
    std::size_t rows = 0;
    FirstColumn first;
    NamedLines total_rows, total_columns, time_columns, label_columns, label_row;
    bool plain_time = false;  ///< a column behind the first is named by a whole word for a time: year, timestamp
};

/// Sentences on the form of a table, on lines left out and on numbers that may be surroundings.
[[nodiscard]] std::vector<std::string> table_notes(const std::string& path, const TableForm& form,
                                                   std::optional<char> decimal, const TableFindings& found,
                                                   const arma::mat& matrix);

/// The line of Python that writes a matrix of a list of its entries in such a form: of its last `columns` columns the
/// first two name the row and the column, and the one at `value`, from 0, holds the number.
[[nodiscard]] std::string pivot_line(const TableForm& form, std::optional<char> decimal, std::size_t columns = 3,
                                     std::size_t value = 2);
/// How pandas reads a table of such a form: the options behind the name of the file, each after a comma.
[[nodiscard]] std::string pandas_options(const TableForm& form, std::optional<char> decimal);

}  // namespace spiked::sim

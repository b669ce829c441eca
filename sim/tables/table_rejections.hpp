#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/tables/table_cells.hpp"
#include "sim/tables/table_dialect.hpp"

// Why a row or a cell of a table cannot be read, and what to do about it.

namespace spiked::sim {

/// The state of reading a table, on which the messages about a row depend.
struct TableState {
    const std::string& path;
    const TableDialect& dialect;          ///< as the user states it
    const std::vector<TextLine>& sample;  ///< the first lines
    const TableForm& form;
    std::optional<char> decimal;
    std::size_t rows = 0;  ///< that have been read
};

/// Throws input_error for the cell number `i` (from 0) of a line, which is not a number.
[[noreturn]] void reject_text(const TableState& table, const TableCell& cell, std::size_t i, const TextLine& line);

/// Throws input_error where lines of text are above the rows, or the rows become longer by one cell.
void reject_other_shape(const TableState& table, std::size_t number);

/// The cells of a line, and where the first superfluous one, or the last of too few, begins.
struct CountedCells {
    std::size_t cells = 0;
    std::size_t wrong_column = 1;
};
/// Throws input_error for a line with another number of cells than line `first` has.
[[noreturn]] void reject_count(const TableState& table, const CountedCells& found, const TextLine& line,
                               std::size_t first);

/// Throws input_error for a number whose mark, a comma or a point, may separate decimals or thousands.
[[noreturn]] void reject_thousands(const std::string& where, std::string_view text, char mark);

}  // namespace spiked::sim

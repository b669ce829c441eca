#pragma once
#include <armadillo>
#include <cstddef>
#include <functional>
#include <string>

namespace spiked::sim {

/// Reads lines of numbers separated by commas. A first line without any number is a header and skipped, as are blank
/// lines and lines that begin with '#'. CRLF, a byte-order mark and blanks around cells are accepted. NaN and
/// infinities are read as such. Throws an input_error with file:line:column for a cell that is not a number and for a
/// line with another number of cells.
[[nodiscard]] arma::mat read_csv(const std::string& path);

/// Why the number in this cell of its line (counted from 0) is not legal; empty where it is.
using CellCheck = std::function<std::string(std::size_t cell, double value)>;
/// The same; what `check` returns, unless empty, becomes an input_error with file:line:column.
[[nodiscard]] arma::mat read_csv(const std::string& path, const CellCheck& check);

}  // namespace spiked::sim

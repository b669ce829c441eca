#pragma once
#include <armadillo>
#include <cstddef>
#include <functional>
#include <string>

namespace spiked::sim {

/// Lines of numbers separated by commas. A first line without any number is taken as a header and skipped, so are blank
/// lines and lines that begin with '#'. CRLF, a byte-order mark and blanks around cells are fine. NaN and infinities
/// are read as such. A bad cell or a line of another length is an input_error with file:line:column.
[[nodiscard]] arma::mat read_csv(const std::string& path);

/// What is wrong with the number in this cell of its line (from 0), empty when nothing is.
using CellCheck = std::function<std::string(std::size_t cell, double value)>;
/// The same for numbers that mean something: a complaint becomes an input_error with file:line:column.
[[nodiscard]] arma::mat read_csv(const std::string& path, const CellCheck& check);

}  // namespace spiked::sim

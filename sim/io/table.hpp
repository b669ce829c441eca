#pragma once
#include <armadillo>
#include <string>

#include "sim/tables/table_reader.hpp"

namespace spiked::sim {

/// The table in a file of text, packed by gzip or not (`table_of_lines`). Throws input_error too for a file of another
/// format, and where the text cannot be read (`each_line`).
[[nodiscard]] Table read_table(const std::string& path, const TableReading& reading = {});

/// Writes a matrix atomically (see OutputFile): as a table of text with commas, from which every number is read back
/// exactly, where the name ends in `.csv`, and as .npy where it does not.
void write_matrix(const std::string& path, const arma::mat& matrix);
/// Throws usage_error where the name ends in another suffix.
void require_matrix_name(const std::string& path);

}  // namespace spiked::sim

#pragma once
#include <string>

#include "sim/tables/table_reader.hpp"

namespace spiked::sim {

/// The table in a file of text, packed by gzip or not (`table_of_lines`). Throws input_error too for a file of another
/// format, and where the text cannot be read (`each_line`).
[[nodiscard]] Table read_table(const std::string& path, const TableReading& reading = {});

}  // namespace spiked::sim

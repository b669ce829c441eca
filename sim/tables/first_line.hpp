#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "sim/tables/table_cells.hpp"
#include "sim/tables/table_dialect.hpp"

namespace spiked::sim {

/// The lines behind the first one; the first one itself where there is no other.
[[nodiscard]] std::vector<std::string_view> data_lines(const std::vector<TextLine>& lines);

[[nodiscard]] bool ends_with_delimiter(std::string_view line, char delimiter);

/// Decides whether the first line of a table is a header and whether the first columns are an index, in `form`, where
/// delimiter, decimal mark and columns are decided. Throws input_error as recognise_table does.
void decide_first_line(const std::string& path, const std::vector<TextLine>& lines, const TableDialect& given,
                       bool counts, const MarksSeen& seen, TableForm& form);

}  // namespace spiked::sim

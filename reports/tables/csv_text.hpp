#pragma once
#include <string>
#include <vector>

namespace spiked::reports {

/// `a,b\n` with quotes where needed. A text that a spreadsheet would run as a formula gets an apostrophe in front, what
/// a terminal would obey becomes `?`.
[[nodiscard]] std::string csv_line(const std::vector<std::string>& fields);
/// Shortest text that reads back as the same number; empty for NaN.
[[nodiscard]] std::string exact(double value);

}  // namespace spiked::reports

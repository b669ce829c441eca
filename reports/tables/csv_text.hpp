#pragma once
#include <string>
#include <vector>

namespace spiked::reports {

/// A line of CSV: `a,b\n`, with quotes where needed. A text that a spreadsheet would evaluate as a formula gets an
/// apostrophe in front, and control characters become `?`.
[[nodiscard]] std::string csv_line(const std::vector<std::string>& fields);
/// The shortest text that reads back as the same number, empty for NaN.
[[nodiscard]] std::string exact(double value);

}  // namespace spiked::reports

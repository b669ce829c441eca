#pragma once
#include <string>
#include <vector>

namespace spiked::reports {

[[nodiscard]] std::string latex_text(const std::string& text);

/// A number as the tables print it (`0.7525(22)`, `-3.1e-05`, `-` for missing) in mathematics, bold on request; other
/// text as latex_text.
[[nodiscard]] std::string latex_number(const std::string& text, bool bold = false);

/// `tabular`s with booktabs rules, a new one where a page of 38 rows is full; cells are LaTeX. Columns named in
/// `numeric` are aligned to the right. A row with one cell only stands across all columns as the head of a group. What
/// may be wider than a line is shrunk to it where it is.
[[nodiscard]] std::string latex_table(const std::vector<std::string>& header, const std::vector<bool>& numeric,
                                      const std::vector<std::vector<std::string>>& rows);

/// The packages that a table of latex_table needs.
[[nodiscard]] std::string latex_packages(const std::string& table);

}  // namespace spiked::reports

#pragma once
#include <string>
#include <vector>

namespace spiked::reports {

/// Text as one line of LaTeX: special characters are escaped, so that a name cannot act as a command.
[[nodiscard]] std::string latex_text(const std::string& text);

/// A number as the tables print it (`0.7525(22)`, `-3.1e-05`, `-` for missing) in math mode, bold on request. Other
/// text is passed to latex_text.
[[nodiscard]] std::string latex_number(const std::string& text, bool bold = false);

/// `tabular` environments with booktabs rules; a new one begins after 38 rows, when a page is full. Cells are LaTeX
/// already. Columns marked in `numeric` are aligned to the right. A row of one cell spans all columns and is the
/// heading of a group. A table that may be wider than the text is scaled down to its width when LaTeX finds that it is.
[[nodiscard]] std::string latex_table(const std::vector<std::string>& header, const std::vector<bool>& numeric,
                                      const std::vector<std::vector<std::string>>& rows);

/// The LaTeX packages that a table of latex_table needs, as words of a sentence.
[[nodiscard]] std::string latex_packages(const std::string& table);

}  // namespace spiked::reports

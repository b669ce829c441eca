#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "reports/page/html.hpp"
#include "reports/page/result_sections.hpp"
#include "reports/tables/store_queries.hpp"
#include "validation/store/sqlite.hpp"

namespace spiked::reports {

/// The name of a verdict, or `none`, with a symbol, because colour alone is not accessible.
[[nodiscard]] Html verdict_mark(const std::string& verdict);
/// The overall verdict of several checks; `none` where there are no checks.
[[nodiscard]] std::string verdict_of(const validation::VerdictCounts& counts);

/// The checks at the cells shown, with failures and inconclusive checks first and most passes folded, and the
/// statements of their claims. Each table takes at most a tenth of `most_bytes`. The id of a row is `check-` and the
/// number of its verdict. Empty when there are no checks.
[[nodiscard]] std::string checks_markup(validation::Database& store, const std::vector<CheckRow>& checks,
                                        const PagePlace& place, const ShownCells& cells, std::size_t most_bytes);

}  // namespace spiked::reports

#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "reports/page/html.hpp"
#include "reports/page/result_sections.hpp"
#include "reports/tables/store_queries.hpp"
#include "validation/engine/sqlite.hpp"

namespace spiked::reports {

/// The word of a verdict, or `none`, and a mark beside it: colour alone tells nothing.
[[nodiscard]] Html verdict_mark(const std::string& verdict);
/// Of checks together; `none` where there are none.
[[nodiscard]] std::string verdict_of(const validation::VerdictCounts& counts);

/// The checks at the cells shown, what did not pass first and most passes folded, and what each claim says; tables of
/// at most a tenth of `most_bytes`. A row is called `check-` and its verdict's number. Empty when there are none.
[[nodiscard]] std::string checks_markup(validation::Database& store, const std::vector<CheckRow>& checks,
                                        const PagePlace& place, const ShownCells& cells, std::size_t most_bytes);

}  // namespace spiked::reports

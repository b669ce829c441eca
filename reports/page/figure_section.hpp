#pragma once
#include <cstddef>
#include <optional>
#include <string>

#include "reports/page/html.hpp"
#include "reports/page/html_report.hpp"
#include "validation/store/sqlite.hpp"

namespace spiked::reports {

/// The figures of a study as they are drawn, with captions and data; where `map_of` has a value, a map of all cells
/// comes first, of this metric or, where it is empty, of the checks. Of figures beyond half of `most_bytes` pictures,
/// then data are left out, with a note. Also writes them to the folder of the options. Throws output_error.
[[nodiscard]] std::string figures_markup(validation::Database& store, const PagePlace& place,
                                         const ReportOptions& options, const std::optional<std::string>& map_of,
                                         std::size_t most_bytes);

}  // namespace spiked::reports

#pragma once
#include <string>
#include <vector>

#include "reports/page/html.hpp"
#include "validation/engine/sqlite.hpp"

namespace spiked::reports {

/// The means of a store beside values printed elsewhere: table, method, metric, printed, mean, error, difference,
/// whether they agree (within half a unit of the last printed digit and two standard errors: yes, no, not measured),
/// and why they differ where they do. The file is CSV with the columns `table,cell,method,metric,printed,note`: `cell`
/// says what the cell is by factors that one cell alone has (`side=key n=128`), in a dump study the side, whose means
/// are clustered; `metric` is `overlap.left 2` where it has components; `printed` is a number; no field holds a comma;
/// lines that begin with # are comments. A line `study,NAME` before these columns refuses stores of other studies.
/// Formats are those of export_table. Throws input_error with file:line.
[[nodiscard]] std::string against_printed(validation::Database& store, const std::string& path,
                                          const std::string& format);

/// The printed values that no mean of the store stands beside, as `FILE:LINE: metric of method`. A difference is no
/// mistake of anybody; such a line compares nothing, and a program that goes by it must hear of it.
[[nodiscard]] std::vector<std::string> printed_without_partner(validation::Database& store, const std::string& path);

/// The comparison as markup of a page, a table for each table printed.
[[nodiscard]] std::string printed_markup(validation::Database& store, const std::string& path);

}  // namespace spiked::reports

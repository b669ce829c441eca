#pragma once
#include <string>

#include "reports/html.hpp"
#include "validation/sqlite.hpp"

namespace spiked::reports {

/// The means of a store beside values printed elsewhere: table, method, metric, printed, mean, error, difference,
/// whether they agree (1: within half a unit of the last printed digit and two standard errors), note. The file is CSV
/// with the columns `table,cell,method,metric,printed,note`; `cell` counts the cells of the study from 1, `printed` is
/// a number, no field holds a comma; lines that begin with # are comments. What the store did not measure has no mean.
/// Formats are those of export_table. Throws input_error with file:line.
[[nodiscard]] std::string against_printed(validation::Database& store, const std::string& path,
                                          const std::string& format);

/// The same as a section of a page, a table for each table printed, with why they differ where they do: the note.
[[nodiscard]] std::string printed_markup(validation::Database& store, const std::string& path);

}  // namespace spiked::reports

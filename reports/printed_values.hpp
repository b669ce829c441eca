#pragma once
#include <string>

#include "validation/sqlite.hpp"

namespace spiked::reports {

/// The means of a store beside values printed elsewhere: table, method, metric, printed, mean, error, difference, note.
/// The file is CSV with the columns `table,cell,method,metric,printed,note`; `cell` counts the cells of the study from
/// 1, `printed` is a number, no field holds a comma; lines that begin with # are comments. What the store did not
/// measure has no mean. Formats are those of export_table. Throws input_error with file:line.
[[nodiscard]] std::string against_printed(validation::Database& store, const std::string& path,
                                          const std::string& format);

}  // namespace spiked::reports

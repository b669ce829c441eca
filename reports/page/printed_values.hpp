#pragma once
#include <string>
#include <vector>

#include "reports/page/html.hpp"
#include "validation/store/sqlite.hpp"

namespace spiked::reports {

/// Compares the means of a store with values printed elsewhere: table, method, metric, printed value, mean, standard
/// error with its degrees of freedom, difference, whether they agree (within half a unit of the last printed digit and
/// two standard errors, or with few clusters the quantile of Student's law of the same probability: yes, no, not
/// measured), and the reason for a difference. The file is CSV with the columns
/// `table,cell,method,metric,printed,note`. `cell` identifies one cell by its factors (`side=key n=128`), or in a dump
/// study a side, whose means are clustered. `metric` is `overlap.left 2` where the metric has components. `printed` is
/// a number. No field contains a comma, and lines that begin with # are comments. With a line `study,NAME` before the
/// header, stores of other studies are rejected. Formats are those of export_table. Throws input_error with file:line.
[[nodiscard]] std::string against_printed(validation::Database& store, const std::string& path,
                                          const std::string& format);

/// The printed values without a mean in the store, as `FILE:LINE: metric of method`. A difference between values is not
/// an error, but a line that compares nothing is, and callers must report it.
[[nodiscard]] std::vector<std::string> printed_without_partner(validation::Database& store, const std::string& path);

/// The comparison as markup of a page, with one table for each printed table.
[[nodiscard]] std::string printed_markup(validation::Database& store, const std::string& path);

}  // namespace spiked::reports

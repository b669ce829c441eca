#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "validation/metrics/metric_table.hpp"

// The texts of metrics by name, from the table of metrics.
namespace spiked::reports {

using validation::MetricGroup;

/// The metrics of each kind of table, in the order of its columns.
[[nodiscard]] const std::vector<std::string>& metrics_of(MetricGroup group);
/// The metrics of error that a frontier shows: the first one always, the others where they were measured.
[[nodiscard]] const std::vector<std::string>& frontier_metrics();

/// The column heading of a metric on a page: `relative L2 %`. Metrics whose unit is a fraction are shown in percent.
/// Empty for a metric that has no column in these tables.
[[nodiscard]] std::string heading_of(std::string_view metric);
/// The column heading for a terminal, which is shorter for some metrics: `rel. L2 %`.
[[nodiscard]] std::string narrow_heading_of(std::string_view metric);
/// The column heading of a metric in the tables of matrices, which show fractions as they are: `rank too high`. A
/// metric without a heading has its long name.
[[nodiscard]] std::string column_name_of(std::string_view metric);
/// The name of a metric on axes and in titles: `relative L2 error`.
[[nodiscard]] std::string long_name_of(std::string_view metric);
[[nodiscard]] std::vector<std::string> long_names_of(const std::vector<std::string>& metrics);

/// The factor of the values in tables: 100 where the metric is shown in percent, else 1.
[[nodiscard]] double scale_of(std::string_view metric);

/// The scale of a metric from which reports::with_error tells rounding errors: 1 for a metric without the unit of the
/// data, 0 for eigenvalues and singular values, whose size the data determine, and for an unknown metric.
[[nodiscard]] double usual_size_of(std::string_view metric);

/// The error to show beside a mean over `count` replicates: its standard error, or fraction_error where every value of
/// a metric of 0 and 1 is the same, so that a fraction of 0 or 1 of few replicates is not shown as certain.
[[nodiscard]] double shown_error(std::string_view metric, double mean, double standard_error, std::int64_t count);

}  // namespace spiked::reports

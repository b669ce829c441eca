#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace spiked::reports {

/// The metrics of each kind of table, in the order of its columns.
enum class MetricGroup { none, of_codecs, of_attention, of_models };
[[nodiscard]] const std::vector<std::string>& metrics_of(MetricGroup group);
/// Errors that a frontier shows, by the names of their metrics: the first of them always, the others where measured.
[[nodiscard]] const std::vector<std::string>& frontier_metrics();

/// Over a column of the metric, on a page: `relative L2 %`, with the sign where its unit is a share, which tables show
/// in percent. Empty for one that no such table has.
[[nodiscard]] std::string heading_of(std::string_view metric);
/// Over a column for a terminal, where that is shorter: `rel. L2 %`.
[[nodiscard]] std::string narrow_heading_of(std::string_view metric);
/// As axes and titles name it: in words.
[[nodiscard]] std::string words_of(std::string_view metric);

/// 100 where tables show the metric in percent, else 1.
[[nodiscard]] double scale_of(std::string_view metric);

}  // namespace spiked::reports

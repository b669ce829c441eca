#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace spiked::validation {

/// A quantity that is measured on replicates. The program has one table of metrics, which `spiked list metrics` prints.
/// Stores number metrics by their position in it, so new ones must be added at its end.
struct Metric {
    std::string name;
    std::string unit;
    std::string better;  ///< lower | higher | target | none
    std::string definition;
    std::string of;  ///< kinds of methods that it is measured for: sample, estimator, codec
};
[[nodiscard]] const std::vector<Metric>& metrics();
/// Position of the metric in metrics(). Throws bug if there is none of that name.
[[nodiscard]] std::size_t metric_index(std::string_view name);

/// The value of one metric in one replicate; k is the spike, from 1, or 0 if the metric has none.
struct Observation {
    std::size_t method = 0;
    std::size_t metric = 0;
    int k = 0;
    double value = 0.0;
};

}  // namespace spiked::validation

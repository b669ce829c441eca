#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace spiked::validation {

/// A quantity that replicates yield. One table for the whole program: `spiked list metrics` prints it. Stores number
/// metrics by their place in it, so new ones stand at its end.
struct Metric {
    std::string name;
    std::string unit;
    std::string better;  ///< lower | higher | target | none
    std::string definition;
    std::string of;  ///< kinds of methods that yield it: sample, estimator, codec
};
[[nodiscard]] const std::vector<Metric>& metrics();
/// Position in metrics(). Throws bug.
[[nodiscard]] std::size_t metric_index(std::string_view name);

/// What one replicate yields of one metric.
struct Observation {
    std::size_t method = 0;
    std::size_t metric = 0;
    int k = 0;
    double value = 0.0;
};

}  // namespace spiked::validation

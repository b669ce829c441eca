#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "validation/store/sqlite.hpp"

namespace spiked::validation {

/// The numbers that one store gives to metrics. Rows of a store refer to a metric by such a number, because a store may
/// have millions of them, and its table `metric` has the name of each number. Only names identify a metric: stores of
/// different versions of the program may number the same metric differently.
class StoreMetrics {
public:
    /// Metrics that this program does not know are left out.
    explicit StoreMetrics(Database& store);

    /// The number in the store of the metric at this position of metrics(); 0, which is no number, if the store does
    /// not have the metric.
    [[nodiscard]] std::int64_t number(std::size_t metric) const { return numbers_[metric]; }
    /// The position in metrics() of the metric with this number. Throws input_error if the store does not have the
    /// number, or this program does not know the metric.
    [[nodiscard]] std::size_t metric(std::int64_t number) const;

private:
    std::string path_;
    std::vector<std::int64_t> numbers_;
    std::map<std::int64_t, std::size_t> positions_;
};

/// Adds the metrics of metrics() that the store does not have, with new numbers.
void add_missing_metrics(Database& store);

/// Throws input_error if the store has a metric that this program does not know.
void reject_unknown_metrics(Database& store);

}  // namespace spiked::validation

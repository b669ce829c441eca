#include "validation/store/store_metrics.hpp"

#include <fmt/format.h>

#include "core/runtime/error.hpp"
#include "validation/metrics/metric_table.hpp"

namespace spiked::validation {

StoreMetrics::StoreMetrics(Database& store) : path_(store.path()), numbers_(metrics().size()) {
    Statement row(store, "SELECT metric_id, name FROM metric");
    while (row.step())
        if (const auto position = find_metric(row.text(1))) {
            numbers_[*position] = row.integer(0);
            positions_.emplace(row.integer(0), *position);
        }
}

std::size_t StoreMetrics::metric(std::int64_t number) const {
    const auto found = positions_.find(number);
    if (found == positions_.end())
        throw input_error("{}: this program does not know its metric {} (a newer version wrote it): update the program",
                          path_, number);
    return found->second;
}

void add_missing_metrics(Database& store) {
    Statement metric(store,
                     "INSERT INTO metric(name, unit, better, definition) VALUES(?,?,?,?) ON CONFLICT(name) DO NOTHING");
    for (const auto& of : metrics())
        metric.bind(1, of.name).bind(2, of.unit).bind(3, of.better).bind(4, of.definition).run();
}

void reject_unknown_metrics(Database& store) {
    Statement row(store, "SELECT name FROM metric ORDER BY metric_id");
    while (row.step())
        if (!find_metric(row.text(0)))
            throw input_error(
                "{}: written by a newer version (it measures {}, which this program does not know): update the program",
                store.path(), row.text(0));
}

}  // namespace spiked::validation

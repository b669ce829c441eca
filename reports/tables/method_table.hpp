#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "validation/engine/sqlite.hpp"
#include "validation/statistics/paired.hpp"

namespace spiked::reports {

/// A mean of a method. `best`: ahead of every method it competes with, each by more than two standard errors of the
/// paired difference.
struct MethodMean {
    double mean = 0.0;   ///< NaN: not measured
    double error = 0.0;  ///< NaN: not known
    std::int64_t n = 0;
    std::int64_t failed = 0;
    bool best = false;
    validation::Parts parts;  ///< empty where the store holds too little to pair methods: one batch without its draws
};

/// Methods compete with those of their kind and bit width B in the same group.
struct MethodRow {
    std::int64_t cell_id = 0;  ///< 0 in a dump study
    std::string group;         ///< label of the cell; the side in a dump study
    std::int64_t method_id = 0;
    std::string method;  ///< without its bits
    std::string kind;    ///< estimator | codec
    std::string bits;    ///< B; empty for estimators
    std::vector<MethodMean> means;
};

struct MethodColumn {
    std::string metric;
    std::int64_t k = 0;  ///< number of the spike; 0 where there is none
    std::string better;  ///< lower | higher | target | none
};

/// Methods down, metrics across.
struct MethodTable {
    std::vector<MethodColumn> columns;
    std::vector<MethodRow> rows;
};

struct MethodQuery {
    std::optional<std::set<std::int64_t>> cells;  ///< of a study without dumps; all when not given
    std::vector<std::string> metrics;             ///< in this order; all but the ledger's when empty
};

/// The table of a store, from its batches (and kept draws, where they are all there). In a dump study a group is a
/// side, and errors and pairs are clustered as everywhere. Throws usage_error for a metric that the store does not
/// hold.
[[nodiscard]] MethodTable method_table(validation::Database& store, const MethodQuery& query = {});

/// As csv (every digit, an error beside each mean), json (`spiked.export/1`), latex (booktabs; the best in bold) or
/// text for a terminal (the best with a star).
[[nodiscard]] std::string formatted(const MethodTable& table, const std::string& format);

}  // namespace spiked::reports

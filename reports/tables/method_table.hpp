#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/text/enum_names.hpp"
#include "validation/statistics/paired.hpp"
#include "validation/store/sqlite.hpp"

namespace spiked::reports {

/// The mean of one metric of one method. It is the `best` when it is ahead of every method it is compared with by more
/// than two standard errors of the paired difference.
struct MethodMean {
    double mean = 0.0;                                     ///< NaN where it was not measured
    double error = 0.0;                                    ///< NaN where it is unknown
    double df = std::numeric_limits<double>::quiet_NaN();  ///< degrees of freedom of the error
    std::int64_t n = 0;
    std::int64_t failed = 0;
    bool best = false;
    validation::Parts parts;  ///< for paired comparisons; empty where the store has one batch and no draws
};

/// The means of one method in one group. A method is compared with those of its kind and bit width B in the same group.
struct MethodRow {
    std::int64_t cell_id = 0;  ///< 0 in a dump study
    std::string group;         ///< label of the cell, or the side in a dump study
    std::int64_t method_id = 0;
    std::string method;  ///< name without the bit width
    std::string kind;    ///< estimator | codec
    std::string bits;    ///< bit width B, empty for estimators
    std::vector<MethodMean> means;
};

struct MethodColumn {
    std::string metric;
    std::int64_t k = 0;  ///< number of the spike, 0 for a metric that is not of spikes
    std::string better;  ///< lower | higher | target | none
};

/// One row per method and group, one column per metric.
struct MethodTable {
    std::vector<MethodColumn> columns;
    std::vector<MethodRow> rows;
};

struct MethodQuery {
    std::optional<std::set<std::int64_t>> cells;  ///< restricts a study without dumps to these cells
    std::vector<std::string> metrics;  ///< the columns in this order; when empty, all metrics except the bits ledger
};

/// The table of a store, from its batches; methods are paired draw by draw where all draws were kept. In a dump study a
/// group is a side, and standard errors and pairs are over clusters. Throws usage_error for a metric that is not in the
/// store.
[[nodiscard]] MethodTable method_table(validation::Database& store, const MethodQuery& query = {});

/// The degrees of freedom of the errors over clusters (limits_text); empty in a study without dumps.
[[nodiscard]] std::string clusters_limits(const MethodTable& table);

/// The texts as which tables are written.
enum class TableFormat { csv, json, latex, text };

/// The table as csv (every digit, a standard error beside each mean), json (`spiked.export/1`), latex (booktabs, the
/// best in bold) or text for a terminal (the best with a star).
[[nodiscard]] std::string formatted(const MethodTable& table, TableFormat format);

}  // namespace spiked::reports

template <>
struct spiked::EnumNames<spiked::reports::TableFormat> {
    static constexpr EnumName<spiked::reports::TableFormat> table[] = {{spiked::reports::TableFormat::csv, "csv"},
                                                                       {spiked::reports::TableFormat::json, "json"},
                                                                       {spiked::reports::TableFormat::latex, "latex"},
                                                                       {spiked::reports::TableFormat::text, "text"}};
};

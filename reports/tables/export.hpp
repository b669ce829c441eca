#pragma once
#include <string>
#include <vector>

#include "core/text/registry.hpp"
#include "validation/claims/claims.hpp"
#include "validation/store/sqlite.hpp"

namespace spiked::reports {

/// A table of a store as data: its name and its query.
struct StoreTable {
    std::string name;
    std::string summary;
    std::string query;        ///< empty: made by method_table; ?1 is the path of the store, quoted for a shell
    std::string legend = {};  ///< what its printed columns mean, where their heads do not say it
};
[[nodiscard]] const Registry<StoreTable>& store_tables();

/// The whole table as csv, json (`spiked.export/1`), latex (booktabs, value(error) where there is an error), or text
/// for a terminal. A missing value is an empty field in csv and null in json. The table `summary` holds no time, path
/// or thread count, so it is equal byte for byte for runs of the same study. `metrics` chooses columns of the table
/// `methods`. The table `checks` of a store of claims has the comparisons of these claims (stored_verdicts), or of
/// those of this program if there are none. Throws usage_error for an unknown table, format or metric.
[[nodiscard]] std::string export_table(validation::Database& store, const std::string& table, const std::string& format,
                                       const std::vector<std::string>& metrics = {},
                                       const std::vector<validation::Claim>& claims = {});

/// The rows of any query in one of these formats. `table` is the name of the table in json.
[[nodiscard]] std::string formatted(validation::Statement& rows, const std::string& table, const std::string& format);

/// The numeric columns as the bytes of a .npy float64 matrix, with NaN for missing values. Throws usage_error for the
/// table `methods`, because its rows mean nothing without the names of the methods.
[[nodiscard]] std::string export_npy(validation::Database& store, const std::string& table);

}  // namespace spiked::reports

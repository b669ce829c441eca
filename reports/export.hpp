#pragma once
#include <string>
#include <vector>

#include "validation/sqlite.hpp"

namespace spiked::reports {

/// A table of a store, as data: a name and the query it is.
struct StoreTable {
    std::string name;
    std::string summary;
    std::string query;
};
[[nodiscard]] const std::vector<StoreTable>& store_tables();

/// The whole table as csv, json (`spiked.export/1`), latex (booktabs, value(error) where there is an error), or text
/// for a terminal. Missing is an empty field in csv, null in json. `summary` holds no time, path or thread count, so it
/// is equal byte for byte for equal science. Throws usage_error for an unknown table or format.
[[nodiscard]] std::string export_table(validation::Database& store, const std::string& table,
                                       const std::string& format);

/// The same of any rows; `table` is what json calls them.
[[nodiscard]] std::string formatted(validation::Statement& rows, const std::string& table, const std::string& format);

/// The numeric columns as the bytes of a .npy float64 matrix, NaN where something is missing.
[[nodiscard]] std::string export_npy(validation::Database& store, const std::string& table);

}  // namespace spiked::reports

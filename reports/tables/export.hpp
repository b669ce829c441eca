#pragma once
#include <string>
#include <vector>

#include "validation/engine/sqlite.hpp"

namespace spiked::reports {

/// A table of a store, as data: a name and the query it is.
struct StoreTable {
    std::string name;
    std::string summary;
    std::string query;  ///< empty: made by method_table; ?1: the path of the store, in quotes for a shell
};
[[nodiscard]] const std::vector<StoreTable>& store_tables();

/// The whole table as csv, json (`spiked.export/1`), latex (booktabs, value(error) where there is an error), or text
/// for a terminal. Missing is an empty field in csv, null in json. `summary` holds no time, path or thread count, so it
/// is equal byte for byte for equal science. `metrics` chooses columns of the table methods. Throws usage_error for an
/// unknown table, format or metric.
[[nodiscard]] std::string export_table(validation::Database& store, const std::string& table, const std::string& format,
                                       const std::vector<std::string>& metrics = {});

/// The same of any rows; `table` is what json calls them.
[[nodiscard]] std::string formatted(validation::Statement& rows, const std::string& table, const std::string& format);

/// The numeric columns as the bytes of a .npy float64 matrix, NaN where something is missing. Throws usage_error for
/// the table methods, whose rows mean nothing without their names.
[[nodiscard]] std::string export_npy(validation::Database& store, const std::string& table);

}  // namespace spiked::reports

#pragma once
#include <armadillo>
#include <string>

#include "validation/store/sqlite.hpp"

// Schema versions of stores: this program writes version 4 and reads versions 2 to 4 (store_schema.sql says how they
// differ). A reader finds the columns of version 4 in any of them; a run that resumes an earlier one makes it
// version 4. In version 2 the number of a metric also was its position in the table of the program that wrote it; in
// every version the store's table `metric` has the names, and only these are used.
namespace spiked::validation {

/// Opens a store for reading. Throws input_error if the file is not a store or has another schema than this program's.
[[nodiscard]] Database open_store(const std::string& path);

/// Creates the tables and views of an empty store, its metrics, and the application id and schema version that identify
/// it.
void create_schema(Database& database);

/// Throws input_error if the database is not a store that this program can read, or its short tables hold values that
/// no run writes.
void check_is_store(Database& database);

/// Changes a store of an earlier version into one of this version; its rows stay. For a database that check_is_store
/// accepts, in a transaction.
void upgrade_schema(Database& store);

/// Columns that version 4 added to the tables question and verdict: expressions in those of earlier versions.
inline constexpr const char* columns_added_by_4 =
    "expected - margin AS allowed_lo, expected + margin AS allowed_hi, NULL AS exponent_of";
/// Whether a store has a version before 4.
[[nodiscard]] bool before_version_4(Database& store);

/// Throws input_error if means, batches, cells, methods or metrics are inconsistent. Reads every row of means.
void reject_lost_rows(Database& store);

/// The array in this column of a row of the table `array`; `where` names it in messages. Throws input_error if it is no
/// array of numbers.
[[nodiscard]] arma::mat stored_matrix(const Statement& row, int column, const std::string& where);

/// The seed of a store as it was written, and its backend (cpu, cuda, emulated or mixed). Empty if a run was killed
/// before it wrote them, or if there is no store.
[[nodiscard]] std::string stored_seed(const std::string& path);
[[nodiscard]] std::string stored_backend(const std::string& path);

}  // namespace spiked::validation

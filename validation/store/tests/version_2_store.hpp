#pragma once
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "validation/store/sqlite.hpp"

namespace spiked::validation {

/// Writes a store of schema version 2, as version 0.1 of the program made them, with the rows of the store `from`; or
/// of version 3, which has the same tables.
inline void write_version_2(const std::string& from, const std::string& to, int version = 2) {
    std::ifstream schema(SPIKED_SOURCE_DIR "/validation/store/tests/store_schema_2.sql");
    Database store(to, Database::Mode::create);
    store.execute("PRAGMA foreign_keys = OFF; PRAGMA application_id = 1397771057; PRAGMA user_version = " +
                  std::to_string(version));
    store.execute({std::istreambuf_iterator<char>(schema), {}});
    Statement(store, "ATTACH ? AS other").bind(1, from).run();
    std::vector<std::string> tables;
    Statement table(store, "SELECT name FROM main.sqlite_master WHERE type = 'table'");
    while (table.step()) tables.push_back(table.text(0));
    for (const auto& name : tables) {
        Statement columns(store, "SELECT group_concat(name, ', ') FROM pragma_table_info(?, 'main')");
        columns.bind(1, name);
        (void)columns.step();
        store.execute("INSERT INTO main." + name + " SELECT " + columns.text(0) + " FROM other." + name);
    }
}

/// Gives other numbers to the metrics of a store, in the opposite order.
inline void renumber_metrics(const std::string& path) {
    Database store(path, Database::Mode::write);
    store.execute("PRAGMA foreign_keys = OFF");
    for (const std::string table : {"metric", "stop_rule", "question", "moment", "value"})
        store.execute("UPDATE " + table + " SET metric_id = 1000 - metric_id");
}

}  // namespace spiked::validation

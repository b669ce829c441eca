#include "validation/store/open_store.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "core/files/sha256.hpp"
#include "core/runtime/error.hpp"
#include "core/text/printable.hpp"
#include "sim/io/matrix_file.hpp"
#include "validation/store/experiment.hpp"
#include "validation/store/store_metrics.hpp"
#include "validation/store/store_schema.hpp"

namespace spiked::validation {
namespace {

constexpr std::int64_t application_id = 0x53504B31;  // 'SPK1'
constexpr std::int64_t schema_version = 4;
constexpr std::int64_t oldest_schema = 2;  // of version 0.1; 3 has the same tables with other comments

/// The tables of version 3 that version 4 changed.
constexpr const char* tables_before_4 =
    "CREATE TABLE question( question_id INTEGER PRIMARY KEY, check_name TEXT NOT NULL, claim TEXT NOT NULL REFERENCES "
    "claim(id), cell_id INTEGER NOT NULL REFERENCES cell, method_id INTEGER NOT NULL REFERENCES method, metric_id "
    "INTEGER NOT NULL REFERENCES metric, k INTEGER NOT NULL, expected REAL NOT NULL, margin REAL NOT NULL, "
    "control_expected REAL NOT NULL);CREATE TABLE verdict( verdict_id INTEGER PRIMARY KEY, check_name TEXT NOT NULL, "
    "claim TEXT NOT NULL REFERENCES claim(id), cell_id INTEGER NOT NULL, method_id INTEGER NOT NULL, metric TEXT NOT "
    "NULL, k INTEGER NOT NULL, estimate REAL, mcse REAL, expected REAL NOT NULL, margin REAL NOT NULL, lo REAL, hi "
    "REAL, alpha REAL NOT NULL, detectable REAL, n INTEGER NOT NULL, needed INTEGER, verdict TEXT NOT NULL "
    "CHECK(verdict IN ('pass','fail','inconclusive')), control_expected REAL NOT NULL, control_verdict TEXT NOT NULL "
    "CHECK(control_verdict IN ('pass','fail','inconclusive')), reason TEXT NOT NULL);";

/// The objects of a schema: kind, name, table and the statement that created it.
using Schema = std::set<std::array<std::string, 4>>;

/// A statement of a schema without its comments and with one blank for each run of blanks and line ends outside of
/// texts. SQLite keeps comments, and they differ between versions of the program. Two statements that become equal have
/// the same meaning, because whatever this function does not understand (other quotes and comments, NUL bytes) stays in
/// the result, and our schema has nothing of it.
std::string without_comments(const std::string& sql) {
    std::string result;
    const auto blank = [&] {
        if (!result.ends_with(' ')) result += ' ';
    };
    for (std::size_t at = 0; at < sql.size(); ++at) {
        if (sql[at] == '\'') {
            const std::size_t end = std::min(sql.find('\'', at + 1), sql.size() - 1);
            result.append(sql, at, end + 1 - at);
            at = end;
        } else if (sql.compare(at, 2, "--") == 0) {
            const std::size_t end = std::min(sql.find('\n', at), sql.size());
            if (const std::size_t nul = sql.find('\0', at); nul < end) return sql;
            at = end;
            blank();
        } else if (sql[at] == ' ' || sql[at] == '\n') {
            blank();
        } else {
            result += sql[at];
        }
    }
    return result;
}

Schema schema_of(Database& database) {
    Schema found;
    Statement row(database, "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master");
    while (row.step()) found.insert({row.text(0), row.text(1), row.text(2), without_comments(row.text(3))});
    return found;
}

/// For each table a query for a row with a value of another type than its column declares. SQLite does not enforce the
/// types of columns by itself, so a file may hold a text in a column of numbers.
using TableQueries = std::vector<std::pair<std::string, std::string>>;

TableQueries type_queries(Database& fresh) {
    TableQueries queries;
    Statement table(fresh, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name");
    while (table.step()) {
        const std::string name = table.text(0);
        std::string wrong;
        Statement column(fresh, fmt::format("SELECT name, type, \"notnull\", pk FROM pragma_table_info('{}')", name));
        while (column.step()) {
            const std::string type = column.text(1);
            const bool may_be_null = column.integer(2) == 0 && column.integer(3) == 0;
            wrong += fmt::format("{}typeof({}) NOT IN ({}{})", wrong.empty() ? "" : " OR ", column.text(0),
                                 type == "TEXT"   ? "'text'"
                                 : type == "BLOB" ? "'blob'"
                                                  : "'integer', 'real'",
                                 may_be_null ? ", 'null'" : "");
        }
        queries.emplace_back(name, fmt::format("SELECT EXISTS(SELECT 1 FROM {} NOT INDEXED WHERE {})", name, wrong));
    }
    return queries;
}

/// For each table with texts a query for a row with a NUL byte in a text. GLOB, length() and json_valid() stop at a NUL
/// byte, so the bytes behind it would reach other code without any check.
TableQueries nul_queries(Database& fresh) {
    TableQueries queries;
    Statement table(fresh,
                    "SELECT t.name, group_concat(printf('instr(CAST(%s AS BLOB), x''00'')', c.name), ' OR ') FROM "
                    "sqlite_master t, pragma_table_info(t.name) c WHERE t.type = 'table' AND c.type = 'TEXT' GROUP BY "
                    "t.name ORDER BY t.name");
    while (table.step())
        queries.emplace_back(table.text(0), fmt::format("SELECT EXISTS(SELECT 1 FROM {} NOT INDEXED WHERE {})",
                                                        table.text(0), table.text(1)));
    return queries;
}

struct ExpectedSchema {
    Schema schema;
    TableQueries types;
    TableQueries nuls;
};

/// The schema of version 4, or that of the versions before it.
const ExpectedSchema& expected_schema(bool before_4) {
    const auto made = [](bool earlier) {
        Database fresh(":memory:", Database::Mode::trusted);
        create_schema(fresh);
        if (earlier) {
            fresh.execute("DROP TABLE question_cell; DROP TABLE question; DROP TABLE verdict");
            fresh.execute(tables_before_4);
        }
        return ExpectedSchema{schema_of(fresh), type_queries(fresh), nul_queries(fresh)};
    };
    static const ExpectedSchema now = made(false);
    static const ExpectedSchema earlier = made(true);
    return before_4 ? earlier : now;
}

/// Rejects a schema that does not have exactly the tables, views and indices that this program creates, each by the
/// same statement except for comments. A different schema could make a query run forever or have other effects.
void reject_other_schema(Database& database, const Schema& expected) {
    const Schema found = schema_of(database);
    const auto name_of_first = [](const Schema& some, const Schema& others) {
        for (const auto& one : some)
            if (!others.contains(one)) return one[1];
        return std::string();
    };
    if (const std::string name = name_of_first(expected, found); !name.empty())
        throw damaged_store(database.path(), fmt::format("its table or view \"{}\" is not that of a store", name));
    if (const std::string name = name_of_first(found, expected); !name.empty())
        throw damaged_store(database.path(), fmt::format("it has {}, which no store has", in_quotes(name)));
}

/// Tables with a row per replicate. They are too long to be checked here; their readers check the type of each value.
bool is_long(const std::string& table) { return table == "value" || table == "array"; }

void reject_other_types(Database& database, const TableQueries& types) {
    for (const auto& [table, query] : types)
        if (!is_long(table) && database.integer(query) != 0)
            throw damaged_store(database.path(),
                                fmt::format("table {} holds a value of another type than its column", table));
}

void reject_nul_bytes(Database& database, const TableQueries& nuls) {
    for (const auto& [table, query] : nuls)
        if (database.integer(query) != 0)
            throw damaged_store(database.path(), fmt::format("table {} holds a text with a NUL byte", table));
}

/// Limits on texts that are repeated for every row of a table or are parsed into trees. No run writes longer ones.
struct TextLimit {
    const char* table;
    const char* column;
    std::size_t bytes;
};
constexpr TextLimit text_limits[] = {{"cell", "label", longest_label},
                                     {"factor", "name", 200},
                                     {"factor", "txt", longest_factor},
                                     {"method", "name", 2000},
                                     {"method", "base", 2000},
                                     {"metric", "name", 200},
                                     {"failure", "message", longest_message},
                                     {"failure", "stage", 200},
                                     {"failure", "code", 200},
                                     {"session", "provenance", 20'000},
                                     {"figure", "spec", 65'536},
                                     {"study", "name", longest_statement},
                                     {"study", "title", longest_statement},
                                     {"verdict", "check_name", 2000},
                                     {"verdict", "reason", 20'000},
                                     {"claim", "statement", longest_statement}};

/// Rejects damage that can be found in the short tables.
void reject_impossible_study(Database& database) {
    // SQL conditions for a number that is not finite and for a text that is not hexadecimal.
    const auto infinite = [](const std::string& column) {
        return fmt::format("abs({}) > 1.7976931348623157e308", column);
    };
    const auto no_hex = [](const std::string& column) {
        return fmt::format("length({0}) = 0 OR {0} GLOB '*[^0-9a-f]*'", column);
    };
    // A region without a predicted number may have one infinite end.
    const std::string no_region = fmt::format("({0}) AND ({1}) OR expected IS NOT NULL AND ({0} OR {1})",
                                              infinite("allowed_lo"), infinite("allowed_hi")) +
                                  " OR allowed_lo > allowed_hi OR length(CAST(exponent_of AS BLOB)) > 200";
    const std::pair<const char*, std::string> impossible[] = {
        {"study",
         "typeof(batch_reps) <> 'integer' OR batch_reps < 1 OR NOT (false_alarm >= 1e-300 AND false_alarm < 1) OR " +
             no_hex("science_hash") + " OR NOT seed GLOB '0x*' OR " + no_hex("substr(seed, 3)")},
        {"cell",
         "typeof(n) <> 'integer' OR typeof(d) <> 'integer' OR n < 0 OR d < 0 OR typeof(reps_least) <> 'integer' OR "
         "typeof(reps_target) <> 'integer' OR reps_least < 1 OR reps_target < reps_least OR NOT "
         "json_valid(params) OR " +
             no_hex("cell_hash")},
        {"factor", infinite("num")},
        {"method", "NOT json_valid(params) OR " + infinite("bits")},
        {"input", no_hex("sha256")},
        {"theory", infinite("value")},
        {"question", infinite("expected") + " OR " + infinite("margin") + " OR " + infinite("control_expected")},
        {"verdict", infinite("expected") + " OR " + infinite("margin") + " OR " + infinite("control_expected")},
        {before_version_4(database) ? "" : "question", no_region},
        {before_version_4(database) ? "" : "verdict", no_region},
        {before_version_4(database) ? "" : "question_cell", infinite("size") + " OR size <= 0"}};
    for (const auto& [table, rows] : impossible)
        if (*table != '\0' &&
            database.integer(fmt::format("SELECT EXISTS(SELECT 1 FROM {} NOT INDEXED WHERE {})", table, rows)) != 0)
            throw damaged_store(database.path(), fmt::format("table {} holds values that no run writes", table));
    for (const auto& limit : text_limits)
        if (database.integer(fmt::format("SELECT EXISTS(SELECT 1 FROM {0} WHERE length(CAST({1} AS BLOB)) > {2})",
                                         limit.table, limit.column, limit.bytes)) != 0)
            throw damaged_store(database.path(), fmt::format("table {} holds a text in {} that is longer than {} bytes",
                                                             limit.table, limit.column, limit.bytes));
    for (const char* table : {"batch", "moment", "factor", "theory", "failure", "question", "verdict", "question_cell"})
        if (!(before_version_4(database) && table == std::string_view("question_cell")) &&
            database.integer(fmt::format(
                "SELECT EXISTS(SELECT 1 FROM {} NOT INDEXED WHERE cell_id NOT IN (SELECT cell_id FROM cell))",
                table)) != 0)
            throw damaged_store(database.path(), fmt::format("table {} refers to a cell that does not exist", table));
    Statement study(database, "SELECT config_resolved, science_hash FROM study");
    if (!study.step()) throw damaged_store(database.path(), "it has no study");
    if (hex(sha256(study.text(0))) != study.text(1))
        throw damaged_store(database.path(), "the settings of its study are not those of its science_hash");
    if (study.step()) throw damaged_store(database.path(), "it has more than one study");
}

}  // namespace

void check_is_store(Database& database) {
    if (database.integer("PRAGMA application_id") != application_id)
        throw input_error("{}: not a store of this program (its application id differs): give a .spiked file",
                          database.path());
    const std::int64_t version = database.integer("PRAGMA user_version");
    if (version > schema_version)
        throw input_error("{}: written by a newer version (schema {}, this program knows {}): update the program",
                          database.path(), version, schema_version);
    if (version < oldest_schema)
        throw input_error(
            "{}: written by an older version (schema {}, this program reads {} and later): make it again with the "
            "command that made it",
            database.path(), version, oldest_schema);
    const ExpectedSchema& expected = expected_schema(before_version_4(database));
    reject_other_schema(database, expected.schema);
    reject_other_types(database, expected.types);
    reject_nul_bytes(database, expected.nuls);
    reject_impossible_study(database);
}

bool before_version_4(Database& store) { return store.integer("PRAGMA main.user_version") < 4; }

void upgrade_schema(Database& store) {
    if (before_version_4(store)) {
        Database fresh(":memory:", Database::Mode::trusted);
        create_schema(fresh);
        for (const std::string table : {"question", "verdict"})
            store.execute(
                fmt::format("CREATE TEMP TABLE earlier_{0} AS SELECT *, {1} FROM main.{0}; DROP TABLE main.{0}", table,
                            columns_added_by_4));
        Statement changed(fresh,
                          "SELECT sql FROM sqlite_master WHERE name IN ('question', 'question_cell', 'verdict') ORDER "
                          "BY name");
        while (changed.step()) store.execute(changed.text(0));
        for (const std::string table : {"question", "verdict"})
            store.execute(
                fmt::format("INSERT INTO main.{0} SELECT * FROM temp.earlier_{0}; DROP TABLE temp.earlier_{0}", table));
    }
    store.execute(fmt::format("PRAGMA user_version = {}", schema_version));
}

/// Shows the tables of an earlier version as those of version 4.
static void show_as_version_4(Database& database) {
    if (!before_version_4(database)) return;
    for (const char* table : {"question", "verdict"})
        database.execute(fmt::format("CREATE TEMP VIEW {0} AS SELECT *, {1} FROM main.{0}", table, columns_added_by_4));
    database.execute("CREATE TEMP TABLE question_cell(question_id INTEGER, cell_id INTEGER, size REAL)");
}

void create_schema(Database& database) {
    database.execute(
        fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", application_id, schema_version));
    database.execute(store_schema);
    add_missing_metrics(database);
}

void reject_lost_rows(Database& store) {
    constexpr std::pair<const char*, const char*> lost[] = {
        {"a batch without its means",
         "SELECT cell_id, batch FROM batch WHERE reps > failed EXCEPT SELECT cell_id, batch FROM moment"},
        {"means without their batch", "SELECT cell_id, batch FROM moment EXCEPT SELECT cell_id, batch FROM batch"},
        {"batches of which fewer than none or more than all replicates failed",
         "SELECT 1 FROM batch WHERE typeof(reps) <> 'integer' OR typeof(failed) <> 'integer' OR failed < 0 OR failed > "
         "reps"},
        {"batches beyond the replicates of their cell",
         "SELECT 1 FROM batch JOIN cell USING(cell_id), study WHERE typeof(batch) <> 'integer' OR batch < 0 OR batch > "
         "(reps_target - 1) / batch_reps"},
        {"means of unknown methods or metrics",
         "SELECT 1 FROM moment WHERE method_id NOT IN (SELECT method_id FROM method) OR metric_id NOT IN (SELECT "
         "metric_id FROM metric)"},
        {"means that are not numbers",
         "SELECT 1 FROM moment WHERE typeof(n) <> 'integer' OR typeof(n_null) <> 'integer' OR n < 0 OR n_null < 0 OR n "
         "> 1000000000000000 OR typeof(mean) NOT IN ('real', 'null')"},
        {"batches of unknown sessions",
         "SELECT 1 FROM batch WHERE session_id NOT IN (SELECT session_id FROM session)"}};
    for (const auto& [what, query] : lost)
        if (store.integer(fmt::format("SELECT EXISTS({})", query)) != 0)
            throw damaged_store(store.path(), fmt::format("it holds {}", what));
}

namespace {

bool exists_with_content(const std::string& path) {
    struct stat status {};
    return stat(path.c_str(), &status) == 0 && status.st_size > 0;
}

}  // namespace

Database open_store(const std::string& path) {
    struct stat status {};
    const bool exists = stat(path.c_str(), &status) == 0;
    if (exists && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
        throw input_error("{}: is not a regular file (a store is read at any offset): name a .spiked file", path);
    if (!exists || status.st_size == 0)
        throw input_error("{}: {}: check the path, or make it with spiked run or spiked kv run", path,
                          exists ? "an empty file is not a store" : "no such store");
    Database database(path, Database::Mode::read);
    check_is_store(database);
    show_as_version_4(database);
    return database;
}

arma::mat stored_matrix(const Statement& row, int column, const std::string& where) {
    const auto bytes = row.blob(column);
    const sim::ByteSource source{where, bytes.size(), [bytes](std::uint64_t offset, std::span<std::byte> out) {
                                     std::memcpy(out.data(), bytes.data() + offset, out.size());
                                 }};
    return sim::read_matrix(*sim::open_npy(source, where));
}

namespace {

std::string stored(const std::string& path, const std::string& column) {
    if (!exists_with_content(path)) return "";
    Database database(path, Database::Mode::read);
    if (database.integer("SELECT count(*) FROM sqlite_master") == 0) return "";
    check_is_store(database);
    Statement study(database, "SELECT " + column + " FROM study");
    return study.step() ? study.text(0) : "";
}

}  // namespace

std::string stored_seed(const std::string& path) { return stored(path, "seed"); }
std::string stored_backend(const std::string& path) { return stored(path, "backend"); }

}  // namespace spiked::validation

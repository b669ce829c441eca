#include "validation/engine/store.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <ctime>
#include <set>
#include <thread>

#include "core/files/sha256.hpp"
#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "core/text/printable.hpp"
#include "sim/io/npy.hpp"
#include "validation/engine/store_schema.hpp"
#include "validation/engine/study_identity.hpp"

namespace spiked::validation {
namespace {

constexpr std::int64_t application_id = 0x53504B31;  // 'SPK1'
constexpr std::int64_t schema_version = 2;
constexpr const char* mixed_backend = "mixed";

/// The objects of a schema: kind, name, table and the statement that created it.
using Schema = std::set<std::array<std::string, 4>>;

Schema schema_of(Database& database) {
    Schema found;
    Statement row(database, "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master");
    while (row.step()) found.insert({row.text(0), row.text(1), row.text(2), row.text(3)});
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

const ExpectedSchema& expected_schema() {
    static const ExpectedSchema expected = [] {
        Database fresh(":memory:", Database::Mode::trusted);
        create_schema(fresh);
        return ExpectedSchema{schema_of(fresh), type_queries(fresh), nul_queries(fresh)};
    }();
    return expected;
}

/// Rejects a schema that does not have exactly the tables, views and indices that this program creates, each by the
/// same statement including comments. A different schema could make a query run forever or have other effects.
void reject_other_schema(Database& database) {
    const Schema found = schema_of(database);
    const Schema& expected = expected_schema().schema;
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

void reject_other_types(Database& database) {
    for (const auto& [table, query] : expected_schema().types)
        if (!is_long(table) && database.integer(query) != 0)
            throw damaged_store(database.path(),
                                fmt::format("table {} holds a value of another type than its column", table));
}

void reject_nul_bytes(Database& database) {
    for (const auto& [table, query] : expected_schema().nuls)
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
                                     {"study", "name", 20'000},
                                     {"study", "title", 20'000},
                                     {"verdict", "check_name", 2000},
                                     {"verdict", "reason", 20'000},
                                     {"claim", "statement", 20'000}};

/// Rejects damage that can be found in the short tables.
void reject_impossible_study(Database& database) {
    // SQL conditions for a number that is not finite and for a text that is not hexadecimal.
    const auto infinite = [](const std::string& column) {
        return fmt::format("abs({}) > 1.7976931348623157e308", column);
    };
    const auto no_hex = [](const std::string& column) {
        return fmt::format("length({0}) = 0 OR {0} GLOB '*[^0-9a-f]*'", column);
    };
    const std::pair<const char*, std::string> impossible[] = {
        {"study",
         "typeof(batch_reps) <> 'integer' OR batch_reps < 1 OR NOT (false_alarm >= 1e-300 AND false_alarm < 1) OR " +
             no_hex("science_hash") + " OR NOT seed GLOB '0x*' OR " + no_hex("substr(seed, 3)")},
        {"cell",
         "typeof(n) <> 'integer' OR typeof(d) <> 'integer' OR n < 0 OR d < 0 OR typeof(reps_least) <> 'integer' "
         "OR typeof(reps_target) <> 'integer' OR reps_least < 1 OR reps_target < reps_least OR NOT "
         "json_valid(params) OR " +
             no_hex("cell_hash")},
        {"factor", infinite("num")},
        {"method", "NOT json_valid(params) OR " + infinite("bits")},
        {"input", no_hex("sha256")},
        {"theory", infinite("value")},
        {"question", infinite("expected") + " OR " + infinite("margin") + " OR " + infinite("control_expected")},
        {"verdict", infinite("expected") + " OR " + infinite("margin") + " OR " + infinite("control_expected")}};
    for (const auto& [table, rows] : impossible)
        if (database.integer(fmt::format("SELECT EXISTS(SELECT 1 FROM {} NOT INDEXED WHERE {})", table, rows)) != 0)
            throw damaged_store(database.path(), fmt::format("table {} holds values that no run writes", table));
    for (const auto& limit : text_limits)
        if (database.integer(fmt::format("SELECT EXISTS(SELECT 1 FROM {0} WHERE length(CAST({1} AS BLOB)) > {2})",
                                         limit.table, limit.column, limit.bytes)) != 0)
            throw damaged_store(database.path(), fmt::format("table {} holds a text in {} that is longer than {} bytes",
                                                             limit.table, limit.column, limit.bytes));
    for (const char* table : {"batch", "moment", "factor", "theory", "failure", "question", "verdict"})
        if (database.integer(fmt::format(
                "SELECT EXISTS(SELECT 1 FROM {} NOT INDEXED WHERE cell_id NOT IN (SELECT cell_id FROM cell))",
                table)) != 0)
            throw damaged_store(database.path(), fmt::format("table {} refers to a cell that does not exist", table));
    if (database.integer("SELECT count(*) FROM study") != 1) throw damaged_store(database.path(), "it has no study");
}

void check_is_store(Database& database) {
    if (database.integer("PRAGMA application_id") != application_id)
        throw input_error("{}: not a store of this program (its application id differs): give a .spiked file",
                          database.path());
    const std::int64_t version = database.integer("PRAGMA user_version");
    if (version > schema_version)
        throw input_error("{}: written by a newer version (schema {}, this program knows {}): update the program",
                          database.path(), version, schema_version);
    if (version < schema_version)
        throw input_error(
            "{}: written by an older version (schema {}, this program reads {} only): make it again with the command "
            "that made it",
            database.path(), version, schema_version);
    reject_other_schema(database);
    reject_other_types(database);
    reject_nul_bytes(database);
    reject_impossible_study(database);
}

bool exists_with_content(const std::string& path) {
    struct stat status {};
    return stat(path.c_str(), &status) == 0 && status.st_size > 0;
}

std::string digest(const Batch& batch) {
    std::string bytes;
    const auto add = [&](auto number) { bytes.append(reinterpret_cast<const char*>(&number), sizeof number); };
    for (const auto& [key, moments] : batch.moments) {
        add(key.method), add(key.metric), add(key.k), add(moments.count), add(moments.missing);
        for (const double x : {moments.mean, moments.m2, moments.m3, moments.m4, moments.low, moments.high}) add(x);
    }
    for (const auto& value : batch.values) add(value.replicate), add(std::bit_cast<std::uint64_t>(value.value));
    return hex(sha256(bytes));
}

std::int64_t id(std::size_t index) { return static_cast<std::int64_t>(index) + 1; }

/// Adds the metrics after the last one that the store has.
void add_new_metrics(Database& database) {
    Statement metric(database, "INSERT INTO metric VALUES(?,?,?,?,?)");
    for (auto m = static_cast<std::size_t>(database.integer("SELECT count(*) FROM metric")); m < metrics().size();
         ++m) {
        const auto& of = metrics()[m];
        metric.bind(1, id(m)).bind(2, of.name).bind(3, of.unit).bind(4, of.better).bind(5, of.definition).run();
    }
}

}  // namespace

std::string utc_now() {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    gmtime_r(&now, &parts);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return text;
}

void create_schema(Database& database) {
    database.execute(
        fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", application_id, schema_version));
    database.execute(store_schema);
    add_new_metrics(database);
}

void reject_other_metrics(Database& store) {
    Statement row(store, "SELECT metric_id, name FROM metric ORDER BY metric_id");
    for (std::size_t known = 0; row.step(); ++known) {
        if (known == metrics().size())
            throw input_error(
                "{}: written by a newer version (it measures {}, which this program does not know): "
                "update the program",
                store.path(), row.text(1));
        if (row.integer(0) != id(known) || row.text(1) != metrics()[known].name)
            throw input_error(
                "{}: its metric {} is {}, not {} (another version of the program wrote it): make it again "
                "with the command that made it",
                store.path(), row.integer(0), row.text(1), metrics()[known].name);
    }
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
    return database;
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

Store::Lock::Lock(const std::string& path) {
    if (path == ":memory:") return;
    file_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file_ < 0)
        throw output_error("{}: the store cannot be written ({}): check folder and permissions", path,
                           std::strerror(errno));
    // The lock of a run that was just killed may take a moment to be released.
    for (int attempt = 0; attempt < 20; ++attempt) {
        if (flock(file_, LOCK_EX | LOCK_NB) == 0) return;
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    std::string holder = "another process";
    try {
        Database database(path, Database::Mode::read);
        Statement session(database, "SELECT host, pid FROM session ORDER BY session_id DESC LIMIT 1");
        if (session.step()) holder = fmt::format("process {} on {}", session.integer(1), session.text(0));
    } catch (const Error&) {
        // A store that is just being created does not yet name the process that creates it.
    }
    close(file_);
    throw output_error("{}: {} is working on this store (one run at a time): wait for it, or stop it", path, holder);
}

Store::Lock::~Lock() {
    if (file_ >= 0) close(file_);
}

Store::Store(const std::string& path, const Experiment& experiment, const std::string& command_line,
             std::size_t threads, const Json& provenance)
    : lock_(path),
      database_(path, Database::Mode::create),
      // A run that was killed while it created the store leaves an empty file, which has nothing to resume. A file with
      // pages but without tables is another program's database.
      resumed_(database_.integer("PRAGMA page_count") > 0) {
    if (resumed_) {
        check_is_store(database_);
        reject_lost_rows(database_);
        reject_other_metrics(database_);
        require_same_study(experiment);
    } else {
        create(experiment);
    }
    database_.execute("PRAGMA synchronous = FULL");
    Transaction transaction(database_);
    write_expectations(experiment);
    begin_session(command_line, threads, experiment.backend, provenance);
    database_.execute("UPDATE study SET status = 'running'");
    transaction.commit();
}

void Store::begin_session(const std::string& command_line, std::size_t threads, const std::string& backend,
                          const Json& provenance) {
    char host[256] = {};
    gethostname(host, sizeof host - 1);
    Statement(database_,
              "INSERT INTO session(started_utc, argv, host, pid, threads, device, provenance) VALUES(?,?,?,?,?,?,?)")
        .bind(1, utc_now())
        .bind(2, command_line)
        .bind(3, host)
        .bind(4, static_cast<std::int64_t>(getpid()))
        .bind(5, threads)
        .bind(6, backend)
        .bind(7, provenance.text())
        .run();
    session_ = database_.integer("SELECT max(session_id) FROM session");
}

/// Writes what is not measured: questions, predictions, claims and figures. When a store is resumed they are replaced
/// by those of the current program and study file.
void Store::write_expectations(const Experiment& experiment) {
    database_.execute("DELETE FROM question; DELETE FROM theory; DELETE FROM figure");
    add_new_metrics(database_);
    Statement(database_, "UPDATE study SET failure_budget = ?").bind_real(1, experiment.failure_budget).run();
    Statement claim(database_,
                    "INSERT INTO claim VALUES(?,?,?,?) ON CONFLICT(id) DO UPDATE SET place = excluded.place, "
                    "statement = excluded.statement, control = excluded.control");
    for (const auto& of : experiment.claims)
        claim.bind(1, of.id).bind(2, of.place).bind(3, of.statement).bind(4, of.control).run();
    Statement theory(database_, "INSERT INTO theory VALUES(?,?,?,?,1e-12,?)");
    for (std::size_t c = 0; c < experiment.cells.size(); ++c)
        for (const auto& [quantity, k, value] : experiment.cells[c].limits)
            theory.bind(1, id(c))
                .bind(2, quantity)
                .bind(3, k)
                .bind_real(4, value)
                .bind(5, "separable law, limit")
                .run();
    Statement question(database_,
                       "INSERT INTO question(check_name, claim, cell_id, method_id, metric_id, k, expected, margin, "
                       "control_expected) VALUES(?,?,?,?,?,?,?,?,?)");
    for (const auto& check : experiment.checks)
        for (std::size_t c = 0; c < experiment.cells.size(); ++c) {
            const auto& cell = experiment.cells[c];
            if (!check.applies_to(cell)) continue;
            for (const auto& prediction : cell.predictions)
                if (prediction.claim == check.claim)
                    question.bind(1, check.name)
                        .bind(2, check.claim)
                        .bind(3, id(c))
                        .bind(4, id(prediction.method))
                        .bind(5, id(metric_index(prediction.metric)))
                        .bind(6, prediction.k)
                        .bind_real(7, prediction.value)
                        .bind_real(8, check.margin(cell, prediction.value))
                        .bind_real(9, prediction.with_fault)
                        .run();
        }
    Statement figure(database_, "INSERT INTO figure(kind, spec) VALUES(?,?)");
    for (const auto& spec : experiment.figures) figure.bind(1, *spec.find("kind")->string()).bind(2, spec.text()).run();
}

void Store::create(const Experiment& experiment) {
    Transaction transaction(database_);
    create_schema(database_);
    Statement(database_, "INSERT INTO study VALUES(1,?,?,?,?,?,?,?,?,?,?,'running',?,?,?,?)")
        .bind(1, experiment.name)
        .bind(2, experiment.title)
        .bind(3, experiment.kind)
        .bind(4, experiment.config_source)
        .bind(5, experiment.science.text())
        .bind(6, experiment.science_hash())
        .bind(7, experiment.seed.text())
        .bind(8, experiment.seed_source)
        .bind_real(9, experiment.false_alarm)
        .bind(10, experiment.backend)
        .bind(11, utc_now())
        .bind(12, experiment.batch)
        .bind(13, experiment.config_set.text())
        .bind_real(14, experiment.failure_budget)
        .run();
    Statement input(database_,
                    "INSERT INTO input(path, bytes, sha256, format, layout, model, meta) VALUES(?,?,?,?,?,?,?)");
    for (const auto& file : experiment.inputs)
        input.bind(1, file.path)
            .bind(2, static_cast<std::int64_t>(file.bytes))
            .bind(3, file.sha256)
            .bind(4, file.format)
            .bind(5, file.layout)
            .bind(6, file.model)
            .bind(7, file.meta.text())
            .run();
    Statement cell(database_, "INSERT INTO cell VALUES(?,?,?,?,?,?,?,?,'todo',NULL)");
    Statement factor(database_, "INSERT INTO factor VALUES(?,?,?,?)");
    for (std::size_t c = 0; c < experiment.cells.size(); ++c) {
        const auto& at = experiment.cells[c];
        cell.bind(1, id(c))
            .bind(2, at.hash())
            .bind(3, at.label)
            .bind(4, at.rows)
            .bind(5, at.columns)
            .bind(6, at.params.text())
            .bind(7, at.least())
            .bind(8, at.replicates)
            .run();
        for (const auto& [name, number, text] : at.factors)
            factor.bind(1, id(c)).bind(2, name).bind_real(3, number.value_or(std::nan(""))).bind(4, text).run();
    }
    Statement method(database_, "INSERT INTO method VALUES(?,?,?,?,?,?)");
    for (std::size_t m = 0; m < experiment.methods.size(); ++m) {
        const auto& of = experiment.methods[m];
        method.bind(1, id(m)).bind(2, of.name).bind(3, of.kind).bind(4, of.base);
        if (of.bits)
            method.bind_real(5, *of.bits);
        else
            method.bind_null(5);
        method.bind(6, of.params.text()).run();
    }
    Statement rule(database_, "INSERT INTO stop_rule(metric_id, relative, absolute) VALUES(?,?,?)");
    for (const auto& of : experiment.until)
        rule.bind(1, id(of.metric)).bind_real(2, of.relative).bind_real(3, of.absolute).run();
    transaction.commit();
}

void Store::require_same_study(const Experiment& experiment) {
    StudyIdentity stored = identity_of(database_);
    const StudyIdentity wanted = identity_of(experiment);
    const bool mixes = stored.backend != wanted.backend && stored.backend != mixed_backend;
    if (mixes && !experiment.mixed)
        throw usage_error(
            "{}: the store was computed on {}, this would be {} (their last digits differ): go on with --device {}, "
            "or with --mixed",
            database_.path(), stored.backend, wanted.backend, stored.backend);
    stored.backend = wanted.backend;
    const std::string changes = differences(stored, wanted, ", now ");
    if (!changes.empty())
        throw usage_error("{}: the store holds another study ({}): choose another name with -o, or delete the store",
                          database_.path(), changes);
    if (mixes) Statement(database_, "UPDATE study SET backend = ?").bind(1, mixed_backend).run();
}

/// Cuts a long message to the limit for stored messages.
static std::string shortened(std::string message) {
    if (message.size() <= longest_message) return message;
    message.resize(longest_message - 3);
    trim_partial_character(message);
    return message + "...";
}

void Store::commit(const Batch& batch, std::optional<CellEnd> end) {
    Transaction transaction(database_);
    Statement(database_, "INSERT INTO batch VALUES(?,?,?,?,?,?,?,?)")
        .bind(1, id(batch.cell))
        .bind(2, batch.number)
        .bind(3, static_cast<std::int64_t>(batch.first))
        .bind(4, static_cast<std::int64_t>(batch.count))
        .bind(5, batch.failures.size())
        .bind(6, session_)
        .bind_real(7, batch.seconds)
        .bind(8, digest(batch))
        .run();
    Statement moment(database_, "INSERT INTO moment VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)");
    for (const auto& [key, m] : batch.moments) {
        const double none = std::nan("");
        const bool any = m.count > 0;
        moment.bind(1, id(batch.cell))
            .bind(2, batch.number)
            .bind(3, id(key.method))
            .bind(4, id(key.metric))
            .bind(5, key.k)
            .bind(6, static_cast<std::int64_t>(m.count))
            .bind(7, static_cast<std::int64_t>(m.missing))
            .bind_real(8, any ? m.mean : none)
            .bind_real(9, any ? m.m2 : none)
            .bind_real(10, any ? m.m3 : none)
            .bind_real(11, any ? m.m4 : none)
            .bind_real(12, any ? m.low : none)
            .bind_real(13, any ? m.high : none)
            .run();
    }
    Statement value(database_, "INSERT INTO value VALUES(?,?,?,?,?,?)");
    for (const auto& v : batch.values)
        value.bind(1, id(batch.cell))
            .bind(2, static_cast<std::int64_t>(v.replicate))
            .bind(3, id(v.quantity.method))
            .bind(4, id(v.quantity.metric))
            .bind(5, v.quantity.k)
            .bind_real(6, v.value)
            .run();
    Statement failure(database_, "INSERT INTO failure VALUES(?,?,NULL,'replicate',?,?,?)");
    for (const auto& f : batch.failures)
        failure.bind(1, id(batch.cell))
            .bind(2, static_cast<std::int64_t>(f.replicate))
            .bind(3, f.code)
            .bind(4, shortened(f.message))
            .bind(5, fmt::format("spiked replay STORE --cell {} --rep {}", batch.cell + 1, f.replicate))
            .run();
    Statement array(database_, "INSERT INTO array VALUES(?,0,?,?,?)");
    for (const auto& a : batch.arrays) {
        const std::string npy = sim::npy_bytes(a.values);
        array.bind(1, id(batch.cell))
            .bind(2, id(a.method))
            .bind(3, a.name)
            .bind_blob(4, {reinterpret_cast<const std::uint8_t*>(npy.data()), npy.size()})
            .run();
    }
    if (end)
        Statement(database_, "UPDATE cell SET state = 'done', why = ? WHERE cell_id = ?")
            .bind(1, name_of(*end))
            .bind(2, id(batch.cell))
            .run();
    transaction.commit();
}

void Store::finish(const std::string& status, int exit_code, const std::string& stop_reason) {
    Transaction transaction(database_);
    Statement(database_, "UPDATE session SET ended_utc = ?, exit_code = ?, stop_reason = ? WHERE session_id = ?")
        .bind(1, utc_now())
        .bind(2, exit_code)
        .bind(3, stop_reason)
        .bind(4, session_)
        .run();
    Statement(database_, "UPDATE study SET status = ?").bind(1, status).run();
    transaction.commit();
}

}  // namespace spiked::validation

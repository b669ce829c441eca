#include "validation/engine/merge.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/files/byte_file.hpp"
#include "core/files/output_file.hpp"
#include "core/runtime/error.hpp"
#include "validation/engine/judge.hpp"
#include "validation/store/open_store.hpp"
#include "validation/store/stopping.hpp"
#include "validation/store/store_metrics.hpp"
#include "validation/store/study_identity.hpp"

namespace spiked::validation {
namespace {

namespace fs = std::filesystem;

/// A temporary file beside its final place. It is moved there when it is complete, and deleted otherwise.
class UnfinishedFile {
public:
    explicit UnfinishedFile(std::string target) : target_(std::move(target)), temporary_(target_) {}

    [[nodiscard]] const std::string& path() const { return temporary_.path(); }

    void move_into_place() {
        flush(path(), O_RDONLY);
        if (std::rename(path().c_str(), target_.c_str()) != 0)
            throw output_error("{}: cannot be written ({}): choose another place", target_,
                               std::generic_category().message(errno));
        const auto folder = fs::path(target_).parent_path();
        flush(folder.empty() ? "." : folder.string(), O_RDONLY | O_DIRECTORY);
    }

private:
    static void flush(const std::string& path, int flags) {
        const FileDescriptor file(::open(path.c_str(), flags | O_CLOEXEC));
        if (file.number() >= 0) ::fsync(file.number());
    }

    std::string target_;
    TemporaryName temporary_;
};

/// Attaches an open store, for reading only, to the main database under the name `part`.
class Attached {
public:
    Attached(Database& database, const Database& part) : database_(database) {
        Statement(database_, "ATTACH ? AS part").bind(1, part.readable_uri()).run();
    }
    Attached(const Attached&) = delete;
    Attached& operator=(const Attached&) = delete;
    ~Attached() {
        try {
            database_.execute("DETACH part");
        } catch (...) {
            // This happens only after another error, which is already being thrown; the connection is closed next.
        }
    }

private:
    Database& database_;
};

void check_paths(const std::vector<std::string>& parts, const std::string& output) {
    if (parts.empty()) throw usage_error("no store was named: give the parts to merge");
    std::error_code absent;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        if (fs::equivalent(parts[i], output, absent))
            throw usage_error("{}: is both a part and the output (parts are left as they are): name another output",
                              output);
        for (std::size_t j = 0; j < i; ++j)
            if (fs::equivalent(parts[i], parts[j], absent))
                throw usage_error("{} and {}: the same store (a part counts once): name each part once", parts[j],
                                  parts[i]);
    }
    if (fs::exists(output, absent))
        throw output_error("{}: exists already (nothing is overwritten): give another name, or delete it", output);
    const auto folder = fs::path(output).parent_path();
    if (!folder.empty() && !fs::is_directory(folder, absent))
        throw output_error("{}: cannot be written (its folder does not exist): create the folder first", output);
}

/// The rows of a table of the attached part, for the FROM of a query: metrics have their numbers in the merged store.
std::string rows_of_part(Database& database, std::string_view table) {
    Statement columns(database,
                      "SELECT group_concat(CASE name WHEN 'metric_id' THEN '(SELECT own FROM temp.metric_number WHERE "
                      "of_part = metric_id) AS metric_id' ELSE name END, ', '), sum(name = 'exponent_of') FROM "
                      "pragma_table_info(?, 'part')");
    columns.bind(1, table);
    (void)columns.step();
    const bool lacks_columns = table == "question" && columns.integer(1) == 0;
    return fmt::format("(SELECT {}{}{} FROM part.{})", columns.text(0), lacks_columns ? ", " : "",
                       lacks_columns ? columns_added_by_4 : "", table);
}

/// Adds the rows of the table that the merged store lacks. If both have the key, the row whose other columns sort first
/// is kept, so that the result does not depend on the order of the parts.
void take_first_in_order(Database& database, const std::string& table, const std::string& keys,
                         const std::string& others) {
    std::string excluded;
    std::string assignments;
    for (std::size_t at = 0; at <= others.size();) {
        const std::size_t end = std::min(others.find(", ", at), others.size());
        const std::string column = others.substr(at, end - at);
        excluded += (excluded.empty() ? "" : ", ") + ("excluded." + column);
        assignments += fmt::format("{}{} = excluded.{}", assignments.empty() ? "" : ", ", column, column);
        at = end + 2;
    }
    database.execute(
        fmt::format("INSERT INTO main.{0}({1}, {2}) SELECT {1}, {2} FROM {5} WHERE true ON CONFLICT({1}) DO UPDATE "
                    "SET {3} WHERE ({4}) < ({2})",
                    table, keys, others, assignments, excluded, rows_of_part(database, table)));
}

/// Checks that the parts have the same questions. Predictions are computed, so different versions of the program may
/// differ in their last digits; with larger differences the parts would be judged by different theories.
void check_questions(Database& database, const std::string& part) {
    Statement odd(database,
                  "SELECT q.check_name FROM main.question q LEFT JOIN " + rows_of_part(database, "question") +
                      " p ON p.question_id = q.question_id AND (p.check_name, p.claim, p.cell_id, p.method_id, "
                      "p.metric_id, p.k) ="
                      "     (q.check_name, q.claim, q.cell_id, q.method_id, q.metric_id, q.k) WHERE p.question_id IS "
                      "NULL OR p.exponent_of IS NOT q.exponent_of"
                      " OR (p.expected IS NULL) <> (q.expected IS NULL) OR abs(p.allowed_lo - q.allowed_lo) > 1e-9 * "
                      "max(abs(q.allowed_lo), q.margin)"
                      " OR abs(p.allowed_hi - q.allowed_hi) > 1e-9 * max(abs(q.allowed_hi), q.margin) OR "
                      "abs(p.expected - q.expected) > 1e-9 * max(abs(q.expected), q.margin)"
                      " OR abs(p.control_expected - q.control_expected) > 1e-9 * max(abs(q.control_expected), q.margin)"
                      " OR abs(p.margin - q.margin) > 1e-9 * q.margin LIMIT 1");
    const bool differs = odd.step();
    if (differs || database.integer("SELECT count(*) FROM main.question") !=
                       database.integer("SELECT count(*) FROM part.question"))
        throw usage_error(
            "{}: what its checks expect differs from the other parts{} (another version of the program wrote it): run "
            "the study's command on each part again with one version",
            part, differs ? ", for example in check " + odd.text(0) : "");
}

class Merger {
public:
    Merger(const std::string& path, const std::string& output, const std::atomic<bool>* stop)
        : database_(path, Database::Mode::trusted, output) {
        if (stop != nullptr) database_.interrupt_on(*stop);
        // An unfinished file is never used, so it needs no journal and no synchronisation.
        database_.execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF");
        create_schema(database_);
        database_.execute(
            "CREATE TEMP TABLE origin(cell_id INTEGER, batch INTEGER, part TEXT, PRIMARY KEY(cell_id, batch)) "
            "WITHOUT ROWID;CREATE TEMP TABLE metric_number(of_part INTEGER PRIMARY KEY, own INTEGER NOT NULL)");
    }

    void add(const std::string& path) {
        Database store = open_store(path);
        reject_lost_rows(store);
        reject_unknown_metrics(store);
        StudyIdentity identity = identity_of(store);
        if (first_.empty()) {
            first_ = path;
            identity_ = std::move(identity);
        } else if (const std::string changes = differences_from(identity); !changes.empty()) {
            throw usage_error("{} and {} are not parts of one study ({}): merge stores of one study file and seed",
                              first_, path, changes);
        }
        try {
            const Attached attached(database_, store);
            database_.execute("BEGIN");  // a consistent state of the part, even while a run still writes to it
            database_.execute(
                "DELETE FROM temp.metric_number; INSERT INTO temp.metric_number SELECT p.metric_id, m.metric_id FROM "
                "part.metric p JOIN main.metric m USING(name)");
            if (first_ == path)
                copy_design();
            else
                reconcile_design(path);
            copy_sessions();
            copy_batches(path);
            database_.execute("COMMIT");
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::input) throw;
            throw damaged_store(path, "its rows cannot be copied");
        }
    }

    void finish() {
        {
            Transaction transaction(database_);
            put_in_order();
            StudyProgress study(database_);
            Statement done(database_, "UPDATE cell SET state = 'done', why = ? WHERE cell_id = ?");
            for (std::size_t c = 0; c < study.cells().size(); ++c)
                if (const auto end = study.cells()[c].end()) done.bind(1, name_of(*end)).bind(2, c + 1).run();
            Statement budget(database_, "SELECT failure_budget FROM study");
            (void)budget.step();
            const char* status = study.over_budget(budget.real(0)) ? "failed"
                                 : study.complete()                ? "complete"
                                                                   : "incomplete";
            budget.reset();
            Statement(database_, "UPDATE study SET status = ?").bind(1, status).run();
            transaction.commit();
        }
        judge(database_);
        if (Statement broken(database_, "PRAGMA foreign_key_check"); broken.step())
            throw input_error(
                "{}: refers to rows that no part holds (a part was changed by hand): make the parts again",
                database_.path());
    }

private:
    /// How a part is of another study than the first one; empty where it is of the same.
    [[nodiscard]] std::string differences_from(const StudyIdentity& part) const {
        // Studies with the same settings and seed have different numbers of cells only where results ask for more.
        if (part.science_hash == identity_.science_hash && part.seed == identity_.seed &&
            part.plan.size() != identity_.plan.size())
            return fmt::format("{} has further cells, such as second analyses of undecided claims",
                               part.plan.size() > identity_.plan.size() ? "the second" : "the first");
        return differences(identity_, part, " and ");
    }

    void copy(std::string_view table) {
        database_.execute(fmt::format("INSERT INTO main.{} SELECT * FROM {}", table, rows_of_part(database_, table)));
    }

    void copy_design() {
        for (const char* table :
             {"study", "input", "cell", "factor", "method", "stop_rule", "claim", "theory", "question"})
            copy(table);
        if (database_.integer("SELECT count(*) FROM part.sqlite_master WHERE name = 'question_cell'") > 0)
            copy("question_cell");
        // The units decide how the stop rules measure errors (StopRule::unit).
        database_.execute(
            "UPDATE main.metric SET unit = (SELECT p.unit FROM part.metric p WHERE p.name = metric.name) WHERE "
            "metric_id IN (SELECT metric_id FROM main.stop_rule)");
        database_.execute("UPDATE main.cell SET state = 'todo', why = NULL; DELETE FROM main.figure");
        take_figures();
    }

    void reconcile_design(const std::string& path) {
        check_questions(database_, path);
        if (Statement other(database_,
                            "SELECT m.name FROM main.stop_rule JOIN main.metric m USING(metric_id) JOIN part.metric p "
                            "USING(name) WHERE p.unit <> m.unit");
            other.step())
            throw usage_error(
                "{} and {} measure the error of {} for run.until in different ways (another version of the program "
                "made one of them): make both parts with one version",
                first_, path, other.text(0));
        database_.execute(
            "UPDATE main.study SET (created_utc, config_source, config_set, title, seed_source) = (SELECT created_utc, "
            "config_source, config_set, title, seed_source FROM part.study) WHERE (SELECT"
            " (p.created_utc, p.config_source, p.config_set, p.title, p.seed_source) < (study.created_utc, "
            "study.config_source, study.config_set, study.title, study.seed_source)"
            " FROM part.study p);UPDATE main.study SET false_alarm = min(false_alarm, (SELECT false_alarm FROM "
            "part.study)),"
            " failure_budget = min(failure_budget, (SELECT failure_budget FROM part.study))");
        // The same files may have other paths on another machine.
        take_first_in_order(database_, "input", "input_id", "path, bytes, sha256, format, layout, model, meta");
        take_first_in_order(database_, "factor", "cell_id, name", "txt, num");
        database_.execute(
            "UPDATE main.cell SET label = min(label, (SELECT label FROM part.cell p WHERE p.cell_id = cell.cell_id))");
        take_first_in_order(database_, "claim", "id", "place, statement, control");
        take_first_in_order(database_, "theory", "cell_id, quantity, k", "value, num_err, source");
        take_first_in_order(database_, "question", "question_id",
                            "margin, control_expected, allowed_lo, allowed_hi, check_name, claim, cell_id, method_id, "
                            "metric_id, k, expected");
        take_figures();
    }

    /// Figures may differ between parts. Those of the latest session are kept, as in a store that several commands use
    /// one after another.
    void take_figures() {
        Statement latest(database_,
                         "SELECT coalesce(max(started_utc), ''), (SELECT group_concat(kind || spec, char(10)) FROM "
                         "(SELECT kind, spec FROM part.figure ORDER BY figure_id)) FROM part.session");
        (void)latest.step();
        const std::pair found{latest.text(0), latest.text(1)};
        if (figures_ && found <= *figures_) return;
        figures_ = found;
        database_.execute("DELETE FROM main.figure");
        database_.execute("INSERT INTO main.figure(kind, spec) SELECT kind, spec FROM part.figure ORDER BY figure_id");
    }

    void copy_sessions() {
        shift_ = database_.integer("SELECT coalesce(max(session_id), 0) FROM main.session");
        database_.execute(fmt::format(
            "INSERT INTO main.session SELECT session_id + {0}, started_utc, ended_utc, exit_code, stop_reason, argv, "
            "host, pid, threads, device, provenance FROM part.session;INSERT INTO main.event SELECT t_utc, session_id "
            "+ {0}, level, code, message FROM part.event",
            shift_));
    }

    void copy_batches(const std::string& path) {
        {
            Statement twice(database_,
                            "SELECT o.part, c.label, b.batch, b.rep_first, b.rep_first + b.reps - 1 FROM part.batch b "
                            "JOIN temp.origin o USING(cell_id, batch) JOIN main.cell c USING(cell_id) ORDER BY "
                            "b.cell_id, b.batch LIMIT 1");
            if (twice.step())
                throw usage_error(
                    "{} and {} both hold batch {} of cell {} (replicates {} to {} would count twice): merge each part "
                    "once",
                    twice.text(0), path, twice.integer(2), twice.text(1), twice.integer(3), twice.integer(4));
        }
        Statement(database_, "INSERT INTO temp.origin SELECT cell_id, batch, ? FROM part.batch").bind(1, path).run();
        database_.execute(fmt::format(
            "INSERT INTO main.batch SELECT cell_id, batch, rep_first, reps, failed, session_id + {}, wall_s, digest "
            "FROM part.batch",
            shift_));
        for (const char* table : {"moment", "value", "array", "failure"}) copy(table);
    }

    /// Renumbers rows that were numbered in the order of the parts by their content.
    void put_in_order() {
        database_.execute(
            "CREATE TEMP TABLE new_session(old INTEGER PRIMARY KEY, new INTEGER NOT NULL);INSERT INTO new_session "
            "SELECT session_id, row_number() OVER (ORDER BY started_utc, host, pid, argv, ended_utc, exit_code, "
            "stop_reason, threads, device, provenance, first) FROM main.session LEFT JOIN (SELECT session_id, "
            "min(printf('%019d %019d', cell_id, batch)) AS first FROM main.batch GROUP BY session_id) "
            "USING(session_id);CREATE TEMP TABLE kept_session AS SELECT * FROM main.session;DELETE FROM "
            "main.session;INSERT INTO main.session SELECT n.new, k.started_utc, k.ended_utc, k.exit_code, "
            "k.stop_reason, k.argv, k.host, k.pid, k.threads, k.device, k.provenance FROM kept_session k JOIN "
            "new_session n ON n.old = k.session_id ORDER BY n.new;UPDATE main.batch SET session_id = (SELECT new FROM "
            "new_session WHERE old = session_id);CREATE TEMP TABLE kept_event AS SELECT t_utc, n.new AS session_id, "
            "level, code, message FROM main.event LEFT JOIN new_session n ON n.old = session_id;DELETE FROM "
            "main.event;INSERT INTO main.event SELECT * FROM kept_event ORDER BY 1, 2, 3, 4, 5;CREATE TEMP TABLE "
            "kept_failure AS SELECT * FROM main.failure;DELETE FROM main.failure;INSERT INTO main.failure SELECT * "
            "FROM kept_failure ORDER BY 1, 2, 3, 4, 5, 6, 7");
    }

    Database database_;
    std::string first_;
    StudyIdentity identity_;
    std::optional<std::pair<std::string, std::string>> figures_;
    std::int64_t shift_ = 0;
};

}  // namespace

void merge_stores(const std::vector<std::string>& parts, const std::string& output, const std::atomic<bool>* stop) {
    check_paths(parts, output);
    UnfinishedFile file(output);
    {
        Merger merger(file.path(), output, stop);
        for (const auto& part : parts) merger.add(part);
        merger.finish();
    }
    file.move_into_place();
}

}  // namespace spiked::validation

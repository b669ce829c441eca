#include "validation/store/store.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <ctime>
#include <thread>

#include "core/files/sha256.hpp"
#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "core/text/printable.hpp"
#include "sim/io/npy.hpp"
#include "validation/store/open_store.hpp"
#include "validation/store/size_groups.hpp"
#include "validation/store/study_identity.hpp"

namespace spiked::validation {
namespace {

constexpr const char* mixed_backend = "mixed";

/// A hash of all moments and values. It does not depend on the numbers that a store gives to metrics.
std::string digest(const Batch& batch) {
    std::string bytes;
    const auto add = [&](auto number) { bytes.append(reinterpret_cast<const char*>(&number), sizeof number); };
    for (const auto& [key, moments] : batch.moments) {
        bytes += metrics()[key.metric].name;
        add('\0'), add(key.method), add(key.k), add(moments.count), add(moments.missing);
        for (const double x : {moments.mean, moments.m2, moments.m3, moments.m4, moments.low, moments.high}) add(x);
    }
    for (const auto& value : batch.values) add(value.replicate), add(std::bit_cast<std::uint64_t>(value.value));
    return hex(sha256(bytes));
}

std::int64_t id(std::size_t index) { return static_cast<std::int64_t>(index) + 1; }

}  // namespace

std::string utc_now() {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    gmtime_r(&now, &parts);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return text;
}

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
        reject_unknown_metrics(database_);
        require_same_study(experiment);
    } else {
        create(experiment);
    }
    database_.execute("PRAGMA synchronous = FULL");
    Transaction transaction(database_);
    upgrade_schema(database_);
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
    database_.execute("DELETE FROM question_cell; DELETE FROM question; DELETE FROM theory; DELETE FROM figure");
    add_missing_metrics(database_);
    metrics_.emplace(database_);
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
    write_questions(experiment);
    Statement figure(database_, "INSERT INTO figure(kind, spec) VALUES(?,?)");
    for (const auto& spec : experiment.figures) figure.bind(1, *spec.find("kind")->string()).bind(2, spec.text()).run();
}

void Store::write_questions(const Experiment& experiment) {
    Statement question(database_,
                       "INSERT INTO question(check_name, claim, cell_id, method_id, metric_id, k, expected, margin, "
                       "control_expected, allowed_lo, allowed_hi, exponent_of) VALUES(?,?,?,?,?,?,?,?,?,?,?,?)");
    Statement member(database_, "INSERT INTO question_cell VALUES(?,?,?)");
    const auto ask = [&](const Check& check, const Prediction& prediction, std::size_t c) {
        const AcceptanceRegion region = check.region(experiment.cells[c], prediction);
        question.bind(1, check.name)
            .bind(2, check.claim)
            .bind(3, id(c))
            .bind(4, id(prediction.method))
            .bind(5, metrics_->number(metric_index(prediction.metric)))
            .bind(6, prediction.k)
            .bind_real(7, prediction.region ? std::nan("") : prediction.value)
            .bind_real(8, region.margin)
            .bind_real(9, prediction.with_fault)
            .bind_real(10, region.low)
            .bind_real(11, region.high);
        if (!check.exponent_of.empty()) question.bind(12, check.exponent_of);
        question.run();
    };
    for (const auto& check : experiment.checks) {
        const auto ask_all = [&](std::size_t c, const auto& also) {
            for (const auto& prediction : experiment.cells[c].predictions)
                if (prediction.claim == check.claim) {
                    ask(check, prediction, c);
                    also();
                }
        };
        if (check.exponent_of.empty()) {
            for (std::size_t c = 0; c < experiment.cells.size(); ++c)
                if (check.applies_to(experiment.cells[c])) ask_all(c, [] {});
            continue;
        }
        for (const SizeGroup& group : size_groups(check, experiment.cells))
            ask_all(group.back().cell, [&] {
                const std::int64_t number = database_.integer("SELECT max(question_id) FROM question");
                for (const auto& [cell, size] : group)
                    member.bind(1, number).bind(2, id(cell)).bind_real(3, size).run();
            });
    }
}

void Store::insert_cells(const std::vector<ExperimentCell>& cells) {
    auto number = static_cast<std::size_t>(database_.integer("SELECT count(*) FROM cell"));
    Statement cell(database_, "INSERT INTO cell VALUES(?,?,?,?,?,?,?,?,'todo',NULL)");
    Statement factor(database_, "INSERT INTO factor VALUES(?,?,?,?)");
    for (const ExperimentCell& at : cells) {
        cell.bind(1, ++number)
            .bind(2, at.hash())
            .bind(3, at.label)
            .bind(4, at.rows)
            .bind(5, at.columns)
            .bind(6, at.params.text())
            .bind(7, at.least())
            .bind(8, at.replicates)
            .run();
        for (const auto& [name, value, text] : at.factors)
            factor.bind(1, number).bind(2, name).bind_real(3, value.value_or(std::nan(""))).bind(4, text).run();
    }
}

std::size_t Store::add_cells(const std::vector<ExperimentCell>& cells) {
    if (cells.empty()) return 0;
    Transaction transaction(database_);
    insert_cells(cells);
    transaction.commit();
    return cells.size();
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
    insert_cells(experiment.cells);
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
    Statement rule(database_,
                   "INSERT INTO stop_rule(metric_id, relative, absolute) SELECT metric_id, ?, ? FROM metric WHERE name "
                   "= ?");
    for (const auto& of : experiment.until)
        rule.bind_real(1, of.relative).bind_real(2, of.absolute).bind(3, metrics()[of.metric].name).run();
    transaction.commit();
}

void Store::require_same_study(const Experiment& experiment) {
    StudyIdentity stored = experiment.grow ? identity_of(database_, experiment.cells.size()) : identity_of(database_);
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
        throw usage_error("{}: the store holds another study ({}): choose another name with -o, or delete the store{}",
                          database_.path(), changes,
                          changes.find("false_alarm: ") == std::string::npos
                              ? ""
                              : "; spiked report --false-alarm judges it again at another rate");
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
            .bind(4, metrics_->number(key.metric))
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
            .bind(4, metrics_->number(v.quantity.metric))
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

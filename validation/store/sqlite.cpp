#include "validation/store/sqlite.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <thread>

#include "core/runtime/error.hpp"
#include "core/text/printable.hpp"
#include "validation/store/store_files.hpp"

namespace spiked::validation {

Error damaged_store(const std::string& path, const std::string& what) {
    return input_error("{}: {}: the store is damaged; make it again with the command that made it", path, what);
}

void Database::Closer::operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }
void Statement::Finalizer::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

/// How long to wait for another process. Committing a batch takes milliseconds, or seconds on a slow disk; a report
/// reads a large store for as long as the page takes to draw.
constexpr int busy_timeout_ms = 30'000;

/// Steps of SQLite's virtual machine between calls of the progress handler; they take far less than a millisecond.
constexpr int steps_per_call = 1000;

int Database::on_progress(void* state) {
    auto& watch = *static_cast<Watch*>(state);
    watch.steps += steps_per_call;
    const bool stopped = watch.stop != nullptr && watch.stop->load();
    return stopped || (watch.most_steps > 0 && watch.steps > watch.most_steps) ? 1 : 0;
}

Database::Database(const std::string& path, Mode mode, const std::string& shown)
    : path_(shown.empty() ? path : shown), file_(path) {
    const bool in_memory = path == ":memory:";
    if (!in_memory && mode != Mode::trusted) reject_foreign_files(path, mode != Mode::read);
    open(path, mode);
    if (mode == Mode::read) read_recovered();
    // A schema must not have effects outside its database, and stores have no triggers.
    sqlite3_db_config(handle(), SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_db_config(handle(), SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
    sqlite3_progress_handler(handle(), steps_per_call, on_progress, watch_.get());
    if (mode == Mode::read) limit_reader();
    execute("PRAGMA foreign_keys = ON");
}

void Database::open(const std::string& file, Mode mode) {
    const bool in_memory = file == ":memory:";
    const int flags = mode == Mode::read    ? SQLITE_OPEN_READONLY
                      : mode == Mode::write ? SQLITE_OPEN_READWRITE
                                            : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    const std::string uri = in_memory ? file
                                      : database_uri(file, mode == Mode::read    ? "ro"
                                                           : mode == Mode::write ? "rw"
                                                                                 : "rwc");
    sqlite3* opened = nullptr;
    const int status = sqlite3_open_v2(uri.c_str(), &opened, flags | SQLITE_OPEN_URI | SQLITE_OPEN_EXRESCODE, nullptr);
    handle_.reset(opened);
    if (status != SQLITE_OK) {
        if (mode == Mode::create || mode == Mode::trusted)
            throw output_error("{}: the store cannot be created ({}): check folder and permissions", path_,
                               sqlite3_errmsg(opened));
        if (std::filesystem::is_directory(path_))
            throw input_error("{}: that is a folder: name a store in it, FILE.spiked", path_);
        throw input_error("{}: the store cannot be opened ({}): check the path", path_, sqlite3_errmsg(opened));
    }
    sqlite3_busy_timeout(opened, busy_timeout_ms);
}

/// Reads a recovered copy if the store has the journal of a killed writer. A read-only connection cannot roll it back
/// and reports that at its first access.
void Database::read_recovered() {
    const auto needs_rollback = [&] {
        return sqlite3_exec(handle(), "PRAGMA schema_version", nullptr, nullptr, nullptr) == SQLITE_READONLY_ROLLBACK;
    };
    constexpr auto pause = std::chrono::milliseconds(100);
    for (auto waited = pause * 0; needs_rollback(); waited += pause) {
        recovered_ = recover(path_);
        if (recovered_) {
            file_ = recovered_->path();
            open(file_, Mode::write);  // rolls the copy back at its first access
            (void)integer("PRAGMA schema_version");
            open(file_, Mode::read);
            return;
        }
        if (waited > std::chrono::milliseconds(busy_timeout_ms))
            throw output_error("{}: another process holds the store (it is repairing it): wait for it or stop it",
                               path_);
        std::this_thread::sleep_for(pause);
    }
}

void Database::limit_reader() {
    // The bytes on disk of the named file, because a journal or a hole could pretend another size.
    const auto bytes = static_cast<std::int64_t>(bytes_on_disk(path_));
    constexpr std::int64_t least_length = 16 << 20;
    constexpr std::int64_t most_length = 1'000'000'000;
    sqlite3_limit(handle(), SQLITE_LIMIT_LENGTH, static_cast<int>(std::clamp(2 * bytes, least_length, most_length)));
    sqlite3_db_config(handle(), SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    // A step takes about 20 nanoseconds; report pages of the largest studies take 5 steps per byte of their store.
    constexpr std::int64_t least_steps = 20'000'000;
    constexpr std::int64_t steps_a_byte = 50;
    watch_->most_steps = least_steps + steps_a_byte * bytes;
}

std::string Database::readable_uri() const { return database_uri(file_, "ro"); }

void Database::fail(int status) const {
    const std::string why = one_line(sqlite3_errmsg(handle_.get()));  // may quote text from a damaged file
    switch (status & 0xFF) {
        case SQLITE_NOTADB:
        case SQLITE_CORRUPT:
            throw input_error("{}: not a store ({}): give a .spiked file", path_, why);
        case SQLITE_FULL:
            throw output_error(
                "{}: the disk is full; what was committed is safe: free space and run the same command again", path_);
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
            throw output_error("{}: another process holds the store ({}): wait for it or stop it", path_, why);
        case SQLITE_IOERR:
            if (sqlite3_db_readonly(handle_.get(), "main") == 1)
                throw input_error("{}: the store cannot be read ({}): check the disk", path_, why);
            [[fallthrough]];
        case SQLITE_READONLY:
        case SQLITE_CANTOPEN:
        case SQLITE_PERM:
            throw output_error("{}: the store cannot be written ({}): check disk and permissions", path_, why);
        case SQLITE_INTERRUPT:
            if (watch_->stop == nullptr || !watch_->stop->load())
                throw damaged_store(path_, "reading its rows takes time out of proportion to its size");
            throw Error(ErrorKind::stopped, path_ + ": stopped as asked");
        case SQLITE_NOMEM:
            throw std::bad_alloc();
        case SQLITE_CONSTRAINT:
        case SQLITE_MISMATCH:
        case SQLITE_TOOBIG:
            throw damaged_store(path_, "its content is invalid (" + why + ")");
        case SQLITE_ERROR:
            // The causes are numbers and texts that no run writes, tables that were removed after the store was opened,
            // and headers of another format. Only a syntax error is a bug of this program.
            if (why.find("syntax error") == std::string::npos)
                throw damaged_store(path_, "its content is invalid (" + why + ")");
            [[fallthrough]];
        default:
            throw data_error("{}: SQLite says \"{}\"", path_, why);
    }
}

void Database::interrupt_on(const std::atomic<bool>& stop) { watch_->stop = &stop; }

void Database::execute(const std::string& sql) {
    watch_->steps = 0;
    const int status = sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr);
    if (status != SQLITE_OK) fail(status);
}

std::int64_t Database::integer(const std::string& sql) {
    Statement statement(*this, sql);
    return statement.step() ? statement.integer(0) : 0;
}

Statement::Statement(Database& database, std::string_view sql) : database_(&database) {
    database.watch_->steps = 0;
    sqlite3_stmt* statement = nullptr;
    const int status =
        sqlite3_prepare_v2(database.handle(), sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
    statement_.reset(statement);
    if (status != SQLITE_OK) database.fail(status);
}

Statement& Statement::bind(int position, std::int64_t value) {
    if (const int status = sqlite3_bind_int64(statement_.get(), position, value); status != SQLITE_OK)
        database_->fail(status);
    return *this;
}

Statement& Statement::bind(int position, std::string_view value) {
    if (value.find('\0') != value.npos)
        throw input_error(
            "{}: the text {} holds a NUL byte (stores do not accept them): remove it from the study, or from the file "
            "that it comes from",
            database_->path(), in_quotes(value));
    const int status =
        sqlite3_bind_text(statement_.get(), position, value.data(), static_cast<int>(value.size()), SQLITE_TRANSIENT);
    if (status != SQLITE_OK) database_->fail(status);
    return *this;
}

Statement& Statement::bind_null(int position) {
    if (const int status = sqlite3_bind_null(statement_.get(), position); status != SQLITE_OK) database_->fail(status);
    return *this;
}

Statement& Statement::bind_real(int position, double value) {
    if (std::isnan(value)) return bind_null(position);
    if (const int status = sqlite3_bind_double(statement_.get(), position, value); status != SQLITE_OK)
        database_->fail(status);
    return *this;
}

Statement& Statement::bind_blob(int position, std::span<const std::uint8_t> bytes) {
    const int status = sqlite3_bind_blob64(statement_.get(), position, bytes.data(), bytes.size(), SQLITE_TRANSIENT);
    if (status != SQLITE_OK) database_->fail(status);
    return *this;
}

bool Statement::step() {
    const int status = sqlite3_step(statement_.get());
    if (status == SQLITE_ROW) return true;
    if (status != SQLITE_DONE) database_->fail(status);
    return false;
}

void Statement::run() {
    while (step()) {
    }
    reset();
}

void Statement::reset() {
    database_->watch_->steps = 0;
    sqlite3_reset(statement_.get());
    sqlite3_clear_bindings(statement_.get());
}

int Statement::parameters() const { return sqlite3_bind_parameter_count(statement_.get()); }
int Statement::columns() const { return sqlite3_column_count(statement_.get()); }
std::string Statement::column_name(int column) const { return sqlite3_column_name(statement_.get(), column); }
bool Statement::is_null(int column) const { return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL; }
bool Statement::is_integer(int column) const { return sqlite3_column_type(statement_.get(), column) == SQLITE_INTEGER; }
bool Statement::is_text(int column) const { return sqlite3_column_type(statement_.get(), column) == SQLITE_TEXT; }
std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }

double Statement::real(int column) const {
    return is_null(column) ? std::numeric_limits<double>::quiet_NaN() : sqlite3_column_double(statement_.get(), column);
}

std::string Statement::text(int column) const {
    const auto* bytes = sqlite3_column_text(statement_.get(), column);
    return bytes == nullptr ? ""
                            : std::string(reinterpret_cast<const char*>(bytes),
                                          static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column)));
}

std::span<const std::uint8_t> Statement::blob(int column) const {
    const auto* bytes = static_cast<const std::uint8_t*>(sqlite3_column_blob(statement_.get(), column));
    return {bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

Transaction::Transaction(Database& database)
    : database_(database), open_(sqlite3_get_autocommit(database.handle()) != 0) {
    if (open_) database_.execute("BEGIN IMMEDIATE");
}

Transaction::~Transaction() {
    if (open_) sqlite3_exec(database_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void Transaction::commit() {
    if (open_) database_.execute("COMMIT");
    open_ = false;
}

}  // namespace spiked::validation

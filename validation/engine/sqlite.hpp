#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace spiked {
class Error;
}

namespace spiked::validation {

class RecoveredStore;

/// An input_error: `what` is in a store that no run leaves so.
[[nodiscard]] Error damaged_store(const std::string& path, const std::string& what);

/// A SQLite file, which may come from a stranger. Failures become errors that name it: input_error when it cannot be
/// read (or is no database), write_error when it cannot be written or another process holds it.
///
/// What a killed writer left half done is undone in the file when it is opened for writing. A reader changes no file:
/// it reads a recovered copy then (RecoveredStore). A reader also limits what the file can make SQLite do: values no
/// longer than the file allows, and for each statement steps in proportion to the file (input_error beyond them).
class Database {
public:
    /// create: or write where there is a file; trusted: a file of our own making, without a reader's limits and checks.
    enum class Mode { read, write, create, trusted };
    /// Messages name `shown`, or the path.
    Database(const std::string& path, Mode mode, const std::string& shown = {});

    [[nodiscard]] const std::string& path() const { return path_; }
    /// What another connection may attach to read the same, while this lives: an URI.
    [[nodiscard]] std::string readable_uri() const;
    /// From now on a statement under way when `stop` becomes true throws Error(ExitCode::stopped) and changes nothing.
    void obey(const std::atomic<bool>& stop);
    /// One or more statements without results.
    void execute(const std::string& sql);
    /// A pragma or query that gives one whole number.
    [[nodiscard]] std::int64_t integer(const std::string& sql);
    [[nodiscard]] sqlite3* handle() const { return handle_.get(); }
    /// Throws the error of the last failed call.
    [[noreturn]] void fail(int status) const;

private:
    friend class Statement;
    /// What the progress handler looks at; its address stays when the database moves.
    struct Watch {
        const std::atomic<bool>* stop = nullptr;
        std::int64_t steps = 0;       ///< of the statement under way
        std::int64_t most_steps = 0;  ///< 0: any number
    };

    static int look(void* watch);
    void open(const std::string& file, Mode mode);
    void read_recovered();
    void limit_reader();

    struct Closer {
        void operator()(sqlite3* handle) const;
    };
    std::string path_;
    std::string file_;                                 ///< the path, or the copy that is read in its place
    std::shared_ptr<const RecoveredStore> recovered_;  ///< before the handle: closed first
    std::unique_ptr<Watch> watch_ = std::make_unique<Watch>();
    std::unique_ptr<sqlite3, Closer> handle_;
};

/// A prepared statement: bind by position from 1, then step through the rows; columns from 0.
class Statement {
public:
    Statement(Database& database, std::string_view sql);

    Statement& bind(int position, std::int64_t value);
    Statement& bind(int position, int value) { return bind(position, std::int64_t{value}); }
    Statement& bind(int position, std::size_t value) { return bind(position, static_cast<std::int64_t>(value)); }
    /// Throws input_error where it holds a NUL byte: such a store would be refused when it is opened.
    Statement& bind(int position, std::string_view value);
    Statement& bind(int position, const char* value) { return bind(position, std::string_view(value)); }
    Statement& bind_null(int position);
    /// NaN becomes NULL.
    Statement& bind_real(int position, double value);
    Statement& bind_blob(int position, std::span<const std::uint8_t> bytes);

    /// Whether there is a row.
    bool step();
    /// Runs a statement without rows and makes it ready for the next binding.
    void run();
    void reset();

    [[nodiscard]] int parameters() const;
    [[nodiscard]] int columns() const;
    [[nodiscard]] std::string column_name(int column) const;
    [[nodiscard]] bool is_null(int column) const;
    [[nodiscard]] bool is_integer(int column) const;
    [[nodiscard]] bool is_text(int column) const;
    [[nodiscard]] std::int64_t integer(int column) const;
    /// NULL is NaN.
    [[nodiscard]] double real(int column) const;
    [[nodiscard]] std::string text(int column) const;
    [[nodiscard]] std::span<const std::uint8_t> blob(int column) const;

private:
    struct Finalizer {
        void operator()(sqlite3_stmt* statement) const;
    };
    Database* database_;
    std::unique_ptr<sqlite3_stmt, Finalizer> statement_;
};

/// BEGIN IMMEDIATE ... COMMIT; rolled back unless committed.
class Transaction {
public:
    explicit Transaction(Database& database);
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;
    ~Transaction();
    void commit();

private:
    Database& database_;
    bool open_ = true;
};

}  // namespace spiked::validation

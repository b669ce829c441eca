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

/// An input_error for a store with content that no run writes; `what` describes it.
[[nodiscard]] Error damaged_store(const std::string& path, const std::string& what);

/// A SQLite file, which may be untrusted. SQLite's errors become errors that name the file: input_error if it cannot be
/// read (or is not a database), output_error if it cannot be written or another process holds it.
///
/// If a killed process left an unfinished transaction, opening the file for writing rolls it back. Reading changes no
/// file: a recovered copy is read instead (RecoveredStore). Reading also limits the work that the file can cause in
/// SQLite: the length of values, and the steps of each statement, in proportion to the file (input_error beyond that).
class Database {
public:
    /// create: creates the file, or opens it for writing if it exists. trusted: a file that this process writes itself,
    /// without the checks of stores and the limits of readers.
    enum class Mode { read, write, create, trusted };
    /// Messages name `shown` if it is given, otherwise the path.
    Database(const std::string& path, Mode mode, const std::string& shown = {});

    [[nodiscard]] const std::string& path() const { return path_; }
    /// URI by which another connection may attach the same file for reading, while this object exists.
    [[nodiscard]] std::string readable_uri() const;
    /// From now on, a statement that runs when `stop` becomes true throws Error(ErrorKind::stopped) and changes
    /// nothing.
    void interrupt_on(const std::atomic<bool>& stop);
    /// Runs one or more statements without results.
    void execute(const std::string& sql);
    /// The result of a pragma or query that returns one whole number; 0 if it returns no row.
    [[nodiscard]] std::int64_t integer(const std::string& sql);
    [[nodiscard]] sqlite3* handle() const { return handle_.get(); }
    /// Throws the error of the last failed call.
    [[noreturn]] void fail(int status) const;

private:
    friend class Statement;
    /// State of the progress handler. Its address does not change when the database is moved.
    struct Watch {
        const std::atomic<bool>* stop = nullptr;
        std::int64_t steps = 0;       ///< of the running statement
        std::int64_t most_steps = 0;  ///< 0: unlimited
    };

    static int on_progress(void* watch);
    void open(const std::string& file, Mode mode);
    void read_recovered();
    void limit_reader();

    struct Closer {
        void operator()(sqlite3* handle) const;
    };
    std::string path_;
    std::string file_;                                 ///< the path, or the recovered copy that is read instead
    std::shared_ptr<const RecoveredStore> recovered_;  ///< declared before the handle, so deleted after it is closed
    std::unique_ptr<Watch> watch_ = std::make_unique<Watch>();
    std::unique_ptr<sqlite3, Closer> handle_;
};

/// A prepared statement: bind parameters by position (from 1), then step through the rows and read columns (from 0).
class Statement {
public:
    Statement(Database& database, std::string_view sql);

    Statement& bind(int position, std::int64_t value);
    Statement& bind(int position, int value) { return bind(position, std::int64_t{value}); }
    Statement& bind(int position, std::size_t value) { return bind(position, static_cast<std::int64_t>(value)); }
    /// Throws input_error for a text with a NUL byte, because a store that holds one is rejected when it is opened.
    Statement& bind(int position, std::string_view value);
    Statement& bind(int position, const char* value) { return bind(position, std::string_view(value)); }
    Statement& bind_null(int position);
    /// Binds NaN as NULL.
    Statement& bind_real(int position, double value);
    Statement& bind_blob(int position, std::span<const std::uint8_t> bytes);

    /// Steps to the next row; false if there is none.
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
    /// Returns NaN for NULL.
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

/// BEGIN IMMEDIATE ... COMMIT. The destructor rolls back unless commit() was called. A transaction within another is a
/// part of it, which the outer one commits.
class Transaction {
public:
    explicit Transaction(Database& database);
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;
    ~Transaction();
    void commit();

private:
    Database& database_;
    bool open_;
};

}  // namespace spiked::validation

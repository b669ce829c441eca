#pragma once
#include <optional>
#include <string>
#include <vector>

#include "validation/engine/experiment.hpp"
#include "validation/engine/sqlite.hpp"
#include "validation/engine/stopping.hpp"
#include "validation/statistics/moments.hpp"

namespace spiked::validation {

/// What one batch of replicates of a cell yields, ready to be committed.
struct Batch {
    std::size_t cell = 0;
    std::size_t number = 0;
    std::uint64_t first = 0;
    std::uint64_t count = 0;
    double seconds = 0.0;
    struct Failure {
        std::uint64_t replicate;
        std::string code;
        std::string message;
    };
    std::vector<Failure> failures;
    MomentTable moments;
    struct Value {
        Quantity quantity;
        std::uint64_t replicate;
        double value;
    };
    std::vector<Value> values;
    std::vector<NamedArray> arrays;
};

/// The SQLite store of one study, open for writing by this process only. What is committed survives a kill at any
/// moment.
class Store {
public:
    /// Creates the file, or opens it to go on when it holds the same science. A store of another study is a usage_error
    /// that says what differs, and so is one of another backend unless the experiment may be mixed; a file that is no
    /// store an input_error. ":memory:" keeps everything in memory.
    Store(const std::string& path, const Experiment& experiment, const std::string& command_line, std::size_t threads,
          const Json& provenance);

    [[nodiscard]] Database& database() { return database_; }
    [[nodiscard]] bool resumed() const { return resumed_; }
    /// One transaction; `end` is why the cell is done, when it is done with this batch.
    void commit(const Batch& batch, std::optional<CellEnd> end = std::nullopt);
    /// Closes the session; status as in the schema.
    void finish(const std::string& status, int exit_code, const std::string& stop_reason);

private:
    void create(const Experiment& experiment);
    void match(const Experiment& experiment);
    void expect(const Experiment& experiment);
    void begin_session(const std::string& command_line, std::size_t threads, const std::string& backend,
                       const Json& provenance);

    /// Held as long as the store is open for writing, so that no second run works on it; readers are not kept out.
    class Lock {
    public:
        explicit Lock(const std::string& path);
        ~Lock();
        Lock(const Lock&) = delete;
        Lock& operator=(const Lock&) = delete;

    private:
        int file_ = -1;
    };

    Lock lock_;  // closed after the database: closing a file drops all locks that a process has on it
    Database database_;
    bool resumed_;
    std::int64_t session_ = 0;
};

/// The tables and views of an empty store, the metrics, and the marks by which a file is known to be one.
void create_schema(Database& database);

/// Throws input_error where means, batches and what they belong to do not fit together. Reads every row of means.
void reject_lost_rows(Database& store);

/// Throws input_error where a number of a metric is not its place in metrics(). A store of an earlier version may have
/// fewer of them.
void reject_other_metrics(Database& store);

/// Opens a store for reading. Throws input_error when it is none, or of another schema than this program's.
[[nodiscard]] Database open_store(const std::string& path);

/// The seed of a store, as it was written, and its backend: cpu, cuda, emulated, or mixed; empty where a run was killed
/// before it wrote them, and where there is no store.
[[nodiscard]] std::string stored_seed(const std::string& path);
[[nodiscard]] std::string stored_backend(const std::string& path);

[[nodiscard]] std::string utc_now();

}  // namespace spiked::validation

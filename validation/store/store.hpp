#pragma once
#include <optional>
#include <string>
#include <vector>

#include "validation/statistics/moments.hpp"
#include "validation/store/experiment.hpp"
#include "validation/store/sqlite.hpp"
#include "validation/store/stopping.hpp"
#include "validation/store/store_metrics.hpp"

namespace spiked::validation {

/// The results of one batch of replicates of a cell, to be committed.
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

/// The SQLite store of one study, open for writing by this process only. Committed batches survive if the process is
/// killed at any moment.
class Store {
public:
    /// Creates the file, or opens it to resume if it holds the same study; a store of an earlier version keeps its
    /// schema and its numbers of metrics. Throws usage_error, which names the differences, for a store of another
    /// study, and for one of another backend unless the experiment allows mixed backends; input_error for a file that
    /// is not a store. ":memory:" keeps everything in memory.
    Store(const std::string& path, const Experiment& experiment, const std::string& command_line, std::size_t threads,
          const Json& provenance);

    [[nodiscard]] Database& database() { return database_; }
    [[nodiscard]] bool resumed() const { return resumed_; }
    /// Commits a batch in one transaction. `end` is the reason why the cell is done, if this batch completes it.
    void commit(const Batch& batch, std::optional<CellEnd> end = std::nullopt);
    /// Adds cells behind those that there are; returns their number.
    std::size_t add_cells(const std::vector<ExperimentCell>& cells);
    /// Ends the session. For the values of `status` see store_schema.sql.
    void finish(const std::string& status, int exit_code, const std::string& stop_reason);

private:
    void create(const Experiment& experiment);
    void insert_cells(const std::vector<ExperimentCell>& cells);
    void require_same_study(const Experiment& experiment);
    void write_expectations(const Experiment& experiment);
    void write_questions(const Experiment& experiment);
    void begin_session(const std::string& command_line, std::size_t threads, const std::string& backend,
                       const Json& provenance);

    /// A lock that is held while the store is open for writing, so that no second run uses it. Readers are not blocked.
    class Lock {
    public:
        explicit Lock(const std::string& path);
        ~Lock();
        Lock(const Lock&) = delete;
        Lock& operator=(const Lock&) = delete;

    private:
        int file_ = -1;
    };

    Lock lock_;  // closed after the database, because closing a file drops all locks that the process has on it
    Database database_;
    bool resumed_;
    std::optional<StoreMetrics> metrics_;  // set once the store has all metrics of this program
    std::int64_t session_ = 0;
};

[[nodiscard]] std::string utc_now();

}  // namespace spiked::validation

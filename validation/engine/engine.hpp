#pragma once
#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/runtime/error.hpp"
#include "validation/engine/judge.hpp"
#include "validation/store/store.hpp"

namespace spiked::validation {

/// One part of a study that is divided among several processes. Each has its own store; merge_stores joins them. Cells
/// are assigned to the shards in turn, with all of their batches, because the stop rules of a cell need all of them. If
/// every cell has a fixed number of replicates, batches are assigned instead.
struct Shard {
    std::size_t index = 1;  ///< from 1
    std::size_t of = 1;

    /// Parses for example `2/16`. Throws usage_error.
    [[nodiscard]] static Shard parse(std::string_view text);
    [[nodiscard]] std::string text() const;
};

/// Replicates of one cell that are run, committed and resumed as a unit.
struct BatchJob {
    std::size_t cell = 0;
    std::size_t number = 0;
    std::uint64_t first = 0;
    std::uint64_t count = 0;
};

/// Whether an error of a worker is a failure of that replicate, which is stored with its reason, rather than of the
/// run. That is the case for synthetic blocks, which may be impossible to draw or decompose. An error in a dump is an
/// error of the user's file.
[[nodiscard]] bool fails_the_replicate(const Experiment& experiment, const Error& error);

/// Runs a batch. The result depends on experiment and job only, so any process that has read the same study may run it.
/// No value if `halted` returned true before the last replicate: a batch is committed as a whole or not at all.
[[nodiscard]] std::optional<Batch> run_batch(const Experiment& experiment, const BatchJob& job,
                                             const std::function<bool()>& halted = {});

/// The cells that a study has grown, by position.
using GrownCells = std::map<std::size_t, GrownCell>;

/// Runs jobs and calls `finished` with each batch when it is done, in any order, but never concurrently. Once `halted`
/// returns true no new job is started, and running jobs may be abandoned. Another process needs to be told of the
/// cells in `grown` (Experiment::adopt).
using BatchExecutor =
    std::function<void(const std::vector<BatchJob>& jobs, const GrownCells& grown,
                       const std::function<void(Batch)>& finished, const std::function<bool()>& halted)>;

struct RunOptions {
    std::size_t threads = 0;                  ///< 0: all threads of the machine; results do not depend on it
    const std::atomic<bool>* stop = nullptr;  ///< once it is true, running batches are abandoned soon
    /// Called with numbers of replicates, never concurrently. With stop rules the total grows when cells need more.
    std::function<void(std::size_t done, std::size_t total)> progress;
    /// Called before each call of `progress` with the seconds that the cells so far still need (TimeLeft).
    std::function<void(double seconds)> time_left = {};
    /// Called once, before any work, with the number of replicates that the store already holds.
    std::function<void(std::size_t kept)> begun = {};
    Shard shard = {};
    BatchExecutor executor = {};  ///< if empty, the threads of this process run the jobs
};

/// part_complete: the store holds all of this shard, but not all of the study.
enum class RunOutcome { complete, part_complete, stopped, too_many_failures };

/// Runs every batch of the shard that the store does not hold yet and commits each, several short ones in one
/// transaction, until every cell of the shard is done; where the study grows (Experiment::grow), adds the cells that
/// the results call for once all cells of the study are done, and runs those. Then judges the checks, except for a part
/// of a study, which has no verdicts. The numbers do not depend on threads, stops, resumes or shards.
RunOutcome run_experiment(const Experiment& experiment, Store& store, const RunOptions& options);

}  // namespace spiked::validation

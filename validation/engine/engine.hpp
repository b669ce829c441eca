#pragma once
#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/runtime/error.hpp"
#include "validation/engine/judge.hpp"
#include "validation/engine/store.hpp"

namespace spiked::validation {

/// One part of a study that several processes share, each with a store of its own, to be joined by merge_stores. Cells
/// are dealt out in turn; the batches of a cell stay together, because whether it goes on depends on all of them. Where
/// every cell has a fixed number of replicates, batches are dealt out instead.
struct Shard {
    std::size_t index = 1;  ///< from 1
    std::size_t of = 1;

    /// `2/16`. Throws usage_error.
    [[nodiscard]] static Shard parse(std::string_view text);
    [[nodiscard]] std::string text() const;
};

/// Replicates of one cell that are run, committed and resumed together.
struct BatchJob {
    std::size_t cell = 0;
    std::size_t number = 0;
    std::uint64_t first = 0;
    std::uint64_t count = 0;
};

/// Whether what a worker threw is the failure of that replicate, to be stored with its reason, and not of the run: a
/// synthetic block that cannot be drawn or decomposed. What is wrong with a dump is wrong with the user's file.
[[nodiscard]] bool fails_the_replicate(const Experiment& experiment, const Error& error);

/// Runs one: a pure function of experiment and job, on any process that has read the same study. Nothing when `halted`
/// said so before its last replicate: a batch is committed whole or not at all.
[[nodiscard]] std::optional<Batch> run_batch(const Experiment& experiment, const BatchJob& job,
                                             const std::function<bool()>& halted = {});

/// Runs jobs somewhere and hands over each batch as it is finished, in any order, never two at once. Once `halted` says
/// so no new job is begun, and those under way may be given up.
using BatchExecutor = std::function<void(const std::vector<BatchJob>& jobs, const std::function<void(Batch)>& finished,
                                         const std::function<bool()>& halted)>;

struct RunOptions {
    std::size_t threads = 0;                  ///< 0: all of the machine; never changes a number
    const std::atomic<bool>* stop = nullptr;  ///< when it turns true, batches under way are given up soon
    /// Replicates, never called twice at once. With stop rules the total grows as cells turn out to need more.
    std::function<void(std::size_t done, std::size_t total)> progress;
    /// Told once, before any work: the replicates that the store holds already.
    std::function<void(std::size_t kept)> begun = {};
    Shard shard = {};
    BatchExecutor executor = {};  ///< the threads of this process when there is none
};

/// part_complete: all of this shard is there, but not all of the study.
enum class RunOutcome { complete, part_complete, stopped, too_many_failures };

/// Runs every batch of its part that the store does not hold yet, commits each as one transaction, and goes on until
/// every cell of its part is done; then the checks are judged. The numbers are the same for any threads, stops,
/// resumes and shards.
RunOutcome run_experiment(const Experiment& experiment, Store& store, const RunOptions& options);

}  // namespace spiked::validation

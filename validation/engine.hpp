#pragma once
#include <atomic>
#include <functional>

#include "validation/store.hpp"

namespace spiked::validation {

struct RunOptions {
    std::size_t threads = 0;                  ///< 0: all of the machine; never changes a number
    const std::atomic<bool>* stop = nullptr;  ///< when it turns true, batches in flight are finished and no more begun
    std::function<void(std::size_t done, std::size_t total)> progress;  ///< replicates, never called twice at once
};

enum class RunOutcome { complete, stopped, too_many_failures };

/// Runs every batch the store does not hold yet, commits each as one transaction, then evaluates the checks. The
/// numbers are the same for any threads, stops and resumes.
RunOutcome run_experiment(const Experiment& experiment, Store& store, const RunOptions& options);

/// Evaluates every check against what the store holds, replacing earlier verdicts.
void judge(const Experiment& experiment, Database& database);

/// Verdicts of a store by kind; a check whose control passes counts as failed.
struct VerdictCounts {
    std::size_t passed = 0;
    std::size_t failed = 0;
    std::size_t inconclusive = 0;
};
[[nodiscard]] VerdictCounts count_verdicts(Database& database);

}  // namespace spiked::validation

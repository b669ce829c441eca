#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "validation/engine/experiment.hpp"
#include "validation/engine/sqlite.hpp"
#include "validation/statistics/moments.hpp"

namespace spiked::validation {

/// Why a cell is done: every rule is met, all its replicates are there, or no rule's metric is measured in it.
enum class CellEnd { met, max, absent };
[[nodiscard]] std::string_view name_of(CellEnd end);

/// How far a cell is, and how far it is to go. Whether it is done is asked only at checkpoints, of all batches before
/// the checkpoint merged in their order: the answer is the same whoever ran them, in whatever order and how often
/// interrupted. The first checkpoint is the least number of replicates; the next one is where the standard error is
/// projected to be small enough with a tenth to spare, at least a batch and at most as many replicates again, rounded
/// up to a whole batch.
///
/// A mean of fewer than two values has no error and meets no rule, so a quantity that is nearly always missing takes
/// its cell to the last replicate.
class CellProgress {
public:
    CellProgress(std::size_t least, std::size_t most, std::size_t batch, const std::vector<StopRule>& rules);

    [[nodiscard]] bool has(std::size_t batch) const { return batch < merged_ || waiting_.contains(batch); }
    [[nodiscard]] std::uint64_t first_replicate(std::size_t batch) const { return std::uint64_t{batch} * batch_; }
    /// Of a batch: all have the same number but the last.
    [[nodiscard]] std::uint64_t size_of(std::size_t batch) const;

    /// Takes note of a batch that is committed; in any order, each once.
    void add(std::size_t batch, std::uint64_t failed, const MomentTable& moments);

    /// Batches that are needed before the next question, or in all when there is none left.
    [[nodiscard]] std::size_t goal() const { return goal_; }
    [[nodiscard]] std::uint64_t goal_replicates() const { return replicates_up_to(goal_); }
    [[nodiscard]] std::uint64_t replicates() const { return replicates_; }
    /// Empty until it is done.
    [[nodiscard]] std::optional<CellEnd> end() const { return end_; }
    /// Whether more than that share of its replicates have failed, or will have however it ends.
    [[nodiscard]] bool over_budget(double share) const;

private:
    struct Part {
        std::uint64_t failed = 0;
        MomentTable moments;
    };
    [[nodiscard]] std::uint64_t replicates_up_to(std::size_t batches) const;
    void take(const Part& part);
    void ask();

    std::uint64_t most_;
    std::uint64_t batch_;
    const std::vector<StopRule>* rules_;
    std::size_t batches_;  ///< at most
    std::size_t goal_;
    std::uint64_t replicates_ = 0;
    std::uint64_t failed_ = 0;
    std::optional<CellEnd> end_;
    // The complete batches from 0 on, and those behind a gap.
    std::size_t merged_ = 0;
    Part prefix_;
    std::map<std::size_t, Part> waiting_;
};

/// How far every cell of a store is, by cell_id - 1, from the store alone.
class StudyProgress {
public:
    explicit StudyProgress(Database& store);
    StudyProgress(const StudyProgress&) = delete;
    StudyProgress& operator=(const StudyProgress&) = delete;

    [[nodiscard]] std::vector<CellProgress>& cells() { return cells_; }
    /// Whether a cell may end before its last replicate.
    [[nodiscard]] bool adaptive() const { return adaptive_; }
    [[nodiscard]] bool complete() const;
    /// Whether any cell is over it.
    [[nodiscard]] bool over_budget(double share) const;

private:
    std::vector<StopRule> rules_;
    std::vector<CellProgress> cells_;
    bool adaptive_ = false;
};

}  // namespace spiked::validation

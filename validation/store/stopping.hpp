#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "core/text/enum_names.hpp"
#include "validation/statistics/moments.hpp"
#include "validation/store/experiment.hpp"
#include "validation/store/sqlite.hpp"

namespace spiked::validation {

/// Why a cell is done: every stop rule is met, all its replicates were run, or no rule's metric is measured in it.
enum class CellEnd { met, max, absent };
[[nodiscard]] std::string_view name_of(CellEnd end);

/// The progress of a cell and its next checkpoint. The stop rules are evaluated only at checkpoints, with all batches
/// before the checkpoint merged in their order, so the decision does not depend on which processes ran them, in which
/// order and with which interruptions. The first checkpoint is the least number of replicates. The next one is at 1.1
/// times the number of replicates at which the standard error is projected to be small enough, but at least one batch
/// and at most as many replicates further as there are already, rounded up to a whole batch.
///
/// Errors are standard errors, and those of StopRule::unit for metrics of whole numbers, whose first few values are
/// often equal. A store of an earlier version has other units of these metrics and keeps to its standard errors.
///
/// A mean of fewer than two values has no standard error and meets no rule, so a cell in which a quantity is nearly
/// always missing runs to its last replicate.
class CellProgress {
public:
    CellProgress(std::size_t least, std::size_t most, std::size_t batch, const std::vector<StopRule>& rules);

    [[nodiscard]] bool has(std::size_t batch) const { return batch < merged_ || waiting_.contains(batch); }
    [[nodiscard]] std::uint64_t first_replicate(std::size_t batch) const { return std::uint64_t{batch} * batch_; }
    /// Number of replicates of a batch; only the last batch of a cell may be smaller than the others.
    [[nodiscard]] std::uint64_t size_of(std::size_t batch) const;

    /// Adds a batch that is committed. Batches may come in any order, each once.
    void add(std::size_t batch, std::uint64_t failed, const MomentTable& moments);

    /// Number of batches at the next checkpoint, or of all batches if there is no further checkpoint.
    [[nodiscard]] std::size_t goal() const { return goal_; }
    [[nodiscard]] std::uint64_t goal_replicates() const { return replicates_up_to(goal_); }
    [[nodiscard]] std::uint64_t replicates() const { return replicates_; }
    /// No value until the cell is done.
    [[nodiscard]] std::optional<CellEnd> end() const { return end_; }
    /// Whether the failed replicates exceed that fraction of the replicates of the cell: of those it has if it is done,
    /// otherwise of the most it can have.
    [[nodiscard]] bool over_budget(double fraction) const;

private:
    struct Part {
        std::uint64_t failed = 0;
        MomentTable moments;
    };
    [[nodiscard]] std::uint64_t replicates_up_to(std::size_t batches) const;
    void take(const Part& part);
    void evaluate_rules();

    std::uint64_t most_;
    std::uint64_t batch_;
    const std::vector<StopRule>* rules_;
    std::size_t batches_;  ///< most batches
    std::size_t goal_;
    std::uint64_t replicates_ = 0;
    std::uint64_t failed_ = 0;
    std::optional<CellEnd> end_;
    // The gapless prefix of batches from 0 on is merged; batches behind a gap wait.
    std::size_t merged_ = 0;
    Part prefix_;
    std::map<std::size_t, Part> waiting_;
};

/// The progress of all cells of a store, by cell_id - 1, computed from the store alone.
class StudyProgress {
public:
    explicit StudyProgress(Database& store);
    StudyProgress(const StudyProgress&) = delete;
    StudyProgress& operator=(const StudyProgress&) = delete;

    [[nodiscard]] std::vector<CellProgress>& cells() { return cells_; }
    /// Whether any cell may end before its last replicate.
    [[nodiscard]] bool adaptive() const { return adaptive_; }
    [[nodiscard]] bool complete() const;
    /// Whether any cell is over budget.
    [[nodiscard]] bool over_budget(double fraction) const;

private:
    std::vector<StopRule> rules_;
    std::vector<CellProgress> cells_;
    bool adaptive_ = false;
};

}  // namespace spiked::validation

template <>
struct spiked::EnumNames<spiked::validation::CellEnd> {
    using End = spiked::validation::CellEnd;
    static constexpr EnumName<End> table[] = {{End::met, "met"}, {End::max, "max"}, {End::absent, "absent"}};
};

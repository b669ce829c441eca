#include "validation/engine/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>

#include "core/runtime/error.hpp"
#include "core/runtime/parallel.hpp"
#include "core/text/names.hpp"
#include "validation/engine/time_left.hpp"
#include "validation/store/stopping.hpp"

namespace spiked::validation {
namespace {

/// The cells and batches that belong to a shard. They depend on the study alone, not on the content of the store.
class Part {
public:
    Part(Shard shard, bool by_cell) : shard_(shard), by_cell_(by_cell) {}
    [[nodiscard]] bool has_cell(std::size_t cell) const { return !by_cell_ || cell % shard_.of == shard_.index - 1; }
    /// Batches of a cell that belong to the shard: the one with this index in the cell, and every `step`-th after it.
    /// `batch_of_study` is the index of the cell's first batch in the study.
    [[nodiscard]] std::size_t first_of(std::size_t batch_of_study) const {
        return by_cell_ ? 0 : (shard_.index - 1 + shard_.of - batch_of_study % shard_.of) % shard_.of;
    }
    [[nodiscard]] std::size_t step() const { return by_cell_ ? 1 : shard_.of; }

private:
    Shard shard_;
    bool by_cell_;
};

/// Iterates over the batches of the shard before the next checkpoint of each cell. They are not listed in memory,
/// because a study may have billions.
class BatchesOfPart {
public:
    BatchesOfPart(const Part& part, const std::vector<CellProgress>& cells) : part_(&part), cells_(&cells) {}

    std::optional<BatchJob> next() {
        for (; cell_ < cells_->size(); ++cell_) {
            const CellProgress& cell = (*cells_)[cell_];
            if (!number_) number_ = part_->has_cell(cell_) ? part_->first_of(batches_before_) : cell.goal();
            if (*number_ < cell.goal()) {
                const std::size_t number = std::exchange(*number_, *number_ + part_->step());
                return BatchJob{cell_, number, cell.first_replicate(number), cell.size_of(number)};
            }
            batches_before_ += cell.goal();
            number_.reset();
        }
        return std::nullopt;
    }

private:
    const Part* part_;
    const std::vector<CellProgress>* cells_;
    std::size_t cell_ = 0;
    std::size_t batches_before_ = 0;
    std::optional<std::size_t> number_;
};

/// The next batches that the store lacks, at most `most`; empty at the end, or once `halted` returns true.
std::vector<BatchJob> next_missing(BatchesOfPart& batches, const std::vector<CellProgress>& cells, std::size_t most,
                                   const std::function<bool()>& halted) {
    std::vector<BatchJob> jobs;
    while (jobs.size() < most) {
        if (halted()) return {};
        const auto job = batches.next();
        if (!job) break;
        if (!cells[job->cell].has(job->number)) jobs.push_back(*job);
    }
    return jobs;
}

/// Replicates of the shard's batches before the next checkpoint of each cell: of those that the store holds, and of
/// all.
std::pair<std::size_t, std::size_t> done_and_total(const Part& part, const std::vector<CellProgress>& cells,
                                                   const std::function<bool()>& halted) {
    std::size_t done = 0;
    std::size_t total = 0;
    if (part.step() == 1) {  // the shard has whole cells, so no iteration over batches is needed
        for (std::size_t c = 0; c < cells.size(); ++c) {
            if (!part.has_cell(c)) continue;
            total += cells[c].goal_replicates();
            done += std::min(cells[c].replicates(), cells[c].goal_replicates());
        }
        return {done, total};
    }
    BatchesOfPart batches(part, cells);
    for (auto job = batches.next(); job && !halted(); job = batches.next()) {
        total += job->count;
        done += cells[job->cell].has(job->number) ? job->count : 0;
    }
    return {done, total};
}

}  // namespace

bool fails_the_replicate(const Experiment& experiment, const Error& error) {
    // Names and options were checked before the run, so a usage error is now about this draw.
    // A claim is judged on all of its trials, or not at all.
    return !of_dumps_or_models(experiment.kind) && experiment.kind != claims_kind &&
           (error.kind() == ErrorKind::input || error.kind() == ErrorKind::usage);
}

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::optional<Batch> run_batch(const Experiment& experiment, const BatchJob& job, const Experiment::Worker& worker,
                               const std::function<bool()>& halted) {
    const auto start = std::chrono::steady_clock::now();
    Batch batch{.cell = job.cell, .number = job.number, .first = job.first, .count = job.count};
    for (std::uint64_t r = job.first; r < job.first + job.count; ++r) {
        if (halted && halted()) return std::nullopt;
        std::vector<Observation> observations;
        try {
            observations = worker(r);
        } catch (const Error& error) {
            if (!fails_the_replicate(experiment, error)) throw;
            batch.failures.push_back({r, "numerical", error.what()});
            continue;
        }
        for (const auto& o : observations) {
            const Quantity key{o.method, o.metric, o.k};
            batch.moments[key].add(o.value);
            if (r < experiment.raw_per_cell) batch.values.push_back({key, r, o.value});
        }
    }
    for (auto& [key, moments] : batch.moments) {
        moments.missing += batch.failures.size();
        for (const auto& failure : batch.failures)
            if (failure.replicate < experiment.raw_per_cell)
                batch.values.push_back({key, failure.replicate, std::numeric_limits<double>::quiet_NaN()});
    }
    if (job.first == 0 && experiment.arrays) batch.arrays = experiment.arrays(job.cell);
    batch.seconds = seconds_since(start);
    return batch;
}

/// Groups consecutive batches of a cell, up to `most` replicates per group, so that one worker serves each group.
std::vector<std::vector<BatchJob>> joined(const std::vector<BatchJob>& jobs, std::size_t most) {
    std::vector<std::vector<BatchJob>> groups;
    std::uint64_t size = 0;
    for (const BatchJob& job : jobs) {
        const BatchJob* const last = groups.empty() ? nullptr : &groups.back().back();
        if (last != nullptr && last->cell == job.cell && last->first + last->count == job.first &&
            size + job.count <= most) {
            groups.back().push_back(job);
            size += job.count;
        } else {
            groups.push_back({job});
            size = job.count;
        }
    }
    return groups;
}

}  // namespace

std::optional<Batch> run_batch(const Experiment& experiment, const BatchJob& job, const std::function<bool()>& halted) {
    return run_batch(experiment, job, experiment.worker(job.cell, {job.first, job.count}), halted);
}

Shard Shard::parse(std::string_view text) {
    const std::size_t slash = text.find('/');
    Shard shard{0, 0};
    if (slash != std::string_view::npos) {
        const auto index = to_integer(text.substr(0, slash));
        const auto of = to_integer(text.substr(slash + 1));
        if (index.value_or(0) > 0 && of.value_or(0) > 0)
            shard = {static_cast<std::size_t>(*index), static_cast<std::size_t>(*of)};
    }
    if (shard.index == 0 || shard.index > shard.of)
        throw usage_error("shard \"{}\" is not possible: write i/k with i from 1 to k, for example 2/16", text);
    return shard;
}

std::string Shard::text() const { return fmt::format("{}/{}", index, of); }

namespace {

/// The cells of a store behind the first ones.
GrownCells cells_behind(std::size_t first, Database& store) {
    GrownCells cells;
    Statement cell(store, "SELECT cell_id, params, reps_target FROM cell WHERE cell_id > ?");
    cell.bind(1, first);
    while (cell.step())
        cells[static_cast<std::size_t>(cell.integer(0)) - 1] = {cell.text(1),
                                                                static_cast<std::uint64_t>(cell.integer(2))};
    return cells;
}

/// Batches that are finished and not yet committed. A commit waits for the disk, so batches that take less share one:
/// commits take about a tenth of the time, and are at most 0.25 s apart. A kill loses the waiting batches, which is
/// less work than the unfinished ones.
class WaitingBatches {
public:
    explicit WaitingBatches(Store& store) : store_(&store) {}

    void add(Batch batch, std::optional<CellEnd> end) {
        const bool slow = batch.seconds >= pause_;
        waiting_.emplace_back(std::move(batch), std::move(end));
        if (slow || seconds_since(committed_) >= pause_) commit();
    }
    void commit() {
        if (waiting_.empty()) return;
        const auto start = std::chrono::steady_clock::now();
        Transaction transaction(store_->database());
        for (const auto& [batch, end] : waiting_) store_->commit(batch, end);
        transaction.commit();
        waiting_.clear();
        committed_ = std::chrono::steady_clock::now();
        pause_ = std::min(0.25, 9.0 * seconds_since(start));
    }

private:
    Store* store_;
    std::vector<std::pair<Batch, std::optional<CellEnd>>> waiting_;
    std::chrono::steady_clock::time_point committed_ = std::chrono::steady_clock::now();
    double pause_ = 0.0;
};

/// Runs the cells that the store has.
RunOutcome run_cells(const Experiment& experiment, Store& store, const RunOptions& options) {
    StudyProgress study(store.database());
    std::vector<CellProgress>& cells = study.cells();
    const Part part(options.shard, study.adaptive());
    std::mutex guard;
    // Failures of earlier sessions count towards the budget.
    std::atomic<bool> over_budget{study.over_budget(experiment.failure_budget)};
    const auto halted = [&] { return over_budget || (options.stop != nullptr && *options.stop); };
    auto [done, total] = done_and_total(part, cells, halted);
    if (options.begun) options.begun(done);
    WaitingBatches waiting(store);
    const auto started = std::chrono::steady_clock::now();
    TimeLeft rest(store.database(), cells, 1.0 / static_cast<double>(part.step()));
    const auto finished = [&, &done = done, &total = total](Batch batch) {
        CellProgress& cell = cells[batch.cell];
        const std::uint64_t goal_before = cell.goal_replicates();
        cell.add(batch.number, batch.failures.size(), batch.moments);
        done += batch.count;
        total += cell.goal_replicates() - goal_before;
        rest.add(batch.cell, batch.count, batch.seconds);
        if (cell.over_budget(experiment.failure_budget)) over_budget = true;
        waiting.add(std::move(batch), cell.end());
        if (options.time_left) options.time_left(rest.seconds(seconds_since(started)));
        if (options.progress) options.progress(done, total);
    };
    const GrownCells grown = options.executor ? cells_behind(experiment.cells.size(), store.database()) : GrownCells{};
    const auto run = [&](const std::vector<BatchJob>& jobs) {
        if (options.executor) {
            options.executor(jobs, grown, finished, halted);
            return;
        }
        const auto groups = joined(jobs, experiment.replicates_per_worker);
        for_each_parallel(groups.size(), options.threads, [&](std::size_t i) {
            if (halted()) return;
            const BatchJob& first = groups[i].front();
            const BatchJob& last = groups[i].back();
            const auto worker = experiment.worker(first.cell, {first.first, last.first + last.count - first.first});
            for (const BatchJob& job : groups[i]) {
                auto batch = run_batch(experiment, job, worker, halted);
                if (!batch) return;
                const std::lock_guard lock(guard);
                finished(std::move(*batch));
            }
        });
    };
    // Each pass runs all cells up to their next checkpoints; passes are repeated while checkpoints move.
    constexpr std::size_t jobs_at_once = 1 << 16;
    for (bool any = true; any && !halted();) {
        BatchesOfPart batches(part, cells);
        any = false;
        for (auto jobs = next_missing(batches, cells, jobs_at_once, halted); !jobs.empty();
             jobs = next_missing(batches, cells, jobs_at_once, halted)) {
            any = true;
            run(jobs);
            waiting.commit();
        }
    }
    if (over_budget) return RunOutcome::too_many_failures;
    if (study.complete()) return RunOutcome::complete;
    BatchesOfPart batches(part, cells);
    const bool part_is_there = next_missing(batches, cells, 1, [] { return false; }).empty();
    return part_is_there ? RunOutcome::part_complete : RunOutcome::stopped;
}

}  // namespace

RunOutcome run_experiment(const Experiment& experiment, Store& store, const RunOptions& options) {
    RunOptions further = options;
    further.begun = {};
    if (experiment.grow) (void)store.add_cells(experiment.grow(store.database()));
    RunOutcome outcome = run_cells(experiment, store, options);
    while (outcome == RunOutcome::complete && experiment.grow && store.add_cells(experiment.grow(store.database())) > 0)
        outcome = run_cells(experiment, store, further);
    // The checks of a study are judged once, at the false-alarm rate of the whole study, when its parts are merged.
    if (options.shard.of == 1 || outcome == RunOutcome::complete)
        judge(store.database());
    else
        store.database().execute("DELETE FROM verdict");
    return outcome;
}

}  // namespace spiked::validation

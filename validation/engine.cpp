#include "validation/engine.hpp"

#include <fmt/format.h>

#include <chrono>
#include <limits>
#include <mutex>

#include "theory/base/error.hpp"
#include "theory/base/names.hpp"
#include "theory/base/parallel.hpp"
#include "validation/stopping.hpp"

namespace spiked::validation {
namespace {

/// Whose turn it is: fixed for ever by the study, whatever is there already.
class Part {
public:
    Part(Shard shard, bool by_cell) : shard_(shard), by_cell_(by_cell) {}
    [[nodiscard]] bool has(std::size_t cell, std::size_t batch_of_study) const {
        return (by_cell_ ? cell : batch_of_study) % shard_.of == shard_.index - 1;
    }

private:
    Shard shard_;
    bool by_cell_;
};

/// Batches of the part before the next checkpoint of each cell; `total` counts the replicates of all of them, `done`
/// those that are there.
std::vector<BatchJob> missing_jobs(const Part& part, const std::vector<CellProgress>& cells, std::size_t& done,
                                   std::size_t& total) {
    std::vector<BatchJob> jobs;
    done = total = 0;
    std::size_t batch_of_study = 0;
    for (std::size_t c = 0; c < cells.size(); ++c)
        for (std::size_t number = 0; number < cells[c].goal(); ++number) {
            if (!part.has(c, batch_of_study++)) continue;
            const std::uint64_t count = cells[c].size_of(number);
            total += count;
            if (cells[c].has(number))
                done += count;
            else
                jobs.push_back({c, number, cells[c].first_replicate(number), count});
        }
    return jobs;
}

}  // namespace

bool fails_the_replicate(const Experiment& experiment, const Error& error) {
    // Words were checked before anything ran, so one that is found wrong now was about this draw.
    return !of_dumps_or_models(experiment.kind) &&
           (error.code() == ExitCode::unusable_input || error.code() == ExitCode::usage);
}

namespace {

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
    batch.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return batch;
}

/// Batches that follow each other in one cell, as many as its worker likes to be asked for in one range.
std::vector<std::vector<BatchJob>> joined(const std::vector<BatchJob>& jobs, std::size_t together) {
    std::vector<std::vector<BatchJob>> groups;
    std::uint64_t size = 0;
    for (const BatchJob& job : jobs) {
        const BatchJob* const last = groups.empty() ? nullptr : &groups.back().back();
        if (last != nullptr && last->cell == job.cell && last->first + last->count == job.first &&
            size + job.count <= together) {
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

RunOutcome run_experiment(const Experiment& experiment, Store& store, const RunOptions& options) {
    StudyProgress study(store.database());
    std::vector<CellProgress>& cells = study.cells();
    const Part part(options.shard, study.adaptive());
    std::mutex guard;
    // Failures of earlier sessions count.
    std::atomic<bool> over_budget{study.over_budget(experiment.failure_budget)};
    const auto halted = [&] { return over_budget || (options.stop != nullptr && *options.stop); };
    std::size_t done = 0;
    std::size_t total = 0;
    std::vector<BatchJob> jobs = missing_jobs(part, cells, done, total);
    if (options.begun) options.begun(done);
    while (!jobs.empty() && !halted()) {
        const auto finished = [&](const Batch& batch) {
            CellProgress& cell = cells[batch.cell];
            const std::uint64_t goal_before = cell.goal_replicates();
            cell.add(batch.number, batch.failures.size(), batch.moments);
            store.commit(batch, cell.end());
            done += batch.count;
            total += cell.goal_replicates() - goal_before;
            if (cell.over_budget(experiment.failure_budget)) over_budget = true;
            if (options.progress) options.progress(done, total);
        };
        if (options.executor)
            options.executor(jobs, finished, halted);
        else {
            const auto groups = joined(jobs, experiment.together);
            for_each_parallel(groups.size(), options.threads, [&](std::size_t i) {
                if (halted()) return;
                const BatchJob& first = groups[i].front();
                const BatchJob& last = groups[i].back();
                const auto worker = experiment.worker(first.cell, {first.first, last.first + last.count - first.first});
                for (const BatchJob& job : groups[i]) {
                    const auto batch = run_batch(experiment, job, worker, halted);
                    if (!batch) return;
                    const std::lock_guard lock(guard);
                    finished(*batch);
                }
            });
        }
        jobs = missing_jobs(part, cells, done, total);
    }
    judge(store.database());
    if (over_budget) return RunOutcome::too_many_failures;
    if (study.complete()) return RunOutcome::complete;
    return jobs.empty() ? RunOutcome::part_complete : RunOutcome::stopped;
}

}  // namespace spiked::validation

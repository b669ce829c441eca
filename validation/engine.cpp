#include "validation/engine.hpp"

#include <chrono>
#include <cmath>
#include <mutex>

#include "theory/base/error.hpp"
#include "validation/claims.hpp"
#include "validation/parallel.hpp"
#include "validation/verdict.hpp"

namespace spiked::validation {
namespace {

struct Job {
    std::size_t cell;
    std::size_t number;
    std::uint64_t first;
    std::uint64_t count;
};

std::vector<Job> missing_jobs(const Experiment& experiment, Store& store, std::size_t& done) {
    std::vector<Job> jobs;
    for (std::size_t c = 0; c < experiment.cells.size(); ++c)
        for (std::size_t first = 0, number = 0; first < experiment.cells[c].replicates;
             first += experiment.batch, ++number) {
            const std::size_t count = std::min(experiment.batch, experiment.cells[c].replicates - first);
            if (store.has(c, number))
                done += count;
            else
                jobs.push_back({c, number, first, count});
        }
    return jobs;
}

Batch run_batch(const Experiment& experiment, const Job& job) {
    const auto start = std::chrono::steady_clock::now();
    Batch batch{.cell = job.cell, .number = job.number, .first = job.first, .count = job.count};
    const Experiment::Worker worker = experiment.worker(job.cell);
    for (std::uint64_t r = job.first; r < job.first + job.count; ++r) {
        std::vector<Observation> observations;
        try {
            observations = worker(r);
        } catch (const Error& error) {
            // Unusable input of a synthetic replicate is a numerical failure; of a dump it is the user's file.
            if (error.code() != ExitCode::unusable_input || experiment.kind == "kv_dump") throw;
            batch.failures.push_back({r, "numerical", error.what()});
            continue;
        }
        for (const auto& o : observations) {
            const Batch::Key key{o.method, o.metric, o.k};
            batch.moments[key].add(o.value);
            if (r < experiment.raw_per_cell) batch.values.push_back({key, r, o.value});
        }
    }
    for (auto& [key, moments] : batch.moments) moments.missing += batch.failures.size();
    if (job.first == 0 && experiment.arrays) batch.arrays = experiment.arrays(job.cell);
    batch.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return batch;
}

}  // namespace

RunOutcome run_experiment(const Experiment& experiment, Store& store, const RunOptions& options) {
    const std::size_t total = experiment.replicates();
    std::size_t done = 0;
    const std::vector<Job> jobs = missing_jobs(experiment, store, done);
    std::mutex guard;
    std::vector<std::size_t> failed(experiment.cells.size());
    const auto spent = [&](std::size_t cell) {
        return static_cast<double>(failed[cell]) >
               experiment.failure_budget * static_cast<double>(experiment.cells[cell].replicates);
    };
    std::atomic<bool> over_budget{false};
    // Failures of earlier sessions count.
    Statement earlier(store.database(), "SELECT cell_id, sum(failed) FROM batch GROUP BY cell_id");
    while (earlier.step()) {
        const auto cell = static_cast<std::size_t>(earlier.integer(0) - 1);
        failed[cell] = static_cast<std::size_t>(earlier.integer(1));
        over_budget = over_budget || spent(cell);
    }
    const auto halted = [&] { return over_budget || (options.stop != nullptr && *options.stop); };
    std::atomic<std::size_t> skipped{0};
    for_each_parallel(jobs.size(), options.threads, [&](std::size_t i) {
        if (halted()) {
            ++skipped;
            return;
        }
        const Batch batch = run_batch(experiment, jobs[i]);
        const std::lock_guard lock(guard);
        store.commit(batch);
        done += batch.count;
        failed[batch.cell] += batch.failures.size();
        if (spent(batch.cell)) over_budget = true;
        if (options.progress) options.progress(done, total);
    });
    judge(experiment, store.database());
    if (over_budget) return RunOutcome::too_many_failures;
    return skipped > 0 ? RunOutcome::stopped : RunOutcome::complete;
}

void judge(const Experiment& experiment, Database& database) {
    struct Question {
        const Check* check;
        const Prediction* prediction;
        std::size_t cell;
    };
    std::vector<Question> questions;
    for (const auto& check : experiment.checks)
        for (std::size_t c = 0; c < experiment.cells.size(); ++c)
            if (check.applies_to(experiment.cells[c]))
                for (const auto& prediction : experiment.cells[c].predictions)
                    if (prediction.claim == check.claim) questions.push_back({&check, &prediction, c});

    Transaction transaction(database);
    database.execute("DELETE FROM verdict");
    if (questions.empty()) {
        transaction.commit();
        return;
    }
    // Bonferroni: the chance that any true claim of this store is called false is at most false_alarm.
    const double alpha = experiment.false_alarm / static_cast<double>(questions.size());
    Statement summary(database,
                      "SELECT n, mean, mcse FROM v_summary WHERE cell_id=? AND method_id=? AND metric=? AND k=?");
    Statement insert(
        database,
        "INSERT INTO verdict(check_name, claim, cell_id, method_id, metric, k, estimate, mcse, expected, margin,"
        " lo, hi, alpha, detectable, n, needed, verdict, control_expected, control_verdict, reason)"
        " VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
    for (const auto& [check, prediction, c] : questions) {
        const auto& cell = experiment.cells[c];
        summary.bind(1, c + 1).bind(2, prediction->method + 1).bind(3, prediction->metric).bind(4, prediction->k);
        std::uint64_t count = 0;
        double mean = std::nan("");
        double mcse = std::nan("");
        if (summary.step()) {
            count = static_cast<std::uint64_t>(summary.integer(0));
            mean = summary.real(1);
            mcse = summary.real(2);
        }
        summary.reset();
        // The control is the same comparison with what the planted fault predicts, margin and threshold unchanged.
        const double margin = check->margin(cell, prediction->value);
        Comparison found = compare(mean, mcse, count, prediction->value, margin, alpha);
        const Comparison control = compare(mean, mcse, count, prediction->with_fault, margin, alpha);
        std::string reason;
        if (control.verdict == Verdict::inconclusive && found.verdict == Verdict::pass) {
            found.verdict = Verdict::inconclusive;
            reason = "the control is inconclusive: more replicates, or a smaller margin, would tell the planted fault";
        } else if (control.verdict == Verdict::pass)
            reason = "the control passes: this check cannot tell the claim from the planted fault";
        else if (found.verdict == Verdict::inconclusive)
            reason = count < 2          ? "fewer than two replicates"
                     : found.needed > 0 ? fmt::format("about {} replicates would decide it", found.needed)
                                        : "the estimate lies on the margin";
        insert.bind(1, check->name)
            .bind(2, check->claim)
            .bind(3, c + 1)
            .bind(4, prediction->method + 1)
            .bind(5, prediction->metric)
            .bind(6, prediction->k)
            .bind_real(7, mean)
            .bind_real(8, mcse)
            .bind_real(9, prediction->value)
            .bind_real(10, margin)
            .bind_real(11, found.low)
            .bind_real(12, found.high)
            .bind_real(13, alpha)
            .bind_real(14, found.detectable)
            .bind(15, static_cast<std::int64_t>(count));
        if (found.needed > 0)
            insert.bind(16, static_cast<std::int64_t>(found.needed));
        else
            insert.bind_null(16);
        insert.bind(17, name_of(found.verdict))
            .bind_real(18, prediction->with_fault)
            .bind(19, name_of(control.verdict))
            .bind(20, reason)
            .run();
    }
    transaction.commit();
}

VerdictCounts count_verdicts(Database& database) {
    VerdictCounts counts;
    Statement query(database,
                    "SELECT CASE WHEN control_verdict = 'pass' THEN 'fail' ELSE verdict END AS v, count(*) FROM "
                    "verdict GROUP BY v");
    while (query.step()) {
        const auto number = static_cast<std::size_t>(query.integer(1));
        if (query.text(0) == "pass") counts.passed = number;
        if (query.text(0) == "fail") counts.failed = number;
        if (query.text(0) == "inconclusive") counts.inconclusive = number;
    }
    return counts;
}

}  // namespace spiked::validation

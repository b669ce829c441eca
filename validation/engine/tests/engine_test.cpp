// Tests of the engine on cheap studies: stop rules, shards, and the results after kills and resumes.
#include "validation/engine/engine.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <numeric>
#include <random>
#include <thread>

#include "sim/random/normal.hpp"
#include "validation/engine/tests/fake_study.hpp"
#include "validation/statistics/statistics.hpp"

namespace spiked::validation {
namespace {

std::size_t overlap() { return metric_index("overlap.left"); }

/// For a standard error of 5 % of the mean, its cells need about 4, 36, 64, 2 (the least) and 160 batches of 10.
FakeStudy adaptive_study() {
    FakeStudy study;
    study.cells = {{"a", 1.0, 0.3}, {"b", 2.0, 1.9}, {"c", -1.0, 1.26}, {"d", 4.0, 0.1}, {"e", 1.0, 2.0}};
    study.least = 20;
    study.most = 3000;
    study.batch = 10;
    study.until = {{overlap(), 0.05, 0.0}};
    study.raw = 30;
    return study;
}

/// A row of table cell, with the number of its replicates.
struct CellRow {
    std::int64_t replicates;
    std::string state;
    std::string why;
};
std::vector<CellRow> cells_of(Database& store) {
    std::vector<CellRow> rows;
    Statement row(store,
                  "SELECT (SELECT coalesce(sum(reps), 0) FROM batch b WHERE b.cell_id = c.cell_id), state, why FROM "
                  "cell c ORDER BY cell_id");
    while (row.step()) rows.push_back({row.integer(0), row.text(1), row.text(2)});
    return rows;
}

Moments normal_moments(std::uint64_t seed, std::size_t count, double mean, double deviation) {
    std::vector<double> z(count);
    stream::fill_normal(stream::Stream({}, "engine", stream::Role::noise, seed), z);
    Moments moments;
    for (const double x : z) moments.add(mean + deviation * x);
    return moments;
}

TEST(Stopping, GoalsAreWholeBatchesBetweenOneMoreAndTwiceAsMany) {
    const std::vector<StopRule> rules = {{overlap(), 0.0, 0.1}};
    // Each batch of 10 has mean 0 and variance s^2, so the standard error after n replicates is about s / sqrt(n).
    const auto goal_after_first = [&](double deviation, std::size_t most) {
        CellProgress cell(20, most, 10, rules);
        EXPECT_EQ(cell.goal(), 2U);
        for (std::size_t b = 0; b < 2; ++b) {
            Moments m;
            for (int i = 0; i < 10; ++i) m.add(i % 2 == 0 ? deviation : -deviation);
            cell.add(b, 0, {{{0, overlap(), 1}, m}});
        }
        return std::pair{cell.goal(), cell.end()};
    };
    EXPECT_EQ(goal_after_first(0.4, 1000).second, CellEnd::met) << "0.4 / sqrt(19) < 0.1";
    // 0.45 / sqrt(19) = 0.10324: 20 * 1.0658 * 1.1 = 23.4 replicates, rounded up to one more batch.
    EXPECT_EQ(goal_after_first(0.45, 1000), std::pair(std::size_t{3}, std::optional<CellEnd>{}));
    // 0.55 / sqrt(19) = 0.12618: 20 * 1.5921 * 1.1 = 35.03 replicates.
    EXPECT_EQ(goal_after_first(0.55, 1000).first, 4U);
    EXPECT_EQ(goal_after_first(5.0, 1000).first, 4U) << "at most twice as many";
    EXPECT_EQ(goal_after_first(5.0, 33).first, 4U) << "33 replicates are four batches, the last of 3";
    EXPECT_EQ(goal_after_first(5.0, 25).first, 3U) << "never beyond the last";
    EXPECT_EQ(goal_after_first(5.0, 20).second, CellEnd::max);
}

TEST(Stopping, DecisionsDependOnCompletePrefixesAlone) {
    const std::vector<StopRule> rules = {{overlap(), 0.1, 0.0}};
    std::vector<MomentTable> batches;
    for (std::size_t b = 0; b < 200; ++b) batches.push_back({{{0, overlap(), 1}, normal_moments(b, 10, 1.0, 2.0)}});
    const auto run = [&](auto&& shuffle) {
        CellProgress cell(30, 2000, 10, rules);
        std::vector<std::size_t> goals;
        while (!cell.end()) {
            goals.push_back(cell.goal());
            std::vector<std::size_t> missing;
            for (std::size_t b = 0; b < cell.goal(); ++b)
                if (!cell.has(b)) missing.push_back(b);
            shuffle(missing);
            for (const std::size_t b : missing) {
                EXPECT_FALSE(cell.end());
                cell.add(b, 0, batches[b]);
            }
        }
        EXPECT_EQ(cell.replicates(), 10 * cell.goal());
        goals.push_back(cell.goal());
        return goals;
    };
    const auto in_order = run([](auto&) {});
    EXPECT_GT(in_order.size(), 4U);
    EXPECT_EQ(in_order.front(), 3U);
    std::mt19937 random(7);
    for (int i = 0; i < 50; ++i)
        EXPECT_EQ(run([&](auto& missing) { std::shuffle(missing.begin(), missing.end(), random); }), in_order);
}

// The bound equals the standard error exactly if batches are merged in order; other orders round differently.
TEST(Stopping, MergesBatchesInTheirOrderToTheLastBit) {
    constexpr std::size_t count = 40;
    std::vector<MomentTable> batches;
    Moments in_order;
    for (std::size_t b = 0; b < count; ++b) {
        batches.push_back({{{0, overlap(), 1}, normal_moments(1000 + b, 10, 1.0, 2.0)}});
        in_order.merge(batches.back().begin()->second);
    }
    const std::vector<StopRule> met = {{overlap(), 0.0, in_order.standard_error()}};
    const std::vector<StopRule> missed = {{overlap(), 0.0, std::nextafter(in_order.standard_error(), 0.0)}};
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), 0U);
    std::mt19937 random(5);
    int other_bits = 0;
    for (int i = 0; i < 100; ++i) {
        std::shuffle(order.begin(), order.end(), random);
        CellProgress stops(10 * count, 20 * count, 10, met);
        CellProgress goes_on(10 * count, 20 * count, 10, missed);
        Moments as_they_came;
        for (const std::size_t b : order) {
            stops.add(b, 0, batches[b]);
            goes_on.add(b, 0, batches[b]);
            as_they_came.merge(batches[b].begin()->second);
        }
        EXPECT_EQ(stops.end(), CellEnd::met);
        EXPECT_FALSE(goes_on.end());
        if (as_they_came.standard_error() != in_order.standard_error()) ++other_bits;
    }
    EXPECT_GT(other_bits, 10) << "negative control: merging in the order of arrival gives other bits";
}

TEST(Stopping, StopsIfAndOnlyIfTheRequestedAccuracyIsReached) {
    FakeStudy study = adaptive_study();
    study.cells.push_back({"far", 1.0, 20.0});        // would need 160000 replicates
    study.cells.push_back({"zero", 0.0, 0.5});        // no error is small relative to a mean of 0
    study.cells.push_back({"fixed", 3.0, 0.0});       // no variance
    study.cells.push_back({"fails", 1.0, 0.1, 1.0});  // every replicate fails
    const std::string path = scratch_path("accuracy");
    EXPECT_EQ(run_into(study.experiment(), path), RunOutcome::complete);
    Database store = open_store(path);
    const auto cells = cells_of(store);
    for (const std::size_t c : {0, 1, 2, 3, 4}) {
        const auto& of = study.cells[c];
        const double needed = std::pow(of.deviation / (0.05 * of.mean), 2.0);
        EXPECT_EQ(cells[c].state, "done");
        EXPECT_EQ(cells[c].why, "met") << of.name;
        EXPECT_GE(static_cast<double>(cells[c].replicates), std::max(20.0, 0.6 * needed)) << of.name;
        EXPECT_LE(static_cast<double>(cells[c].replicates), std::max(40.0, 2.0 * needed + 20.0)) << of.name;
    }
    EXPECT_EQ(cells[3].replicates, 20) << "the least is enough";
    for (const std::size_t c : {5, 6, 8}) {
        EXPECT_EQ(cells[c].why, "max") << study.cells[c].name;
        EXPECT_EQ(cells[c].replicates, 3000) << study.cells[c].name;
    }
    EXPECT_EQ(cells[7].why, "met");
    EXPECT_EQ(cells[7].replicates, 20);
    Statement wide(store,
                   "SELECT count(*) FROM v_summary s JOIN cell c USING(cell_id) WHERE c.why = 'met' AND metric = "
                   "'overlap.left' AND mcse > 0.05 * abs(mean)");
    ASSERT_TRUE(wide.step());
    EXPECT_EQ(wide.integer(0), 0) << "every mean of the metric is as accurate as requested";
}

Moments zeros_and_ones(std::size_t ones, std::size_t count) {
    Moments moments;
    for (std::size_t i = 0; i < count; ++i) moments.add(i < ones ? 1.0 : 0.0);
    return moments;
}

/// The end of a cell of 10 to 400 replicates in batches of 10, each of them with these moments, and its replicates.
std::pair<std::optional<CellEnd>, std::uint64_t> stopped(const StopRule& rule, const Moments& of_batch) {
    const std::vector<StopRule> rules = {rule};
    CellProgress cell(10, 400, 10, rules);
    for (std::size_t b = 0; !cell.end(); ++b) cell.add(b, 0, {{{1, rule.metric, 0}, of_batch}});
    return {cell.end(), cell.replicates()};
}

// Ten replicates without a success have a standard error of 0 and say little. With 95, at most 3.8 % of replicates may
// succeed (97.5 %), whose standard error is 0.02.
TEST(Stopping, FractionsOfZeroAndOneDoNotStopOnAStandardErrorOfZero) {
    const StopRule rule{metric_index("rank_over"), 0.0, 0.02, std::string(share_of_replicates)};
    for (const std::size_t ones : {0U, 10U}) {
        const auto [end, replicates] = stopped(rule, zeros_and_ones(ones, 10));
        EXPECT_EQ(end, CellEnd::met);
        EXPECT_GE(replicates, 100U);
        EXPECT_LE(replicates, 130U);
        EXPECT_LE(std::pow(0.96, static_cast<double>(replicates)), 0.025) << "4 % would have been seen";
        EXPECT_LE(fraction_error(ones == 0 ? 0 : replicates, replicates), 0.02);
    }
    EXPECT_EQ(stopped({rule.metric, 0.1, 0.0, rule.unit}, zeros_and_ones(0, 10)).first, CellEnd::max)
        << "nothing is small relative to a mean of 0";
    // The control: by the standard error the cell stops at its least number of replicates.
    const auto [end, replicates] = stopped({rule.metric, 0.0, 0.02, "share"}, zeros_and_ones(0, 10));
    EXPECT_EQ(end, CellEnd::met);
    EXPECT_EQ(replicates, 10U);
}

TEST(Stopping, EqualRanksOfAFewReplicatesDoNotStopACell) {
    const StopRule rule{metric_index("rank"), 0.0, 0.02, std::string(whole_components)};
    Moments equal;
    for (int i = 0; i < 10; ++i) equal.add(3.0);
    EXPECT_GE(stopped(rule, equal).second, 100U);
    EXPECT_EQ(stopped({rule.metric, 0.0, 0.02, "components"}, equal).second, 10U) << "control";
    Moments varied = equal;
    varied.m2 = 9.0;  // a standard error of 1 / sqrt(replicates)
    EXPECT_EQ(stopped({rule.metric, 0.0, 0.1, rule.unit}, varied).second,
              stopped({rule.metric, 0.0, 0.1}, varied).second);
}

// By the standard error most cells stop at ten replicates with a fraction of 0. By the exact limits a cell stops too
// early (the true standard error beyond 1.2 times the target) with probability 0.025 at most at a checkpoint, so that
// 40 of 400 cells have p < 1e-10.
TEST(Stopping, SharesAreAsAccurateAsRequestedForManySeeds) {
    constexpr double target = 0.02;
    constexpr int seeds = 400;
    for (const double truth : {0.02, 0.05, 0.2}) {
        const auto early_of = [&](const std::string& unit) {
            int early = 0;
            for (int seed = 0; seed < seeds; ++seed) {
                std::mt19937_64 random(static_cast<std::uint64_t>(seed));
                std::bernoulli_distribution success(truth);
                const std::vector<StopRule> rules = {{metric_index("rank_over"), 0.0, target, unit}};
                CellProgress cell(10, 2000, 10, rules);
                for (std::size_t b = 0; !cell.end(); ++b) {
                    Moments moments;
                    for (int i = 0; i < 10; ++i) moments.add(success(random) ? 1.0 : 0.0);
                    cell.add(b, 0, {{{1, rules[0].metric, 0}, moments}});
                }
                const double n = static_cast<double>(cell.replicates());
                early += std::sqrt(truth * (1.0 - truth) / n) > 1.2 * target ? 1 : 0;
            }
            return early;
        };
        const int early = early_of(std::string(share_of_replicates));
        std::printf("share %.2f: %d of %d cells stopped too early, by the standard error %d\n", truth, early, seeds,
                    early_of("share"));
        EXPECT_LT(early, 40) << truth;
        if (truth < 0.1) {
            EXPECT_GT(early_of("share"), 80) << "control, " << truth;
        }
    }
}

TEST(Stopping, ARuleForAMetricThatIsNotMeasuredStopsACellAtItsLeast) {
    FakeStudy study;
    study.least = 10;
    study.most = 100;
    study.until = {{metric_index("ip_bias"), 0.01, 0.0}};
    const std::string path = scratch_path("absent");
    EXPECT_EQ(run_into(study.experiment(), path), RunOutcome::complete);
    Database store = open_store(path);
    for (const auto& cell : cells_of(store)) {
        EXPECT_EQ(cell.why, "absent");
        EXPECT_EQ(cell.replicates, 10);
    }
    // A metric that is missing in a third of the replicates, and below one that is always missing: both cells run to
    // their last replicate.
    study.until = {{metric_index("strength"), 0.0, 1e-3}};
    study.cells = {{"a", 1.0, 1.0}};
    const std::string rare = scratch_path("rare");
    EXPECT_EQ(run_into(study.experiment(), rare), RunOutcome::complete);
    Database second = open_store(rare);
    EXPECT_EQ(cells_of(second).front().why, "max");
    EXPECT_EQ(cells_of(second).front().replicates, 100);
    const std::vector<StopRule> rules = {{overlap(), 0.5, 0.0}};
    CellProgress never(10, 40, 10, rules);
    Moments missing;
    for (int i = 0; i < 10; ++i) missing.add(std::nan(""));
    for (std::size_t b = 0; b < 4; ++b) never.add(b, 0, {{{0, overlap(), 1}, missing}});
    EXPECT_EQ(never.end(), CellEnd::max) << "a mean without values has no standard error";
}

TEST(Stopping, EveryRuleMustHold) {
    FakeStudy study = adaptive_study();
    study.until = {{overlap(), 0.05, 0.0}, {metric_index("relative_l2"), 0.0, 0.2}};
    const std::string path = scratch_path("both");
    EXPECT_EQ(run_into(study.experiment(), path), RunOutcome::complete);
    Database store = open_store(path);
    // The second rule alone needs about (2.16 / 0.2)^2 = 117 replicates of exp(z).
    const auto cells = cells_of(store);
    EXPECT_GT(cells[3].replicates, 40);
    EXPECT_EQ(store.integer("SELECT count(*) FROM v_summary WHERE metric = 'relative_l2' AND mcse > 0.2"), 0);
    EXPECT_EQ(store.integer("SELECT count(*) FROM v_summary WHERE metric = 'overlap.left' AND mcse > 0.05*abs(mean)"),
              0);
}

TEST(Stopping, WithoutRulesAllReplicatesAreRun) {
    FakeStudy study;
    study.least = 10;
    const std::string path = scratch_path("fixed");
    EXPECT_EQ(run_into(study.experiment(), path), RunOutcome::complete);
    Database store = open_store(path);
    for (const auto& cell : cells_of(store)) {
        EXPECT_EQ(cell.replicates, 47);
        EXPECT_EQ(cell.why, "max");
    }
}

TEST(Engine, ResultsDoNotDependOnThreadsWithStopRules) {
    FakeStudy study = adaptive_study();
    study.cells[1].failing = 0.02;
    const auto with = [&](std::size_t threads) {
        Store store(":memory:", study.experiment(), "test", threads, Json::object());
        EXPECT_EQ(run_experiment(study.experiment(), store, {.threads = threads}), RunOutcome::complete);
        EXPECT_GT(store.database().integer("SELECT count(*) FROM failure"), 0);
        return science_of(store.database());
    };
    const std::string one = with(1);
    EXPECT_EQ(with(2), one);
    EXPECT_EQ(with(4), one);
}

TEST(Engine, StopsWithinACellDoNotChangeResults) {
    const Experiment experiment = adaptive_study().experiment();
    const std::string whole = scratch_path("uninterrupted");
    run_into(experiment, whole);
    const std::string path = scratch_path("stopped");
    int steps = 0;
    RunOutcome outcome = RunOutcome::stopped;
    while (outcome == RunOutcome::stopped) {
        ASSERT_LT(++steps, 400);
        std::atomic<bool> stop{false};
        int batches = 0;
        outcome = run_into(experiment, path, {.threads = 2, .stop = &stop, .progress = [&](auto, auto) {
                                                  if (++batches == 3) stop = true;
                                              }});
    }
    EXPECT_EQ(outcome, RunOutcome::complete);
    EXPECT_GT(steps, 20);
    EXPECT_EQ(science_of(path), science_of(whole));
}

// The process is killed repeatedly, during batches, commits and evaluations of stop rules.
TEST(Engine, KillsWithinACellDoNotChangeResults) {
    const Experiment experiment = adaptive_study().experiment();
    const std::string whole = scratch_path("unkilled");
    run_into(experiment, whole);
    const std::string path = scratch_path("killed");
    std::mt19937 random(11);
    int kills = 0;
    for (bool finished = false; !finished;) {
        ASSERT_LT(kills, 500);
        const pid_t child = fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            try {
                _exit(run_into(experiment, path, {.threads = 2}) == RunOutcome::complete ? 0 : 1);
            } catch (...) {
                _exit(2);
            }
        }
        // The delay grows from run to run, so that the study is finished even on a slow machine.
        std::this_thread::sleep_for(std::chrono::microseconds(
            std::uniform_int_distribution<>(500, 1500 + 400 * kills + 20 * kills * kills)(random)));
        kill(child, SIGKILL);
        int status = 0;
        waitpid(child, &status, 0);
        finished = WIFEXITED(status);
        if (finished) {
            ASSERT_EQ(WEXITSTATUS(status), 0);
        } else {
            ++kills;
        }
        if (kills > 0 && !finished &&
            Database(path, Database::Mode::create).integer("SELECT count(*) FROM sqlite_master") > 0) {
            EXPECT_NO_THROW((void)open_store(path)) << "a killed store can be read";
        }
    }
    EXPECT_GE(kills, 3);
    EXPECT_EQ(science_of(path), science_of(whole));
}

TEST(Engine, ProgressReachesATotalThatGrowsWithTheCells) {
    const Experiment experiment = adaptive_study().experiment();
    Store store(":memory:", experiment, "test", 1, Json::object());
    std::vector<std::pair<std::size_t, std::size_t>> seen;
    run_experiment(experiment, store, {.threads = 2, .progress = [&](std::size_t done, std::size_t total) {
                                           seen.emplace_back(done, total);
                                       }});
    ASSERT_FALSE(seen.empty());
    EXPECT_EQ(seen.front().second, 100U) << "five cells of at least 20";
    for (std::size_t i = 1; i < seen.size(); ++i) {
        EXPECT_GT(seen[i].first, seen[i - 1].first);
        EXPECT_GE(seen[i].second, seen[i - 1].second);
        EXPECT_LE(seen[i].first, seen[i].second);
    }
    EXPECT_EQ(seen.back().first, seen.back().second);
    EXPECT_EQ(static_cast<std::int64_t>(seen.back().first), store.database().integer("SELECT sum(reps) FROM batch"));
}

// Cells that results call for are added one after the other, by a resumed run too, and hold the numbers that they would
// hold if the study began with them.
TEST(Engine, AGrowingStudyAddsTheSameCellsAfterStops) {
    const Experiment whole = FakeStudy{}.experiment();
    Experiment growing = whole;
    growing.cells.resize(2);
    growing.grow = [&](Database& store) -> std::vector<ExperimentCell> {
        const auto cells = static_cast<std::size_t>(store.integer("SELECT count(*) FROM cell"));
        const bool done = store.integer("SELECT count(*) FROM cell WHERE state <> 'done'") == 0;
        if (!done || cells == whole.cells.size()) return {};
        return {whole.cells[cells]};
    };
    const auto means = [](const std::string& path) {
        Database store = open_store(path);
        Statement row(store, "SELECT cell, method, metric, k, n, mean, sd FROM v_summary ORDER BY 1, 2, 3, 4");
        std::vector<std::pair<std::string, double>> all;
        while (row.step())
            for (const int number : {4, 5, 6})
                if (!row.is_null(number)) all.emplace_back(row.text(0) + row.text(1) + row.text(2), row.real(number));
        return all;
    };
    const std::string expected = scratch_path("growing-whole");
    run_into(whole, expected);
    const std::string path = scratch_path("growing");
    int sessions = 0;
    for (RunOutcome outcome = RunOutcome::stopped; outcome == RunOutcome::stopped; ++sessions) {
        ASSERT_LT(sessions, 100);
        std::atomic<bool> stop{false};
        int batches = 0;
        outcome = run_into(growing, path, {.threads = 2, .stop = &stop, .progress = [&](auto, auto) {
                                               if (++batches == 7) stop = true;
                                           }});
    }
    EXPECT_GT(sessions, 5);
    EXPECT_EQ(means(path), means(expected));
    growing.cells.resize(1);
    growing.cells[0].replicates = 40;
    EXPECT_NE(message_of([&] { run_into(growing, path); }, ErrorKind::usage).find("40 replicates"), std::string::npos);
}

TEST(Engine, TheFailureBudgetIsAFractionOfAllReplicatesOfACell) {
    FakeStudy study = adaptive_study();
    study.cells = {{"few", 1.0, 0.3, 0.02}, {"many", 1.0, 0.3, 0.3}};
    study.failure_budget = 0.1;
    const std::string path = scratch_path("budget");
    EXPECT_EQ(run_into(study.experiment(), path), RunOutcome::too_many_failures);
    EXPECT_EQ(run_into(study.experiment(), path), RunOutcome::too_many_failures) << "also when the run is repeated";
    study.failure_budget = 0.9;
    EXPECT_EQ(run_into(study.experiment(), path), RunOutcome::complete);
}

TEST(Engine, CountsReplicatesWithoutAValueForEveryBatchSize) {
    FakeStudy study;
    study.cells = {{"a", 1.0, 0.3, 0.3}};
    for (const std::size_t batch : {1U, 4U, 47U}) {
        study.batch = batch;
        Store store(":memory:", study.experiment(), "test", 1, Json::object());
        run_experiment(study.experiment(), store, {.threads = 1});
        EXPECT_GT(store.database().integer("SELECT min(failed) FROM v_summary"), 3);
        EXPECT_EQ(store.database().integer("SELECT max(abs(n + failed - 47)) FROM v_summary"), 0) << batch;
    }
}

TEST(Engine, StoresAFailedReplicateAsMissingWithReasonAndCommand) {
    FakeStudy study;
    study.cells = {{"a", 1.0, 0.3, 0.2}};
    study.raw = 20;
    Experiment experiment = study.experiment();
    // A usage_error during the run is a failure of the replicate too, because names were checked before.
    experiment.worker = [inner = experiment.worker](std::size_t cell, ReplicateRange range) -> Experiment::Worker {
        return [worker = inner(cell, range)](std::uint64_t r) {
            if (r == 3) throw usage_error("this draw cannot be used");
            return worker(r);
        };
    };
    Store store(":memory:", experiment, "test", 1, Json::object());
    EXPECT_EQ(run_experiment(experiment, store, {.threads = 1}), RunOutcome::complete);
    Database& found = store.database();
    Statement failure(found, "SELECT message, replay FROM failure WHERE rep = 3");
    ASSERT_TRUE(failure.step());
    EXPECT_EQ(failure.text(0), "this draw cannot be used");
    EXPECT_EQ(failure.text(1), "spiked replay STORE --cell 1 --rep 3");
    EXPECT_GT(found.integer("SELECT count(*) FROM failure WHERE rep < 20"), 2);
    EXPECT_EQ(found.integer("SELECT count(*) FROM value"), 20 * 7) << "one row per stored replicate and quantity";
    EXPECT_EQ(
        found.integer("SELECT count(*) FROM v_value WHERE value IS NOT NULL AND rep IN (SELECT rep FROM failure)"), 0);
    EXPECT_EQ(found.integer("SELECT count(*) FROM v_value WHERE rep IN (SELECT rep FROM failure WHERE rep < 20)"),
              7 * found.integer("SELECT count(*) FROM failure WHERE rep < 20"));
}

TEST(Engine, AStopDiscardsTheRunningBatch) {
    FakeStudy study;
    study.cells = {{"a", 1.0, 0.3}};
    study.most = 3000;
    study.batch = 1000;
    const std::string whole = scratch_path("kept-whole");
    run_into(study.experiment(), whole);
    std::atomic<bool> stop{false};
    std::size_t computed = 0;
    std::size_t kept = 77;
    const auto begun = [&](std::size_t held) { kept = held; };
    Experiment experiment = study.experiment();
    experiment.worker = [&, inner = experiment.worker](std::size_t cell, ReplicateRange range) -> Experiment::Worker {
        return [&, worker = inner(cell, range)](std::uint64_t r) {
            ++computed;
            if (r == 1004) stop = true;
            return worker(r);
        };
    };
    const std::string path = scratch_path("given-up");
    EXPECT_EQ(run_into(experiment, path, {.threads = 1, .stop = &stop, .begun = begun}), RunOutcome::stopped);
    EXPECT_EQ(computed, 1005U);
    EXPECT_EQ(kept, 0U);
    EXPECT_EQ(open_store(path).integer("SELECT count(*) FROM batch"), 1);
    EXPECT_EQ(open_store(path).integer("SELECT count(DISTINCT rep) FROM value"), 1000);
    EXPECT_EQ(run_into(study.experiment(), path, {.threads = 1, .begun = begun}), RunOutcome::complete);
    EXPECT_EQ(kept, 1000U);
    EXPECT_EQ(science_of(path), science_of(whole));
}

TEST(Shards, AreParsedOrRejected) {
    EXPECT_EQ(Shard::parse("2/16").text(), "2/16");
    for (const char* wrong : {"", "2", "0/3", "4/3", "a/3", "1/", "/3", "1/3/5", "-1/3", "1.5/3", "1/ 3"})
        EXPECT_NE(message_of([&] { (void)Shard::parse(wrong); }, ErrorKind::usage).find("write i/k"), std::string::npos)
            << wrong;
}

TEST(Shards, CoverEveryBatchOnce) {
    for (const bool adaptive : {false, true}) {
        const Experiment experiment = (adaptive ? adaptive_study() : FakeStudy{}).experiment();
        const std::string whole = scratch_path("whole");
        run_into(experiment, whole);
        Database expected = open_store(whole);
        const std::int64_t batches = expected.integer("SELECT count(*) FROM batch");
        std::int64_t sum = 0;
        std::vector<std::int64_t> cells;
        for (std::size_t i = 1; i <= 3; ++i) {
            const std::string path = scratch_path("shard");
            EXPECT_EQ(run_into(experiment, path, {.threads = 2, .shard = {i, 3}}), RunOutcome::part_complete);
            Database store = open_store(path);
            sum += store.integer("SELECT count(*) FROM batch");
            cells.push_back(store.integer("SELECT count(DISTINCT cell_id) FROM batch"));
            EXPECT_EQ(store.integer(fmt::format("SELECT status = 'shard {}/3' FROM study", i)), 1);
            EXPECT_EQ(store.integer("SELECT count(*) FROM cell WHERE state = 'done'"), adaptive ? cells.back() : 0);
        }
        EXPECT_EQ(sum, batches);
        EXPECT_EQ(cells, (adaptive ? std::vector<std::int64_t>{2, 2, 1} : std::vector<std::int64_t>{5, 5, 5}))
            << "whole cells are assigned if there are stop rules, otherwise batches";
    }
}

TEST(Shards, CanBeRunOneAfterAnotherIntoOneStore) {
    for (const bool adaptive : {false, true}) {
        const Experiment experiment = (adaptive ? adaptive_study() : FakeStudy{}).experiment();
        const std::string whole = scratch_path("whole");
        run_into(experiment, whole);
        const std::string path = scratch_path("filled");
        EXPECT_EQ(run_into(experiment, path, {.threads = 1, .shard = {3, 3}}), RunOutcome::part_complete);
        EXPECT_EQ(run_into(experiment, path, {.threads = 1, .shard = {3, 3}}), RunOutcome::part_complete);
        EXPECT_EQ(run_into(experiment, path, {.threads = 1, .shard = {1, 3}}), RunOutcome::part_complete);
        EXPECT_EQ(run_into(experiment, path, {.threads = 1, .shard = {2, 3}}), RunOutcome::complete);
        EXPECT_EQ(science_of(path), science_of(whole));
    }
}

TEST(Shards, MayHaveNoWork) {
    FakeStudy study;
    study.cells.resize(1);
    study.most = 5;
    const std::string path = scratch_path("idle");
    EXPECT_EQ(run_into(study.experiment(), path, {.threads = 1, .shard = {2, 2}}), RunOutcome::part_complete);
    Database store = open_store(path);
    EXPECT_EQ(store.integer("SELECT count(*) FROM batch"), 0);
    EXPECT_EQ(store.integer("SELECT count(*) FROM verdict"), 0);
}

// Each part would be judged at the false-alarm rate of the whole study.
TEST(Shards, APartGivesNoVerdicts) {
    const Experiment experiment = FakeStudy{}.experiment();
    const std::string path = scratch_path("judged-part");
    const auto verdicts = [&] { return open_store(path).integer("SELECT count(*) FROM verdict"); };
    (void)run_into(experiment, path, {.threads = 1, .shard = {1, 2}});
    EXPECT_EQ(verdicts(), 0);
    edit(path,
         "INSERT INTO verdict SELECT question_id, check_name, claim, cell_id, method_id, 'overlap.left', k, 1, 1, "
         "expected, margin, 0, 2, 1e-3, 1, 40, NULL, 'pass', control_expected, 'fail', '', allowed_lo, allowed_hi, "
         "exponent_of FROM question LIMIT 1");
    EXPECT_EQ(verdicts(), 1) << "as of a program that judged parts";
    (void)run_into(experiment, path, {.threads = 1, .shard = {1, 2}});
    EXPECT_EQ(verdicts(), 0);
    (void)run_into(experiment, path, {.threads = 1, .shard = {2, 2}});
    EXPECT_EQ(verdicts(), 5) << "the store holds the whole study";
}

}  // namespace
}  // namespace spiked::validation

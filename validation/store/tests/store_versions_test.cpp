// Tests of stores of another version of the program: with the schema of version 0.1, and with other numbers of metrics.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "validation/engine/compare.hpp"
#include "validation/engine/merge.hpp"
#include "validation/engine/tests/fake_study.hpp"
#include "validation/store/stopping.hpp"
#include "validation/store/store_metrics.hpp"
#include "validation/store/tests/version_2_store.hpp"

namespace spiked::validation {
namespace {

/// A study whose cells stop by a rule, so that moments are read back from the store when a run is resumed.
Experiment study_with_a_rule() {
    FakeStudy study;
    study.least = 10;
    study.most = 400;
    study.until = {{metric_index("overlap.left"), 0.1, 0.0}};
    return study.experiment();
}

/// The numbers of a store by the names of their metrics.
std::string named_numbers(const std::string& path) {
    Database store = open_store(path);
    std::string text;
    for (const char* query :
         {"SELECT cell, method, metric, k, n, failed, mean, sd, mcse, lo, hi FROM v_summary ORDER BY 1, 2, 3, 4",
          "SELECT cell, rep, method, metric, k, value FROM v_value ORDER BY 1, 2, 3, 4, 5",
          "SELECT name, relative, absolute FROM stop_rule JOIN metric USING(metric_id)",
          "SELECT cell_id, state, why FROM cell ORDER BY 1", "SELECT * FROM v_bits ORDER BY 1, 2",
          "SELECT cell_id, batch, digest FROM batch ORDER BY 1, 2",
          "SELECT q.question_id, name, expected FROM question q JOIN metric USING(metric_id) ORDER BY 1",
          "SELECT verdict_id, metric, estimate, verdict FROM verdict ORDER BY 1"}) {
        Statement row(store, query);
        while (row.step()) {
            for (int c = 0; c < row.columns(); ++c)
                text += (row.is_text(c) ? row.text(c) : fmt::format("{:a}", row.real(c))) + ",";
            text += "\n";
        }
    }
    return text;
}

std::int64_t version_of(const std::string& path) { return open_store(path).integer("PRAGMA user_version"); }

/// A store that a run left unfinished: one of two shards.
std::string half_of(const Experiment& experiment, const std::string& name, std::size_t shard = 1) {
    const std::string path = scratch_path(name);
    run_into(experiment, path, {.threads = 1, .shard = {shard, 2}});
    return path;
}

std::string as_version_2(const std::string& path) {
    const std::string older = scratch_path("version-2");
    write_version_2(path, older);
    return older;
}

TEST(StoreVersions, AStoreOfVersion2HoldsTheSameScience) {
    const std::string path = scratch_path("current");
    run_into(study_with_a_rule(), path);
    const std::string older = as_version_2(path);
    EXPECT_EQ(version_of(path), 4);
    EXPECT_EQ(version_of(older), 2);
    EXPECT_EQ(science_of(older), science_of(path)) << "their regions too, from the prediction and the margin";
    constexpr const char* statement = "SELECT length(sql) FROM sqlite_master WHERE name = 'study'";
    EXPECT_NE(open_store(older).integer(statement), open_store(path).integer(statement))
        << "the two schemas have other comments";
}

TEST(StoreVersions, AStoreOfAnEarlierVersionIsResumedAndThenHasThisOne) {
    const std::string whole = scratch_path("whole");
    const Experiment experiment = study_with_a_rule();
    run_into(experiment, whole);
    for (const int version : {2, 3}) {
        const std::string older = scratch_path("earlier");
        write_version_2(half_of(experiment, "half"), older, version);
        ASSERT_EQ(version_of(older), version);
        ASSERT_NE(science_of(older), science_of(whole));
        EXPECT_EQ(run_into(experiment, older), RunOutcome::complete);
        EXPECT_EQ(science_of(older), science_of(whole));
        EXPECT_EQ(version_of(older), 4);
    }
}

TEST(StoreVersions, AVersionWithTheTablesOfAnotherIsRejected) {
    const std::string path = scratch_path("current");
    run_into(FakeStudy{}.experiment(), path);
    const std::string older = as_version_2(path);
    edit(path, "PRAGMA user_version = 3");
    edit(older, "PRAGMA user_version = 4");
    for (const auto& one : {path, older})
        EXPECT_NE(message_of([&] { (void)open_store(one); }, ErrorKind::input).find("the store is damaged"),
                  std::string::npos);
    edit(path, "PRAGMA user_version = 5");
    EXPECT_NE(message_of([&] { (void)open_store(path); }, ErrorKind::input).find("written by a newer version"),
              std::string::npos);
}

TEST(StoreVersions, AStoreWithOtherNumbersOfMetricsIsResumed) {
    const std::string whole = scratch_path("whole");
    const Experiment experiment = study_with_a_rule();
    run_into(experiment, whole);
    const std::string other = half_of(experiment, "half");
    renumber_metrics(other);
    EXPECT_EQ(run_into(experiment, other), RunOutcome::complete);
    EXPECT_EQ(named_numbers(other), named_numbers(whole));
    EXPECT_EQ(open_store(other).integer("SELECT count(*) FROM metric"), metrics().size());
    EXPECT_EQ(open_store(other).integer("SELECT count(*) FROM moment WHERE metric_id < 900"), 0);
}

TEST(StoreVersions, PartsWithOtherNumbersOfMetricsMergeToTheSameStore) {
    const Experiment experiment = study_with_a_rule();
    const std::string first = half_of(experiment, "first", 1);
    const std::string second = half_of(experiment, "second", 2);
    const std::string expected = scratch_path("expected");
    merge_stores({first, second}, expected);
    const std::string older = as_version_2(first);
    renumber_metrics(older);
    for (const auto& parts : {std::vector{older, second}, std::vector{second, older}}) {
        const std::string output = scratch_path("output");
        merge_stores(parts, output);
        EXPECT_EQ(science_of(output), science_of(expected));
        EXPECT_EQ(version_of(output), 4);
    }
}

TEST(StoreVersions, StoresWithOtherNumbersOfMetricsCompareAsEqual) {
    const std::string path = scratch_path("current");
    run_into(study_with_a_rule(), path);
    const std::string other = as_version_2(path);
    renumber_metrics(other);
    EXPECT_EQ(named_numbers(other), named_numbers(path));
    const StoreComparison found = compared(path, other);
    EXPECT_GT(found.batches_in_both, 0U);
    EXPECT_EQ(found.batches_changed, 0U);
    EXPECT_TRUE(found.only_a.empty());
    EXPECT_TRUE(found.only_b.empty());
    for (const auto& row : found.rows) EXPECT_EQ(row.difference, 0.0) << row.metric;
}

/// A study that stops by a share whose replicates are all 0.
Experiment study_of_a_share() {
    FakeStudy study;
    study.cells = {{"a", 1.0, 1.0}};
    study.batch = 10;
    study.least = 10;
    study.most = 400;
    study.until = {{metric_index("rank_over"), 0.0, 0.02}};
    Experiment experiment = study.experiment();
    experiment.worker = [worker = experiment.worker](std::size_t cell, ReplicateRange range) -> Experiment::Worker {
        return [inner = worker(cell, range)](std::uint64_t replicate) {
            auto observed = inner(replicate);
            observed.push_back({1, metric_index("rank_over"), 0, 0.0});
            return observed;
        };
    };
    return experiment;
}

// Version 0.1 wrote the unit `share` for shares of replicates, and stopped by their standard error.
constexpr const char* earlier_unit = "UPDATE metric SET unit = 'share' WHERE name = 'rank_over'";

TEST(StoreVersions, StopRulesMeasureErrorsLikeTheProgramThatMadeTheStore) {
    const Experiment experiment = study_of_a_share();
    const std::string path = scratch_path("share");
    EXPECT_EQ(run_into(experiment, path), RunOutcome::complete);
    const auto goal = [&] {
        Database store = open_store(path);
        return StudyProgress(store).cells().front().goal_replicates();
    };
    EXPECT_GE(goal(), 100U);
    edit(path, earlier_unit);
    EXPECT_EQ(goal(), 10U);
    const std::int64_t batches = open_store(path).integer("SELECT count(*) FROM batch");
    EXPECT_EQ(run_into(experiment, path), RunOutcome::complete) << "an earlier store is resumed";
    Database store = open_store(path);
    EXPECT_EQ(store.integer("SELECT count(*) FROM batch"), batches);
    EXPECT_EQ(store.integer("SELECT count(*) FROM metric WHERE name = 'rank_over' AND unit = 'share'"), 1);
}

TEST(StoreVersions, PartsWhoseStopRulesMeasureErrorsDifferentlyAreNotMerged) {
    const Experiment experiment = study_of_a_share();
    const std::string first = half_of(experiment, "first", 1);
    const std::string second = half_of(experiment, "second", 2);
    edit(first, earlier_unit);
    for (const auto& parts : {std::vector{first, second}, std::vector{second, first}})
        EXPECT_NE(message_of([&] { merge_stores(parts, scratch_path("output")); }, ErrorKind::usage)
                      .find("measure the error of rank_over for run.until in different ways"),
                  std::string::npos);
    edit(second, earlier_unit);
    const std::string output = scratch_path("output");
    merge_stores({first, second}, output);
    EXPECT_EQ(open_store(output).integer("SELECT count(*) FROM metric WHERE name = 'rank_over' AND unit = 'share'"), 1);
}

TEST(StoreVersions, AMetricThatAStoreDoesNotHaveHasNoNumberThere) {
    const std::string path = half_of(study_with_a_rule(), "numbers");
    edit(path,
         "DELETE FROM metric WHERE name = 'shared_bits'; INSERT INTO metric VALUES(500, 'younger', 'share', 'none', "
         "'')");
    Database store = open_store(path);
    const StoreMetrics numbers(store);
    EXPECT_EQ(numbers.number(metric_index("shared_bits")), 0);
    EXPECT_EQ(numbers.metric(numbers.number(metric_index("rank"))), metric_index("rank"));
    for (const std::int64_t unknown : {std::int64_t{500}, std::int64_t{0}})
        EXPECT_NE(message_of([&] { (void)numbers.metric(unknown); }, ErrorKind::input).find("update the program"),
                  std::string::npos);
}

}  // namespace
}  // namespace spiked::validation

// Tests of merging: the parts of a study, in every order and grouping, give the same content as one run; stores that
// are not parts of one study are rejected.
#include "validation/engine/merge.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <random>

#include "sim/random/normal.hpp"
#include "validation/engine/tests/fake_study.hpp"

namespace spiked::validation {
namespace {

namespace fs = std::filesystem;

std::string text_of(const std::string& path, const std::string& query) {
    Database store = open_store(path);
    Statement row(store, query);
    return row.step() ? row.text(0) : "";
}

std::int64_t count_of(const std::string& path, const std::string& query) {
    Database store = open_store(path);
    return store.integer(query);
}

FakeStudy failing_study(bool adaptive) {
    FakeStudy study;
    study.cells[1].failing = 0.1;
    if (adaptive) {
        study.least = 10;
        study.most = 400;
        study.until = {{metric_index("overlap.left"), 0.1, 0.0}};
    }
    return study;
}

/// Runs the shards of the study and returns their paths.
std::vector<std::string> run_shards(const Experiment& experiment, std::size_t of, const std::string& name) {
    std::vector<std::string> paths;
    for (std::size_t i = 1; i <= of; ++i) {
        paths.push_back(scratch_path(fmt::format("{}-{}", name, i)));
        run_into(experiment, paths.back(), {.threads = 2, .shard = {i, of}});
    }
    return paths;
}

std::string merged(const std::vector<std::string>& parts, const std::string& name = "merged") {
    const std::string path = scratch_path(name);
    merge_stores(parts, path);
    return path;
}

/// The content of a store that science_of leaves out: sessions, which session ran which batch, start, figures,
/// failures.
std::string bookkeeping_of(const std::string& path) {
    Database store = open_store(path);
    std::string text;
    for (const char* query :
         {"SELECT * FROM session ORDER BY 1", "SELECT cell_id, batch, session_id, wall_s FROM batch",
          "SELECT title, config_source, seed_source, backend, created_utc, failure_budget FROM study",
          "SELECT * FROM figure ORDER BY 1", "SELECT rowid, * FROM failure ORDER BY 1"}) {
        Statement row(store, query);
        while (row.step())
            for (int c = 0; c < row.columns(); ++c) text += row.text(c) + (c + 1 < row.columns() ? "," : "\n");
    }
    return text;
}

/// Expects that no unfinished file is left beside the path.
void expect_no_unfinished_file(const std::string& path) {
    for (const auto& entry : fs::directory_iterator(fs::path(path).parent_path()))
        EXPECT_FALSE(entry.path().string().starts_with(path + ".")) << entry.path();
}

class Merge : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(FixedAndAdaptive, Merge, testing::Bool(),
                         [](const auto& of) { return of.param ? "adaptive" : "fixed"; });

TEST_P(Merge, InEveryOrderAndGroupingGivesTheContentOfOneRun) {
    const Experiment experiment = failing_study(GetParam()).experiment();
    const std::string whole = scratch_path("whole");
    run_into(experiment, whole);
    const std::string expected = science_of(whole);
    std::vector<std::string> parts = run_shards(experiment, 3, "shard");
    std::sort(parts.begin(), parts.end());
    std::string rest;
    do {
        const std::vector<std::string> groupings = {
            merged(parts, "flat"),
            merged({merged({parts[0], parts[1]}, "two"), parts[2]}, "left"),
            merged({parts[0], merged({parts[1], parts[2]}, "two")}, "right"),
            merged({merged({parts[0]}, "one"), merged({parts[1]}, "two"), merged({parts[2]}, "three")}, "single"),
        };
        for (const auto& path : groupings) {
            EXPECT_EQ(science_of(path), expected) << path;
            EXPECT_EQ(text_of(path, "SELECT status FROM study"), "complete");
            EXPECT_EQ(count_of(path, "SELECT count(*) FROM session"), 3);
            if (rest.empty()) rest = bookkeeping_of(path);
            EXPECT_EQ(bookkeeping_of(path), rest) << path;
        }
    } while (std::next_permutation(parts.begin(), parts.end()));
    for (const auto& part : parts) EXPECT_TRUE(text_of(part, "SELECT status FROM study").starts_with("shard "));
}

TEST_P(Merge, AnEmptyPartChangesNothing) {
    const Experiment experiment = failing_study(GetParam()).experiment();
    auto parts = run_shards(experiment, 2, "half");
    const std::string expected = science_of(merged(parts));
    const std::string empty = scratch_path("empty");
    { Store store(empty, experiment, "test", 1, Json::object()); }
    parts.insert(parts.begin(), empty);
    EXPECT_EQ(science_of(merged(parts)), expected);
    EXPECT_EQ(count_of(merged({empty}), "SELECT count(*) FROM batch"), 0);
    EXPECT_EQ(text_of(merged({empty}), "SELECT status FROM study"), "incomplete");
}

TEST_P(Merge, OfSomePartsCanBeContinuedToTheSameNumbers) {
    const Experiment experiment = failing_study(GetParam()).experiment();
    const std::string whole = scratch_path("whole");
    run_into(experiment, whole);
    const auto parts = run_shards(experiment, 3, "third");
    const std::string path = merged({parts[2], parts[0]});
    EXPECT_EQ(text_of(path, "SELECT status FROM study"), "incomplete");
    EXPECT_EQ(run_into(experiment, path), RunOutcome::complete);
    EXPECT_EQ(science_of(path), science_of(whole));
}

TEST_P(Merge, AcceptsPartsThatWereStopped) {
    const Experiment experiment = failing_study(GetParam()).experiment();
    const std::string whole = scratch_path("whole");
    run_into(experiment, whole);
    const auto parts = run_shards(experiment, 2, "other");
    const std::string stopped = scratch_path("stopped");
    std::atomic<bool> stop{false};
    int batches = 0;
    EXPECT_EQ(
        run_into(
            experiment, stopped,
            {.threads = 1, .stop = &stop, .progress = [&](auto, auto) { stop = ++batches >= 4; }, .shard = {1, 2}}),
        RunOutcome::stopped);
    const std::string path = merged({stopped, parts[1]});
    EXPECT_EQ(text_of(path, "SELECT status FROM study"), "incomplete");
    EXPECT_EQ(run_into(experiment, path), RunOutcome::complete);
    EXPECT_EQ(science_of(path), science_of(whole));
}

TEST_P(Merge, RejectsABatchThatTwoPartsHold) {
    const Experiment experiment = failing_study(GetParam()).experiment();
    const auto parts = run_shards(experiment, 2, "half");
    const std::string copy = scratch_path("copy");
    fs::copy_file(parts[0], copy);
    const std::string output = scratch_path("output");
    for (const auto& inputs : {std::vector{parts[0], parts[1], copy}, std::vector{copy, parts[0]},
                               std::vector{merged({parts[0], parts[1]}, "both"), parts[0]}}) {
        const std::string message = message_of([&] { merge_stores(inputs, output); }, ErrorKind::usage);
        EXPECT_NE(message.find(inputs.front()), std::string::npos) << message;
        EXPECT_NE(message.find(inputs.back()), std::string::npos) << message;
        EXPECT_NE(message.find("both hold batch 0 of cell cell a (replicates 0 to 4"), std::string::npos) << message;
        EXPECT_FALSE(fs::exists(output));
        expect_no_unfinished_file(output);
    }
    EXPECT_NE(message_of(
                  [&] {
                      merge_stores({parts[0], parts[0]}, output);
                  },
                  ErrorKind::usage)
                  .find("the same store"),
              std::string::npos);
}

TEST(MergeRejects, StoresThatAreNotPartsOfOneStudy) {
    FakeStudy study;
    const std::string one = scratch_path("one");
    run_into(study.experiment(), one, {.threads = 1, .shard = {1, 2}});
    const std::string output = scratch_path("output");
    const auto rejected = [&](const FakeStudy& of, const std::string& change) {
        const std::string other = scratch_path("other");
        run_into(of.experiment(), other, {.threads = 1, .shard = {2, 2}});
        if (!change.empty()) edit(other, change);
        const std::string message = message_of([&] { merge_stores({one, other}, output); }, ErrorKind::usage);
        EXPECT_FALSE(fs::exists(output));
        expect_no_unfinished_file(output);
        return message;
    };
    FakeStudy longer = study;
    longer.most = 48;
    EXPECT_NE(rejected(longer, "").find("are not parts of one study (most: 47 and 48)"), std::string::npos);
    FakeStudy seeded = study;
    seeded.seed = "0x1";
    EXPECT_NE(rejected(seeded, "").find("seed: 0x"), std::string::npos);
    EXPECT_NE(rejected(study, "UPDATE study SET backend = 'cuda'").find("backend: cpu and cuda"), std::string::npos);
    EXPECT_NE(rejected(study, "UPDATE question SET expected = expected * 1.001").find("in check mean"),
              std::string::npos);
    EXPECT_NE(rejected(study, "DELETE FROM question WHERE question_id = 5").find("checks expect differs"),
              std::string::npos);
    const std::string older = scratch_path("older");
    run_into(study.experiment(), older, {.threads = 1, .shard = {2, 2}});
    edit(older, "UPDATE metric SET name = 'x' WHERE metric_id = 2");
    EXPECT_NE(message_of(
                  [&] {
                      merge_stores({one, older}, output);
                  },
                  ErrorKind::input)
                  .find("it measures x, which this program does not know"),
              std::string::npos);
    edit(older, "PRAGMA user_version = 1");
    message_of([&] { merge_stores({one, older}, output); }, ErrorKind::input);
    message_of([&] { merge_stores({one, "/nowhere/x.spiked"}, output); }, ErrorKind::input);
    expect_no_unfinished_file(output);
}

TEST(Merge, AcceptsPartsOfProgramsWithFewerMetrics) {
    const FakeStudy study;
    const std::string parts[] = {scratch_path("fewer"), scratch_path("all")};
    for (std::size_t i = 0; i < 2; ++i) run_into(study.experiment(), parts[i], {.threads = 1, .shard = {i + 1, 2}});
    edit(parts[0], "DELETE FROM metric WHERE metric_id > (SELECT max(metric_id) FROM moment)");
    const std::string output = scratch_path("output");
    merge_stores({parts[0], parts[1]}, output);
    Database merged = open_store(output);
    EXPECT_EQ(merged.integer("SELECT count(*) FROM metric"), metrics().size());
}

TEST(MergeRejects, ToOverwriteAnything) {
    const auto parts = run_shards(FakeStudy{}.experiment(), 2, "half");
    const std::string before = science_of(parts[1]);
    EXPECT_NE(message_of([&] { merge_stores(parts, parts[1]); }, ErrorKind::usage).find("name another output"),
              std::string::npos);
    const std::string output = merged(parts);
    message_of([&] { merge_stores(parts, output); }, ErrorKind::output);
    message_of([&] { merge_stores(parts, "/nowhere/x.spiked"); }, ErrorKind::output);
    message_of([&] { merge_stores({}, scratch_path("nothing")); }, ErrorKind::usage);
    EXPECT_EQ(science_of(parts[1]), before);
}

TEST(MergeRejects, ADamagedPartAndNamesIt) {
    const auto parts = run_shards(FakeStudy{}.experiment(), 2, "half");
    fs::resize_file(parts[1], fs::file_size(parts[1]) / 2);
    const std::string output = scratch_path("output");
    EXPECT_NE(message_of([&] { merge_stores(parts, output); }, ErrorKind::input).find(parts[1]), std::string::npos);
    expect_no_unfinished_file(output);
}

/// Impossible content of an untrusted store must be reported as damage, not as a bug of the program.
TEST(MergeRejects, ImpossibleCellsAndBatches) {
    const FakeStudy study;
    const std::string good = scratch_path("good");
    run_into(study.experiment(), good);
    for (const auto& [sql, part] :
         {std::pair{"INSERT INTO batch VALUES(1, 10, 50, 0, 0, 1, 0.1, 'ab')",
                    "batches beyond the replicates of their cell"},
          {"INSERT INTO batch VALUES(1, -1, 0, 0, 0, 1, 0.1, 'ab')", "batches beyond the replicates of their cell"},
          {"INSERT INTO batch VALUES(1, 3.5, 0, 0, 0, 1, 0.1, 'ab')", "batches beyond the replicates of their cell"},
          {"INSERT INTO batch VALUES(1, 1 << 62, 0, 4, 4, 1, 0.1, 'ab')",
           "batches beyond the replicates of their cell"},
          {"UPDATE cell SET reps_least = 0, reps_target = 0", "table cell holds values that no run writes"},
          {"UPDATE cell SET reps_least = 0", "table cell holds values that no run writes"}}) {
        const std::string bad = scratch_path("bad");
        fs::copy_file(good, bad);
        edit(bad, sql);
        const auto expect_rejection = [&, sql = sql, part = part](const auto& action) {
            const std::string message = message_of(action, ErrorKind::input);
            EXPECT_NE(message.find(part), std::string::npos) << sql << ": " << message;
            EXPECT_NE(message.find("bad"), std::string::npos) << message;
        };
        expect_rejection([&] { merge_stores({bad}, scratch_path("merged")); });
        expect_rejection([&] { run_into(study.experiment(), bad); });
    }
}

TEST(MergeKeeps, TheSameOfDifferingPartsInEveryOrder) {
    const Experiment experiment = FakeStudy{}.experiment();
    const auto parts = run_shards(experiment, 3, "shard");
    // Simulates a part from another machine: other paths, predictions that differ in the last digits, comments in the
    // study file, later figures.
    edit(parts[1],
         "UPDATE question SET expected = expected * (1 + 1e-14); UPDATE theory SET value = value * (1 - 1e-14);"
         "UPDATE factor SET txt = 'elsewhere ' || txt; UPDATE study SET config_source = 'a comment';UPDATE cell SET "
         "label = 'z' || label; INSERT INTO figure VALUES(1, 'frontier', '{}');"
         "UPDATE session SET started_utc = '2999-01-01T00:00:00Z'");
    const std::string expected = science_of(merged(parts)) + bookkeeping_of(merged(parts));
    EXPECT_NE(expected.find("frontier"), std::string::npos);
    EXPECT_EQ(expected.find("elsewhere"), expected.npos) << "the text that sorts first is kept";
    EXPECT_NE(expected, science_of(parts[0]) + bookkeeping_of(parts[0]));
    for (const auto& order : {std::vector{parts[1], parts[0], parts[2]}, std::vector{parts[2], parts[1], parts[0]},
                              std::vector{merged({parts[2], parts[1]}, "two"), parts[0]},
                              std::vector{parts[1], merged({parts[2], parts[0]}, "other two")}}) {
        const std::string path = merged(order, "again");
        EXPECT_EQ(science_of(path) + bookkeeping_of(path), expected);
    }
}

TEST(MergeKeeps, TheFailureBudgetOfTheWhole) {
    // No part has more failed replicates than the budget allows, but all parts together have too many.
    FakeStudy study;
    study.cells = {{"a", 1.0, 1.0, 0.1}};
    study.most = 40;
    study.failure_budget = 1.0;
    const Experiment experiment = study.experiment();
    const auto parts = run_shards(experiment, 4, "quarter");
    std::int64_t most = 0;
    std::int64_t sum = 0;
    for (const auto& part : parts) {
        const std::int64_t failed = count_of(part, "SELECT sum(failed) FROM batch");
        most = std::max(most, failed);
        sum += failed;
    }
    ASSERT_LT(most, sum);
    ASSERT_GT(most, 0);
    for (const auto& part : parts)
        edit(part, fmt::format("UPDATE study SET failure_budget = {}", (static_cast<double>(sum) - 0.5) / 40.0));
    EXPECT_EQ(text_of(merged(parts), "SELECT status FROM study"), "failed");
    for (const auto& part : parts)
        edit(part, fmt::format("UPDATE study SET failure_budget = {}", (static_cast<double>(sum) + 0.5) / 40.0));
    EXPECT_EQ(text_of(merged(parts), "SELECT status FROM study"), "complete");
    EXPECT_EQ(count_of(merged(parts), "SELECT count(*) FROM failure"), sum);
}

// Merging relies on this: the moments of the parts of a sample, merged in any grouping, are those of the sample up to
// rounding, and merging in the same order gives the same bits.
TEST(MomentsLaw, MergingIsAssociativeUpToRoundingAndExactInOneOrder) {
    std::mt19937 random(3);
    for (int trial = 0; trial < 200; ++trial) {
        std::vector<double> x(std::uniform_int_distribution<std::size_t>(3, 400)(random));
        stream::fill_normal(stream::Stream({}, "moments", stream::Role::noise, static_cast<std::uint64_t>(trial)), x);
        const double shift = trial % 2 == 0 ? 0.0 : 1e3;
        for (double& v : x) v = std::exp(v) + shift;
        if (trial % 3 == 0) x[x.size() / 2] = std::nan("");
        std::vector<std::size_t> cuts = {0, x.size()};
        for (int c = 0; c < 5; ++c) cuts.push_back(std::uniform_int_distribution<std::size_t>(0, x.size())(random));
        std::sort(cuts.begin(), cuts.end());
        std::vector<Moments> parts(cuts.size() - 1);
        for (std::size_t p = 0; p < parts.size(); ++p)
            for (std::size_t i = cuts[p]; i < cuts[p + 1]; ++i) parts[p].add(x[i]);
        const auto fold = [&](const std::vector<std::size_t>& order) {
            Moments sum;
            for (const std::size_t p : order) sum.merge(parts[p]);
            return sum;
        };
        std::vector<std::size_t> order(parts.size());
        std::iota(order.begin(), order.end(), 0U);
        const Moments forward = fold(order);
        EXPECT_EQ(std::bit_cast<std::uint64_t>(fold(order).m2), std::bit_cast<std::uint64_t>(forward.m2));
        Moments right = parts.back();
        for (std::size_t p = parts.size() - 1; p-- > 0;) {
            Moments left = parts[p];
            left.merge(right);
            right = left;
        }
        std::shuffle(order.begin(), order.end(), random);
        for (const Moments& other : {right, fold(order)}) {
            EXPECT_EQ(other.count, forward.count);
            EXPECT_EQ(other.missing, forward.missing);
            EXPECT_EQ(other.low, forward.low);
            EXPECT_EQ(other.high, forward.high);
            EXPECT_NEAR(other.mean, forward.mean, 1e-13 * std::abs(forward.mean));
            EXPECT_NEAR(other.m2, forward.m2, 1e-9 * forward.m2);
            EXPECT_NEAR(other.m4, forward.m4, 1e-8 * forward.m4);
        }
        Moments same = forward;
        same.merge(Moments{});
        EXPECT_EQ(same.m2, forward.m2) << "an empty part is neutral";
        Moments from_nothing;
        from_nothing.merge(forward);
        EXPECT_EQ(from_nothing.m4, forward.m4);
    }
}

TEST(Merge, StopsOnRequestAndLeavesNoFile) {
    const auto parts = run_shards(FakeStudy{}.experiment(), 2, "half");
    const std::string output = scratch_path("stopped");
    const std::atomic<bool> stop = true;
    const std::string message = message_of([&] { merge_stores(parts, output, &stop); }, ErrorKind::stopped);
    EXPECT_NE(message.find("stopped as asked"), std::string::npos) << message;
    expect_no_unfinished_file(output);
}

}  // namespace
}  // namespace spiked::validation

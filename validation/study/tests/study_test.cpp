#include "validation/study/study.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <set>

#include "core/runtime/error.hpp"
#include "sim/io/safetensors.hpp"
#include "sim/random/normal.hpp"
#include "validation/claims/claims.hpp"
#include "validation/engine/engine.hpp"
#include "validation/engine/tests/fake_study.hpp"
#include "validation/kv/equal_bits.hpp"
#include "validation/kv/kv_measurement.hpp"
#include "validation/kv/kv_table.hpp"
#include "validation/kv/open_dumps.hpp"
#include "validation/statistics/tests/clustered_mean.hpp"
#include "validation/statistics/verdict.hpp"

namespace spiked::validation {
namespace {

std::vector<NamedCodec> named_codecs(const std::vector<std::string>& methods, const std::vector<double>& bits) {
    std::vector<NamedCodec> codecs;
    for (const auto& method : methods) codecs.push_back({method, estimators::parse_method(method), bits});
    return codecs;
}

const std::string small_study = R"(
spiked = 1
[study]
name = "small"
seed = "0x5eed0000000000000000000000000007"
[model]
kind = "spiked"
n = 24
d = 32
noise = { row_cov = { kind = "ar1", rho = 0.3 } }
signal = { strength = 2.5, unit = "threshold" }
[sweep]
"signal.strength" = [0.5, 2.5]
n = [24, 48]
[[estimator]]
name = "eoptshrink"
[[codec]]
name = "tq-mse"
bits = [2, 3]
[run]
reps = { min = 23, batch = 5 }
[[check]]
claim = "overlap.left"
where = { "signal.strength" = { ge = 1.0 } }
margin = { abs = 0.2 }
)";

std::string scratch(const std::string& name) {
    const std::string path = testing::TempDir() + "spiked-study-" + name;
    std::remove(path.c_str());
    return path;
}

std::string run_once(const Study& study, const std::string& path, std::size_t threads) {
    Store store(path, study.experiment, "test", threads, Json::object());
    EXPECT_EQ(run_experiment(study.experiment, store, {.threads = threads}), RunOutcome::complete);
    return science_of(store.database());
}

TEST(StudyFile, AMisspeltKeyOfASweepIsOneError) {
    std::string text = small_study;
    text.replace(text.find("\"signal.strength\" = ["), 17, "\"signal.strenght\"");
    const std::string message = message_of([&] { (void)parse_study(text, "x.toml"); }, ErrorKind::usage);
    EXPECT_NE(message.find("did you mean \"strength\"?"), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << "checks that use the factor are correct: " << message;
}

TEST(StudyFile, CrossesOrZipsItsSweepAndAppliesOverrides) {
    const Study study = parse_study(small_study, "small.toml");
    ASSERT_EQ(study.experiment.cells.size(), 4U);
    EXPECT_EQ(study.experiment.cells[1].label, "n=48 signal.strength=0.5");
    EXPECT_EQ(study.experiment.methods.size(), 4U);
    EXPECT_EQ(study.experiment.replicates(), 4U * 23);
    EXPECT_EQ(study.store_path, "results/small.spiked");
    const Study zipped = parse_study(small_study + "\n", "small.toml", {.set = {{"sweep.mode", "zip"}}});
    EXPECT_EQ(zipped.experiment.cells.size(), 2U);
    const Study set = parse_study(small_study, "small.toml", {.set = {{"model.d", "64"}}});
    EXPECT_EQ(set.experiment.cells[0].columns, 64U);
    EXPECT_NE(set.experiment.science_hash(), study.experiment.science_hash());
}

TEST(StudyFile, TheHashDependsOnlyOnWhatCanChangeANumber) {
    const auto hash = [](const std::string& text) { return parse_study(text, "x").experiment.science_hash(); };
    EXPECT_EQ(hash(small_study),
              hash("# a comment\n" + small_study + "[exec]\nthreads = 1\n[store]\npath = \"elsewhere.spiked\"\n"));
    std::string changed = small_study;
    changed.replace(changed.find("rho = 0.3"), 9, "rho = 0.4");
    EXPECT_NE(hash(small_study), hash(changed));
}

TEST(StudyFile, AllErrorsAreReportedTogetherWithTheirPlaces) {
    const std::string text = R"(spiked = 1
[study]
name = "wrong"
[model]
kind = "spiked"
n = 24
d = "many"
nosie = { entries = "gaussian" }
signal = { strength = [2.0, 1.0], rank = 3, unit = "alpha" }
[[estimator]]
name = "eoptshrnk"
[[codec]]
name = "tq-mse"
bits = [9]
[run]
reps = { min = 30, max = 20 }
until = [{ metric = "relative_l2" }]
[[check]]
claim = "overlap.lefft"
margin = { abs = 0.02 }
)";
    const std::string message = message_of([&] { (void)parse_study(text, "wrong.toml"); }, ErrorKind::usage);
    for (const char* part :
         {"wrong.toml:7:5: \"d\" must be a whole number",
          "wrong.toml:8:1: unknown key \"nosie\" in [model]; did you mean \"noise\"?", "rank is 3 but 2 strengths",
          "\"alpha\" of unit", "wrong.toml:10:1: unknown spectral estimator \"eoptshrnk\"; did you mean",
          "9 bits are not possible", "wrong.toml:16:26: max of reps is 20, below min, 30",
          "wrong.toml:17:10: a stop rule needs mcse_rel or mcse_abs above 0",
          "unknown claim \"overlap.lefft\"; did you mean \"overlap.left\"?"})
        EXPECT_NE(message.find(part), std::string::npos) << part << "\nin\n" << message;
}

TEST(StudyFile, AWrongSeedOnTheCommandLineIsNotAnErrorOfTheFile) {
    const std::string message =
        message_of([&] { (void)parse_study(small_study, "small.toml", {.seed = "hello"}); }, ErrorKind::usage);
    EXPECT_EQ(message.find("small.toml"), std::string::npos) << message;
    EXPECT_NE(message.find("hello"), std::string::npos) << message;
}

TEST(StudyFile, ATableInPlaceOfAListGetsAnExample) {
    const std::string start =
        "spiked = 1\n[study]\nname = \"x\"\n[model]\nkind = \"spiked\"\nn = 24\nd = 24\nsignal = { strength = 2.0 }\n";
    const auto message = [&](const std::string& rest) {
        return message_of([&] { (void)parse_study(start + rest, "x.toml"); }, ErrorKind::usage);
    };
    EXPECT_NE(message("[run]\nuntil = { metric = \"rank\", mcse_abs = 0.1 }\n")
                  .find("\"until\" must be a list of tables: write until = [{ metric = "),
              std::string::npos);
    EXPECT_NE(
        message("[check]\nclaim = \"overlap.left\"\n").find("\"check\" must be a list of tables: write [[check]]"),
        std::string::npos);
}

/// Labels distinguish methods of the same name, in tables and in comparisons at equal bits.
TEST(StudyFile, LabelsDistinguishMethodsEverywhere) {
    const Study study = parse_study(
        "spiked = 1\n[study]\nname = \"x\"\n[model]\nkind = \"spiked\"\nn = 24\nd = 24\nsignal = { strength = 2.0 }\n"
        "[[codec]]\nname = \"tq-mse\"\nas = \"first\"\nbits = [2, 3]\n"
        "[[codec]]\nname = \"tq-mse\"\nas = \"second\"\nbits = [2, 3]\n"
        "[[estimator]]\nname = \"eoptshrink\"\nas = \"reference\"\n"
        "[[check]]\nclaim = \"lloyd-max.distortion\"\nmargin = { rel = 0.1 }\n[run]\nreps = { min = 20 }\n",
        "x.toml");
    const auto& methods = study.experiment.methods;
    ASSERT_EQ(methods.size(), 6U);
    EXPECT_EQ(methods[1].base, "reference");
    EXPECT_EQ(*methods[1].params.find("method")->string(), "eoptshrink");
    for (std::size_t m = 2; m < 6; ++m) {
        EXPECT_EQ(methods[m].base, m < 4 ? "first" : "second");
        EXPECT_EQ(*methods[m].params.find("method")->string(), "tq-mse");
    }
    std::set<std::size_t> predicted;
    for (const auto& prediction : study.experiment.cells[0].predictions)
        if (prediction.claim == "lloyd-max.distortion") predicted.insert(prediction.method);
    EXPECT_EQ(predicted, (std::set<std::size_t>{2, 3, 4, 5})) << "a claim about tq-mse applies to all its labels";
    const std::string path = (std::filesystem::path(testing::TempDir()) / "labels.spiked").string();
    std::filesystem::remove(path);
    Store store(path, study.experiment, "test", 1, Json::object());
    (void)run_experiment(study.experiment, store, {.threads = 1});
    std::set<std::string> compared;
    for (const auto& row : equal_bits(store.database()).rows) compared.insert(row.method);
    EXPECT_EQ(compared, (std::set<std::string>{"first", "second"}));
}

TEST(StudyFile, TwoChecksOfTheSameNameAreRejectedWithTheirPlaces) {
    const std::string check = "[[check]]\nclaim = \"overlap.left\"\nmargin = { abs = 0.1 }\n";
    const std::string start =
        "spiked = 1\n[study]\nname = \"x\"\n[model]\nkind = \"spiked\"\nn = 24\nd = 24\n"
        "signal = { strength = 2.0 }\n";
    EXPECT_NO_THROW((void)parse_study(start + check, "x.toml"));
    EXPECT_NO_THROW((void)parse_study(start + check + check + "name = \"again\"\n", "x.toml"));
    const std::string message =
        message_of([&] { (void)parse_study(start + check + check, "x.toml"); }, ErrorKind::usage);
    EXPECT_NE(message.find("x.toml:12:1: check \"overlap.left\" is defined twice (first in line 9)"), std::string::npos)
        << message;
}

TEST(StudyFile, ErrorsAreReportedInTheOrderOfTheFile) {
    // The reader finds them in another order: keys of the tables, estimators, then unknown keys.
    const std::string message = message_of(
        [] {
            (void)parse_study(
                "spiked = 1\n[run]\nreps = { min = 9, max = 4 }\n[[estimator]]\nname = \"svdd:1\"\n[model]\nkind = "
                "\"spiked\"\nn = 24\nd = 24\nsignal = { strength = \"two\" }\n[study]\nname = 3\nnaem = \"x\"\n",
                "x.toml");
        },
        ErrorKind::usage);
    std::vector<int> lines;
    for (std::size_t at = message.find("x.toml:"); at != std::string::npos; at = message.find("x.toml:", at + 1))
        lines.push_back(std::stoi(message.substr(at + 7)));
    EXPECT_GE(lines.size(), 5U) << message;
    EXPECT_TRUE(std::is_sorted(lines.begin(), lines.end())) << message;
    EXPECT_EQ(message.find("min and max differ"), std::string::npos) << message;
}

TEST(StudyFile, ChecksWithoutPredictionsAndSyntaxErrorsAreRejected) {
    std::string nowhere = small_study;
    nowhere.replace(nowhere.find("ge = 1.0"), 8, "ge = 9.0");
    EXPECT_NE(message_of([&] { (void)parse_study(nowhere, "x"); }, ErrorKind::usage).find("matches no cell"),
              std::string::npos);
    std::string silent = small_study;
    silent.replace(silent.find("ge = 1.0"), 8, "le = 0.9");
    EXPECT_NE(message_of([&] { (void)parse_study(silent, "x"); }, ErrorKind::usage).find("says nothing"),
              std::string::npos);
    EXPECT_NE(message_of([&] { (void)parse_study("spiked = = 1", "x.toml"); }, ErrorKind::usage).find("x.toml:1:10"),
              std::string::npos);
    message_of([&] { (void)read_study("/nowhere/study.toml"); }, ErrorKind::usage);
}

TEST(Engine, GivesTheSameNumbersForAnyNumberOfThreads) {
    const Study study = parse_study(small_study, "small.toml");
    const std::string one = run_once(study, ":memory:", 1);
    EXPECT_FALSE(one.empty());
    EXPECT_EQ(run_once(study, ":memory:", 2), one);
    EXPECT_EQ(run_once(study, ":memory:", 5), one);
}

TEST(Engine, AStoppedRunResumesToTheSameNumbers) {
    const Study study = parse_study(small_study, "small.toml");
    const std::string whole = run_once(study, ":memory:", 2);
    const std::string path = scratch("resume.spiked");
    for (int step = 0; step < 30; ++step) {
        Store store(path, study.experiment, "test", 2, Json::object());
        std::atomic<bool> stop{false};
        const auto outcome = run_experiment(
            study.experiment, store, {.threads = 2, .stop = &stop, .progress = [&](auto, auto) { stop = true; }});
        if (outcome == RunOutcome::complete) {
            EXPECT_GT(step, 3);
            EXPECT_EQ(science_of(store.database()), whole);
            EXPECT_EQ(store.database().integer("SELECT count(*) FROM session"), step + 1);
            return;
        }
        EXPECT_EQ(outcome, RunOutcome::stopped);
    }
    FAIL() << "thirty resumes were not enough";
}

TEST(Engine, AddingACellOrAMethodChangesNoOtherNumber) {
    const Study study = parse_study(small_study, "small.toml");
    Study more = parse_study(small_study + "[[estimator]]\nname = \"svd:1\"\n", "more.toml",
                             {.set = {{"sweep.n", "[24, 48, 30]"}}});
    const auto values = [](const Study& of) {
        Store store(":memory:", of.experiment, "test", 2, Json::object());
        run_experiment(of.experiment, store, {.threads = 2});
        std::map<std::string, double> all;
        Statement row(store.database(), "SELECT cell, rep, method, metric, k, value FROM v_value");
        while (row.step())
            all[fmt::format("{}|{}|{}|{}|{}", row.text(0), row.integer(1), row.text(2), row.text(3), row.integer(4))] =
                row.real(5);
        return all;
    };
    const auto few = values(study);
    const auto many = values(more);
    EXPECT_GT(many.size(), few.size());
    for (const auto& [key, value] : few) {
        ASSERT_TRUE(many.contains(key)) << key;
        ASSERT_TRUE(many.at(key) == value || (std::isnan(value) && std::isnan(many.at(key)))) << key;
    }
}

TEST(Engine, TheFailureBudgetAppliesAcrossResumes) {
    Experiment experiment;
    experiment.science = Json::object();
    experiment.kind = "spiked";
    experiment.batch = 10;
    experiment.failure_budget = 0.01;
    experiment.methods = {{"sample", "sample", "sample", std::nullopt, Json::object()}};
    ExperimentCell cell;
    cell.label = "cell";
    cell.rows = cell.columns = 4;
    cell.replicates = 60;
    cell.params = Json::object({{"x", 1}});
    experiment.cells = {cell};
    experiment.worker = [](std::size_t, ReplicateRange) -> Experiment::Worker {
        return [](std::uint64_t r) -> std::vector<Observation> {
            if (r % 20 == 7) throw input_error("planted");
            return {{0, 0, 0, 1.0}};
        };
    };
    const std::string path = scratch("budget.spiked");
    for (int attempt = 0; attempt < 6; ++attempt) {
        Store store(path, experiment, "test", 1, Json::object());
        EXPECT_EQ(run_experiment(experiment, store, {.threads = 1}), RunOutcome::too_many_failures) << attempt;
    }
    experiment.failure_budget = 0.1;
    Store store(path, experiment, "test", 1, Json::object());
    EXPECT_EQ(run_experiment(experiment, store, {.threads = 1}), RunOutcome::complete);
    EXPECT_EQ(store.database().integer("SELECT n FROM v_summary"), 57);
    EXPECT_EQ(store.database().integer("SELECT failed FROM v_summary"), 3);
    EXPECT_EQ(store.database().integer("SELECT count(*) FROM failure"), 3);
    Statement hash(store.database(), "SELECT cell_hash FROM cell");
    ASSERT_TRUE(hash.step());
    EXPECT_EQ(hash.text(0), cell.hash());
}

TEST(Engine, TheFalseAlarmRateIsDividedAmongAllChecks) {
    const Study study = parse_study(small_study, "small.toml");
    Store store(":memory:", study.experiment, "test", 2, Json::object());
    run_experiment(study.experiment, store, {.threads = 2});
    Statement alpha(store.database(), "SELECT sum(alpha), count(*) FROM verdict");
    ASSERT_TRUE(alpha.step());
    EXPECT_EQ(alpha.integer(1), 2);
    EXPECT_NEAR(alpha.real(0), study.experiment.false_alarm, 1e-20);
}

TEST(StudyFile, UnitsOfStrengthsAndRatesOfMarginsAreApplied) {
    const Study study = parse_study(small_study, "x", {.set = {{"model.signal.unit", "sqrt_n"}}});
    for (const auto& limit : study.experiment.cells[0].limits)
        if (limit.metric == "strength") {
            EXPECT_NEAR(limit.value, 0.5 * std::sqrt(24.0), 1e-12);
        }
    ExperimentCell cell;
    cell.rows = 512;
    cell.columns = 1024;
    for (const auto& [rate, factor] :
         {std::pair{"n^-1/2", 0.5}, std::pair{"n^-2/3", std::pow(4.0, -2.0 / 3.0)}, std::pair{"n^-1", 0.25}}) {
        std::string text = small_study;
        text.replace(text.find("abs = 0.2"), 9, fmt::format("abs = 0.2, rate = \"{}\"", rate));
        EXPECT_NEAR(parse_study(text, "x").experiment.checks.front().margin(cell, 1.0), 0.2 * factor, 1e-12) << rate;
    }
}

// The noise has the gap of theory/laws/tests/support_gaps_test.cpp. Strength 1.67 has its outlier there, so that the
// second singular value of a block is not the outlier of the second spike.
TEST(StudyFile, ASpikeThatIsSeenOnlyInAGapHasPredictionsOfItsOutlierThere) {
    const std::string text = R"(
spiked = 1
[study]
name = "gaps"
[model]
kind = "spiked"
n = 60
d = 600
noise = { row_cov = { kind = "two-atom", low = 1.0, high = 25.0, weight = 0.5 } }
signal = { strength = [12.0, 1.67, 0.3], unit = "absolute" }
[run]
reps = { min = 20 }
[[check]]
claim = "outlier.location"
margin = { rel = 0.1 }
)";
    const auto in_gap = [](const Study& study) {
        std::map<std::string, std::pair<double, double>> found;
        for (const auto& prediction : study.experiment.cells.front().predictions)
            if (prediction.metric.starts_with("gap_"))
                found[fmt::format("{} {} {}", prediction.claim, prediction.metric, prediction.k)] = {
                    prediction.value, prediction.with_fault};
        return found;
    };
    const Study study = parse_study(text, "x");
    const auto found = in_gap(study);
    ASSERT_EQ(found.size(), 3U);
    EXPECT_NEAR(found.at("outlier.location gap_outlier 2").first, 2.274, 0.001);
    EXPECT_NEAR(found.at("outlier.location gap_outlier 2").second, 2.508, 0.001) << "that of strength 1.837";
    EXPECT_NEAR(found.at("overlap.left gap_overlap.left 2").first, 0.4096, 0.0001);
    EXPECT_NEAR(found.at("overlap.right gap_overlap.right 2").first, 0.4853, 0.0001);
    std::map<std::string, double> limits;
    double top = 0.0;
    for (const auto& limit : study.experiment.cells.front().limits)
        limits[fmt::format("{} {}", limit.metric, limit.k)] = limit.value;
    EXPECT_EQ(limits.at("gap_outlier 2"), found.at("outlier.location gap_outlier 2").first);
    EXPECT_EQ(limits.at("outlier 2"), limits.at("bulk_edge 0")) << "the second singular value is noise";
    for (const auto& prediction : study.experiment.cells.front().predictions)
        if (prediction.claim == "threshold.detection") {
            EXPECT_EQ(prediction.k, 2);
            top = prediction.value;
        }
    EXPECT_NEAR(top / limits.at("bulk_edge 0"), 1.0, 0.1) << "it stays at the edge";
    ASSERT_EQ(study.experiment.notes.size(), 1U);
    for (const char* part : {"component 2 has no outlier above the top edge of the noise, but one at eigenvalue 2.274 "
                             "in its gap 1.433 to 15.12",
                             "gap_outlier"})
        EXPECT_NE(study.experiment.notes.front().find(part), std::string::npos) << study.experiment.notes.front();
    EXPECT_TRUE(parse_study(small_study, "x").experiment.notes.empty());

    // Two spikes of the gap whose vectors mix: nothing is predicted about either of them there, and a note says so.
    std::string at_edge = text;
    at_edge.replace(at_edge.find("outlier.location"), 16, "threshold.detection");
    const Study close = parse_study(at_edge, "x", {.set = {{"model.signal.strength", "[1.67, 1.6]"}}});
    EXPECT_TRUE(in_gap(close).empty());
    EXPECT_EQ(std::count_if(close.experiment.cells.front().limits.begin(), close.experiment.cells.front().limits.end(),
                            [](const LimitValue& limit) { return limit.metric.starts_with("gap_"); }),
              0);
    ASSERT_EQ(close.experiment.notes.size(), 1U);
    EXPECT_NE(close.experiment.notes.front().find("too close"), std::string::npos) << close.experiment.notes.front();
}

// One row has 400 times the variance of the others. Its eigenvalue of the noise lies alone above a gap.
TEST(StudyFile, NothingIsPredictedAboutTheTopEdgeWhereItIsThatOfADetachedVariance) {
    const Study study = parse_study(R"(
spiked = 1
[study]
name = "detached"
[model]
kind = "spiked"
n = 40
d = 80
noise = { row_cov = { kind = "two-atom", low = 1.0, high = 400.0, weight = 0.025 } }
signal = { strength = [4.0], unit = "absolute" }
[run]
reps = { min = 20 }
[[check]]
claim = "outlier.location"
margin = { rel = 0.1 }
)",
                                    "x");
    for (const auto& prediction : study.experiment.cells.front().predictions)
        EXPECT_NE(prediction.claim, "threshold.detection") << prediction.value;
    const auto& caveats = study.experiment.cells.front().caveats;
    EXPECT_TRUE(std::any_of(caveats.begin(), caveats.end(), [](const Caveat& caveat) {
        return caveat.claim == "threshold.detection" && caveat.why.find("detached variances") != std::string::npos;
    }));
    const auto& limits = study.experiment.cells.front().limits;
    EXPECT_TRUE(std::any_of(limits.begin(), limits.end(),
                            [](const LimitValue& limit) { return limit.metric == "gap_outlier"; }));
}

TEST(Store, RejectsAnotherStudyAndReportsTheDifference) {
    const std::string path = scratch("other.spiked");
    const Study study = parse_study(small_study, "small.toml");
    run_once(study, path, 1);
    const Study other = parse_study(small_study, "small.toml", {.set = {{"model.noise.row_cov.rho", "0.5"}}});
    const std::string message =
        message_of([&] { Store(path, other.experiment, "test", 1, Json::object()); }, ErrorKind::usage);
    EXPECT_NE(message.find("row_cov.rho: 0.3, now 0.5"), std::string::npos) << message;
    const Study seeded = parse_study(small_study, "small.toml", {.seed = "0x1"});
    EXPECT_NE(message_of([&] { Store(path, seeded.experiment, "test", 1, Json::object()); }, ErrorKind::usage)
                  .find("seed: 0x5eed"),
              std::string::npos);
}

TEST(Store, RejectsFilesThatAreNotStores) {
    const std::string path = scratch("text.spiked");
    {
        std::FILE* file = std::fopen(path.c_str(), "w");
        std::fputs("this is no database, only a text of some length\n", file);
        std::fclose(file);
    }
    message_of([&] { (void)open_store(path); }, ErrorKind::input);
    message_of([&] { (void)open_store("/nowhere/x.spiked"); }, ErrorKind::input);
    const Study study = parse_study(small_study, "small.toml");
    message_of([&] { Store("/nowhere/x.spiked", study.experiment, "test", 1, Json::object()); }, ErrorKind::output);
}

TEST(Store, SummariesAgreeWithTheValuesOfReplicates) {
    const Study study = parse_study(small_study, "small.toml");
    Store store(":memory:", study.experiment, "test", 2, Json::object());
    run_experiment(study.experiment, store, {.threads = 2});
    Statement row(store.database(),
                  "SELECT cell_id, method_id, metric_id, k, n, failed, mean, sd, mcse, lo, hi FROM v_summary");
    int rows = 0;
    while (row.step()) {
        Statement draws(store.database(),
                        "SELECT v FROM value WHERE cell_id=? AND method_id=? AND metric_id=? AND k=?");
        draws.bind(1, row.integer(0)).bind(2, row.integer(1)).bind(3, row.integer(2)).bind(4, row.integer(3));
        std::vector<double> x;
        int missing = 0;
        while (draws.step()) {
            if (draws.is_null(0))
                ++missing;
            else
                x.push_back(draws.real(0));
        }
        ASSERT_EQ(row.integer(4), static_cast<std::int64_t>(x.size()));
        ASSERT_EQ(row.integer(5), missing);
        if (x.size() < 2) continue;
        const arma::vec values(x);
        const double scale = arma::abs(values).max() + 1e-300;
        EXPECT_NEAR(row.real(6), arma::mean(values), 1e-13 * scale);
        EXPECT_NEAR(row.real(7), arma::stddev(values), 1e-12 * scale);
        EXPECT_NEAR(row.real(8), arma::stddev(values) / std::sqrt(static_cast<double>(x.size())), 1e-12 * scale);
        EXPECT_EQ(row.real(9), values.min());
        EXPECT_EQ(row.real(10), values.max());
        ++rows;
    }
    EXPECT_GT(rows, 100);
}

TEST(KvTable, ClusteredMeansOfTheStoreAgreeWithTheFormula) {
    Experiment experiment;
    experiment.science = Json::object();
    KvPlan plan;
    plan.dumps = {SPIKED_SOURCE_DIR "/sim/kv/tests/data/rope-lm-cut.safetensors"};
    plan.block_tokens = 64;
    make_dump_experiment(experiment, plan, named_codecs({"tq-mse", "eoptshrink+tq-mse"}, {2}));
    experiment.batch = 3;
    Store store(":memory:", experiment, "test", 2, Json::object());
    run_experiment(experiment, store, {.threads = 2});
    const KvTable table = kv_table(store.database());
    ASSERT_EQ(table.rows.size(), 4U);
    EXPECT_EQ(table.clusters, 4U);
    for (const auto& row : table.rows) {
        std::map<std::string, std::map<std::string, ClusterSum>> sums;  // by metric and cluster
        Statement draws(
            store.database(),
            "SELECT f.txt, mt.name, v.v FROM value v JOIN factor f ON f.cell_id = v.cell_id AND f.name = 'cluster' "
            "JOIN factor s ON s.cell_id = v.cell_id AND s.name = 'side' JOIN method me USING(method_id)"
            " JOIN metric mt USING(metric_id) WHERE s.txt = ? AND me.base = ?");
        draws.bind(1, row.side).bind(2, row.method);
        while (draws.step()) {
            ClusterSum& to = sums[draws.text(1)][draws.text(0)];
            ++to.count;
            to.sum += draws.real(2);
        }
        EXPECT_EQ(row.blocks, 16U);
        ASSERT_EQ(row.means.size(), sums.size());
        for (const auto& [metric, value] : row.means) {
            const ClusteredMean expected = clustered_mean(sums.at(metric));
            EXPECT_NEAR(value.mean, expected.mean, 1e-13) << metric;
            EXPECT_NEAR(value.mcse, expected.standard_error, 1e-13) << metric;  // the clusters are equal
            EXPECT_EQ(value.df, 3.0) << metric;
        }
        EXPECT_NEAR(row.ledger[estimators::Item::indices], 2.0, 1e-12);
    }

    // An interruption leaves a table in which the cells of one cluster are not there yet.
    EXPECT_FALSE(table.partial);
    EXPECT_EQ(table.planned_clusters, 4U);
    ASSERT_EQ(table.inputs.size(), 1U);
    EXPECT_EQ(table.inputs[0].blocks, 32U);  // 16 of each side
    const std::string first =
        "cell_id IN (SELECT cell_id FROM factor WHERE name = 'cluster' AND txt = (SELECT min(txt) FROM factor WHERE "
        "name = 'cluster'))";
    for (const std::string rows : {"value", "moment", "batch"})
        store.database().execute("DELETE FROM " + rows + " WHERE " + first);
    const KvTable cut = kv_table(store.database());
    EXPECT_TRUE(cut.partial);
    EXPECT_EQ(cut.clusters, 3U);
    EXPECT_EQ(cut.planned_clusters, 4U);
    EXPECT_EQ(cut.inputs[0].blocks, 24U);
    EXPECT_EQ(cut.rows[0].blocks, 12U);
}

// The reference interpolates weighted means of clusters and differentiates them numerically in the weights.
TEST(EqualBitsReference, ValuesAndErrorsAgreeWithWeightedClusters) {
    Experiment experiment;
    experiment.science = Json::object();
    KvPlan plan;
    plan.dumps = {SPIKED_SOURCE_DIR "/sim/kv/tests/data/rope-lm-cut.safetensors"};
    plan.block_tokens = 64;
    plan.attention = AttentionMode::none;
    const std::vector<std::string> methods = {"tq-mse", "eoptshrink+tq-mse", "svd:1+tq-mse"};
    make_dump_experiment(experiment, plan, named_codecs(methods, {2, 4, 3}));
    Store store(":memory:", experiment, "test", 2, Json::object());
    run_experiment(experiment, store, {.threads = 2});
    struct Cluster {
        double count = 0.0, bits = 0.0, error = 0.0;
    };
    std::map<std::tuple<std::string, std::string, unsigned>, std::map<std::string, Cluster>> of;
    Statement draws(store.database(),
                    "SELECT s.txt, me.base, me.bits, f.txt, mt.name, v.v FROM value v JOIN factor f ON f.cell_id = "
                    "v.cell_id AND f.name = 'cluster'"
                    " JOIN factor s ON s.cell_id = v.cell_id AND s.name = 'side' JOIN method me USING(method_id) JOIN "
                    "metric mt USING(metric_id) WHERE mt.name IN ('bits_per_entry', 'relative_l2')");
    while (draws.step()) {
        Cluster& to = of[{draws.text(0), draws.text(1), static_cast<unsigned>(draws.integer(2))}][draws.text(3)];
        const bool error = draws.text(4) == "relative_l2";
        to.count += error ? 1.0 : 0.0;
        (error ? to.error : to.bits) += draws.real(5);
    }
    const auto interpolated = [&](const std::string& side, const std::string& method, double bits,
                                  const std::string& heavier, double by) {
        double x[3], y[3];
        for (unsigned b = 2; b <= 4; ++b) {
            Cluster sum;
            for (const auto& [name, cluster] : of.at({side, method, b})) {
                const double weight = name == heavier ? 1.0 + by : 1.0;
                sum.count += weight * cluster.count, sum.bits += weight * cluster.bits,
                    sum.error += weight * cluster.error;
            }
            x[b - 2] = sum.bits / sum.count;
            y[b - 2] = std::log(sum.error / sum.count);
        }
        const int i = bits > x[1] ? 1 : 0;
        return y[i] + (y[i + 1] - y[i]) * (bits - x[i]) / (x[i + 1] - x[i]);
    };
    const auto found = equal_bits(store.database()).rows;
    // The common range is about 2.4 to 4.25 bits on either side: 2.5, 3, 3.5 and 4 bits for three methods.
    ASSERT_EQ(found.size(), 2U * 4 * 3);
    for (const auto& at : found) {
        const auto error_of = [&](const std::function<double(const std::string&, double)>& value) {
            double squares = 0.0;
            const auto& clusters = of.at({at.group, at.method, 2U});
            for (const auto& [name, cluster] : clusters)
                squares += std::pow((value(name, 1e-5) - value(name, -1e-5)) / 2e-5, 2);
            const double groups = static_cast<double>(clusters.size());
            return std::exp(value("", 0.0)) * std::sqrt(groups / (groups - 1.0) * squares);
        };
        const auto own = [&](const std::string& heavier, double by) {
            return interpolated(at.group, at.method, at.bits_per_entry, heavier, by);
        };
        const auto ratio = [&](const std::string& heavier, double by) {
            return own(heavier, by) - interpolated(at.group, methods.front(), at.bits_per_entry, heavier, by);
        };
        EXPECT_NEAR(at.error.mean, std::exp(own("", 0.0)), 1e-13);
        EXPECT_NEAR(at.error.mcse, error_of(own), 1e-7 * at.error.mean);
        EXPECT_NEAR(at.ratio.mean, std::exp(ratio("", 0.0)), 1e-12);
        EXPECT_NEAR(at.ratio.mcse, error_of(ratio), 1e-7);
        if (at.method == methods.front()) {
            EXPECT_EQ(at.ratio.mcse, 0.0);
        }
    }
}

TEST(EqualBits, MethodsWithoutACommonRangeAreNotCompared) {
    const auto compared = [](const std::vector<std::string>& methods, const std::vector<double>& bits) {
        Experiment experiment;
        experiment.science = Json::object();
        KvPlan plan;
        plan.dumps = {SPIKED_SOURCE_DIR "/sim/kv/tests/data/rope-lm-cut.safetensors"};
        plan.attention = AttentionMode::none;
        plan.layers = {0};
        make_dump_experiment(experiment, plan, named_codecs(methods, bits));
        Store store(":memory:", experiment, "test", 2, Json::object());
        run_experiment(experiment, store, {.threads = 2});
        return equal_bits(store.database());
    };
    EXPECT_TRUE(compared({"tq-mse", "eden"}, {2}).rows.empty());
    EXPECT_TRUE(compared({"tq-mse"}, {2, 3}).rows.empty());
    // tq-prod stores one more bit for signs: the ranges are 2.125 to 3.125 and 3.25 to 4.25 bits.
    EXPECT_TRUE(compared({"tq-mse", "tq-prod"}, {2, 3}).rows.empty());
    const auto found = compared({"tq-mse", "svd:1+tq-mse"}, {2, 4}).rows;
    ASSERT_EQ(found.size(), 2U * 4 * 2);
    EXPECT_EQ(found.front().bits_per_entry, 2.5);
    // The other methods are still compared when one has a separate range, which is reported.
    const auto without = compared({"tq-prod", "tq-mse", "eden"}, {2, 3});
    ASSERT_EQ(without.rows.size(), 2U * 2 * 2);
    for (const auto& at : without.rows) EXPECT_NE(at.method, "tq-prod");
    ASSERT_EQ(without.outside.size(), 2U);
    EXPECT_EQ(without.outside_text("key"),
              "Not compared, measured around no number of bits that the others are: tq-prod (3.25 to 4.25 bits).");
    EXPECT_EQ(without.outside_text("cell"), "");
}

TEST(EqualBits, AMethodWithZeroErrorIsLeftOut) {
    const std::string dump = scratch("constant.safetensors");
    sim::write_safetensors(
        dump, {{"layout", "head,token,dim"}},
        {sim::tensor_of("layers.0.key", sim::DType::f32, {2, 64, 8}, std::vector<double>(1024, 2.0))});
    Experiment experiment;
    experiment.science = Json::object();
    KvPlan plan;
    plan.dumps = {dump};
    plan.block_tokens = 32;
    make_dump_experiment(experiment, plan, named_codecs({"tq-mse", "kivi", "eden"}, {2, 3}));
    Store store(":memory:", experiment, "test", 1, Json::object());
    run_experiment(experiment, store, {.threads = 1});
    EXPECT_EQ(kv_table(store.database()).rows[2].of("relative_l2").mean, 0.0);
    const auto found = equal_bits(store.database()).rows;
    EXPECT_FALSE(found.empty());
    for (const auto& at : found) EXPECT_NE(at.method, "kivi");
    std::filesystem::remove(dump);
}

TEST(ConvexHull, HasNoPointWithMoreBitsAndNoSmallerError) {
    KvTable table;
    const auto add = [&](const char* side, double bits, double error) {
        KvRow& row = table.rows.emplace_back();
        row.side = side;
        row.means["bits_per_entry"] = {bits, 0.0};
        row.means["relative_l2"] = {error, 0.0};
    };
    add("key", 4.0, 0.12);  // larger error than the next point at more bits
    add("key", 3.0, 0.10);
    add("key", 2.0, 0.40);
    add("key", 2.5, 0.30);  // above the line between its neighbours, which is .20 here
    add("key", 5.0, 0.0999);
    add("key", 6.0, 0.2);    // most bits, but a larger error
    add("key", 2.0, 0.41);   // the same bits with a larger error
    add("key", 3.0, 0.10);   // a duplicate point
    add("value", 9.0, 0.9);  // each side has its own hull
    add("value", 9.5, 0.0);  // an error of zero ends the hull
    add("value", 10.0, 1e-9);
    add("value", 9.7, -0.1);  // more bits than the point of zero error
    add("value", 2.0, std::nan(""));
    EXPECT_EQ(convex_hull(table, "relative_l2"),
              (std::vector<bool>{false, true, true, false, true, false, false, true, true, true, false, false, false}));
}

TEST(Moments, MergingEqualsAddingInAnyOrder) {
    std::vector<double> x(1000);
    stream::fill_normal(stream::Stream({}, "moments", stream::Role::noise, 0), x);
    for (double& v : x) v = v * v * v + 5.0;
    x[17] = x[500] = std::nan("");
    Moments whole;
    for (const double v : x) whole.add(v);
    double mean = 0.0;
    for (const double v : x) mean += std::isnan(v) ? 0.0 : v / 998.0;
    double central[5] = {};
    for (const double v : x)
        for (int k = 2; k <= 4; ++k) central[k] += std::isnan(v) ? 0.0 : std::pow(v - mean, k);
    for (const std::size_t cut : {0, 1, 400, 999, 1000}) {
        Moments left;
        Moments right;
        for (std::size_t i = 0; i < x.size(); ++i) (i < cut ? left : right).add(x[i]);
        Moments swapped = right;
        swapped.merge(left);
        left.merge(right);
        for (const Moments& m : {left, swapped, whole}) {
            EXPECT_EQ(m.count, 998U);
            EXPECT_EQ(m.missing, 2U);
            EXPECT_NEAR(m.mean, mean, 1e-12);
            EXPECT_NEAR(m.m2 / central[2], 1.0, 1e-12);
            EXPECT_NEAR(m.m3 / central[3], 1.0, 1e-11);
            EXPECT_NEAR(m.m4 / central[4], 1.0, 1e-12);
            EXPECT_EQ(m.low, whole.low);
        }
    }
}

TEST(Verdict, FollowsTheIntervalAndTheMargin) {
    EXPECT_EQ(compare(1.00, 0.001, 1000, 1.0, 0.02, 1e-6).verdict, Verdict::pass);
    EXPECT_EQ(compare(1.05, 0.001, 1000, 1.0, 0.02, 1e-6).verdict, Verdict::fail);
    EXPECT_EQ(compare(0.95, 0.001, 1000, 1.0, 0.02, 1e-6).verdict, Verdict::fail);
    // For many replicates Student's law is the normal law: z(0.975) = 1.959964, z(0.99) = 2.326348.
    EXPECT_NEAR(compare(1.0, 0.001, 100000000, 1.0, 0.02, 0.05).detectable, 0.02 + (1.959964 + 2.326348) * 0.001, 1e-8);
    const Comparison straddles = compare(1.018, 0.001, 1000, 1.0, 0.02, 1e-6);
    EXPECT_EQ(straddles.verdict, Verdict::inconclusive);
    // Student's law at the needed count: the mean is 0.002 inside, the standard deviation is 0.001 sqrt(1000).
    const auto half = [](double deviation, std::uint64_t count, double alpha) {
        const boost::math::students_t law(static_cast<double>(count) - 1.0);
        return boost::math::quantile(law, 1.0 - alpha / 2.0) * deviation / std::sqrt(static_cast<double>(count));
    };
    EXPECT_GT(straddles.needed, 1000U);
    EXPECT_LT(half(0.001 * std::sqrt(1000.0), straddles.needed, 1e-6), 0.002);
    EXPECT_GT(half(0.001 * std::sqrt(1000.0), straddles.needed - 1, 1e-6), 0.002);
    // With two values the present quantile is thousands of times that of the needed count.
    const Comparison two = compare(14.3, 2.3, 2, 8.2, 1.6, 1e-6);
    EXPECT_EQ(two.verdict, Verdict::inconclusive);
    EXPECT_LT(half(2.3 * std::sqrt(2.0), two.needed, 1e-6), 4.5);
    EXPECT_GT(half(2.3 * std::sqrt(2.0), two.needed - 1, 1e-6), 4.5);
    EXPECT_LT(two.needed, 100U);
    EXPECT_EQ(compare(1.0, 0.1, 1, 1.0, 0.02, 1e-6).verdict, Verdict::inconclusive);
    EXPECT_EQ(compare(1.0, std::nan(""), 10, 1.0, 0.02, 1e-6).verdict, Verdict::inconclusive);
}

// The hardest case for the false-alarm rate: the truth lies on the margin and few replicates estimate the error.
TEST(VerdictLaw, FalseAlarmsStayBelowTheDeclaredRate) {
    constexpr int draws = 20000;
    constexpr double alpha = 0.02;
    int alarms = 0;
    int shifted = 0;
    int corrected = 0;  // by limits that are corrected for skewness, of which normal values have none
    for (std::uint64_t r = 0; r < draws; ++r) {
        std::vector<double> x(6);
        stream::fill_normal(stream::Stream({}, "verdict", stream::Role::noise, r), x);
        Moments m;
        for (const double v : x) m.add(v);
        const double mcse = std::sqrt(m.m2 / 5.0 / 6.0);
        if (compare(m.mean, mcse, 6, -0.3, 0.3, alpha).verdict == Verdict::fail) ++alarms;
        if (compare(m.mean, mcse, 6, -3.0, 0.3, alpha).verdict == Verdict::fail) ++shifted;
        if (compare(m, -0.3, 0.3, alpha).verdict == Verdict::fail) ++corrected;
    }
    // One-sided: alpha/2 = 200 expected, binomial sd 14; limit at five sd.
    EXPECT_LT(alarms, 200 + 5 * 14);
    EXPECT_GT(alarms, 200 - 5 * 14) << "the rate is attained on the margin";
    EXPECT_LE(corrected, alarms);
    EXPECT_GT(corrected, 0);
    EXPECT_GT(shifted, draws * 9 / 10) << "negative control: a truth nine margins away must fail";
}

// On a study like that of the demo all claims hold and all their negative controls fail.
TEST(Claims, HoldWhileTheirNegativeControlsFail) {
    std::string text = R"(
spiked = 1
[study]
name = "claims"
seed = "0x5eed"
[model]
kind = "spiked"
n = 128
d = 128
noise = { row_cov = { kind = "ar1", rho = 0.4 } }
signal = { strength = 2.0 }
[sweep]
"signal.strength" = [0.5, 1.6]
[[codec]]
name = "tq-mse"
bits = [2]
[run]
reps = { min = 200, batch = 50 }
)";
    std::size_t checks = 0;
    for (const auto& claim : claims()) {
        if (!claim.in_study) continue;
        ++checks;
        const char* margin = claim.in_study->kind == "codec"       ? "abs = 0.002"
                             : claim.in_study->metric == "outlier" ? "rel = 0.04"
                                                                   : "abs = 0.05";
        text += fmt::format("[[check]]\nclaim = \"{}\"\nmargin = {{ {} }}\n", claim.id, margin);
    }
    const Study study = parse_study(text, "claims.toml");
    Store store(":memory:", study.experiment, "test", 2, Json::object());
    run_experiment(study.experiment, store, {.threads = 2});
    std::set<std::string> judged;
    Statement row(store.database(),
                  "SELECT claim, verdict, control_verdict, estimate, expected, control_expected, margin, detectable "
                  "FROM verdict");
    while (row.step()) {
        judged.insert(row.text(0));
        EXPECT_EQ(row.text(1), "pass") << row.text(0) << ": " << row.real(3) << " against " << row.real(4) << " +- "
                                       << row.real(6);
        EXPECT_EQ(row.text(2), "fail") << row.text(0) << ": " << row.real(3) << " against the negative control's "
                                       << row.real(5);
        EXPECT_GT(row.real(7), row.real(6));
    }
    EXPECT_EQ(judged.size(), checks);
    EXPECT_EQ(count_verdicts(store.database()).failed, 0U);
}

// What the reader of studies accepts, the reader of stores must accept too.
TEST(OwnClaims, AStoreOfExtremeNumbersAndTextsOpensAgain) {
    const std::string path = scratch_path("extreme");
    const auto judged = [&](const std::string& keys) {
        const std::string text = small_study +
                                 "[[claim]]\nid = \"own\"\nmetric = \"overlap.left\"\nk = 1\nwhere = { "
                                 "\"signal.strength\" = { ge = 1.0 } }\n" +
                                 keys;
        std::remove(path.c_str());
        run_into(parse_study(text, "extreme.toml").experiment, path);
        Database store = open_store(path);
        Statement verdict(store,
                          "SELECT group_concat(DISTINCT verdict || '/' || control_verdict) FROM verdict WHERE "
                          "check_name = 'own'");
        return verdict.step() ? verdict.text(0) : "";
    };
    EXPECT_EQ(judged("between = [-inf, 9.0]\ncontrol = 20.0\n"), "pass/fail");
    EXPECT_EQ(judged("between = [-inf, -9.0]\ncontrol = 0.0\n"), "fail/fail");
    EXPECT_EQ(judged("between = [-9.0, inf]\ncontrol = -20.0\n"), "pass/fail");
    EXPECT_EQ(judged("between = [0.0, +inf]\ncontrol = -1e300\n"), "pass/fail");
    EXPECT_EQ(judged("between = [-1e300, 1e300]\ncontrol = 0.0\n"), "fail/pass");
    EXPECT_EQ(judged("between = [-inf, 1e300]\ncontrol = -1e300\n"), "fail/pass");
    EXPECT_EQ(judged("equals = 1e300\nmargin = { rel = 0.5, abs = 1e6 }\ncontrol = -1e300\n"), "fail/fail");
    const std::string longest(20'000, 's');
    EXPECT_EQ(judged("equals = 0.5\nmargin = { abs = 9.0 }\ncontrol = 20.0\nstatement = \"" + longest + "\"\n"),
              "pass/fail");
}

TEST(Claims, AClaimWithAShiftedPredictionFails) {
    Study study = parse_study(small_study, "small.toml", {.set = {{"run.reps.min", "200"}}});
    for (auto& cell : study.experiment.cells)
        for (auto& prediction : cell.predictions) prediction.value -= 0.5;
    Store store(":memory:", study.experiment, "test", 2, Json::object());
    run_experiment(study.experiment, store, {.threads = 2});
    EXPECT_EQ(count_verdicts(store.database()).failed, 2U);
}

TEST(Claims, ACheckWhoseControlPassesCountsAsFailed) {
    Study study = parse_study(small_study, "small.toml");
    for (auto& cell : study.experiment.cells)
        for (auto& prediction : cell.predictions) prediction.with_fault = prediction.value;
    study.experiment.checks.front().margin_absolute = 0.9;
    Store store(":memory:", study.experiment, "test", 2, Json::object());
    run_experiment(study.experiment, store, {.threads = 2});
    EXPECT_EQ(count_verdicts(store.database()).failed, 2U);
    EXPECT_EQ(count_verdicts(store.database()).passed, 0U);
}

}  // namespace
}  // namespace spiked::validation

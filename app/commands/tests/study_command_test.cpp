// Commands on studies: run, resume after SIGKILL, report, show, export, init, the study of demo, stores of dumps.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "app/tests/process.hpp"
#include "sim/io/npy.hpp"

namespace spiked::app {
namespace {

namespace fs = std::filesystem;

/// Creates a folder with a study of about 2000 small replicates.
std::string study_folder(const std::string& name) {
    return folder_with_study(name, R"(spiked = 1
[study]
name = "small"
seed = "0x5eed"
[model]
kind = "spiked"
n = 48
d = 64
signal = { strength = 2.0, unit = "threshold" }
[sweep]
"signal.strength" = [0.5, 2.0]
[[estimator]]
name = "eoptshrink"
[[codec]]
name = "tq-mse"
bits = [2]
[run]
reps = { min = 600, batch = 20 }
[[check]]
claim = "outlier.location"
where = { "signal.strength" = { ge = 1.5 } }
margin = { rel = 0.06 }
[store]
path = "small.spiked"
)");
}

std::string summary(const std::string& folder) {
    return spiked("export small.spiked --table summary --format csv", in(folder)).out;
}

TEST(RunCommand, ResultsDoNotDependOnKillsAndThreads) {
    const std::string whole = study_folder("whole");
    const Outcome once = spiked("run study.toml --threads 1 --no-report", in(whole));
    ASSERT_EQ(once.code, 0) << once.err;
    const std::string expected = summary(whole);
    EXPECT_GT(expected.size(), 1000U);

    const std::string killed = study_folder("killed");
    int kills = 0;
    for (int attempt = 0; attempt < 200; ++attempt) {
        // Killed later each time, so that some run makes progress.
        const std::string limit = "timeout -s KILL " + std::to_string(0.1 + 0.03 * attempt);
        const int code = spiked("run study.toml --threads 2 --no-report", in(killed) + limit).code;
        if (code == 0) break;
        ASSERT_EQ(code, 137);
        ++kills;
    }
    EXPECT_GE(kills, 1);
    const Outcome last = spiked("run study.toml --threads 2 --no-report", in(killed));
    EXPECT_EQ(last.code, 0);
    EXPECT_NE(last.err.find("resuming small.spiked: 60 batches are kept"), std::string::npos) << last.err;
    EXPECT_EQ(summary(killed), expected);
}

// The results of thousands of cells are not printed in full.
TEST(RunCommand, PrintsTheBeginningOfALongTableAndTheCommandForTheRest) {
    const std::string folder = study_folder("long");
    std::ofstream(folder + "/long.toml") << R"(spiked = 1
[study]
name = "long"
[model]
kind = "spiked"
n = 16
d = 16
[sweep]
n = [16, 17, 18, 19, 20, 21, 22, 23]
d = [16, 17, 18, 19, 20, 21, 22, 23]
[run]
reps = { min = 2, max = 2 }
[[estimator]]
name = "eoptshrink"
)";
    const Outcome found = spiked("run long.toml --no-report -o long.spiked", in(folder));
    ASSERT_EQ(found.code, 0) << found.err;
    EXPECT_EQ(std::count(found.out.begin(), found.out.end(), '\n'), 201);
    EXPECT_NE(found.out.find(" more lines: spiked show long.spiked\n"), std::string::npos) << found.out;
    const Outcome shown = spiked("show long.spiked", in(folder));
    EXPECT_GT(std::count(shown.out.begin(), shown.out.end(), '\n'), 300);
}

// The example of the guide: exit codes and JUnit are what CI relies on.
TEST(RunCommand, JudgesTheClaimsThatAStudyStatesItself) {
    const std::string example = contents(SPIKED_SOURCE_DIR "/validation/studies/own-claims.toml");
    const auto judged = [&](const std::string& name, const std::string& from, const std::string& to) {
        std::string text = example;
        if (!from.empty()) text.replace(text.find(from), from.size(), to);
        const std::string folder = folder_with_study(name, text);
        return spiked("run study.toml --strict --no-report --junit claims.xml -o own.spiked", in(folder));
    };
    const Outcome holds = judged("own-claims", "", "");
    EXPECT_EQ(holds.code, 0) << holds.err;
    EXPECT_NE(holds.out.find("denoising-helps"), std::string::npos) << holds.out;
    const std::string junit = contents(scratch("own-claims") + "/claims.xml");
    EXPECT_NE(junit.find("tests=\"3\" failures=\"0\""), std::string::npos) << junit;
    EXPECT_NE(holds.out.find("  0 to 0.3  "), std::string::npos) << "a region has no predicted value";
    EXPECT_EQ(judged("own-region", "between = [0.0, 0.3]", "between = [0.0, 0.1]").code, 1);
    EXPECT_NE(contents(scratch("own-region") + "/claims.xml").find(" against 0 to 0.1\""), std::string::npos);
    const Outcome most = judged("own-most", "between = [0.0, 0.3]", "between = [-inf, 0.3]");
    EXPECT_EQ(most.code, 0) << most.err;
    EXPECT_NE(most.out.find("  at most 0.3  "), std::string::npos) << most.out;
    EXPECT_EQ(spiked("show own.spiked", in(scratch("own-most"))).out, most.out);
    EXPECT_EQ(spiked("report own.spiked", in(scratch("own-most"))).code, 0);
    EXPECT_NE(contents(scratch("own-most") + "/own.html").find("at most 0.3"), std::string::npos);
    EXPECT_EQ(judged("own-least", "between = [0.0, 0.3]", "between = [0.6, inf]").code, 1);
    EXPECT_NE(contents(scratch("own-least") + "/claims.xml").find(" against at least 0.6\""), std::string::npos);
    EXPECT_EQ(judged("own-value", "equals = 0.03454", "equals = 0.0425").code, 1);
    EXPECT_EQ(judged("own-control", "control = 0.5\n", "control = 0.2\n").code, 1) << "the control passes";
    const Outcome wrong = judged("own-wrong", "method = \"tq-mse B=3\"", "method = \"tq-mse B=2\"");
    EXPECT_EQ(wrong.code, 2);
    EXPECT_NE(wrong.err.find("no method \"tq-mse B=2\" measures distortion (methods that do: tq-mse B=3)"),
              std::string::npos)
        << wrong.err;
    // The control is just outside of a region in whose middle the mean lies.
    EXPECT_EQ(judged("own-near", "control = 0.5\n", "control = 0.32\n").code, 0);
    EXPECT_EQ(judged("own-both", "equals = 0.03454", "equals = 0.03454\nbetween = [0.0, 1.0]").code, 2);
    EXPECT_EQ(judged("own-order", "[0.0, 0.3]", "[0.3, 0.0]").code, 2);
    EXPECT_EQ(judged("own-id", "three-bits", "overlap.left").code, 2);
    EXPECT_EQ(judged("own-metric", "\"distortion\"", "\"distorsion\"").code, 2);
}

// A part has no verdicts: each would have the false-alarm rate of the whole study.
TEST(RunCommand, ClaimsOfAStudyAreJudgedOnceItsPartsAreMerged) {
    const std::string folder =
        folder_with_study("own-parts", contents(SPIKED_SOURCE_DIR "/validation/studies/own-claims.toml"));
    const std::string words = "run study.toml --strict --no-report ";
    for (const std::string part : {"1", "2"}) {
        const std::string shard = "--shard " + part + "/2 -o part" + part + ".spiked ";
        const Outcome rejected = spiked(words + shard + "--junit part.xml", in(folder));
        EXPECT_EQ(rejected.code, 2);
        EXPECT_NE(rejected.err.find("--junit has no place here (a part gives no verdicts)"), std::string::npos)
            << rejected.err;
        EXPECT_FALSE(fs::exists(folder + "/part" + part + ".spiked"));
        const Outcome run = spiked(words + shard, in(folder));
        EXPECT_EQ(run.code, 0) << run.err;
        for (const std::string& text : {run.out, spiked("show part" + part + ".spiked", in(folder)).out}) {
            EXPECT_NE(text.find("PARTIAL (shard " + part + "/2)"), std::string::npos) << text;
            EXPECT_EQ(text.find("verdict"), std::string::npos) << text;
            EXPECT_EQ(text.find("passed"), std::string::npos) << text;
        }
        const Outcome again = spiked("show part" + part + ".spiked --false-alarm 1e-4", in(folder));
        EXPECT_EQ(again.code, 2);
        EXPECT_NE(again.err.find("a part gives no verdicts: merge it with the other parts first"), std::string::npos)
            << again.err;
    }
    const Outcome merged = spiked("merge part1.spiked part2.spiked -o whole.spiked", in(folder));
    EXPECT_EQ(merged.code, 0) << merged.err;
    EXPECT_NE(merged.out.find("complete; checks: 3 passed, 0 failed, 0 inconclusive"), std::string::npos) << merged.out;
    EXPECT_EQ(spiked(words + "-o whole.spiked --junit claims.xml", in(folder)).code, 0) << "the advice of the message";
    EXPECT_NE(contents(folder + "/claims.xml").find("tests=\"3\" failures=\"0\""), std::string::npos);
}

// Two versions of a program that should agree, of which one has a wrong constant: which claims flip.
TEST(RunCommand, VerdictsOfTwoStoresAreCompared) {
    const std::string folder =
        folder_with_study("own-compared", contents(SPIKED_SOURCE_DIR "/validation/studies/own-claims.toml"));
    ASSERT_EQ(spiked("run study.toml --no-report -o a.spiked", in(folder)).code, 0);
    const std::string wrong =
        "UPDATE moment SET mean = mean * 1.2 WHERE metric_id = (SELECT metric_id FROM metric WHERE name = "
        "'distortion') AND cell_id = 2";
    fs::copy_file(folder + "/a.spiked", folder + "/b.spiked");
    ASSERT_EQ(std::system((in(folder) + " sqlite3 b.spiked \"" + wrong + "\"").c_str()), 0);
    EXPECT_EQ(spiked("run study.toml --no-report -o b.spiked", in(folder)).code, 1) << "judged again";
    const std::string same = spiked("compare a.spiked a.spiked", in(folder)).out;
    EXPECT_NE(same.find("3 verdicts in both stores, 0 differ"), std::string::npos) << same;
    EXPECT_EQ(same.find("three-bits"), std::string::npos) << same;
    const std::string all = spiked("compare a.spiked a.spiked --all", in(folder)).out;
    EXPECT_NE(all.find("denoising-helps"), std::string::npos) << all;
    EXPECT_NE(all.find("0 to 0.3"), std::string::npos) << all;
    const Outcome found = spiked("compare a.spiked b.spiked", in(folder));
    EXPECT_NE(found.out.find("3 verdicts in both stores, 1 differ"), std::string::npos) << found.out;
    EXPECT_NE(found.out.find("three-bits  n=128  tq-mse B=3  pass       fail"), std::string::npos) << found.out;
    const Json document = spiked("compare a.spiked b.spiked --json", in(folder)).json();
    const Json& verdicts = *document.find("verdicts");
    EXPECT_EQ(number(verdicts, "others"), 1.0);
    for (const Json& row : *verdicts.find("rows")->items()) {
        const bool flipped = !*row.find("same")->boolean();
        EXPECT_EQ(flipped, *row.find("cell")->string() == "n=128" && *row.find("check")->string() == "three-bits");
        EXPECT_EQ(*row.find("b")->find("verdict")->string(), flipped ? "fail" : "pass");
    }
}

// Verdicts of a store at another rate need no draws, and the file stays as it is.
TEST(RunCommand, ClaimsOfAStudyAreJudgedAgainAtAnotherFalseAlarmRate) {
    const std::string folder =
        folder_with_study("own-rates", contents(SPIKED_SOURCE_DIR "/validation/studies/own-claims.toml"));
    ASSERT_EQ(spiked("run study.toml --no-report -o own.spiked", in(folder)).code, 0);
    const std::string before = contents(folder + "/own.spiked");
    const auto width = [&](const std::string& command) {
        const Json document = spiked(command, in(folder)).json();
        const Json& row = (*document.find("rows")->items())[0];
        return number(row, "hi") - number(row, "lo");
    };
    const std::string checks = "export own.spiked --table checks --json";
    EXPECT_GT(width(checks + " --false-alarm 1e-9"), 1.3 * width(checks));
    EXPECT_LT(width(checks + " --false-alarm 0.1"), 0.8 * width(checks));
    EXPECT_EQ(width("show own.spiked --table checks --json --false-alarm 1e-9"), width(checks + " --false-alarm 1e-9"));
    const std::string shown = spiked("show own.spiked --false-alarm 1e-9", in(folder)).out;
    EXPECT_NE(shown.find("false-alarm rate for the whole run 1e-09"), std::string::npos) << shown;
    // Intervals for so small a rate are too wide for any verdict.
    EXPECT_NE(spiked("show own.spiked", in(folder)).out.find(" 0 inconclusive;"), std::string::npos);
    const std::string wide = spiked("show own.spiked --false-alarm 1e-250", in(folder)).out;
    EXPECT_NE(wide.find(" 3 inconclusive;"), std::string::npos) << wide;
    ASSERT_EQ(spiked("report own.spiked -o page.html --false-alarm 1e-9", in(folder)).code, 0);
    EXPECT_NE(contents(folder + "/page.html").find("checks together: 1e-09"), std::string::npos);
    const Outcome compared = spiked("compare own.spiked own.spiked --all --false-alarm 1e-250", in(folder));
    EXPECT_NE(compared.out.find("inconclusive"), std::string::npos) << compared.out;
    EXPECT_EQ(contents(folder + "/own.spiked"), before);
    for (const std::string rate : {"0", "1", "x", "-1e-3"})
        EXPECT_EQ(spiked("show own.spiked --false-alarm " + rate, in(folder)).code, 2) << rate;
    const Outcome other = spiked("run study.toml --no-report -o own.spiked --set checks.false_alarm=1e-9", in(folder));
    EXPECT_EQ(other.code, 2);
    EXPECT_NE(other.err.find("spiked report --false-alarm judges it again at another rate"), std::string::npos)
        << other.err;
}

TEST(RunCommand, JudgesAnExponentOverTheSizesOfAStudy) {
    const std::string example = contents(SPIKED_SOURCE_DIR "/validation/studies/own-exponent.toml");
    const auto judged = [&](const std::string& name, const std::string& from, const std::string& to) {
        std::string text = example;
        if (!from.empty()) text.replace(text.find(from), from.size(), to);
        const std::string folder = folder_with_study(name, text);
        return spiked("run study.toml --strict --no-report --junit claims.xml -o own.spiked", in(folder));
    };
    const Outcome holds = judged("exponent", "", "");
    EXPECT_EQ(holds.code, 0) << holds.err << holds.out;
    EXPECT_NE(holds.out.find("exponent of n up to d=128 n=128"), std::string::npos) << holds.out;
    const std::string folder = scratch("exponent");
    EXPECT_NE(contents(folder + "/claims.xml").find("exponent of n up to d=128 n=128"), std::string::npos);
    // The exponent beside the slope of a line through the logarithms of the means, with the same weights.
    const Json means = spiked("export own.spiked --table summary --format json", in(folder)).json();
    double weight = 0.0, x_mean = 0.0, y_mean = 0.0, xx = 0.0, xy = 0.0;
    std::vector<std::array<double, 3>> points;
    for (const Json& row : *means.find("rows")->items())
        if (*row.find("metric")->string() == "overlap.left") {
            const double mean = number(*row.find("mean"));
            const std::string& label = *row.find("cell")->string();
            points.push_back({std::log(std::stod(label.substr(label.find(" n=") + 3))), std::log(mean),
                              std::pow(mean / number(*row.find("mcse")), 2)});
        }
    ASSERT_EQ(points.size(), 3U);
    for (const auto& [x, y, w] : points) weight += w, x_mean += w * x, y_mean += w * y;
    for (const auto& [x, y, w] : points) {
        xx += w * std::pow(x - x_mean / weight, 2);
        xy += w * (x - x_mean / weight) * (y - y_mean / weight);
    }
    const Json checks = spiked("export own.spiked --table checks --format json", in(folder)).json();
    const Json& check = (*checks.find("rows")->items())[0];
    EXPECT_NEAR(number(*check.find("estimate")), xy / xx, 1e-9);
    EXPECT_NEAR(number(*check.find("mcse")), 1.0 / std::sqrt(xx), 1e-9);
    EXPECT_EQ(*check.find("exponent_of")->string(), "n");
    EXPECT_EQ(number(*check.find("allowed_lo")), -1.4);
    ASSERT_EQ(spiked("report own.spiked", in(folder)).code, 0);
    EXPECT_NE(contents(folder + "/own.html").find("exponent of n up to d=128 n=128"), std::string::npos);
    EXPECT_EQ(judged("exponent-region", "equals = -1.0\nmargin = { abs = 0.4 }", "between = [-1.4, -0.6]").code, 0);
    EXPECT_EQ(judged("exponent-wrong", "equals = -1.0", "equals = 0.0").code, 1);
    EXPECT_EQ(judged("exponent-control", "control = 0.0", "control = -0.9").code, 1) << "the control passes";
    const std::vector<std::tuple<std::string, std::string, std::string>> wrong = {
        {"exponent_of = \"n\"", "exponent_of = \"m\"", "exponent_of: no cell has a factor \"m\""},
        {"abs = 0.4", "abs = 0.4, rate = \"n^-1/2\"", "the margin of an exponent is one number for all sizes"},
        {"exponent_of = \"n\"", "exponent_of = \"n\"\nwhere = { n = 64 }",
         "an exponent of n needs two or more of its values"}};
    for (const auto& [from, to, message] : wrong) {
        const Outcome rejected = judged("exponent-mistake", from, to);
        EXPECT_EQ(rejected.code, 2) << message;
        EXPECT_NE(rejected.err.find(message), std::string::npos) << rejected.err;
    }
}

TEST(RunCommand, StopsOnRequestAndResumes) {
    const std::string folder = study_folder("stopped");
    const std::string words = "run study.toml --no-report --set run.reps.min=20000";
    const Outcome stopped = spiked(words, in(folder) + "timeout --preserve-status -s TERM 1.5");
    EXPECT_EQ(stopped.code, 75) << stopped.err;
    EXPECT_NE(stopped.err.find("run the same command again"), std::string::npos) << stopped.err;
    EXPECT_NE(stopped.out.find("PARTIAL (stopped)"), std::string::npos) << stopped.out;
    const Outcome again = spiked(words + " --max-time 1s", in(folder));
    EXPECT_EQ(again.code, 75);
    EXPECT_NE(again.err.find("resuming small.spiked"), std::string::npos) << again.err;
}

TEST(RunCommand, SignalsWithinASecondAreOneStopRequest) {
    const std::string folder = study_folder("twice");
    // Imitates a scheduler that signals the process and its group; the pause lets the first signal be handled before
    // the second.
    std::ofstream(folder + "/scheduler.sh") << "\"$@\" & job=$!\nsleep 1\n"
                                               "for i in 1 2 3 4; do kill -TERM $job; sleep 0.01; done\nwait $job\n";
    const Outcome stopped =
        spiked("run study.toml --no-report --set run.reps.min=20000", in(folder) + "sh scheduler.sh");
    EXPECT_EQ(stopped.code, 75) << stopped.err;
    EXPECT_NE(stopped.out.find("PARTIAL (stopped)"), std::string::npos) << stopped.out;
}

TEST(RunCommand, ADrawnSeedIsDrawnOnce) {
    const std::string folder = study_folder("drawn");
    std::string text = contents(folder + "/study.toml");
    text.replace(text.find("seed = \"0x5eed\""), 15, "");
    std::ofstream(folder + "/study.toml") << text;
    const std::string words = "run study.toml --no-report --set run.reps.min=20";
    ASSERT_EQ(spiked(words, in(folder)).code, 0);
    const std::string first = summary(folder);
    const Outcome again = spiked(words, in(folder));
    EXPECT_EQ(again.code, 0) << again.err;
    EXPECT_NE(again.err.find("resuming"), std::string::npos);
    EXPECT_EQ(summary(folder), first);
}

TEST(RunCommand, OutputsNeverReplaceInputsOrStores) {
    const std::string folder = study_folder("apart");
    fs::copy_file(sample_dump, folder + "/dump.safetensors");
    ASSERT_EQ(spiked("run study.toml --no-report --set run.reps.min=20", in(folder)).code, 0);
    const std::string store = contents(folder + "/small.spiked");
    const std::string dump = contents(folder + "/dump.safetensors");
    for (const std::string& words :
         {std::string("report small.spiked -o small.spiked"), std::string("report small.spiked -o ./small.spiked"),
          std::string("export small.spiked -o small.spiked"),
          std::string("kv run dump.safetensors --report dump.safetensors"),
          std::string("kv run dump.safetensors -o x.spiked --report x.spiked"),
          std::string("run study.toml -o s.html")})
        EXPECT_EQ(spiked(words, in(folder)).code, 2) << words;
    EXPECT_EQ(contents(folder + "/small.spiked"), store);
    EXPECT_EQ(contents(folder + "/dump.safetensors"), dump);
}

TEST(RunCommand, DuplicatesAndInvalidFiguresAreErrorsOfTheFile) {
    const std::string folder = study_folder("duplicates");
    const std::string text = contents(folder + "/study.toml");
    const auto says = [&](const std::string& more, const std::string& from, const std::string& to, const char* part) {
        std::string changed = text + more;
        if (!from.empty()) changed.replace(changed.find(from), from.size(), to);
        std::ofstream(folder + "/changed.toml") << changed;
        const Outcome found = spiked("run changed.toml --dry-run", in(folder));
        EXPECT_EQ(found.code, 2) << part;
        EXPECT_NE(found.err.find(part), std::string::npos) << found.err;
    };
    says("", "bits = [2]", "bits = [2, 2]", "2 bits are listed twice");
    says("[[estimator]]\nname = \"eoptshrink\"\n", "", "", "is defined twice");
    says("", "[0.5, 2.0]", "[2.0, 2.0]", "two cells are the same");
    says("[[figure]]\nkind = \"estimate-vs-theroy\"\n", "", "", "did you mean \"estimate-vs-theory\"");
    says("[[figure]]\nkind = \"estimate-vs-theory\"\nx = \"signal.strngth\"\n", "", "",
         "did you mean \"signal.strength\"");
}

TEST(RunCommand, DryRunEstimatesTheCostAndStoresNothing) {
    const std::string folder = study_folder("dry-run");
    const Outcome json = spiked("run study.toml --dry-run --json", in(folder));
    ASSERT_EQ(json.code, 0) << json.err;
    const Json plan = json.json();
    EXPECT_EQ(*plan.find("schema")->string(), "spiked.plan/1");
    for (const char* key : {"seconds", "least_seconds", "memory_bytes", "store_bytes"})
        EXPECT_GT(number(*plan.find(key)), 0.0) << key;
    ASSERT_FALSE(plan.find("reach")->items()->empty());
    EXPECT_NE(spiked("run study.toml --dry-run", in(folder)).out.find("nothing was kept"), std::string::npos);
    EXPECT_FALSE(fs::exists(folder + "/small.spiked"));
    EXPECT_FALSE(fs::exists(folder + "/small.html"));
}

TEST(RunCommand, BlocksThatDoNotFitTheMemoryAreRejectedBeforeTheRun) {
    const std::string folder = study_folder("too-large");
    if (sanitized) GTEST_SKIP() << "a sanitizer reserves the memory that is to be limited";
    // 4 threads with 6 copies of .2 GB each, at least.
    const std::string words = "run study.toml --set model.n=5000 --set model.d=5000 --threads ";
    for (const char* how : {"4 --dry-run", "4 --no-report"}) {
        const Outcome found = spiked(words + how, in(folder) + " ulimit -v 4300000;");
        EXPECT_EQ(found.code, 7) << how;
        EXPECT_NE(found.err.find("blocks of 5000 x 5000 need 4.8 GB on 4 threads, 4.4 GB are allowed"),
                  std::string::npos)
            << found.err;
        EXPECT_FALSE(fs::exists(folder + "/small.spiked"));
    }
    const Json plan = spiked("run study.toml --dry-run --threads 2 --json", in(folder)).json();
    const Json& largest = *plan.find("largest_cell");
    EXPECT_EQ(number(largest, "rows"), 48.0);
    EXPECT_EQ(number(largest, "cols"), 64.0);
    EXPECT_EQ(number(largest, "at_once"), 2.0);
    EXPECT_GE(number(plan, "memory_bytes"), 2.0 * number(largest, "bytes"));
}

TEST(RunCommand, ADryRunRejectsTheSameOptionsAsTheRun) {
    const std::string folder = study_folder("dry-run-options");
    for (const std::string& words :
         {std::string("--max-time -1"), std::string("--shard 5/3"), std::string("--seed ''"),
          std::string("--max-time ''"), std::string("--set \"$(printf 'model.n=16\\nmodel.d=16')\""),
          std::string("--set 'store.path=\"a\\u0000b\"'")}) {
        for (const char* how : {" --dry-run", " --no-report"}) {
            const Outcome found = spiked("run study.toml " + words + how, in(folder));
            EXPECT_EQ(found.code, 2) << words << how << found.err;
            EXPECT_EQ(std::count(found.err.begin(), found.err.end(), '\n'), 1) << found.err;
        }
    }
    EXPECT_FALSE(fs::exists(folder + "/small.spiked"));
}

TEST(RunCommand, BlocksBeyondTheMemoryAreRejectedBeforeAnythingRuns) {
    const std::string folder = study_folder("huge");
    const std::string huge = "run study.toml --set model.n=65536 --set model.d=65536 ";
    for (const char* how : {"--dry-run", "--no-report"}) {
        const Outcome found = spiked(huge + how, in(folder) + (sanitized ? "" : " ulimit -v 4000000;"));
        EXPECT_EQ(found.code, 7) << how << found.err;
        EXPECT_NE(found.err.find("blocks of 65536 x 65536 need"), std::string::npos) << found.err;
        EXPECT_NE(found.err.find("are allowed"), std::string::npos) << found.err;
    }
    EXPECT_FALSE(fs::exists(folder + "/small.spiked"));
    if (sanitized) return;  // the next study fits into memory with one thread, but not with many
    const Outcome many = spiked("run study.toml --no-report --threads 64 --set model.n=3000 --set model.d=3000",
                                in(folder) + " ulimit -v 4000000;");
    EXPECT_EQ(many.code, 7) << many.err;
    EXPECT_NE(many.err.find("--threads"), std::string::npos) << many.err;
}

TEST(RunCommand, RejectsAStopRuleOnAMetricThatIsNotMeasured) {
    const std::string folder = study_folder("silent-rule");
    std::string text = contents(folder + "/study.toml");
    const std::string estimator = "[[estimator]]\nname = \"eoptshrink\"\n";
    text.erase(text.find(estimator), estimator.size());
    std::ofstream(folder + "/codecs.toml") << text;
    const Outcome found =
        spiked("run codecs.toml --dry-run --set 'run.until=[{metric=\"bulk_edge\",mcse_abs=1.0}]'", in(folder));
    EXPECT_EQ(found.code, 2);
    EXPECT_NE(found.err.find("nothing in this study measures \"bulk_edge\""), std::string::npos) << found.err;
    EXPECT_EQ(found.err.find(":0:0"), std::string::npos) << found.err;
}

TEST(RunCommand, DetectsAChangedStudy) {
    const std::string folder = study_folder("changed");
    ASSERT_EQ(spiked("run study.toml --set run.reps.min=20", in(folder)).code, 0);
    const Outcome changed = spiked("run study.toml --set run.reps.min=20 --set model.d=32", in(folder));
    EXPECT_EQ(changed.code, 2);
    EXPECT_NE(changed.err.find("d: 64, now 32"), std::string::npos) << changed.err;
    EXPECT_EQ(spiked("run study.toml --set model.d=32 --dry-run", in(folder)).code, 0);
    EXPECT_EQ(spiked("run study.toml --set run.reps.min=20 --seed 0x1", in(folder)).code, 2);
    EXPECT_EQ(spiked("run study.toml -o /proc/no.spiked", in(folder)).code, 6);
}

TEST(RunCommand, AFailedCheckIsExitOneAndAnInconclusiveOneThreeWhenStrict) {
    const std::string folder = study_folder("verdicts");
    std::string text = contents(folder + "/study.toml");
    text.replace(text.find("rel = 0.06"), 10, "rel = 0.0005");
    std::ofstream(folder + "/strict.toml") << text;
    const std::string words = "run strict.toml --no-report --set run.reps.min=20";
    EXPECT_EQ(spiked(words, in(folder)).code, 0);
    EXPECT_EQ(spiked(words + " --strict", in(folder)).code, 3);
    // A planted defect: an estimate in the store is changed, and the same command judges it again.
    ASSERT_EQ(
        std::system(("sqlite3 '" + folder + "/small.spiked' \"UPDATE moment SET mean = mean * 2 WHERE metric_id = 1\"")
                        .c_str()),
        0);
    const Outcome failed = spiked(words + " --json", in(folder));
    ASSERT_EQ(failed.code, 1) << failed.err;
    EXPECT_EQ(number(*failed.json().find("checks"), "failed"), 1);
}

TEST(RunCommand, AKillWhileTheStoreIsCreatedAndASecondRunAreHarmless) {
    const std::string folder = study_folder("early");
    for (int k = 0; k < 25; ++k) {
        fs::remove(folder + "/small.spiked");
        const std::string delay = "timeout -s KILL 0.0" + std::to_string(10 + 3 * k);
        const int code = spiked("run study.toml --no-report --set run.reps.min=20", in(folder) + delay).code;
        ASSERT_TRUE(code == 137 || code == 0) << code;
        const Outcome next = spiked("run study.toml --no-report --set run.reps.min=20", in(folder));
        ASSERT_EQ(next.code, 0) << "after a kill at " << delay << ": " << next.err;
    }
    fs::remove(folder + "/small.spiked");
    // The first run continues until it is stopped; meanwhile no other process may write.
    const std::string words = "run study.toml --no-report --set run.reps.min=100000";
    const std::string first = in(folder) + " timeout 120 '" SPIKED_BINARY "' " + words +
                              " >first.out 2>&1 & echo $! >'" + folder + "/first.pid'";
    ASSERT_EQ(std::system(first.c_str()), 0);
    Outcome second;
    for (int wait = 0; wait < 1000 && second.code != 6; ++wait) {
        usleep(20000);
        std::error_code absent;  // the first run has opened the store once the file is not empty
        const auto bytes = fs::file_size(folder + "/small.spiked", absent);
        if (!absent && bytes > 0) second = spiked(words + " --max-time 1s", in(folder));
    }
    (void)std::system(("kill $(cat '" + folder + "/first.pid')").c_str());
    EXPECT_EQ(second.code, 6) << second.err;
    EXPECT_NE(second.err.find("one run at a time"), std::string::npos) << second.err;
}

TEST(RunCommand, TimeLimitStopsAndJunitContainsTheVerdicts) {
    const std::string folder = study_folder("limits");
    const Outcome limited = spiked("run study.toml --no-report --max-time 1s --set run.reps.min=100000", in(folder));
    EXPECT_EQ(limited.code, 75) << limited.err;
    EXPECT_NE(spiked("show small.spiked", in(folder)).out.find("inconclusive"), std::string::npos);
    fs::remove(folder + "/small.spiked");
    ASSERT_EQ(spiked("run study.toml --no-report --set run.reps.min=200 --junit out/small.xml", in(folder)).code, 0);
    const std::string xml = contents(folder + "/out/small.xml");
    EXPECT_NE(xml.find("<testsuite name=\"small\" tests=\"1\" failures=\"0\" skipped=\"0\">"), std::string::npos)
        << xml;
    EXPECT_NE(xml.find(", sample spike 1"), std::string::npos)
        << "a test case names the quantity that it judges: " << xml;
    EXPECT_EQ(
        std::system(
            ("/usr/bin/python3 -c \"import xml.dom.minidom as m; m.parse('" + folder + "/out/small.xml')\"").c_str()),
        0);
    EXPECT_EQ(spiked("run study.toml --device cuda:0", in(folder)).code, 2);
    EXPECT_EQ(spiked("run study.toml --max-time soon", in(folder)).code, 2);
}

TEST(StoreCommands, ShowExportAndReportAgree) {
    const std::string folder = study_folder("tables");
    ASSERT_EQ(spiked("run study.toml --set run.reps.min=200", in(folder)).code, 0);
    EXPECT_TRUE(fs::exists(folder + "/small.html"));
    const std::string page = contents(folder + "/small.html");
    ASSERT_EQ(spiked("report small.spiked -o again.html --figures figures", in(folder)).code, 0);
    EXPECT_EQ(contents(folder + "/again.html"), page) << "the same store gives the same bytes of the report";
    EXPECT_FALSE(fs::is_empty(folder + "/figures"));
    for (const char* table : {"summary", "values", "cells", "failures", "bits", "checks", "theory"})
        for (const char* format : {"csv", "json", "npy", "latex"}) {
            const Outcome found =
                spiked(std::string("export small.spiked --table ") + table + " --format " + format, in(folder));
            EXPECT_EQ(found.code, 0) << found.err;
            EXPECT_GT(found.out.size(), 20U) << table << " " << format;
        }
    const Outcome methods =
        spiked("export small.spiked --table methods --metric relative_error --format latex", in(folder));
    EXPECT_EQ(methods.code, 0) << methods.err;
    EXPECT_NE(methods.out.find("\\bottomrule"), std::string::npos) << methods.out;
    for (const char* words : {"--table methods --metric beauty", "--metric beauty"})
        EXPECT_EQ(spiked(std::string("show small.spiked ") + words, in(folder)).code, 2) << words;
    fs::copy_file(folder + "/small.spiked", folder + "/copy.spiked");
    ASSERT_EQ(
        spiked("report small.spiked copy.spiked -o both.html --figures both --figure-format pdf", in(folder)).code, 0);
    EXPECT_NE(contents(folder + "/both.html").find("2 studies"), std::string::npos);
    EXPECT_TRUE(fs::exists(folder + "/both/study-2-figure-1-estimate-vs-theory.pdf"));
    EXPECT_EQ(spiked("report small.spiked copy.spiked", in(folder)).code, 2) << "no page is named";
    EXPECT_EQ(spiked("report small.spiked --figure-format pdf", in(folder)).code, 2) << "no folder is named";
    EXPECT_EQ(spiked("report small.spiked --figures both --figure-format gif", in(folder)).code, 2);
    EXPECT_NE(spiked("show small.spiked", in(folder)).out.find("1 passed, 0 failed"), std::string::npos);
    EXPECT_NE(spiked("show small.spiked --table cells", in(folder)).out.find("signal.strength=2"), std::string::npos);
    EXPECT_EQ(spiked("export small.spiked --table sumary", in(folder)).code, 2);
    EXPECT_EQ(spiked("show study.toml", in(folder)).code, 4);
    const std::string rows = spiked("export small.spiked --table summary --format csv", in(folder)).out;
    EXPECT_EQ(rows.find("threads"), std::string::npos);
}

TEST(StoreCommands, PandasAndNumpyReadTheStoreInOneLine) {
    const std::string folder = study_folder("pandas");
    ASSERT_EQ(spiked("run study.toml --no-report --set run.reps.min=20", in(folder)).code, 0);
    ASSERT_EQ(spiked("export small.spiked --table values --format npy -o values.npy", in(folder)).code, 0);
    const std::string program =
        "import sqlite3, numpy, pandas\n"
        "frame = pandas.read_sql('select * from v_summary', sqlite3.connect('small.spiked'))\n"
        "assert {'cell', 'method', 'metric', 'k', 'n', 'failed', 'mean', 'sd', 'mcse', 'lo', 'hi'} <= "
        "set(frame.columns)\n"
        "assert (frame.n + frame.failed == 20).all() and len(frame) > 50\n"
        "assert numpy.load('values.npy').shape[1] == 6\n";
    std::ofstream(folder + "/read.py") << program;
    EXPECT_EQ(std::system((in(folder) + " /usr/bin/python3 read.py").c_str()), 0);
}

TEST(InitCommand, WritesStudiesThatRun) {
    const std::string folder = scratch("init");
    fs::create_directories(folder);
    fs::copy_file(sample_dump, folder + "/dump.safetensors");
    for (const char* kind : {"bbp", "null", "kv"}) {
        ASSERT_EQ(spiked(std::string("init --kind ") + kind, in(folder)).code, 0);
        const std::string reps = kind == std::string("kv") ? "" : " --set run.reps.min=2";
        const Outcome found = spiked(std::string("run ") + kind + ".toml" + reps, in(folder));
        EXPECT_EQ(found.code, 0) << kind << ": " << found.err;
        EXPECT_TRUE(fs::exists(folder + "/results/" + kind + ".html"));
    }
    EXPECT_EQ(spiked("init --kind kv", in(folder)).code, 6) << "nothing is overwritten";
    EXPECT_EQ(spiked("init --kind matirx other.toml", in(folder)).code, 2);
    sim::write_npy(folder + "/data.npy", arma::mat(24, 16, arma::fill::eye));
    const Outcome job = spiked("init --kind matrix --slurm", in(folder));
    ASSERT_EQ(job.code, 0) << job.err;
    EXPECT_NE(contents(folder + "/matrix.slurm").find("srun spiked-mpi run matrix.toml"), std::string::npos);
    EXPECT_EQ(std::system(("bash -n '" + folder + "/matrix.slurm'").c_str()), 0);
    EXPECT_EQ(spiked("run matrix.toml", in(folder)).code, 0);
}

TEST(KvRunCommand, KeepsAStoreAndWritesItsReport) {
    const std::string folder = scratch("kvstore");
    fs::create_directories(folder);
    const std::string words = "kv run '" + sample_dump + "' -o dump.spiked --report dump.html --bits 2 --json";
    const Outcome first = spiked(words, in(folder));
    ASSERT_EQ(first.code, 0) << first.err;
    EXPECT_EQ(spiked("kv run '" + sample_dump + "' --bits 2 --json").out, first.out) << "with and without a store";
    EXPECT_EQ(spiked(words, in(folder)).out, first.out) << "the same command again gives the stored results";
    const std::string page = contents(folder + "/dump.html");
    for (const char* text : {"<svg", "data:image/png", "eoptshrink+tq-mse", "rope-lm"})
        EXPECT_NE(page.find(text), std::string::npos) << text;
    EXPECT_NE(spiked("show dump.spiked", in(folder)).out.find("keys, 8 blocks"), std::string::npos);
    EXPECT_EQ(spiked("kv run '" + sample_dump + "' -o dump.spiked --bits 3", in(folder)).code, 2);
}

/// The user does not name the store beside a report and that of the demo, so a link with such a name is not followed.
TEST(KvRunCommand, AStoreThatTheUserDidNotNameIsNotCreatedThroughALink) {
    const std::string folder = scratch("linked-stores");
    fs::create_directories(folder + "/here/results");
    fs::create_symlink("../outside.spiked", folder + "/here/k.spiked");
    fs::create_symlink("../../outside.spiked", folder + "/here/results/demo.spiked");
    const std::string words = "kv run '" + sample_dump + "' --method tq-mse --bits 2 --report k.html";
    for (const auto& command : {words, std::string("demo")}) {
        const Outcome rejected = spiked(command, in(folder + "/here"));
        EXPECT_EQ(rejected.code, 6) << command << rejected.err;
        EXPECT_NE(rejected.err.find("which the command chose itself"), std::string::npos) << rejected.err;
        EXPECT_FALSE(fs::exists(folder + "/outside.spiked")) << command;
    }
    // A link that the user names is followed, and a store that the command created is resumed.
    EXPECT_EQ(spiked(words + " -o k.spiked", in(folder + "/here")).code, 0);
    EXPECT_TRUE(fs::exists(folder + "/outside.spiked"));
    fs::remove(folder + "/here/k.spiked");
    EXPECT_EQ(spiked(words, in(folder + "/here")).code, 0);
    EXPECT_EQ(spiked(words, in(folder + "/here")).code, 0);
}

// The demo with few replicates: its file is valid, its checks find their cells, and its figures their data.
TEST(Demo, ItsStudyRunsAndItsPageHasTheFigures) {
    const std::string folder = scratch("demo");
    fs::create_directories(folder);
    fs::copy_file(SPIKED_SOURCE_DIR "/app/studies/demo.toml", folder + "/demo.toml");
    const Outcome found = spiked("run demo.toml --set run.reps.min=10 --set run.reps.batch=5", in(folder));
    EXPECT_TRUE(found.code == 0 || found.code == 1) << found.err;
    const std::string page = contents(folder + "/results/demo.html");
    EXPECT_NE(page.find("Figure 2"), std::string::npos);
    EXPECT_NE(page.find("<svg"), std::string::npos);
    EXPECT_EQ(page.find("<script"), std::string::npos);
    EXPECT_EQ(std::system(("tidy -q -e '" + folder + "/results/demo.html'").c_str()), 0);
}

/// A study may come from elsewhere, so a path that the user did not give must lie below the current folder and replace
/// nothing but a report.
TEST(RunCommand, ThePathInAStudyStaysBelowTheFolderAndItsPageReplacesOnlyReports) {
    const std::string folder = study_folder("paths");
    fs::create_directories(folder + "/below");
    const auto with_path = [&](const std::string& path) {
        std::string text = contents(folder + "/study.toml");
        text.replace(text.find("small.spiked"), std::string("small.spiked").size(), path);
        std::ofstream(folder + "/below/study.toml") << text;
        return spiked("run study.toml --set run.reps.min=20 -q", in(folder + "/below"));
    };
    for (const auto& path : std::vector<std::string>{"../up.spiked", folder + "/up.spiked", "a/../../up.spiked"}) {
        const Outcome rejected = with_path(path);
        EXPECT_EQ(rejected.code, 2) << rejected.err;
        EXPECT_NE(rejected.err.find("leads out of the current folder"), std::string::npos) << rejected.err;
        EXPECT_NE(rejected.err.find("study.toml"), std::string::npos) << rejected.err;
    }
    EXPECT_FALSE(fs::exists(folder + "/up.spiked"));
    // Following the advice of the message works.
    const Outcome named = spiked("run study.toml --set run.reps.min=20 -q -o ../up.spiked", in(folder + "/below"));
    EXPECT_LE(named.code, 1) << named.err;
    EXPECT_TRUE(fs::exists(folder + "/up.spiked"));
    EXPECT_LE(spiked("run study.toml --set run.reps.min=20 -q --no-report --set store.path=../set.spiked",
                     in(folder + "/below"))
                  .code,
              1);
    EXPECT_TRUE(fs::exists(folder + "/set.spiked"));
    // The page beside the store replaces a report, but no other file.
    std::ofstream(folder + "/below/mine.html") << "<!DOCTYPE html>mine";
    const Outcome kept = with_path("mine.spiked");
    EXPECT_EQ(kept.code, 6) << kept.err;
    EXPECT_EQ(contents(folder + "/below/mine.html"), "<!DOCTYPE html>mine");
    EXPECT_FALSE(fs::exists(folder + "/below/mine.spiked")) << "nothing was computed";
    EXPECT_EQ(spiked("report ../up.spiked", in(folder + "/below")).code, 0);
    EXPECT_EQ(spiked("report ../up.spiked", in(folder + "/below")).code, 0) << "a report of this program is replaced";
    fs::rename(folder + "/up.spiked", folder + "/below/mine.spiked");
    EXPECT_EQ(spiked("report mine.spiked", in(folder + "/below")).code, 6);
    EXPECT_EQ(spiked("report mine.spiked -o mine.html", in(folder + "/below")).code, 0)
        << "a page that the user names is written";
}

TEST(RunCommand, ListsOfAStudyHaveAtMostAThousandTables) {
    const std::string folder = study_folder("many");
    const auto with = [&](int count) {
        std::string text = contents(folder + "/study.toml");
        for (int i = 0; i < count; ++i)
            text += "[[codec]]\nname = \"tq-mse\"\nbits = [2]\nas = \"c" + std::to_string(i) + "\"\n";
        std::ofstream(folder + "/many.toml") << text;
        return spiked("run many.toml --set run.reps.min=20 --dry-run", in(folder));
    };
    const Outcome rejected = with(1000);
    EXPECT_EQ(rejected.code, 2);
    EXPECT_NE(rejected.err.find("1001 [[codec]] are too many"), std::string::npos) << rejected.err;
    EXPECT_EQ(spiked("run many.toml --dry-run", in(folder)).err.find("is defined twice"), std::string::npos);
    std::string text = contents(folder + "/study.toml");
    for (int i = 0; i < 4; ++i) text += "[[estimator]]\n";
    std::ofstream(folder + "/twice.toml") << text;
    const Outcome twice = spiked("run twice.toml --dry-run", in(folder));
    EXPECT_EQ(twice.code, 2);
    const auto count = [&](const std::string& words) {
        int found = 0;
        for (std::size_t at = twice.err.find(words); at != std::string::npos; at = twice.err.find(words, at + 1))
            ++found;
        return found;
    };
    EXPECT_EQ(count("is defined twice"), 4) << "one line per table, regardless of the number before it\n" << twice.err;
}

}  // namespace
}  // namespace spiked::app

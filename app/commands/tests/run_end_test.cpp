// The beginning and end of runs: errors that are reported before anything runs, and the store after a stop, a failure
// or a full disk.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "app/tests/process.hpp"

namespace spiked::app {
namespace {

namespace fs = std::filesystem;

/// A study whose signal vectors cannot be drawn in about one replicate of 25: almost all entries of their law are zero.
const std::string unlucky_study = R"(spiked = 1
[study]
name = "unlucky"
seed = "0x5eed"
[model]
kind = "spiked"
n = 12
d = 12
signal = { strength = 2.0, vectors = "qr:sparse:0.005" }
[[estimator]]
name = "svd:1"
[run]
reps = { min = 400, batch = 20 }
[store]
path = "small.spiked"
)";

std::string unlucky_folder(const std::string& name, const std::string& text = unlucky_study) {
    return folder_with_study(name, text);
}

std::string changed(std::string text, const std::string& from, const std::string& to) {
    EXPECT_NE(text.find(from), std::string::npos) << from;
    return text.replace(text.find(from), from.size(), to);
}

const std::string plain_study = changed(unlucky_study, "qr:sparse:0.005", "haar");
const std::string seedless_study = changed(plain_study, "seed = \"0x5eed\"\n", "");

std::string query(const std::string& folder, const std::string& sql) {
    const std::string answer = scratch("answer");
    EXPECT_EQ(std::system((in(folder) + " sqlite3 small.spiked \"" + sql + "\" >'" + answer + "'").c_str()), 0);
    return contents(answer);
}

TEST(RunEnd, AReplicateThatCannotBeDrawnIsStoredWithItsReplayCommand) {
    const std::string folder = unlucky_folder("it's unlucky");
    const std::string words = "run study.toml --no-report --threads 1";
    const Outcome over = spiked(words, in(folder));
    EXPECT_EQ(over.code, 5) << over.err;
    EXPECT_NE(over.err.find("replicates failed: see spiked show"), std::string::npos) << over.err;
    EXPECT_EQ(query(folder, "SELECT status, exit_code FROM study, session"), "failed|5\n");
    ASSERT_EQ(spiked(words + " --set run.failure_budget=0.1", in(folder)).code, 0);
    EXPECT_EQ(query(folder, "SELECT status FROM study"), "complete\n");
    EXPECT_EQ(
        query(folder,
              "SELECT sum(value IS NULL) > 10 AND count(DISTINCT rep) = 400 FROM v_value WHERE metric = 'outlier'"),
        "1\n");
    const Json rows = spiked("export small.spiked --table failures --format json", in(folder)).json();
    const auto& failures = rows.items() != nullptr ? *rows.items() : *rows.find("rows")->items();
    ASSERT_GT(failures.size(), 4U);
    const std::string command = *failures.front().find("replay")->string();
    ASSERT_EQ(command.rfind("spiked replay '", 0), 0U) << command;
    const Outcome again = spiked(command.substr(7));
    EXPECT_EQ(again.code, 0) << command << again.err;
    EXPECT_NE(again.out.find("linearly dependent"), std::string::npos) << again.out;
    EXPECT_NE(again.out.find("as it did in the store"), std::string::npos) << again.out;
}

TEST(RunEnd, AnErrorThatEndsARunIsStoredIfPossible) {
    const std::string folder = unlucky_folder("file-limit", plain_study);
    // No file may grow beyond 300 kB, so that the store is full in the middle of the study.
    const Outcome full = spiked("run study.toml --no-report --set run.reps.min=4000", in(folder) + " ulimit -f 600;");
    ASSERT_EQ(full.code, 6) << full.err;
    EXPECT_EQ(query(folder, "SELECT status, exit_code, stop_reason != '' FROM study, session"), "stopped|6|1\n");
    EXPECT_EQ(spiked("run study.toml --no-report --set run.reps.min=4000", in(folder)).code, 0);
    EXPECT_EQ(spiked("run study.toml --no-report --set run.reps.min=4000 --junit /proc/no.xml", in(folder)).code, 6);
    EXPECT_EQ(query(folder, "SELECT status, exit_code FROM study, session ORDER BY session_id DESC LIMIT 1"),
              "complete|6\n");
}

TEST(RunEnd, RunningOutOfMemoryIsStored) {
    if (sanitized) GTEST_SKIP() << "a sanitizer reserves more address space than the limit";
    const std::string folder = unlucky_folder("memory", plain_study);
    const Outcome found = spiked("run study.toml --no-report --threads 1 --set model.n=3000 --set model.d=3000",
                                 in(folder) + " ulimit -v 500000;");
    ASSERT_EQ(found.code, 7) << found.err;
    EXPECT_EQ(query(folder, "SELECT status, exit_code FROM study, session"), "stopped|7\n");
}

TEST(RunEnd, AnEmptyStoreOfAKilledRunAcceptsAStudyWithoutSeed) {
    const std::string folder = unlucky_folder("unmade", seedless_study);
    std::ofstream(folder + "/small.spiked").close();
    const Outcome found = spiked("run study.toml --no-report", in(folder));
    EXPECT_EQ(found.code, 0) << found.err;
    EXPECT_EQ(query(folder, "SELECT seed_source, status FROM study"), "generated|complete\n");
}

/// A command that reads the store of a killed run copies it into TMPDIR. The copy must be removed after any signal
/// except SIGKILL.
TEST(RunEnd, NoSignalLeavesACopyOfAStore) {
    const std::string folder = unlucky_folder("signals", plain_study);
    ASSERT_EQ(spiked("run study.toml --no-report", in(folder)).code, 0);
    std::ofstream(folder + "/kill.sql") << "PRAGMA cache_size = 1;\nBEGIN IMMEDIATE;\nUPDATE value SET v = 0;\n"
                                           ".shell cp small.spiked m.spiked; cp small.spiked-journal m.spiked-journal\n"
                                           "ROLLBACK;\n";
    ASSERT_EQ(
        std::system((in(folder) + "sqlite3 small.spiked <kill.sql >/dev/null && mkdir tmp && mkfifo pipe").c_str()), 0);
    // The command has opened the copy when its output begins, and waits until the rest is read.
    std::ofstream(folder + "/end.sh")
        << "TMPDIR=\"$PWD/tmp\" '" SPIKED_BINARY
           "' show m.spiked --table values >pipe & job=$!\nexec 3<pipe\n"
           "dd bs=1 count=1 <&3 >first\n"
           "ls tmp | wc -l >before\nkill -$1 $job; wait $job; code=$?\nls tmp | wc -l >after\nexit $code\n";
    for (const int signal : {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGPROF, SIGVTALRM, SIGIO, SIGPWR, SIGSTKFLT, SIGRTMIN,
                             SIGRTMIN + 5, SIGRTMAX}) {
        const int status = std::system((in(folder) + "sh end.sh " + std::to_string(signal) + " 2>/dev/null").c_str());
        EXPECT_EQ(WEXITSTATUS(status), 128 + signal);
        EXPECT_EQ(contents(folder + "/before"), "1\n") << signal;
        EXPECT_EQ(contents(folder + "/after"), "0\n") << signal;
    }
}

TEST(RunEnd, AFreshSeedDoesNotResumeAStoreWithAnotherSeed) {
    const std::string folder = unlucky_folder("fresh", plain_study);
    ASSERT_EQ(spiked("run study.toml --no-report", in(folder)).code, 0);
    const Outcome rejected = spiked("run study.toml --no-report --seed fresh", in(folder));
    EXPECT_EQ(rejected.code, 2);
    EXPECT_NE(rejected.err.find("the store has another seed"), std::string::npos) << rejected.err;
    EXPECT_EQ(spiked("run study.toml --no-report --seed fresh -o other.spiked", in(folder)).code, 0);
    EXPECT_EQ(spiked("run study.toml --seed fresh --dry-run", in(folder)).code, 0);
}

TEST(RunEnd, ShardsWithADrawnSeedAreRejectedBeforeTheyRun) {
    const std::string folder = unlucky_folder("seedless-shards", seedless_study);
    for (const char* words : {"run study.toml --no-report --shard 1/2", "run study.toml --shard 2/2 --seed fresh"}) {
        const Outcome rejected = spiked(words, in(folder));
        EXPECT_EQ(rejected.code, 2) << words;
        EXPECT_NE(rejected.err.find("give the study a seed"), std::string::npos) << rejected.err;
        EXPECT_FALSE(fs::exists(folder + "/small.spiked"));
    }
    EXPECT_EQ(spiked("run study.toml --no-report --shard 1/2 --seed 0x7", in(folder)).code, 0);
}

TEST(RunEnd, AFolderIsRejectedAndTheNameOfAStudyMayContainASpace) {
    const std::string folder = unlucky_folder("words", plain_study);
    const Outcome found = spiked("run .", in(folder));
    EXPECT_EQ(found.code, 2);
    EXPECT_NE(found.err.find("is a folder, not a study file"), std::string::npos) << found.err;
    const Outcome job = spiked("init --slurm \"my study's.toml\"", in(folder));
    ASSERT_EQ(job.code, 0) << job.err;
    EXPECT_NE(job.out.find("next: sbatch 'my study'\\''s.slurm'"), std::string::npos) << job.out;
    EXPECT_NE(contents(folder + "/my study's.slurm").find("spiked-mpi run 'my study'\\''s.toml' &"), std::string::npos);
}

TEST(RunEnd, ReplayReportsThatNoValueIsStored) {
    const std::string folder = unlucky_folder("not-kept", plain_study + "raw = \"none\"\n");
    ASSERT_EQ(spiked("run study.toml --no-report", in(folder)).code, 0);
    const Outcome found = spiked("replay small.spiked --cell 1 --rep 3", in(folder));
    EXPECT_EQ(found.code, 0);
    EXPECT_NE(found.out.find("keeps no value of this replicate"), std::string::npos) << found.out;
    EXPECT_NE(found.out.find("outlier"), std::string::npos) << "the values themselves are shown";
}

TEST(RunEnd, StoresWithNothingInCommonAreNotCompared) {
    const std::string folder = unlucky_folder("unrelated", plain_study);
    ASSERT_EQ(spiked("run study.toml --no-report", in(folder)).code, 0);
    std::ofstream(folder + "/sweep.toml") << plain_study << "[sweep]\nn = [16, 24]\n";
    ASSERT_EQ(spiked("run sweep.toml --no-report -o other.spiked", in(folder)).code, 0);
    const Outcome found = spiked("compare small.spiked other.spiked", in(folder));
    EXPECT_EQ(found.code, 2);
    EXPECT_NE(found.err.find("no mean in common"), std::string::npos) << found.err;
}

TEST(RunEnd, AStopDoesNotWaitForABatchAndTheTimeLeftIsEstimatedFromThisSession) {
    const std::string folder = unlucky_folder("long-batch", changed(plain_study, "n = 12\nd = 12", "n = 96\nd = 96"));
    // A batch takes about a minute.
    const std::string words =
        "run study.toml --no-report --threads 1 --set run.reps.min=40000 --set run.reps.batch=20000";
    const Outcome none = spiked(words + " --max-time 1s", in(folder) + "timeout 20");
    EXPECT_EQ(none.code, 75) << none.err;
    EXPECT_NE(none.err.find("no batch was finished"), std::string::npos) << none.err;
    EXPECT_EQ(query(folder, "SELECT count(*) FROM batch"), "0\n");
    fs::remove(folder + "/small.spiked");

    const std::string small = "run study.toml --no-report --threads 1 --progress bar --set run.reps.min=20000";
    ASSERT_EQ(spiked(small + " --max-time 2s", in(folder)).code, 75);
    const Outcome again = spiked(small + " --max-time 1s", in(folder));
    ASSERT_EQ(again.code, 75);
    // The first estimate of the time left is printed after one batch, in a few milliseconds, and must not use the
    // batches that were already stored.
    const std::size_t left = again.err.find(" left");
    ASSERT_NE(left, std::string::npos) << again.err;
    const std::size_t unit = again.err.rfind(' ', left - 1);
    const std::size_t start = again.err.rfind(' ', unit - 1) + 1;
    if (again.err.substr(unit + 1, left - unit - 1) == "s") {  // not minutes, on a slow machine
        EXPECT_GE(std::stod(again.err.substr(start, unit - start)), 3.0) << again.err.substr(0, 400);
    }
}

TEST(RunEnd, MemoryDoesNotGrowWithTheReplicates) {
    if (sanitized) GTEST_SKIP() << "a sanitizer keeps freed memory";
    const std::string tiny =
        changed(changed(plain_study, "n = 12\nd = 12", "n = 4\nd = 4"), "batch = 20", "batch = 500");
    const auto peak = [&](const std::string& replicates) {
        const std::string folder = unlucky_folder("flat-" + replicates, tiny + "raw = \"none\"\n");
        // Measured from a small process, because the peak includes the memory of the process before the program is
        // loaded.
        std::ofstream(folder + "/peak.py")
            << "import resource, subprocess, sys\n"
               "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n"
               "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n";
        const std::string line = in(folder) +
                                 " timeout 120 /usr/bin/python3 peak.py '" SPIKED_BINARY
                                 "' run study.toml --no-report --threads 1 --set run.reps.min=" +
                                 replicates + " >peak";
        EXPECT_EQ(std::system(line.c_str()), 0);
        return std::stod("0" + contents(folder + "/peak"));
    };
    const double few = peak("1000");
    EXPECT_GT(few, 1000.0);
    EXPECT_LT(peak("100000"), few + 3.0 * 1024.0);
}

}  // namespace
}  // namespace spiked::app

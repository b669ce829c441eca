// The results of a study do not depend on threads, kills, shards and MPI ranks. Commands on its stores.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <random>
#include <set>
#include <sstream>
#include <string>

#include "app/tests/process.hpp"
#include "sim/io/matrix_file.hpp"
#include "sim/io/npy.hpp"
#include "validation/store/tests/version_2_store.hpp"

namespace spiked::app {
namespace {

namespace fs = std::filesystem;

/// A study with a stop rule: its cells stop after different numbers of replicates.
const std::string adaptive_study = R"(spiked = 1
[study]
name = "shared"
seed = "0x5eed"
[model]
kind = "spiked"
n = 32
d = 48
signal = { strength = 2.0 }
[sweep]
"noise.entries" = ["gaussian", "laplace", "student:4"]
"signal.strength" = [1.6, 3.0]
[[estimator]]
name = "eoptshrink"
[run]
reps = { min = 40, max = 4000, batch = 20 }
until = [{ metric = "outlier", mcse_rel = 0.02 }]
[store]
path = "shared.spiked"
)";

std::string adaptive_folder(const std::string& name, const std::string& text = adaptive_study) {
    return folder_with_study(name, text);
}

std::string summary_and_checks(const std::string& folder, const std::string& store = "shared.spiked") {
    return spiked("export " + store + " --table summary --format csv", in(folder)).out +
           spiked("export " + store + " --table checks --format csv", in(folder)).out;
}

const std::string& expected() {
    static const std::string text = [] {
        const std::string folder = adaptive_folder("one-thread");
        EXPECT_EQ(spiked("run study.toml --threads 1 --no-report", in(folder)).code, 0);
        return summary_and_checks(folder);
    }();
    return text;
}

TEST(Sharing, StopRulesGiveEachCellTheReplicatesItNeeds) {
    const std::string folder = adaptive_folder("needs");
    const Outcome run = spiked("run study.toml --no-report --json", in(folder));
    ASSERT_EQ(run.code, 0) << run.err;
    const Outcome cells = spiked("export shared.spiked --table summary --format json", in(folder));
    double least = 1e9;
    double most = 0.0;
    const Json document = cells.json();
    const auto& rows = document.items() != nullptr ? *document.items() : *document.find("rows")->items();
    for (const Json& row : rows) {
        if (*row.find("metric")->string() != "outlier") continue;
        EXPECT_LE(number(row, "mcse"), 0.02 * number(row, "mean"));
        least = std::min(least, number(row, "n"));
        most = std::max(most, number(row, "n"));
    }
    EXPECT_GE(least, 40.0);
    EXPECT_LT(least, most);  // heavy tails need more
    EXPECT_LT(most, 4000.0);
}

TEST(Sharing, ResultsDoNotDependOnThreadsAndKills) {
    for (const char* threads : {"2", "4"}) {
        const std::string folder = adaptive_folder(std::string("threads-") + threads);
        ASSERT_EQ(spiked(std::string("run study.toml --no-report --threads ") + threads, in(folder)).code, 0);
        EXPECT_EQ(summary_and_checks(folder), expected()) << threads;
    }
    // The run must be long enough for the kills at random times before it ends.
    const int wanted = kills_wanted();
    const int most = 3 * wanted / 2;  // some come after the end of the run
    const std::string more =
        " --set run.until=[{metric=\\\"outlier\\\",mcse_rel=" + std::to_string(0.005 * std::sqrt(20.0 / most)) +
        "}] --set run.reps.max=" + std::to_string(600 * most);
    const std::string whole = adaptive_folder("long");
    ASSERT_EQ(spiked("run study.toml --no-report --threads 2" + more, in(whole)).code, 0);
    const std::string folder = adaptive_folder("killed-often");
    std::mt19937 random(20);
    int kills = 0;
    for (int attempt = 0; kills < wanted && attempt < most; ++attempt) {
        const std::string limit = "timeout -s KILL 0." + std::to_string(100 + random() % 200);
        kills += spiked("run study.toml --no-report --threads 2" + more, in(folder) + limit).code == 137 ? 1 : 0;
    }
    EXPECT_EQ(kills, wanted);
    ASSERT_EQ(spiked("run study.toml --no-report --threads 2" + more, in(folder)).code, 0);
    EXPECT_EQ(summary_and_checks(folder), summary_and_checks(whole));
}

TEST(Sharing, MergedShardsGiveTheWholeStudyInAnyOrder) {
    const std::string folder = adaptive_folder("shards");
    for (int i = 1; i <= 3; ++i) {
        const std::string shard = std::to_string(i) + "/3";
        const Outcome run =
            spiked("run study.toml --no-report -o part" + std::to_string(i) + ".spiked --shard " + shard, in(folder));
        ASSERT_EQ(run.code, 0) << run.err;
        EXPECT_NE(run.err.find("spiked merge joins it"), std::string::npos) << run.err;
    }
    EXPECT_NE(spiked("show part1.spiked", in(folder)).out.find("PARTIAL (shard 1/3)"), std::string::npos);
    ASSERT_EQ(spiked("merge part3.spiked part1.spiked part2.spiked -o all.spiked", in(folder)).code, 0);
    EXPECT_EQ(summary_and_checks(folder, "all.spiked"), expected());
    ASSERT_EQ(spiked("merge part2.spiked part1.spiked -o some.spiked", in(folder)).code, 0);
    const Outcome rest = spiked("merge some.spiked part3.spiked -o grouped.spiked --json", in(folder));
    ASSERT_EQ(rest.code, 0) << rest.err;
    EXPECT_EQ(*rest.json().find("status")->string(), "complete");
    EXPECT_EQ(summary_and_checks(folder, "grouped.spiked"), expected());
    const Outcome overlap = spiked("merge some.spiked part1.spiked -o twice.spiked", in(folder));
    EXPECT_EQ(overlap.code, 2);
    EXPECT_FALSE(fs::exists(folder + "/twice.spiked"));
    EXPECT_EQ(spiked("merge part1.spiked part2.spiked", in(folder)).code, 2) << "-o is needed";
    EXPECT_EQ(spiked("run study.toml --shard 4/3", in(folder)).code, 2);
}

/// Runs `mpirun` with the given programs and ranks. Leak detection is off, because Open MPI does not free all its
/// memory, which the address sanitizer would report.
Outcome launched(const std::string& programs, const std::string& before) {
    const std::string launcher =
        "ASAN_OPTIONS=detect_leaks=0 OMPI_MCA_plm=isolated OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
        "mpirun --oversubscribe " +
        programs;
    const std::string out = scratch("mpi-out");
    const std::string err = scratch("mpi-err");
    const int status = std::system((before + " " + launcher + " >'" + out + "' 2>'" + err + "' </dev/null").c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), contents(out), contents(err)};
}

/// Runs `spiked-mpi` on some ranks of this machine.
Outcome ranks(int count, const std::string& words, const std::string& before) {
    return launched("-np " + std::to_string(count) + " '" SPIKED_BINARY "-mpi' " + words, before);
}

bool has_mpi() { return fs::exists(SPIKED_BINARY "-mpi") && std::system("command -v mpirun >/dev/null") == 0; }

TEST(Sharing, ResultsDoNotDependOnRanksAndRanksStopOnRequest) {
    if (!has_mpi()) GTEST_SKIP() << "built without MPI";
    for (const int count : {1, 2, 4}) {
        const std::string folder = adaptive_folder("ranks-" + std::to_string(count));
        const Outcome run = ranks(count, "run study.toml --no-report", in(folder));
        ASSERT_EQ(run.code, 0) << run.err;
        EXPECT_EQ(summary_and_checks(folder), expected()) << count << " ranks";
    }
    const std::string folder = adaptive_folder("ranks-stopped");
    const std::string longer =
        "run study.toml --no-report --set run.reps.max=1000000 --set "
        "run.until=[{metric=\\\"outlier\\\",mcse_rel=0.00001}]";
    const Outcome stopped = ranks(3, longer + " --max-time 2s", in(folder));
    EXPECT_EQ(stopped.code, 75) << stopped.err;
    EXPECT_NE(stopped.out.find("PARTIAL (stopped)"), std::string::npos) << stopped.out;
    const Outcome again = ranks(2, longer + " --max-time 1s", in(folder));
    EXPECT_EQ(again.code, 75);
    EXPECT_NE(again.err.find("resuming shared.spiked"), std::string::npos) << again.err;
}

// The launcher of Open MPI 5.0.7 puts the end of a line on standard output before the next words on standard error, if
// both are written: so nothing is written there. Also where the study grows (an undecided claim has a second analysis),
// and where a store that has grown is continued.
TEST(Sharing, ClaimsAreTheSameForAnyRanks) {
    if (!has_mpi()) GTEST_SKIP() << "built without MPI";
    const std::string folder = scratch("ranks-claims");
    fs::create_directories(folder);
    const auto values = [&](const std::string& store) {
        return spiked("export " + store + " --table values --format csv", in(folder)).out;
    };
    const std::string words =
        "validate --claim adaptive-rank --layers 0 --heads 0 --side value '" + sample_dump + "' --json --quiet -o ";
    const Outcome alone = spiked(words + "alone.spiked", in(folder));
    ASSERT_EQ(alone.code, 0) << alone.err;
    // Sizes of a code do not differ from trial to trial; what adaptive ranks explain does.
    std::set<std::string> different;
    std::istringstream rows(values("alone.spiked"));
    for (std::string row; std::getline(rows, row);) {
        if (row.find("second analysis") == std::string::npos) continue;
        for (int id = 0; id < 3; ++id) row.resize(row.rfind(','));  // numbers of cell, method and metric
        different.insert(row.substr(row.rfind(',')));
    }
    EXPECT_GT(different.size(), 40U) << "a second analysis of random values";
    for (const int count : {1, 2, 4}) {
        const std::string of = std::to_string(count) + ".spiked";
        const Outcome run = ranks(count, words + "ranks-" + of, in(folder) + " timeout 100 env");
        ASSERT_EQ(run.code, 0) << run.err;
        EXPECT_EQ(run.out, alone.out) << count << " ranks";
        EXPECT_TRUE(values("ranks-" + of) == values("alone.spiked")) << count << " ranks";
    }
    const std::string some = "(1, (SELECT max(cell_id) FROM cell))";
    std::string sql = "UPDATE cell SET state = 'todo', why = NULL WHERE cell_id IN " + some;
    for (const std::string table : {"batch", "moment", "value"})
        sql += "; DELETE FROM " + table + " WHERE cell_id IN " + some;
    ASSERT_EQ(std::system((in(folder) + " sqlite3 ranks-2.spiked \"" + sql + "\"").c_str()), 0);
    const Outcome again = ranks(3, words + "ranks-2.spiked", in(folder) + " timeout 100 env");
    ASSERT_EQ(again.code, 0) << again.err;
    EXPECT_EQ(again.out, alone.out);
    EXPECT_TRUE(values("ranks-2.spiked") == values("alone.spiked"));
}

TEST(Sharing, ARankThatFailsEndsTheJobWithItsCause) {
    if (!has_mpi()) GTEST_SKIP() << "built without MPI";
    const std::string folder = adaptive_folder("ranks-failing", R"(spiked = 1
[study]
name = "failing"
seed = "0x5eed"
[model]
kind = "kv_dump"
source = ["dump.safetensors"]
[[codec]]
name = "tq-mse"
bits = [2]
[store]
path = "failing.spiked"
)");
    fs::copy_file(sample_dump, folder + "/dump.safetensors");
    // NaN values, which are found only when their block is read.
    std::string bytes = contents(folder + "/dump.safetensors");
    for (std::size_t i = bytes.size() - 400; i < bytes.size(); ++i) bytes[i] = '\xff';
    std::ofstream(folder + "/dump.safetensors", std::ios::binary) << bytes;
    const Outcome shell = ranks(3, "run study.toml --no-report", in(folder) + " timeout 60 env");
    EXPECT_EQ(shell.code, 4) << shell.err;
    EXPECT_NE(shell.err.find("rank "), std::string::npos) << shell.err;
    EXPECT_NE(shell.err.find("NaN"), std::string::npos) << shell.err;
}

TEST(Sharing, ReplicatesThatFailOnARankAreStoredAsInOneProcess) {
    if (!has_mpi()) GTEST_SKIP() << "built without MPI";
    // Many codecs and raw values make a batch larger than a message that MPI sends without waiting for the receiver.
    const std::string study = R"(spiked = 1
[study]
name = "unlucky"
seed = "0x5eed"
[model]
kind = "spiked"
n = 12
d = 12
signal = { strength = 2.0 }
[sweep]
mode = "zip"
"noise.entries" = ["gaussian", "laplace"]
"signal.vectors" = ["haar", "qr:sparse:0.003"]
[[codec]]
name = "tq-mse"
bits = [1, 2, 3, 4, 5, 6, 7]
[run]
reps = { min = 60, batch = 10 }
failure_budget = 0.9
[store]
path = "shared.spiked"
)";
    const std::string folder = adaptive_folder("unlucky-ranks", study);
    const Outcome run = ranks(5, "run study.toml -q --no-report", in(folder) + " timeout 60 env");
    ASSERT_EQ(run.code, 0) << run.err;
    const std::string alone = adaptive_folder("unlucky-alone", study);
    ASSERT_EQ(spiked("run study.toml -q --no-report", in(alone)).code, 0);
    EXPECT_EQ(summary_and_checks(folder), summary_and_checks(alone));
    const auto failures = [](const std::string& of) {
        std::string text = spiked("export shared.spiked --table failures --format csv", in(of)).out;
        for (auto at = text.find(of); at != std::string::npos; at = text.find(of)) text.erase(at, of.size());
        return text;
    };
    const std::string expected_failures = failures(alone);
    EXPECT_GT(std::count(expected_failures.begin(), expected_failures.end(), '\n'), 5);
    EXPECT_EQ(failures(folder), expected_failures);
    const std::string strict = adaptive_folder("unlucky-strict", study);
    const Outcome over =
        ranks(5, "run study.toml -q --no-report --set run.failure_budget=0.01", in(strict) + " timeout 60 env");
    EXPECT_EQ(over.code, 5) << over.err;
}

TEST(Sharing, ARankWithoutTheFilesOfTheStudyEndsTheJobWithItsCause) {
    if (!has_mpi()) GTEST_SKIP() << "built without MPI";
    const std::string folder = adaptive_folder("ranks-files", R"(spiked = 1
[study]
name = "files"
seed = "0x5eed"
[model]
kind = "matrix"
source = ["data.npy"]
[[codec]]
name = "tq-mse"
bits = [2]
[run]
reps = { min = 400, batch = 2 }
[store]
path = "files.spiked"
)");
    sim::write_npy(folder + "/data.npy", arma::mat(24, 16, arma::fill::eye));
    const std::string elsewhere = adaptive_folder("ranks-no-files");
    // The launcher of Open MPI 5.0.7 crashes where it is given two programs, so each rank chooses its folder.
    for (const char* count : {"4", "3"}) {
        const Outcome run = launched(std::string("-np ") + count + " sh -c 'test $OMPI_COMM_WORLD_RANK -lt 2 || cd \"" +
                                         elsewhere + "\"; exec \"" SPIKED_BINARY "-mpi\" run study.toml --no-report'",
                                     in(folder) + " timeout 60 env");
        EXPECT_EQ(run.code, 4) << run.err;
        EXPECT_NE(run.err.find("give every machine the same files"), std::string::npos) << run.err;
        EXPECT_NE(run.err.find("data.npy"), std::string::npos) << run.err;
    }
}

TEST(Sharing, RanksAbandonTheirBatchesOnRequest) {
    if (!has_mpi()) GTEST_SKIP() << "built without MPI";
    const std::string folder = adaptive_folder("ranks-long-batches");
    const Outcome stopped = ranks(3,
                                  "run study.toml --no-report --max-time 1s --set model.n=96 --set model.d=96 --set "
                                  "run.reps.batch=40000 --set run.reps.min=40000 --set run.reps.max=40000",
                                  in(folder) + " timeout 30 env");
    EXPECT_EQ(stopped.code, 75) << stopped.err;
    EXPECT_NE(stopped.err.find("no batch was finished"), std::string::npos) << stopped.err;
}

TEST(StoreCommands, ReplayReproducesAReplicateBitForBit) {
    const std::string folder = adaptive_folder("replay");
    ASSERT_EQ(spiked("run study.toml --no-report --set model.n=30", in(folder)).code, 0);
    const Outcome found = spiked("replay shared.spiked --cell 2 --rep 5 --block block.npy --json", in(folder));
    ASSERT_EQ(found.code, 0) << found.err;
    EXPECT_GT(number(found.json(), "compared"), 5.0);
    EXPECT_EQ(number(found.json(), "differing"), 0.0);
    const arma::mat block = sim::read_matrix(folder + "/block.npy");
    EXPECT_EQ(block.n_rows, 30U);
    EXPECT_EQ(block.n_cols, 48U);
    // Stored values are found by the names of their metrics.
    validation::renumber_metrics(folder + "/shared.spiked");
    EXPECT_TRUE(spiked("replay shared.spiked --cell 2 --rep 5 --block block.npy --json", in(folder)).out == found.out);
    // A stored value that was changed is reported.
    ASSERT_EQ(
        std::system((in(folder) + " sqlite3 shared.spiked \"UPDATE value SET v = v + 1 WHERE cell_id = 2 AND rep = "
                                  "5 AND k = 1\"")
                        .c_str()),
        0);
    const Outcome changed = spiked("replay shared.spiked --cell 2 --rep 5 --json", in(folder));
    EXPECT_EQ(changed.code, 1);
    EXPECT_GT(number(changed.json(), "differing"), 0.0);
    EXPECT_EQ(spiked("replay shared.spiked --cell 77 --rep 0", in(folder)).code, 2);
    ASSERT_EQ(std::system((in(folder) + " sqlite3 shared.spiked \"UPDATE cell SET label = 'twice'\"").c_str()), 0);
    const Outcome ambiguous = spiked("replay shared.spiked --cell twice --rep 5", in(folder));
    EXPECT_EQ(ambiguous.code, 2);
    EXPECT_NE(ambiguous.err.find("more than one cell (1 and 2)"), std::string::npos) << ambiguous.err;
    EXPECT_EQ(spiked("replay shared.spiked --cell 1 --rep 999999", in(folder)).code, 2);
    EXPECT_EQ(spiked("replay shared.spiked", in(folder)).code, 2);
}

TEST(StoreCommands, CompareDetectsAnotherModelButNotAnotherSeed) {
    const std::string folder = adaptive_folder("compare");
    ASSERT_EQ(spiked("run study.toml --no-report -o a.spiked", in(folder)).code, 0);
    ASSERT_EQ(spiked("run study.toml --no-report -o b.spiked --seed 0x77", in(folder)).code, 0);
    ASSERT_EQ(spiked("run study.toml --no-report -o c.spiked --set model.d=36", in(folder)).code, 0);
    const Json same = spiked("compare a.spiked a.spiked --json", in(folder)).json();
    EXPECT_EQ(number(same, "beyond"), 0.0);
    const Json seeds = spiked("compare a.spiked b.spiked --json", in(folder)).json();
    EXPECT_EQ(number(seeds, "beyond"), 0.0);
    const Json models = spiked("compare a.spiked c.spiked --json", in(folder)).json();
    EXPECT_GT(number(models, "beyond"), 5.0);
    const std::string words = spiked("compare a.spiked b.spiked", in(folder)).out;
    EXPECT_NE(words.find("seeds differ ("), std::string::npos) << words;
    EXPECT_EQ(words.find("differ in their model"), std::string::npos) << words;
    const std::string other_words = spiked("compare a.spiked c.spiked", in(folder)).out;
    EXPECT_EQ(other_words.find("seeds differ ("), std::string::npos) << other_words;
    EXPECT_NE(other_words.find("differ in their model"), std::string::npos) << other_words;
    EXPECT_EQ(spiked("compare a.spiked nowhere.spiked", in(folder)).code, 4);
}

TEST(RunCommand, AFullDiskLeavesAStoreThatCanBeResumed) {
    // Uses a small file system in a separate mount namespace.
    if (geteuid() != 0 || std::system("unshare -m mount -t tmpfs -o size=64k tmpfs /mnt 2>/dev/null") != 0)
        GTEST_SKIP() << "needs root and a mount namespace";
    const std::string folder = adaptive_folder("full");
    const std::string words = "run study.toml -q --no-report --set run.until=[{metric=\\\"outlier\\\",mcse_rel=0.008}]";
    ASSERT_EQ(spiked(words, in(folder)).code, 0);
    const std::string script = folder + "/full.sh";
    std::ofstream(script) << "set -e\ncd '" << folder << "'\nmount -t tmpfs -o size=600k tmpfs /mnt\n"
                          << "code=0; '" SPIKED_BINARY "' " << words << " -o /mnt/s.spiked || code=$?\n"
                          << "echo first $code\n"
                          << "'" SPIKED_BINARY "' export /mnt/s.spiked --table bits >/dev/null\necho readable\n"
                          << "mount -o remount,size=64m /mnt\n"
                          << "'" SPIKED_BINARY "' " << words << " -o /mnt/s.spiked\n"
                          << "'" SPIKED_BINARY "' export /mnt/s.spiked --table summary --format csv > summary.csv\n"
                          << "'" SPIKED_BINARY "' export /mnt/s.spiked --table checks --format csv >> summary.csv\n";
    const std::string out = folder + "/out";
    const std::string err = folder + "/err";
    ASSERT_EQ(std::system(("unshare -m sh '" + script + "' >'" + out + "' 2>'" + err + "'").c_str()), 0)
        << contents(out) << contents(err);
    EXPECT_NE(contents(out).find("first 6"), std::string::npos) << contents(out) << contents(err);
    EXPECT_NE(contents(out).find("readable"), std::string::npos);
    EXPECT_EQ(contents(folder + "/summary.csv"), summary_and_checks(folder));
}

}  // namespace
}  // namespace spiked::app

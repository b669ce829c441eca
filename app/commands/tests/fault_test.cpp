// Faults of the machine: no memory, no place to write, a clock set back, signals. The program must end with the right
// exit code and one line of message, lose nothing that it has confirmed, and leave no temporary files.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>

#include "app/tests/process.hpp"

namespace spiked::app {
namespace {

namespace fs = std::filesystem;

std::string fault_folder(const std::string& name) {
    return folder_with_study(name, R"(spiked = 1
[study]
name = "small"
seed = "0x5eed"
[model]
kind = "spiked"
n = 160
d = 96
signal = { strength = 2.0 }
[[estimator]]
name = "eoptshrink"
[[codec]]
name = "tq-mse"
bits = [2]
[run]
reps = { min = 60, batch = 5 }
[store]
path = "small.spiked"
)");
}

std::string numbers(const std::string& folder) {
    const Outcome found = spiked("export small.spiked --table summary --format csv", in(folder));
    return found.code == 0 ? found.out : "export fails: " + found.err;
}

/// The files of a folder except the study and the files that SQLite keeps beside a store that was not closed.
std::set<std::string> left_in(const std::string& folder) {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder)) {
        const std::string name = entry.path().filename().string();
        if (name != "study.toml" && !name.ends_with("-wal") && !name.ends_with("-shm")) names.insert(name);
    }
    return names;
}

bool one_line(const std::string& text) { return std::count(text.begin(), text.end(), '\n') == 1; }

/// Every memory limit, from less than OpenBLAS needs to more than the command needs, ends in a result or in exit
/// code 7.
TEST(Faults, AnyMemoryLimitGivesAResultOrExitSeven) {
    if (sanitized) GTEST_SKIP() << "a sanitizer reserves more address space than the limits";
    const std::string whole = fault_folder("fault-memory-whole");
    ASSERT_EQ(spiked("run study.toml --no-report", in(whole)).code, 0);
    const std::string folder = fault_folder("fault-memory");
    struct Work {
        std::string words;
        std::set<std::string> makes;  ///< its only output files, each complete or absent
    };
    const Work all[] = {{"run study.toml --threads 2 --no-report -q", {"small.spiked"}},
                        {"kv encode '" + sample_dump + "' --method eoptshrink+tq-mse -o a.spkv -q", {"a.spkv"}},
                        {"kv run '" + sample_dump + "' -q --method tq-mse --bits 2", {}},
                        {"report '" + whole + "/small.spiked' -o page.html", {"page.html"}}};
    const auto limited = [&](int megabytes, const std::string& seconds) {
        return in(folder) + " ulimit -v " + std::to_string(megabytes << 10) +
               "; unset OPENBLAS_NUM_THREADS; timeout -s KILL " + seconds;
    };
    // In less, OpenBLAS ends the program before it begins (0.3.21), or tries again and again (0.3.29).
    std::vector<int> limits;
    for (int megabytes = 48; megabytes < 2000; megabytes = megabytes * 4 / 3)
        if (spiked("--version", limited(megabytes, "5")).code == 0) limits.push_back(megabytes);
    for (const auto& work : all) {
        std::set<int> codes;
        for (const int megabytes : limits) {
            const Outcome found = spiked(work.words, limited(megabytes, "120"));
            codes.insert(found.code);
            EXPECT_TRUE(found.code == 0 || found.code == 7)
                << work.words << " in " << megabytes << " MB: " << found.code << ' ' << found.err;
            if (found.code == 7) {
                EXPECT_NE(found.err.find("out of memory"), std::string::npos) << work.words << ": " << found.err;
                for (const auto& name : left_in(folder)) EXPECT_EQ(name, "small.spiked") << work.words;
            } else {
                EXPECT_TRUE(std::ranges::includes(left_in(folder), work.makes)) << work.words;
            }
            for (const auto& name : left_in(folder))
                if (name != "small.spiked") fs::remove(folder + "/" + name);
        }
        EXPECT_TRUE(codes.contains(0)) << work.words;
        // A report multiplies no matrices, and needs no more than the program does to begin.
        EXPECT_TRUE(codes.contains(7) || work.words.starts_with("report")) << work.words;
    }
    // Each run resumed from the results that earlier runs had stored.
    EXPECT_EQ(numbers(folder), numbers(whole));
}

/// Each case is a line of SQL that damages a store, and a command on it, which must end with one line and no signal.
TEST(DamagedStore, IsRejectedInOneLine) {
    const std::string folder = fault_folder("damaged");
    ASSERT_EQ(spiked("run study.toml --no-report -o whole.spiked", in(folder)).code, 0);
    struct Damage {
        const char* sql;
        const char* words;
    };
    for (const auto& [sql, words] : {
             Damage{"UPDATE study SET config_set='[1,2]'", "replay bad.spiked --cell 1 --rep 0"},
             Damage{"UPDATE study SET config_set='[[]]'", "replay bad.spiked --cell 1 --rep 0"},
             Damage{"UPDATE study SET config_set='{}'", "replay bad.spiked --cell 1 --rep 0"},
             Damage{"UPDATE study SET config_source=''", "replay bad.spiked --cell 1 --rep 0"},
             Damage{"UPDATE study SET config_source='spiked = 1' || char(10) || '[[['",
                    "replay bad.spiked --cell 1 --rep 0"},
             Damage{"UPDATE study SET config_source=x'ff00'", "replay bad.spiked --cell 1 --rep 0"},
             Damage{"DROP TABLE figure", "report bad.spiked"},
             Damage{"DROP VIEW v_summary", "show bad.spiked --json"},
             Damage{"ALTER TABLE cell RENAME COLUMN label TO lab", "show bad.spiked"},
             Damage{"CREATE TRIGGER t AFTER INSERT ON batch BEGIN DELETE FROM moment; END", "show bad.spiked"},
             Damage{
                 "DROP VIEW v_summary; CREATE VIEW v_summary AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + "
                 "1 FROM c) SELECT x cell FROM c",
                 "show bad.spiked --json"},
             Damage{"UPDATE moment SET n=9223372036854775807", "show bad.spiked --json"},
             Damage{"UPDATE study SET batch_reps=0", "merge bad.spiked -o m.spiked"},
             Damage{"UPDATE batch SET failed=-1", "merge bad.spiked -o m.spiked"},
             Damage{"UPDATE batch SET failed=reps+1", "merge bad.spiked -o m.spiked"},
             Damage{"UPDATE study SET false_alarm=-1", "merge bad.spiked -o m.spiked"},
             Damage{"UPDATE cell SET reps_target=-4", "merge bad.spiked -o m.spiked"},
             Damage{"UPDATE method SET params='[['", "report bad.spiked"},
             Damage{"DELETE FROM moment", "run study.toml --no-report -q -o bad.spiked"},
             Damage{"DELETE FROM batch", "run study.toml --no-report -q -o bad.spiked"},
             Damage{"UPDATE moment SET mean='abc'", "merge bad.spiked -o m.spiked"},
             Damage{"UPDATE moment SET method_id=method_id+77", "merge bad.spiked -o m.spiked"},
             Damage{"DELETE FROM session", "merge bad.spiked -o m.spiked"},
             Damage{"DELETE FROM study", "show bad.spiked"},
         }) {
        const std::string damage =
            fmt::format("{} cp whole.spiked bad.spiked && sqlite3 bad.spiked \"{}\"", in(folder), sql);
        ASSERT_EQ(std::system(damage.c_str()), 0) << sql;
        const Outcome found = spiked(words, in(folder) + " timeout 60");
        EXPECT_EQ(found.code, 4) << sql << "\n" << found.err;
        EXPECT_EQ(std::count(found.err.begin(), found.err.end(), '\n'), 1) << found.err;
    }
}

/// Each byte of the header of the store is changed in turn.
TEST(DamagedStore, AnyChangedByteOfTheHeaderGivesAResultOrOneLine) {
    const std::string folder = fault_folder("damaged-header");
    ASSERT_EQ(spiked("run study.toml --no-report -o whole.spiked", in(folder)).code, 0);
    const std::string whole = contents(folder + "/whole.spiked");
    int rejected = 0;
    for (std::size_t at = 0; at < 100; ++at) {
        std::string bytes = whole;
        bytes[at] = static_cast<char>(bytes[at] ^ 0x2D);
        std::ofstream(folder + "/bad.spiked", std::ios::binary) << bytes;
        const Outcome found = spiked("show bad.spiked", in(folder) + " timeout 60");
        EXPECT_TRUE(found.code == 0 || found.code == 4) << at << ": " << found.code << ' ' << found.err;
        EXPECT_EQ(std::count(found.err.begin(), found.err.end(), '\n'), found.code == 0 ? 0 : 1) << found.err;
        rejected += found.code == 4 ? 1 : 0;
    }
    EXPECT_GT(rejected, 20);
}

TEST(HostileStudy, OnlyRegularFilesAreReadFromAStudy) {
    const std::string folder = fault_folder("hostile-names");
    ASSERT_EQ(std::system((in(folder) + " mkfifo pipe.csv pipe.npy").c_str()), 0);
    for (const char* kind : {"file", "sample"})
        for (const char* path : {"/dev/zero", "pipe.csv", "pipe.npy", "."})
            for (const char* side : {"row_cov", "col_cov"}) {
                std::ofstream(folder + "/s.toml")
                    << "spiked = 1\n[study]\nname = \"s\"\n[model]\nkind = \"spiked\"\nn = 8\nd = 8\nnoise = { " << side
                    << " = { kind = \"" << kind << "\", path = \"" << path
                    << "\" } }\n[[estimator]]\nname = \"gd-hard\"\n";
                const Outcome found = spiked("run --dry-run s.toml", in(folder) + " timeout -s KILL 20");
                EXPECT_TRUE(found.code == 2 || found.code == 4)
                    << kind << ' ' << path << ' ' << found.code << found.err;
                EXPECT_EQ(std::count(found.err.begin(), found.err.end(), '\n'), 1) << found.err;
            }
}

/// Long names would be repeated in every cell or row of the store.
TEST(HostileStudy, LongNamesAreRejected) {
    const std::string folder = fault_folder("hostile-texts");
    const std::string name(500'000, 'x');
    const std::string study = "spiked = 1\n[study]\nname = \"s\"\n[model]\nkind = \"spiked\"\nn = 8\nd = 8\n";
    for (const std::string& table : {"[[estimator]]\nname = \"gd-hard\"\nas = \"" + name + "\"\n",
                                     "[[codec]]\nname = \"tq-mse\"\nbits = [2]\nas = \"" + name + "\"\n",
                                     "[[estimator]]\nname = \"gd-hard\"\n[[check]]\nclaim = "
                                     "\"outlier.location\"\nmargin = { abs = 1 }\nname = \"" +
                                         name + "\"\n"}) {
        std::ofstream(folder + "/s.toml") << study << table;
        const Outcome found = spiked("run --dry-run s.toml", in(folder) + " timeout 60");
        EXPECT_EQ(found.code, 2) << found.err;
        EXPECT_NE(found.err.find("has 500000 bytes"), std::string::npos) << found.err;
    }
}

TEST(HostileStudy, DeepKeysPipesAndLongFilesAreRejected) {
    const std::string folder = fault_folder("hostile");
    std::string deep = "a";
    for (int i = 0; i < 50'000; ++i) deep += ".a";
    std::ofstream(folder + "/key.toml") << deep << " = 1\n";
    std::ofstream(folder + "/table.toml") << "[" << deep << "]\n";
    std::ofstream(folder + "/long.toml") << std::string(2 << 20, ' ');
    ASSERT_EQ(std::system((in(folder) + " mkfifo pipe.toml").c_str()), 0);
    for (const char* name : {"key.toml", "table.toml", "long.toml", "pipe.toml", "/dev/zero"}) {
        const Outcome found = spiked(std::string("run --dry-run ") + name, in(folder) + " timeout 20");
        EXPECT_EQ(found.code, 2) << name << found.err;
        EXPECT_LT(found.err.size(), 1000) << name;
    }
}

/// Root may write anywhere, so under root the command runs as the user nobody.
TEST(Faults, AReadOnlyFolderIsExitSixAndOneLine) {
    const std::string folder = fault_folder("fault-read-only");
    std::ofstream(folder + "/block.csv") << "2,-1,3\n-2,3,-1\n3,-1,-2\n-3,-1,0\n";
    fs::copy_file(sample_dump, folder + "/dump.safetensors", fs::copy_options::overwrite_existing);
    const std::string whole = fault_folder("fault-read-only-whole");
    ASSERT_EQ(spiked("run study.toml --no-report", in(whole)).code, 0);
    const std::string nobody = geteuid() == 0 ? "setpriv --reuid 65534 --regid 65534 --clear-groups" : "";
    fs::permissions(fs::path(folder).parent_path(), fs::perms::owner_all | fs::perms::others_exec);
    fs::permissions(folder,
                    fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_read | fs::perms::others_exec);
    if (spiked("--version", in(folder) + nobody).code != 0) {
        fs::permissions(folder, fs::perms::owner_all);
        GTEST_SKIP() << "the user nobody may not run the program in its folder";
    }
    const auto before = left_in(folder);
    for (const std::string& words :
         {std::string("run study.toml --no-report -q"), std::string("kv encode dump.safetensors -o a.spkv"),
          "report '" + whole + "/small.spiked' -o page.html", std::string("quantize block.csv -o other.npy"),
          std::string("kv generate -o a.safetensors"), std::string("validate --claim outlier.location -o verdicts.md"),
          std::string("spectrum block.csv --denoised a.npy"), "export '" + whole + "/small.spiked' -o a.csv"}) {
        const Outcome found = spiked(words, in(folder) + nobody);
        EXPECT_EQ(found.code, 6) << words << ": " << found.err;
        EXPECT_TRUE(one_line(found.err)) << words << ": " << found.err;
        EXPECT_NE(found.err.find("cannot be written"), std::string::npos) << words << ": " << found.err;
        EXPECT_EQ(left_in(folder), before) << words;
    }
    fs::permissions(folder, fs::perms::owner_all);
}

TEST(Faults, UnreachablePathsAreReportedInOneLineAndNotAsABug) {
    const std::string folder = fault_folder("fault-unreachable");
    std::ofstream(folder + "/block.csv") << "2,1,3\n2,3,1\n3,1,2\n1,1,2\n";
    ASSERT_EQ(std::system((in(folder) + " ln -sfn loop loop; mkdir -p gone").c_str()), 0);
    const std::string name(300, 'n');
    for (const std::string& words :
         {"run " + name + ".toml", "report " + name + ".spiked", "init " + name + ".toml", std::string("run loop"),
          std::string("report loop -o r.html"), "show " + name + ".spiked"}) {
        const Outcome found = spiked(words, in(folder));
        EXPECT_TRUE(found.code == 2 || found.code == 4 || found.code == 6) << words << ": " << found.code << found.err;
        EXPECT_TRUE(one_line(found.err)) << words << ": " << found.err;
    }
    const Outcome nowhere = spiked("quantize '" + folder + "/block.csv' --method tq-mse --bits 2 -o q.npy",
                                   in(folder + "/gone") + " rmdir '" + folder + "/gone';");
    EXPECT_TRUE(nowhere.code == 4 || nowhere.code == 6) << nowhere.code << nowhere.err;
    EXPECT_TRUE(one_line(nowhere.err)) << nowhere.err;
}

TEST(Faults, AFileSizeLimitIsReportedLikeAFullDisk) {
    const std::string folder = fault_folder("fault-file-size");
    fs::copy_file(sample_dump, folder + "/dump.safetensors", fs::copy_options::overwrite_existing);
    ASSERT_EQ(spiked("run study.toml --no-report", in(folder)).code, 0);
    for (const char* words : {"kv encode dump.safetensors -o x.spkv", "kv generate -o x.safetensors --tokens 1024",
                              "merge small.spiked -o x.spiked", "export small.spiked --table values -o x.csv"}) {
        const Outcome found = spiked(words, in(folder) + " ulimit -f 20;");
        EXPECT_EQ(found.code, 6) << words << ": " << found.err;
        EXPECT_TRUE(one_line(found.err)) << words << ": " << found.err;
        for (const auto& entry : fs::directory_iterator(folder))
            EXPECT_NE(entry.path().filename().string().substr(0, 2), "x.") << words << " left " << entry.path();
    }
}

/// A study of billions of batches begins at once, in little memory, and stops on request.
TEST(Faults, BillionsOfBatchesTakeNoMemoryAndStop) {
    const std::string folder = fault_folder("fault-billions");
    const std::string words = "run study.toml --no-report -o b.spiked --set run.reps='{min=1000000000,batch=1}'";
    const Outcome stopped =
        spiked(words + " --max-time 2s", in(folder) + (sanitized ? "" : " ulimit -v 1500000;") + " timeout 60");
    EXPECT_EQ(stopped.code, 75) << stopped.err;
    EXPECT_NE(stopped.err.find("run the same command again"), std::string::npos) << stopped.err;
    fs::remove(folder + "/b.spiked");
    EXPECT_EQ(spiked(words + " --shard 2/3 --max-time 2s", in(folder) + " timeout 60").code, 75);
}

TEST(Faults, AClockThatIsSetBackDoesNotChangeResultsOrStopTheRun) {
    if (sanitized) GTEST_SKIP() << "a sanitizer must be loaded first";
    const std::string whole = fault_folder("fault-clock-whole");
    ASSERT_EQ(spiked("run study.toml --no-report", in(whole)).code, 0);
    const std::string folder = fault_folder("fault-clock");
    const std::string preload = in(folder) + "LD_PRELOAD='" SPIKED_BACKWARD_CLOCK "'";
    const Outcome part = spiked("run study.toml --no-report --threads 1", preload + " timeout 0.3");
    ASSERT_TRUE(part.code == 0 || part.code == 75 || part.code == 124) << part.err;
    const Outcome rest = spiked("run study.toml --threads 2 --max-time 1h", preload);
    ASSERT_EQ(rest.code, 0) << rest.err;
    EXPECT_EQ(numbers(folder), numbers(whole));
    const Outcome sessions = spiked("show small.spiked --json", preload);
    EXPECT_EQ(sessions.code, 0) << sessions.err;
    // The clock was set back: a session ends before it began.
    const std::string answer = scratch("sessions");
    ASSERT_EQ(
        std::system((in(folder) +
                     "sqlite3 small.spiked 'SELECT count(*) > 0 FROM session WHERE ended_utc < started_utc' >" + answer)
                        .c_str()),
        0);
    EXPECT_EQ(contents(answer), "1\n");
}

/// A command that is ended at any moment.
struct InterruptedCommand {
    std::string words;
    std::set<int> ends;
    std::set<std::string> makes;
    bool can_resume = false;
    std::string before = {};  ///< shell text before the command
};

/// The duration of the shortest of three runs. Times that are spread over a delayed run would mostly lie after the end
/// of the others.
double seconds_of(const InterruptedCommand& work, const std::string& folder) {
    double took = 3600.0;
    for (int run = 0; run < 3; ++run) {
        const auto begin = std::chrono::steady_clock::now();
        EXPECT_EQ(spiked(work.words, in(folder) + work.before).code, 0) << work.words;
        took = std::min(took, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
        for (const auto& name : left_in(folder)) fs::remove(folder + "/" + name);
    }
    return took;
}

const std::string without_unnamed_files = "LD_PRELOAD='" SPIKED_NO_NAMELESS_FILES "' ";

/// A study of 14 000 cells in half a kilobyte, with `extra` in its first table.
std::string study_of_many_cells(const std::string& extra) {
    return "spiked = 1\n[study]\nname = \"many\"\n" + extra +
           "[model]\nkind = \"spiked\"\nn = 32\nd = 32\nnoise = { row_cov = { kind = \"ar1\", rho = 0.5 } }\n"
           "[sweep]\nn = [1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008, 1009]\n"
           "d = [1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008, 1009]\n"
           "\"noise.row_cov.rho\" = [0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55]\n"
           "\"signal.strength\" = [1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 2, 2.1, 2.2, "
           "2.3]\n[[estimator]]\nname = \"eoptshrink\"\n";
}

TEST(Faults, ManyCellsAreReadInLittleMemoryAndReadingStopsOnRequest) {
    const std::string folder = fault_folder("fault-many-cells");
    std::ofstream(folder + "/wrong.toml") << study_of_many_cells("bogus = 1\n");
    const Outcome wrong =
        spiked("run wrong.toml --dry-run", in(folder) + (sanitized ? "" : " ulimit -v 800000;"));  // laws: .9 GB
    EXPECT_EQ(wrong.code, 2) << wrong.err;
    EXPECT_NE(wrong.err.find("bogus"), std::string::npos) << wrong.err;
    std::ofstream(folder + "/right.toml") << study_of_many_cells("");
    const Outcome stopped = spiked("run right.toml --no-report -q", in(folder) + " timeout --preserve-status 0.4");
    EXPECT_EQ(stopped.code, 143) << stopped.err;
    EXPECT_EQ(left_in(folder), (std::set<std::string>{"right.toml", "wrong.toml"}));
}

/// Each command is ended by SIGTERM at times that are spread over its whole duration. `run` stops and can be resumed
/// (exit code 75); the others leave the previous file or the complete new one and no other file, also on a file system
/// without unnamed files (O_TMPFILE).
TEST(Faults, ATerminationAtAnyMomentLosesNothing) {
    const std::string whole = fault_folder("fault-terminated-whole");
    ASSERT_EQ(spiked("run study.toml --no-report", in(whole)).code, 0);
    const std::string folder = fault_folder("fault-terminated");
    const std::string encode = "kv encode '" + sample_dump + "' --method tcq --bits 3 -o a.spkv";
    std::vector<InterruptedCommand> all = {
        {"run study.toml --threads 2", {0, 75, 143}, {"small.spiked", "small.html"}, true},
        {"report '" + whole + "/small.spiked' -o page.html", {0, 143}, {"page.html"}},
        {encode, {0, 143}, {"a.spkv"}},
        {"merge '" + whole + "/small.spiked' -o merged.spiked", {0, 75, 143}, {"merged.spiked"}}};
    if (!sanitized) all.push_back({encode, {0, 143}, {"a.spkv"}, false, without_unnamed_files});
    for (const auto& work : all) {
        const double took = seconds_of(work, folder);
        // The complete output, if it is the same in every run; a store contains times.
        const std::string made = *work.makes.rbegin();
        const bool is_store = made.ends_with(".spiked");
        if (!is_store) {
            ASSERT_EQ(spiked(work.words, in(folder)).code, 0) << work.words;
        }
        const std::string complete = is_store ? "" : contents(folder + "/" + made);
        int stopped = 0;
        constexpr int attempts = 12;
        for (int attempt = 0; attempt < attempts; ++attempt) {
            const double seconds = took * (attempt + 0.5) / attempts;
            const std::string before = attempt % 2 == 0 ? "previous content" : "";
            if (!is_store) {
                fs::remove(folder + "/" + made);
                if (!before.empty()) std::ofstream(folder + "/" + made) << before;
            }
            const Outcome found =
                spiked(work.words, in(folder) + work.before + "timeout --preserve-status " + std::to_string(seconds));
            if (!is_store) {
                const std::string after = fs::exists(folder + "/" + made) ? contents(folder + "/" + made) : "";
                EXPECT_TRUE(after == complete || (found.code != 0 && after == before)) << work.words;
            } else if (!work.can_resume && fs::exists(folder + "/" + made)) {
                EXPECT_EQ(spiked("show " + made, in(folder)).code, 0) << work.words;
            }
            EXPECT_TRUE(work.ends.contains(found.code)) << work.words << ": " << found.code << ' ' << found.err;
            stopped += found.code != 0 ? 1 : 0;
            const auto left = left_in(folder);
            EXPECT_TRUE(std::ranges::includes(work.makes, left)) << work.words << ": " << *left.begin();
            if (!work.can_resume || found.code == 0)
                for (const auto& name : left) fs::remove(folder + "/" + name);
        }
        EXPECT_GT(stopped, attempts / 4) << work.words;
        ASSERT_EQ(spiked(work.words, in(folder)).code, 0) << work.words;
        if (work.can_resume) {
            EXPECT_EQ(numbers(folder), numbers(whole));
        }
        for (const auto& name : left_in(folder)) fs::remove(folder + "/" + name);
    }
}

/// Negative control: SIGKILL, which no handler receives, does leave a file there, with the suffix .tmp.
TEST(Faults, AKillLeavesATemporaryFileWhereFilesNeedNames) {
    if (sanitized) GTEST_SKIP() << "a sanitizer must be loaded first";
    const std::string folder = fault_folder("fault-killed-with-name");
    const InterruptedCommand encode{
        "kv encode '" + sample_dump + "' --method tcq --bits 3 -o a.spkv", {}, {}, false, without_unnamed_files};
    const double took = seconds_of(encode, folder);
    bool left = false;
    for (int attempt = 0; attempt < 12 && !left; ++attempt) {
        (void)spiked(encode.words,
                     in(folder) + encode.before + fmt::format("timeout -s KILL {}", took * (0.3 + 0.05 * attempt)));
        for (const auto& name : left_in(folder)) left = left || (name.starts_with("a.spkv.") && name.ends_with(".tmp"));
    }
    EXPECT_TRUE(left);
}

TEST(Faults, ATooLowLimitOnOpenFilesIsReportedAndRaisedIfPossible) {
    const std::string folder = fault_folder("fault-open-files");
    const Outcome few = spiked("list metrics", in(folder) + " ulimit -n 16;");
    EXPECT_EQ(few.code, 2);
    EXPECT_TRUE(one_line(few.err)) << few.err;
    EXPECT_NE(few.err.find("ulimit -n"), std::string::npos) << few.err;
    // All of them are open at once.
    constexpr int dumps = 45;
    std::string names;
    for (int i = 0; i < dumps; ++i) {
        const std::string name = fmt::format("d{}.safetensors", i);
        ASSERT_EQ(spiked(fmt::format("kv generate --tokens 128 --seed {} -o {}", i + 1, name), in(folder)).code, 0);
        names += " " + name;
    }
    const std::string words = "kv run" + names + " --method tq-mse --bits 2 --layers 0 --heads 0 --side key --json -q";
    EXPECT_EQ(spiked(words, in(folder) + " ulimit -Sn 40;").code, 0);
    if (sanitized) return;  // a sanitizer itself needs a free descriptor to examine an exception
    const Outcome all = spiked(words, in(folder) + " ulimit -n 40;");
    EXPECT_EQ(all.code, 4);
    EXPECT_NE(all.err.find("ulimit -n"), std::string::npos) << all.err;
}

TEST(Faults, APipeIsRejectedAsAStore) {
    const std::string folder = fault_folder("fault-pipe");
    ASSERT_EQ(std::system((in(folder) + " mkfifo pipe.spiked").c_str()), 0);
    for (const char* words : {"show pipe.spiked", "report pipe.spiked", "merge pipe.spiked -o m.spiked"}) {
        const Outcome found = spiked(words, in(folder) + " timeout 20");
        EXPECT_EQ(found.code, 4) << words << found.err;
        EXPECT_NE(found.err.find("not a regular file"), std::string::npos) << words << found.err;
    }
}

}  // namespace
}  // namespace spiked::app

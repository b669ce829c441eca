// Untrusted files, made and tried by tools/hostile-files: the guarantees of docs/SECURITY.md.
#include <gtest/gtest.h>

#include <filesystem>

#include "app/tests/process.hpp"

namespace spiked::app {
namespace {

struct Tried {
    int code;
    std::string out;
};

Tried tried(const std::string& program, const std::string& options) {
    const std::string out = scratch("hostile-out");
    const std::string line = "'" SPIKED_SOURCE_DIR "/tools/hostile-files' '" + program + "' " + options +
                             (sanitized ? " --no-limits" : "") + " >'" + out + "' 2>&1";
    const int status = std::system(line.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, contents(out)};
}

/// Each test runs a part of the cases, so that they can run in parallel.
class HostileFiles : public testing::TestWithParam<int> {};

TEST_P(HostileFiles, ChangeNothingTakeFewResourcesAndExecuteNothing) {
    const Tried found = tried(SPIKED_BINARY, "--part " + std::to_string(GetParam()) + "/8");
    EXPECT_EQ(found.code, 0) << found.out;
}

INSTANTIATE_TEST_SUITE_P(Part, HostileFiles, testing::Range(1, 9));

/// The result of the tool for this program when a line of shell is run before it.
Tried tried_after(const std::string& line, const std::string& options) {
    const std::string program = scratch("bad-program");
    std::ofstream(program) << "#!/bin/sh\n" << line << "\nexec '" SPIKED_BINARY "' \"$@\"\n";
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    return tried(program, options);
}

/// Negative controls: programs that do one of the forbidden things, which the tool must report.
class HostileFilesControl : public testing::TestWithParam<const char*> {};

TEST_P(HostileFilesControl, AreDetected) {
    const Tried found = tried_after(GetParam(), "--only write-ahead");
    EXPECT_EQ(found.code, 1) << found.out;
    EXPECT_EQ(found.out.find(" 0 complaints"), std::string::npos) << found.out;
}

INSTANTIATE_TEST_SUITE_P(
    Faults, HostileFilesControl,
    testing::Values("case $1 in show) echo theirs > victim.txt;; esac", "case $1 in show) chmod 600 victim.txt;; esac",
                    "case $1 in show) touch m.spiked-shm;; esac", "case $1 in show) touch \"$TMPDIR/left\";; esac",
                    "case $1 in show) printf '\\033[31m'; exit 0;; esac",
                    "case $1 in show) printf '\\233' >&2; exit 4;; esac", "case $1 in show) exit 70;; esac",
                    "case $1 in show) kill -SEGV $$;; esac", "case $1 in show) gnuplot -e '' 2>/dev/null;; esac",
                    "case $1 in export) echo '\\input{x}'; exit 0;; esac"),
    [](const auto& fault) { return "Fault" + std::to_string(fault.index); });

/// A program that is still fast, but whose time grows with the square of the file size.
TEST(HostileFilesGrowthControl, QuadraticTimeIsDetected) {
    if (sanitized) GTEST_SKIP() << "times are not checked under a sanitizer";
    const Tried found = tried_after(
        "case $1 in show) awk \"BEGIN { n = $(stat -c %s m.spiked) / 30000; for (i = 0; i < 800 * n * n; ++i); }\";; "
        "esac",
        "--only 'passing verdicts'");
    EXPECT_EQ(found.code, 1) << found.out;
    EXPECT_NE(found.out.find("for twice as much"), std::string::npos) << found.out;
}

}  // namespace
}  // namespace spiked::app

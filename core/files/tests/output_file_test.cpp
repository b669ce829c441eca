// Output files and temporary files: their permissions, and their removal when a signal ends the process.
#include "core/files/output_file.hpp"

#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>

#include "core/files/temporary.hpp"
#include "core/files/tests/scratch.hpp"

namespace spiked::sim {
namespace {

unsigned mode_of(const std::string& path) {
    struct stat status {};
    EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
    return status.st_mode & 07777U;
}

class Umask {
public:
    explicit Umask(mode_t mask) : before_(::umask(mask)) {}
    ~Umask() { ::umask(before_); }

private:
    mode_t before_;
};

TEST(OutputFile, KeepsThePermissionsOfTheReplacedFileAndNewFilesFollowTheUmask) {
    const ScratchFolder scratch;
    const Umask umask(022);
    const std::string secret = scratch.write("secret", "old");
    for (const mode_t mode : {0600U, 0640U, 0444U, 0755U}) {
        ASSERT_EQ(::chmod(secret.c_str(), mode), 0);
        write_file(secret, "new");
        EXPECT_EQ(mode_of(secret), mode);
        EXPECT_EQ(bytes_of_file(secret), "new");
    }
    write_file(scratch.path("fresh"), "new");
    EXPECT_EQ(mode_of(scratch.path("fresh")), 0644U);
    const Umask tight(077);
    write_file(scratch.path("own"), "new");
    EXPECT_EQ(mode_of(scratch.path("own")), 0600U);
}

TEST(OutputFile, ReplacesTheTargetOfALinkAndKeepsItsPermissions) {
    const ScratchFolder scratch;
    const std::string target = scratch.write("target", "old");
    ASSERT_EQ(::chmod(target.c_str(), 0600), 0);
    std::filesystem::create_symlink(target, scratch.path("link"));
    write_file(scratch.path("link"), "new");
    EXPECT_TRUE(std::filesystem::is_symlink(scratch.path("link")));
    EXPECT_EQ(bytes_of_file(target), "new");
    EXPECT_EQ(mode_of(target), 0600U);
}

class TemporaryDirectorySetting {
public:
    explicit TemporaryDirectorySetting(const std::string& path) { ::setenv("TMPDIR", path.c_str(), 1); }
    ~TemporaryDirectorySetting() {
        if (before_.empty())
            ::unsetenv("TMPDIR");
        else
            ::setenv("TMPDIR", before_.c_str(), 1);
    }

private:
    std::string before_ = std::getenv("TMPDIR") == nullptr ? "" : std::getenv("TMPDIR");
};

TEST(TemporaryFolder, IsPrivateToTheUserAndIsRemovedWithItsFiles) {
    const ScratchFolder scratch;
    const TemporaryDirectorySetting setting(scratch.path(""));
    {
        const TemporaryFolder folder("test");
        EXPECT_TRUE(folder.path().starts_with(scratch.path("") + "/spiked-test-")) << folder.path();
        EXPECT_EQ(mode_of(folder.path()), 0700U);
        for (int i = 0; i < 300; ++i) write_file(folder.path() + "/file-" + std::to_string(i), "x");
    }
    EXPECT_EQ(scratch.files(), 0U);
    const TemporaryDirectorySetting nowhere(scratch.path("absent"));
    expect_error(ErrorKind::output, [] { const TemporaryFolder folder("test"); }, {"TMPDIR", "set it to a folder"});
}

TEST(TemporaryFolder, IsRemovedWhenASignalEndsTheProcess) {
    const ScratchFolder scratch;
    const TemporaryDirectorySetting setting(scratch.path(""));
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        const TemporaryFolder folder("test");
        const TemporaryName name(scratch.path("unfinished"));
        for (int i = 0; i < 300; ++i) std::ofstream(folder.path() + "/file-" + std::to_string(i)) << i;
        std::ofstream(name.path()) << "half";
        std::signal(SIGTERM, [](int) {
            remove_temporary_names();
            ::_exit(0);
        });
        ::raise(SIGTERM);
        ::_exit(1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    EXPECT_EQ(scratch.files(), 0U);
}

}  // namespace
}  // namespace spiked::sim

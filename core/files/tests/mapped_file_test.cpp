#include "core/files/mapped_file.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "core/files/tests/scratch.hpp"

namespace spiked {
namespace {

using sim::ScratchFolder;

/// Whether a process was ended by a signal, or by what a sanitizer does with one.
bool ended_by_signal(int status) {
    return WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 4);
}

/// A file of several pages.
std::string written(const ScratchFolder& scratch, std::size_t bytes) {
    std::string text(bytes, '\0');
    for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(i * 7 + i / 251);
    std::ofstream(scratch.path("numbers"), std::ios::binary) << text;
    return text;
}

TEST(MappedFile, HoldsTheBytesOfTheFileAlsoWhenItIsDeleted) {
    const ScratchFolder scratch;
    const std::string text = written(scratch, 100'000);
    const auto mapped = MappedFile::of(scratch.path("numbers"));
    std::filesystem::remove(scratch.path("numbers"));
    ASSERT_NE(mapped, nullptr);
    ASSERT_EQ(mapped->bytes().size(), text.size());
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(mapped->bytes().data()), text.size()), text);
    EXPECT_EQ(mapped->path(), scratch.path("numbers"));
}

TEST(MappedFile, IsNoneForAnEmptyFileAndForMoreThanAThousandAtOnce) {
    const ScratchFolder scratch;
    std::ofstream(scratch.path("empty")).close();
    EXPECT_EQ(MappedFile::of(scratch.path("empty")), nullptr);
    EXPECT_EQ(MappedFile::of(scratch.path("absent")), nullptr);
    EXPECT_EQ(MappedFile::of(scratch.path(".")), nullptr);
    (void)written(scratch, 10);
    const auto one_more = [&] { return MappedFile::of(scratch.path("numbers")); };
    std::vector<std::shared_ptr<const MappedFile>> all;
    while (auto one = one_more()) all.push_back(std::move(one));
    EXPECT_EQ(all.size(), 1024);
    all.pop_back();
    EXPECT_NE(one_more(), nullptr) << "a place is free again";
}

/// The number in a byte of a file that was truncated after it was mapped, which is a signal.
int byte_behind_the_end(const MappedFile& mapped) {
    return static_cast<int>(*const_cast<const volatile std::byte*>(&mapped.bytes()[50'000]));
}

TEST(MappedFile, EndsTheProgramInALineThatNamesAFileWhichShrinks) {
    const ScratchFolder scratch;
    (void)written(scratch, 100'000);
    const auto mapped = MappedFile::of(scratch.path("numbers"));
    ASSERT_NE(mapped, nullptr);
    const auto fail = [&](bool in_a_line) {
        if (in_a_line) end_where_mapped_files_shrink(4);
        std::filesystem::resize_file(scratch.path("numbers"), 4096);
        ::_exit(byte_behind_the_end(*mapped) == 1000 ? 1 : 0);
    };
    EXPECT_EXIT(fail(true), testing::ExitedWithCode(4), "^spiked: .*numbers: shrank while it was read");
    // Control: a library leaves the signal as it is.
    EXPECT_EXIT(fail(false), ended_by_signal, "");
}

TEST(MappedFile, LeavesOtherFaultsToTheSystem) {
    const ScratchFolder scratch;
    (void)written(scratch, 100'000);
    const auto fail = [&] {
        end_where_mapped_files_shrink(4);
        ::raise(SIGBUS);
        ::raise(SIGBUS);
        ::_exit(0);
    };
    EXPECT_EXIT(fail(), ended_by_signal, "");
}

}  // namespace
}  // namespace spiked

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <new>
#include <ostream>
#include <random>
#include <sstream>

#include "app/fuzz/targets.hpp"
#include "app/tests/process.hpp"
#include "core/runtime/blas_buffers.hpp"

namespace spiked::app {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t most_memory = std::size_t{256} << 20;
std::vector<std::filesystem::path> corpus_of(const std::string& target) {
    std::vector<std::filesystem::path> files;
    for (const auto& file :
         std::filesystem::directory_iterator(std::string(SPIKED_SOURCE_DIR) + "/app/fuzz/corpus/" + target))
        files.push_back(file.path());
    std::sort(files.begin(), files.end());
    return files;
}

Bytes content(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// The result of `accepts`; a finding fails the test.
bool accepted(const FuzzTarget& target, const Bytes& bytes, const std::string& what) {
    try {
        return accepts(target, bytes);
    } catch (const std::exception& error) {
        ADD_FAILURE() << target.name << ", " << what << ": " << error.what();
        return false;
    }
}

/// Limits the memory of this process to the given number of bytes above its present use, while the object lives.
class MemoryLimit {
public:
    explicit MemoryLimit(rlim_t more) {
        hold_blas_buffers(2);
        std::size_t pages = 0;
        std::ifstream("/proc/self/statm") >> pages;
        getrlimit(RLIMIT_AS, &before_);
        rlimit limit = before_;
        limit.rlim_cur = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + more;
        setrlimit(RLIMIT_AS, &limit);
    }
    ~MemoryLimit() { setrlimit(RLIMIT_AS, &before_); }
    MemoryLimit(const MemoryLimit&) = delete;
    MemoryLimit& operator=(const MemoryLimit&) = delete;

private:
    rlimit before_{};
};

TEST(FuzzCorpusLimit, MakesALargeAllocationFail) {
    if (sanitized) GTEST_SKIP() << "a sanitizer reserves address space at will";
    const MemoryLimit limit(most_memory);
    // Called by name, because a compiler may leave out a `new` expression. Allocates twice the limit, because stacks of
    // threads that have ended may be released after the memory was counted.
    EXPECT_THROW(::operator delete(::operator new(2 * most_memory)), std::bad_alloc);
}

}  // namespace

inline void PrintTo(const FuzzTarget& target, std::ostream* to) { *to << target.name; }

namespace {

class FuzzCorpus : public testing::TestWithParam<FuzzTarget> {};

// The inputs that fuzzing kept, each also truncated and changed in a few places, are accepted or rejected and have no
// other outcome, within memory that suits files of a few kilobytes. A target that accepts no input would test little
// code, and one that rejects none would not check its input.
TEST_P(FuzzCorpus, IsAcceptedOrRejected) {
    const FuzzTarget& target = GetParam();
    std::size_t accepted_files = 0;
    std::size_t rejected_files = 0;
    std::mt19937 engine(15);
    const auto limit = sanitized ? nullptr : std::make_unique<MemoryLimit>(most_memory);
    for (const auto& path : corpus_of(target.name)) {
        const Bytes bytes = content(path);
        const std::string name = path.filename().string();
        (accepted(target, bytes, name) ? accepted_files : rejected_files) += 1;
        for (int change = 0; change < 8; ++change) {
            Bytes changed = bytes;
            if (change % 4 == 0)
                changed.resize(engine() % (changed.size() + 1));
            else
                for (int places = 0; places < change && !changed.empty(); ++places)
                    changed[engine() % changed.size()] = static_cast<std::uint8_t>(engine());
            (void)accepted(target, changed, name + ", change " + std::to_string(change));
        }
    }
    EXPECT_GT(accepted_files, 0U);
    EXPECT_GT(rejected_files, 0U);
}

// The record of fuzzing names every target, so that one that was never fuzzed is seen, and no others.
TEST(FuzzRecord, HasARowForEveryTarget) {
    std::ifstream record(std::string(SPIKED_SOURCE_DIR) + "/tools/fuzzing.md");
    std::vector<std::string> rows;
    for (std::string line; std::getline(record, line);)
        if (line.starts_with("| ") && !line.starts_with("| target "))
            rows.push_back(line.substr(2, line.find(' ', 2) - 2));
    std::vector<std::string> names;
    for (const auto& target : fuzz_targets()) names.push_back(target.name);
    std::sort(rows.begin(), rows.end());
    std::sort(names.begin(), names.end());
    EXPECT_EQ(rows, names);
}

INSTANTIATE_TEST_SUITE_P(Targets, FuzzCorpus, testing::ValuesIn(fuzz_targets()),
                         [](const auto& target) { return target.param.name; });

}  // namespace
}  // namespace spiked::app

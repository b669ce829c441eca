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
#include "core/runtime/parallel.hpp"

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

/// `takes`, its findings as a failure of the test.
bool taken(const FuzzTarget& target, const Bytes& bytes, const std::string& what) {
    try {
        return takes(target, bytes);
    } catch (const std::exception& error) {
        ADD_FAILURE() << target.name << ", " << what << ": " << error.what();
        return false;
    }
}

/// While it lives this process may take so many bytes more than it has.
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

TEST(FuzzCorpusLimit, IsOneThatAnAllocationMeets) {
    if (sanitized) GTEST_SKIP() << "a sanitizer reserves address space at will";
    const MemoryLimit limit(most_memory);
    // Called by name: a compiler may leave out what `new` would ask for.
    // Twice: stacks of threads that have ended may be given back after they were counted.
    EXPECT_THROW(::operator delete(::operator new(2 * most_memory)), std::bad_alloc);
}

}  // namespace

inline void PrintTo(const FuzzTarget& target, std::ostream* to) { *to << target.name; }

namespace {

class FuzzCorpus : public testing::TestWithParam<FuzzTarget> {};

// What fuzzing kept, and each of it cut and changed in a few places: taken or refused, never anything else, in memory
// that a file of a few kilobytes may need. A target that takes nothing would reach nothing; one that refuses nothing
// would not be reading.
TEST_P(FuzzCorpus, IsTakenOrRefused) {
    const FuzzTarget& target = GetParam();
    std::size_t taken_files = 0;
    std::size_t refused = 0;
    std::mt19937 engine(15);
    const auto limit = sanitized ? nullptr : std::make_unique<MemoryLimit>(most_memory);
    for (const auto& path : corpus_of(target.name)) {
        const Bytes bytes = content(path);
        const std::string name = path.filename().string();
        (taken(target, bytes, name) ? taken_files : refused) += 1;
        for (int change = 0; change < 8; ++change) {
            Bytes changed = bytes;
            if (change % 4 == 0)
                changed.resize(engine() % (changed.size() + 1));
            else
                for (int places = 0; places < change && !changed.empty(); ++places)
                    changed[engine() % changed.size()] = static_cast<std::uint8_t>(engine());
            (void)taken(target, changed, name + ", change " + std::to_string(change));
        }
    }
    EXPECT_GT(taken_files, 0U);
    EXPECT_GT(refused, 0U);
}

INSTANTIATE_TEST_SUITE_P(Targets, FuzzCorpus, testing::ValuesIn(fuzz_targets()),
                         [](const auto& target) { return target.param.name; });

}  // namespace
}  // namespace spiked::app

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/runtime/call_once.hpp"
#include "core/runtime/memo.hpp"
#include "core/runtime/parallel.hpp"

namespace spiked {
namespace {

TEST(Memo, ComputesAResultOnceAndDoesNotStoreThoseBeyondItsCapacity) {
    Memo<int, std::string, 2> memo;
    int made = 0;
    const auto text = [&](int key) {
        return memo.of(key, [&] {
            ++made;
            return std::to_string(key);
        });
    };
    for (int round = 0; round < 3; ++round)
        for (const int key : {1, 2}) EXPECT_EQ(text(key), std::to_string(key));
    EXPECT_EQ(made, 2);
    EXPECT_EQ(text(3), "3");
    EXPECT_EQ(text(3), "3");
    EXPECT_EQ(made, 4) << "a third argument is computed each time and replaces no stored result";
    EXPECT_EQ(text(1), "1");
    EXPECT_EQ(made, 4);
}

TEST(Memo, ServesConcurrentThreads) {
    Memo<std::size_t, std::string, 8> memo;
    std::vector<std::string> results(400);
    for_each_parallel(results.size(), 4,
                      [&](std::size_t i) { results[i] = memo.of(i % 16, [&] { return std::to_string(i % 16); }); });
    for (std::size_t i = 0; i < results.size(); ++i) EXPECT_EQ(results[i], std::to_string(i % 16));
}

TEST(CallOnce, RunsOnOneOfManyThreadsAndAgainAfterAFailure) {
    CallOnce once;
    std::atomic<int> tries{0};
    int made = 0;  // written by one thread only, and read after that
    std::atomic<int> failed{0};
    for_each_parallel(200, 8, [&](std::size_t) {
        try {
            once([&] {
                if (++tries < 4) throw std::runtime_error("not yet");
                ++made;
            });
            EXPECT_EQ(made, 1);
        } catch (const std::runtime_error&) {
            ++failed;
        }
    });
    EXPECT_EQ(tries, 4);
    EXPECT_EQ(failed, 3);
    EXPECT_EQ(made, 1);
}

TEST(Parallel, EveryIndexRunsOnceAndTheFirstFailureIsReported) {
    for (const std::size_t threads : {1, 2, 5}) {
        std::vector<std::atomic<int>> seen(100);
        for_each_parallel(100, threads, [&](std::size_t i) { ++seen[i]; });
        for (const auto& count : seen) EXPECT_EQ(count, 1);
        try {
            for_each_parallel(100, threads, [](std::size_t i) {
                if (i == 3) throw std::runtime_error("three");
            });
            ADD_FAILURE() << "nothing was thrown";
        } catch (const std::runtime_error& error) {
            EXPECT_STREQ(error.what(), "three");
        }
    }
    EXPECT_NO_THROW(for_each_parallel(0, 3, [](std::size_t) { throw std::runtime_error("no work"); }));
}

}  // namespace
}  // namespace spiked

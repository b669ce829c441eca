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

TEST(Memo, MakesAResultOnceAndForgetsWhatDoesNotFit) {
    Memo<int, std::string, 2> known;
    int made = 0;
    const auto word = [&](int key) {
        return known.of(key, [&] {
            ++made;
            return std::to_string(key);
        });
    };
    for (int round = 0; round < 3; ++round)
        for (const int key : {1, 2}) EXPECT_EQ(word(key), std::to_string(key));
    EXPECT_EQ(made, 2);
    EXPECT_EQ(word(3), "3");
    EXPECT_EQ(word(3), "3");
    EXPECT_EQ(made, 4) << "a third argument is computed, and takes no other's place";
    EXPECT_EQ(word(1), "1");
    EXPECT_EQ(made, 4);
}

TEST(Memo, AnswersThreadsThatAskAtOnce) {
    Memo<std::size_t, std::string, 8> known;
    std::vector<std::string> said(400);
    for_each_parallel(said.size(), 4,
                      [&](std::size_t i) { said[i] = known.of(i % 16, [&] { return std::to_string(i % 16); }); });
    for (std::size_t i = 0; i < said.size(); ++i) EXPECT_EQ(said[i], std::to_string(i % 16));
}

TEST(CallOnce, IsMadeByOneOfManyAndAgainAfterAFailure) {
    CallOnce once;
    std::atomic<int> tries{0};
    int made = 0;  // written by one thread only, read after it
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

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/runtime/call_once.hpp"
#include "core/runtime/error.hpp"
#include "core/runtime/memo.hpp"
#include "core/runtime/parallel.hpp"
#include "core/runtime/parts.hpp"
#include "core/runtime/stop_point.hpp"

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

TEST(StopPoint, EndsTheWorkOfItsThreadAloneAndOnlyWhileTheScopeIsThere) {
    std::atomic<bool> outer{false};
    std::atomic<bool> inner{true};
    EXPECT_FALSE(may_be_stopped());
    EXPECT_NO_THROW(stop_point());
    {
        const StopScope scope(outer);
        EXPECT_TRUE(may_be_stopped());
        EXPECT_NO_THROW(stop_point());
        {
            const StopScope innermost(inner);
            EXPECT_TRUE(stop_asked());
            try {
                stop_point();
                ADD_FAILURE() << "nothing was thrown";
            } catch (const Error& error) {
                EXPECT_EQ(error.kind(), ErrorKind::stopped);
            }
        }
        EXPECT_FALSE(stop_asked());
        outer = true;
        EXPECT_THROW(stop_point(), Error);
        bool others = true;
        std::jthread([&] { others = may_be_stopped(); }).join();
        EXPECT_FALSE(others);
    }
    EXPECT_NO_THROW(stop_point());
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

TEST(Parallel, EachCallOfATeamSeesWhatTheLastOneWroteAndGoesOnAfterAFailure) {
    for (const std::size_t threads : {1, 2, 4}) {
        ThreadTeam team(threads);
        std::vector<int> before(8, 0);  // written by one part of a call, and read by another one of the next
        for (int call = 1; call <= 200; ++call) {
            std::vector<int> now(8);
            team.for_each(8, [&](std::size_t i) { now[i] = before[(i + 1) % 8] + 1; });
            EXPECT_EQ(now, std::vector<int>(8, call));
            before = now;
            EXPECT_THROW(team.for_each(8, [](std::size_t) { throw std::runtime_error("none"); }), std::runtime_error);
        }
    }
}

TEST(Parallel, PartsCoverEverythingOnceWithTheWorkBesideThem) {
    for (const std::size_t threads : {1, 3})
        for (const std::size_t size : {0, 1, 7, 8, 9, 100})
            for (const bool with_other : {false, true}) {
                ThreadTeam team(threads);
                std::vector<int> seen(size);
                int beside = 0;
                const std::function<void()> other = [&] { ++beside; };
                for_each_part(
                    team, size, 8,
                    [&](std::size_t from, std::size_t end) {
                        EXPECT_EQ(from % 8, 0u);
                        EXPECT_TRUE(end == std::min(from + 8, size));
                        for (std::size_t i = from; i < end; ++i) ++seen[i];
                    },
                    with_other ? other : nullptr);
                EXPECT_EQ(seen, std::vector<int>(size, 1));
                EXPECT_EQ(beside, with_other ? 1 : 0);
            }
}

TEST(Parallel, PartsStayBehindTheProgressThatTheyWaitFor) {
    constexpr std::size_t parts = 20;
    constexpr std::size_t steps = 200;
    for (const std::size_t threads : {1, 2, 4}) {
        std::vector<Progress> made(parts);
        std::vector<std::vector<int>> values(parts, std::vector<int>(steps));
        for_each_parallel(parts, threads, [&](std::size_t part) {
            for (std::size_t step = 0; step < steps; ++step) {
                const std::size_t ahead = std::min(step + 3, steps);
                if (part > 0) made[part - 1].await(ahead);
                values[part][step] = part == 0 ? 0 : values[part - 1][ahead - 1] + 1;
                made[part].reach(step + 1);
            }
        });
        for (std::size_t part = 0; part < parts; ++part)
            EXPECT_EQ(values[part], std::vector<int>(steps, static_cast<int>(part)));
    }
}

}  // namespace
}  // namespace spiked

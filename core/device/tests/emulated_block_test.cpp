#include "core/device/emulated_block.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "core/runtime/error.hpp"

namespace spiked::cuda {
namespace {

/// The error message of running a block; empty when it succeeds.
std::string error_of(unsigned threads, const std::function<void(EmulatedTeam&)>& body, std::size_t shared = 4096) {
    try {
        run_block(threads, shared, body);
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

testing::AssertionResult contains(const std::string& found, const std::string& text) {
    if (found.find(text) != std::string::npos) return testing::AssertionSuccess();
    return testing::AssertionFailure() << "\"" << found << "\" does not contain \"" << text << "\"";
}

TEST(EmulatedBlock, SumsOverABlockLikeTheDevice) {
    constexpr unsigned threads = 256;
    std::vector<unsigned> totals(threads);
    EXPECT_EQ(error_of(threads,
                       [&](EmulatedTeam& team) {
                           const auto parts = team.take<unsigned>(threads / warp_size);
                           const unsigned sum = warp_sum(team, team.rank());
                           if (team.lane() == 0) parts[team.warp()] = sum;
                           team.barrier();
                           unsigned total = 0;
                           for (unsigned warp = 0; warp < threads / warp_size; ++warp) total += parts[warp];
                           totals[team.rank()] = total;
                       }),
              "");
    for (const unsigned total : totals) EXPECT_EQ(total, threads * (threads - 1) / 2);
}

TEST(EmulatedBlock, ShufflesDoublesAndTakesTheLargest) {
    std::vector<double> found(64);
    EXPECT_EQ(error_of(64,
                       [&](EmulatedTeam& team) {
                           const double own = 1.0 / (1.0 + static_cast<double>(team.rank()));
                           found[team.rank()] = warp_max(team, own) + team.shuffle(own, 3);
                       }),
              "");
    EXPECT_EQ(found[0], 1.0 + 1.0 / 4.0);
    EXPECT_EQ(found[40], 1.0 / 33.0 + 1.0 / 36.0);
}

/// The register layout of multiply_add (team.hpp) against three loops, with whole numbers so that every sum is exact.
template <class Real>
void expect_product() {
    const auto a = [](unsigned row, unsigned k) { return static_cast<Real>(7 * row + k) - Real(40); };
    const auto b = [](unsigned k, unsigned column) { return static_cast<Real>(3 * k) - static_cast<Real>(5 * column); };
    std::vector<Real> found(16 * 8);
    EXPECT_EQ(error_of(warp_size,
                       [&](EmulatedTeam& team) {
                           const unsigned g = team.lane() / 4;
                           const unsigned t = team.lane() % 4;
                           const Real left[4] = {a(g, t), a(g + 8, t), a(g, t + 4), a(g + 8, t + 4)};
                           const Real right[2] = {b(t, g), b(t + 4, g)};
                           Real sums[4] = {1, 1, 1, 1};
                           team.multiply_add(sums, left, right);
                           for (unsigned entry = 0; entry < 4; ++entry)
                               found[(g + entry / 2 * 8) * 8 + 2 * t + entry % 2] = sums[entry];
                       }),
              "");
    for (unsigned row = 0; row < 16; ++row)
        for (unsigned column = 0; column < 8; ++column) {
            Real expected = 1;
            for (unsigned k = 0; k < 8; ++k) expected += a(row, k) * b(k, column);
            EXPECT_EQ(found[row * 8 + column], expected) << row << ", " << column;
        }
}

TEST(EmulatedBlock, MultipliesMatricesOfAWarp) {
    expect_product<double>();
    expect_product<float>();
}

TEST(EmulatedBlockControl, DetectsFactorsThatTensorUnitsWouldRound) {
    EXPECT_TRUE(contains(error_of(warp_size,
                                  [](EmulatedTeam& team) {
                                      const float factor = 1.0F + 0x1p-11F;
                                      const float left[4] = {factor, 0, 0, 0};
                                      const float right[2] = {1, 1};
                                      float sums[4] = {};
                                      team.multiply_add(sums, left, right);
                                  }),
                         "more than 11 significant bits"));
    EXPECT_EQ(as_tf32(1.0F + 0x1p-10F), 1.0F + 0x1p-10F);
    EXPECT_EQ(as_tf32(1.0F + 0x1.8p-11F), 1.0F + 0x1p-10F);
    EXPECT_EQ(as_tf32(-1.0F - 0x1p-12F), -1.0F);
}

TEST(EmulatedBlockControl, DetectsThreadsThatEndWhileOthersWait) {
    EXPECT_TRUE(contains(error_of(64,
                                  [](EmulatedTeam& team) {
                                      if (team.rank() != 7) team.barrier();
                                  }),
                         "has ended"));
    EXPECT_TRUE(contains(error_of(64,
                                  [](EmulatedTeam& team) {
                                      if (team.lane() < 16) warp_sum(team, 1);
                                  }),
                         "has ended while others of its warp exchange"));
}

TEST(EmulatedBlockControl, DetectsThreadsThatWaitAtDifferentCalls) {
    // Defined outside the macro, which would put all calls on one source line.
    const auto two_barriers = [](EmulatedTeam& team) {
        if (team.warp() == 0)
            team.barrier();
        else
            team.barrier();
    };
    EXPECT_TRUE(contains(error_of(64, two_barriers), "different barriers"));
    const auto two_exchanges = [](EmulatedTeam& team) {
        if (team.lane() % 2 == 0)
            (void)team.shuffle(1, 0);
        else
            team.warp_barrier();
    };
    EXPECT_TRUE(contains(error_of(32, two_exchanges), "different calls"));
    const auto barrier_in_a_warp = [](EmulatedTeam& team) {
        if (team.rank() == 40)
            team.barrier();
        else
            team.warp_barrier();
    };
    EXPECT_TRUE(contains(error_of(64, barrier_in_a_warp), "waits at a barrier while others of its warp exchange"));
}

TEST(EmulatedBlockControl, DetectsRacesInSharedMemory) {
    const auto across = [](bool with_barrier) {
        return error_of(64, [with_barrier](EmulatedTeam& team) {
            const auto values = team.take<float>(64);
            values[team.rank()] = static_cast<float>(team.rank());
            if (with_barrier) team.barrier();
            (void)static_cast<float>(values[team.rank() == 0 ? 0 : team.rank() - 1]);
        });
    };
    EXPECT_EQ(across(true), "");
    EXPECT_TRUE(contains(across(false), "with no barrier between"));

    const auto within_a_warp = [](bool with_barrier) {
        return error_of(32, [with_barrier](EmulatedTeam& team) {
            const auto values = team.take<double>(32);
            values[team.rank()] = 1.0;
            (void)team.shuffle(1, 0);  // synchronizes the threads, but orders no memory accesses
            if (with_barrier) team.warp_barrier();
            (void)static_cast<double>(values[team.rank() == 0 ? 0 : team.rank() - 1]);
        });
    };
    EXPECT_EQ(within_a_warp(true), "");
    EXPECT_TRUE(contains(within_a_warp(false), "with no barrier between"));

    // A write after another thread has read.
    EXPECT_TRUE(contains(error_of(64,
                                  [](EmulatedTeam& team) {
                                      const auto value = team.take<float>(1);
                                      if (team.rank() == 63) value[0] = 1.0F;
                                      team.barrier();
                                      (void)static_cast<float>(value[0]);
                                      if (team.rank() == 63) value[0] = 2.0F;
                                  }),
                         "with no barrier between"));
}

TEST(EmulatedBlockControl, DetectsReadsOfUnwrittenMemoryAndAccessesOutOfBounds) {
    EXPECT_TRUE(contains(error_of(32, [](EmulatedTeam& team) { (void)static_cast<int>(team.take<int>(4)[2]); }),
                         "that no thread has written"));
    EXPECT_TRUE(contains(error_of(32, [](EmulatedTeam& team) { team.take<int>(4)[team.rank()] = 1; }),
                         "element 4 of a shared array of 4"));
    EXPECT_TRUE(contains(error_of(32, [](EmulatedTeam& team) { team.take<int>(2000); }), "bytes of shared memory"));
}

}  // namespace
}  // namespace spiked::cuda

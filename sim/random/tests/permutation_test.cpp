#include "sim/random/permutation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <armadillo>
#include <cmath>
#include <cstdint>

namespace spiked::stream {
namespace {

Stream order_stream(std::uint64_t replicate = 0) { return {{}, "order", Role::token_order, replicate}; }

TEST(RandomOrder, IsAPermutationAndEveryPositionIsEquallyLikely) {
    constexpr std::size_t count = 6;
    constexpr std::uint64_t draws = 12000;
    arma::mat seen(count, count);
    for (std::uint64_t r = 0; r < draws; ++r) {
        auto found = random_order(order_stream(r), count);
        for (std::size_t i = 0; i < count; ++i) seen(i, found[i]) += 1.0;
        std::sort(found.begin(), found.end());
        for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(found[i], i);
    }
    // There are 36 binomial counts. Five standard deviations are a false-alarm rate of 5.7e-7 (two-sided) for one
    // count, and of 2e-5 for all.
    const double expected = static_cast<double>(draws) / count;
    const double limit = 5.0 * std::sqrt(expected * (1.0 - 1.0 / count));
    EXPECT_LT(arma::abs(seen - expected).max(), limit);
    EXPECT_TRUE(random_order(order_stream(), 0).empty());
    EXPECT_EQ(random_order(order_stream(), 100), random_order(order_stream(), 100));
}

}  // namespace
}  // namespace spiked::stream

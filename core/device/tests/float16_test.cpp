#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>

#include "core/device/float16.hpp"

namespace spiked {
namespace {

TEST(Float16, EveryBinary16ValueComesBack) {
    for (unsigned bits = 0; bits < 0x10000; ++bits) {
        const double value = from_float16(static_cast<std::uint16_t>(bits));
        if (std::isnan(value)) continue;
        ASSERT_EQ(to_float16(value), bits) << value;
    }
}

TEST(Float16, EveryBfloat16ValueComesBack) {
    for (unsigned bits = 0; bits < 0x10000; ++bits) {
        const double value = from_bfloat16(static_cast<std::uint16_t>(bits));
        if (std::isnan(value)) continue;
        ASSERT_EQ(to_bfloat16(value), bits) << value;
    }
}

// The midpoint of two neighbours rounds to the even one, and the next doubles beside it to the nearer one. Subnormals
// are included.
TEST(Float16, RoundsToNearestEven) {
    for (unsigned bits = 0; bits < 0x7BFF; ++bits) {
        const double low = from_float16(static_cast<std::uint16_t>(bits));
        const double high = from_float16(static_cast<std::uint16_t>(bits + 1));
        const double middle = 0.5 * (low + high);
        ASSERT_EQ(to_float16(middle), bits + (bits & 1U));
        ASSERT_EQ(to_float16(std::nextafter(middle, 1e9)), bits + 1);
        ASSERT_EQ(to_float16(-std::nextafter(middle, 0.0)), bits | 0x8000U);
    }
    EXPECT_EQ(to_float16(65519.99), 0x7BFF);
    EXPECT_EQ(to_float16(65520.0), 0x7C00);
    EXPECT_TRUE(std::isnan(from_float16(to_float16(std::nan("")))));
}

TEST(Float16, KnownBfloat16Points) {
    const std::pair<double, unsigned> points[] = {{1.0, 0x3f80},     {-2.5, 0xc020},  {3.140625, 0x4049},
                                                  {65504.0, 0x4780}, {1e-40, 0x0001}, {3.3895314e38, 0x7f7f}};
    for (const auto& [value, bits] : points) EXPECT_EQ(to_bfloat16(value), bits) << value;
}

}  // namespace
}  // namespace spiked

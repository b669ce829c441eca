#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <type_traits>

#include "core/runtime/error.hpp"
#include "theory/laws/quantities.hpp"

namespace spiked {
namespace {

TEST(Quantities, EigenvaluesAndSingularValuesDoNotMix) {
    static_assert(!std::is_convertible_v<Eigenvalue, SingularValue>);
    static_assert(!std::is_convertible_v<SingularValue, Eigenvalue>);
    static_assert(!std::is_convertible_v<Eigenvalue, double>);
    EXPECT_DOUBLE_EQ(squared(root(Eigenvalue{2.0})).value, 2.0);
}

TEST(Quantities, AspectRatioOfWholeNumbersIsNotTruncated) {
    EXPECT_DOUBLE_EQ(AspectRatio::of(1, 3).value(), 1.0 / 3.0);
    for (const double wrong : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()})
        EXPECT_THROW(AspectRatio{wrong}, Error);
}

}  // namespace
}  // namespace spiked

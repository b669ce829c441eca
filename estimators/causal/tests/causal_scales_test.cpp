#include "estimators/causal/causal_scales.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/runtime/error.hpp"

namespace spiked::estimators {
namespace {

TEST(CausalScalesReference, PairsAreWeightedByTheFourthRootOfTheirQueries) {
    // Mean squares of the pairs: 16 and 1/16, so the weights are 2 and 1/2.
    const arma::mat queries = {{4.0, 0.25, -4.0, 0.25}, {-4.0, -0.25, 4.0, 0.25}};
    EXPECT_EQ(query_exponents(queries), (std::vector<std::int8_t>{16, -16}));
    // A pair without queries is bounded by a thousandth of the mean.
    const auto bounded = query_exponents(arma::mat{{4.0, 0.0, 4.0, 0.0}});
    EXPECT_NEAR((bounded[0] - bounded[1]) / 16.0, 0.25 * std::log2(16.0 / 0.008), 1.0 / 16.0);
    EXPECT_EQ(query_exponents(arma::mat(3, 4, arma::fill::zeros)), (std::vector<std::int8_t>{0, 0}));
}

TEST(CausalScalesReference, HeadsOfALayerGetTheSameSpread) {
    // One head of keys with deviations 8 and one of values with 1/2; the weights of its pairs are 2 and 1/2.
    const arma::mat rows = {{8.0, 8.0, 8.0, 8.0, 0.5, -0.5, 0.5, 0.5}, {-8.0, -8.0, -8.0, -8.0, -0.5, 0.5, -0.5, -0.5}};
    EXPECT_EQ(joined_exponents(rows, {1, 1, 4}, {}), (std::vector<std::int8_t>{-48, -48, 16}));
    const std::vector<std::vector<std::int8_t>> weights = {{16, -16}};
    // The weighted deviations are 16 and 4, with mean 10.
    const auto mean = static_cast<int>(std::nearbyint(16.0 * std::log2(10.0)));
    const auto found = joined_exponents(rows, {1, 1, 4}, weights);
    EXPECT_EQ(found[0], 16 - mean);
    EXPECT_EQ(found[1], -16 - mean);
    EXPECT_EQ(found[2], 16);
}

TEST(CausalScales, ShapesNumberTheirScales) {
    EXPECT_EQ(joined_shape({1, 0, 4}).scale_of, (std::vector<std::uint16_t>{0, 1, 0, 1}));
    const CausalShape joined = joined_shape({2, 2, 4});
    EXPECT_EQ(joined_shape({0, 2, 3}).scale_of, (std::vector<std::uint16_t>{0, 0, 0, 1, 1, 1}));
    EXPECT_EQ(joined.columns, 16U);
    EXPECT_EQ(joined.scales(), 6U);
    EXPECT_EQ(joined.scale_of, (std::vector<std::uint16_t>{0, 1, 0, 1, 2, 3, 2, 3, 4, 4, 4, 4, 5, 5, 5, 5}));
}

TEST(CausalScales, InputThatHasNoScalesIsRejected) {
    EXPECT_THROW((void)joined_shape({1, 0, 5}), Error);
    EXPECT_THROW((void)query_exponents(arma::mat(3, 0)), Error);
    EXPECT_THROW((void)joined_exponents(arma::mat(3, 9), {1, 1, 4}, {}), Error);
    arma::mat queries(2, 4, arma::fill::ones);
    queries(1, 1) = std::numeric_limits<double>::infinity();
    EXPECT_THROW((void)query_exponents(queries), Error);
}

}  // namespace
}  // namespace spiked::estimators

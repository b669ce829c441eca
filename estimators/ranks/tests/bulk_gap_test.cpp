#include "estimators/ranks/bulk_gap.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <armadillo>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>
#include <iostream>
#include <numeric>
#include <vector>

#include "estimators/svd/decomposition.hpp"
#include "sim/random/normal.hpp"

namespace spiked::estimators {
namespace {

arma::mat gap_free_block(std::size_t rows, std::size_t columns, std::uint64_t replicate) {
    const auto seed = stream::StudySeed::parse("0x5eed00000000000000000000000b0a9");
    arma::mat block(rows, columns);
    stream::fill_normal(stream::Stream(seed, fmt::format("{}x{}", rows, columns), stream::Role::noise, replicate),
                        {block.memptr(), block.n_elem});
    return block;
}

/// Descending singular values with these spacings between them, the last one 1.
std::vector<double> with_spacings(std::vector<double> spacings) {
    std::vector<double> values(spacings.size() + 1, 1.0);
    for (std::size_t i = spacings.size(); i-- > 0;) values[i] = values[i + 1] + spacings[i];
    return values;
}

TEST(BulkGap, IsTheSpacingThatIsLargeBesideItsNeighbours) {
    std::vector<double> spacings(63, 0.1);
    EXPECT_FALSE(bulk_gap(with_spacings(spacings)));
    spacings[30] = 0.43;  // the limit for 64 values is 4.42
    EXPECT_FALSE(bulk_gap(with_spacings(spacings)));
    spacings[30] = 0.45;
    const auto values = with_spacings(spacings);
    const auto found = bulk_gap(values);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->above, 31U);
    EXPECT_EQ(found->upper, values[30]);
    EXPECT_EQ(found->lower, values[31]);
    EXPECT_NEAR(found->spacings, 4.5, 1e-9);
    // The side with the larger spacings counts.
    for (std::size_t i = 0; i < 30; ++i) spacings[i] = 0.12;
    EXPECT_FALSE(bulk_gap(with_spacings(spacings)));
}

TEST(BulkGap, FewValuesOnASideAreOutliersAndNotAComponent) {
    std::vector<double> spacings(63, 0.1);
    spacings[values_beside_gap - 2] = 10.0;
    EXPECT_FALSE(bulk_gap(with_spacings(spacings)));
    spacings[values_beside_gap - 2] = 0.1;
    spacings[values_beside_gap - 1] = 10.0;
    EXPECT_EQ(bulk_gap(with_spacings(spacings))->above, values_beside_gap);
    EXPECT_FALSE(bulk_gap(std::vector<double>(2 * values_beside_gap - 1, 1.0)));
    EXPECT_FALSE(bulk_gap(std::vector<double>(64, 0.0)));
    EXPECT_FALSE(bulk_gap({}));
    // Zeros of a block of low rank are no component.
    std::vector<double> low_rank = with_spacings(std::vector<double>(40, 0.1));
    low_rank.resize(80, 1e-15);
    EXPECT_FALSE(bulk_gap(low_rank));
}

// Nominal rate 1e-3, measured 0.04 %. The number of alarms exceeds its limit with probability at most 1e-6 at the
// nominal rate. Control: a gap of four mean spacings planted in the middle, which is seen in more than half of the
// blocks.
TEST(BulkGapLaw, WhiteNoiseShowsOneAtMostAsOftenAsDeclared) {
    struct Size {
        std::size_t rows;
        std::size_t columns;
        std::uint64_t replicates;
    };
    for (const Size& size : {Size{64, 64, 1500}, Size{64, 256, 1500}, Size{128, 256, 300}}) {
        std::uint64_t alarms = 0;
        std::uint64_t planted = 0;
        for (std::uint64_t r = 0; r < size.replicates; ++r) {
            std::vector<double> values = singular_values(gap_free_block(size.rows, size.columns, r));
            if (bulk_gap(values)) ++alarms;
            const std::size_t middle = values.size() / 2;
            const double gap = 4.0 * (values[middle - 10] - values[middle + 10]) / 20.0;
            for (std::size_t i = 0; i < middle; ++i) values[i] += gap;
            if (bulk_gap(values)) ++planted;
        }
        const double count = static_cast<double>(size.replicates);
        const double most =
            boost::math::quantile(boost::math::complement(boost::math::binomial(count, bulk_gap_level), 1e-6));
        std::cout << fmt::format(
            "{} x {}: {} alarms in {}, at most {} allowed, so that a rate of {:.2g} is found with probability 0.99; "
            "the gap of four spacings is seen in {}\n",
            size.rows, size.columns, alarms, count, most,
            boost::math::binomial::find_upper_bound_on_p(count, most, 0.01), planted);
        EXPECT_LE(static_cast<double>(alarms), most);
        EXPECT_GT(static_cast<double>(planted), most) << "the control passes";
    }
}

}  // namespace
}  // namespace spiked::estimators

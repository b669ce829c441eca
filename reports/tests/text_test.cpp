#include <gtest/gtest.h>

#include <cmath>

#include "reports/text_table.hpp"

namespace spiked::reports {
namespace {

TEST(WithError, ShowsTwoDigitsOfTheErrorInTheLastPlaces) {
    EXPECT_EQ(with_error(0.75251, 0.00223), "0.7525(22)");
    EXPECT_EQ(with_error(34.135, 0.0604), "34.135(60)");
    EXPECT_EQ(with_error(-0.0141, 0.0032), "-0.0141(32)");
    EXPECT_EQ(with_error(123.4, 17.0), "123(17)");
    EXPECT_EQ(with_error(12345.0, 678.0), "12345(678)");
    EXPECT_EQ(with_error(1.0, 0.0996), "1.00(10)");
    EXPECT_EQ(with_error(1.0, 0.0994), "1.000(99)");
}

TEST(WithError, WithoutAnErrorTheValueStandsAlone) {
    EXPECT_EQ(with_error(0.123456, 0.0), "0.1235");
    EXPECT_EQ(with_error(0.123456, std::nan("")), "0.1235");
    // What rounding leaves of a number that is the same in every trial.
    EXPECT_EQ(with_error(1.0, 3.1e-19), "1");
    EXPECT_EQ(with_error(std::nan(""), 0.1), "-");
}

TEST(StandardErrors, AreCountedAsFarAsTheySaySomething) {
    EXPECT_EQ(standard_errors(3.21), "3.2 standard errors");
    EXPECT_EQ(standard_errors(1777.9), "more than 100 standard errors");
}

TEST(TextTable, AlignsNamesLeftAndNumbersRight) {
    TextTable table({"name", "x"});
    table.add({"a", "1.5"});
    table.add({"longer", "10"});
    EXPECT_EQ(table.text(), "name      x\na       1.5\nlonger   10\n");
}

}  // namespace
}  // namespace spiked::reports

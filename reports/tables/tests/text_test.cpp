#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "core/text/terminal.hpp"
#include "reports/tables/csv_text.hpp"
#include "reports/tables/metric_words.hpp"
#include "reports/tables/store_queries.hpp"
#include "reports/tables/text_table.hpp"
#include "validation/metrics/metric_table.hpp"

namespace spiked::reports {
namespace {

TEST(WithError, ShowsTwoDigitsOfTheStandardError) {
    EXPECT_EQ(with_error(0.75251, 0.00223), "0.7525(22)");
    EXPECT_EQ(with_error(34.135, 0.0604), "34.135(60)");
    EXPECT_EQ(with_error(-0.0141, 0.0032), "-0.0141(32)");
    EXPECT_EQ(with_error(123.4, 17.0), "123(17)");
    EXPECT_EQ(with_error(12345.0, 678.0), "12345(678)");
    EXPECT_EQ(with_error(1.0, 0.0996), "1.00(10)");
    EXPECT_EQ(with_error(1.0, 0.0994), "1.000(99)");
}

TEST(WithError, ShowsOnlyTheValueWithoutAUsableError) {
    EXPECT_EQ(with_error(0.123456, 0.0), "0.1235");
    EXPECT_EQ(with_error(0.123456, std::nan("")), "0.1235");
    // The error of a number that is the same in every trial is rounding alone.
    EXPECT_EQ(with_error(1.0, 3.1e-19), "1");
    EXPECT_EQ(with_error(std::nan(""), 0.1), "-");
}

TEST(WithError, ShowsHugeNumbersWithAPowerOfTen) {
    EXPECT_EQ(with_error(1.2345e12, 5.6e9), "1.2345(56)e+12");
    EXPECT_EQ(with_error(-1.2345e300, 5.6e297), "-1.2345(56)e+300");
    EXPECT_EQ(with_error(0.5, 1e20), "0.0(10)e+20") << "an error that grows without limit";
    EXPECT_EQ(with_error(1.7e308, 9.96e306), "1.70(10)e+308");
    EXPECT_EQ(with_error(123456789.0, 1200.0), "123456789(1200)");
    EXPECT_EQ(with_error(9.99e8, 1e7), "999000000(10000000)");
}

TEST(FourDigits, KeepZerosAndWholeNumbers) {
    EXPECT_EQ(four_digits(0.75), "0.7500");
    EXPECT_EQ(four_digits(-59.522), "-59.52");
    EXPECT_EQ(four_digits(1875.0), "1875");
    EXPECT_EQ(four_digits(336838.4), "336838");
    EXPECT_EQ(four_digits(9999.7), "10000");
    EXPECT_EQ(four_digits(2.5e7), "2.500e+07");
    EXPECT_EQ(four_digits(1e-5), "1.000e-05");
    EXPECT_EQ(four_digits(0.0), "0");
    EXPECT_EQ(four_digits(std::nan("")), "-");
    EXPECT_EQ(with_digits(0.52, 3), "0.520");
    EXPECT_EQ(with_digits(9.996, 3), "10.0");
    EXPECT_EQ(with_digits(99.96, 3), "100");
    EXPECT_EQ(with_digits(9.96, 2), "10");
    EXPECT_EQ(with_digits(336.4, 2), "336");
}

TEST(Percentage, StaysBelowAHundred) {
    EXPECT_EQ(percentage(0.95), "95");
    EXPECT_EQ(percentage(0.57), "57");
    EXPECT_EQ(percentage(0.9999), "99.99");
    EXPECT_EQ(percentage(0.99999999), "99.999999");
    EXPECT_EQ(percentage(1e-5), "0.001");
    EXPECT_LT(std::stod(percentage(std::nextafter(1.0, 0.0))), 100.0);
}

TEST(WithError, ShowsRoundingErrorsAsZero) {
    EXPECT_EQ(with_error(1.06e-14, 2.0e-15, 4, 1.0), "0");
    EXPECT_EQ(with_error(1.388e-17, 0.0, 4, 1.0), "0");
    EXPECT_EQ(with_error(-4e-15, std::nan(""), 4, 1.0), "0");
    EXPECT_EQ(with_error(4e-15, 0.1, 4, 1.0), "0.00(10)") << "an error that is not rounding is shown";
    EXPECT_EQ(with_error(2e-12, 0.0, 4, 1.0), "2e-12");
    EXPECT_EQ(with_error(1.5e-14, 0.0), "1.5e-14") << "nothing is known about its scale";
    EXPECT_EQ(usual_size_of("relative_l2"), 1.0);
    EXPECT_EQ(usual_size_of("ip_std"), 1.0);
    EXPECT_EQ(usual_size_of("bulk_edge"), 0.0);
    EXPECT_EQ(usual_size_of("no_metric"), 0.0);
}

TEST(StandardErrors, AreCountedUpToAHundred) {
    EXPECT_EQ(standard_errors(3.21), "3.2 standard errors");
    EXPECT_EQ(standard_errors(1777.9), "more than 100 standard errors");
}

TEST(TextTable, AlignsNamesLeftAndNumbersRight) {
    TextTable table({"name", "x"});
    table.add({"a", "1.5"});
    table.add({"longer", "10"});
    EXPECT_EQ(table.text(), "name      x\na       1.5\nlonger   10\n");
}

TEST(TextTable, FoldsToTheWidthOfATerminalAndSaysSo) {
    TextTable table({"name", "B", "first", "second"});
    table.add({"a", "2", "1.5", "2.5"});
    table.add({"a", "3", "10", "20"});
    const std::string whole = "name  B  first  second\na     2    1.5     2.5\na     3     10      20\n";
    EXPECT_EQ(table.text(0), whole);
    EXPECT_EQ(table.text(22), whole);
    EXPECT_EQ(table.text(21),
              "name  B  first\na     2    1.5\na     3     10\n"
              "... same rows, further columns (they fit beside the others on a terminal of 22, or in a file)\n"
              "name  B  second\na     2     2.5\na     3      20\n");
    EXPECT_EQ(table.text(), whole) << "unless the program says what it prints on";
    set_table_columns(21);
    EXPECT_EQ(table.text(), table.text(21));
    set_table_columns(0);
    EXPECT_EQ(TextTable({"name"}).text(2), "name\n") << "one column cannot be folded";
}

TEST(TextTable, NumbersRowsThatFirstColumnsDoNotTellApartAndBreaksLongCells) {
    TextTable table({"claim", "where", "x"}, 2);
    table.add({"overlap", "n=128 signal.strength=1.7", "1"});
    table.add({"overlap", "n=256 signal.strength=1.7", "2"});
    EXPECT_EQ(table.text(28),
              "row  claim\n  1  overlap\n  2  overlap\n"
              "... same rows, further columns (they fit beside the others on a terminal of 37, or in a file)\n"
              "row  where\n"
              "  1  n=128\n"
              "     signal.strength=1.7\n"
              "  2  n=256\n"
              "     signal.strength=1.7\n"
              "... same rows, further columns (they fit beside the others on a terminal of 37, or in a file)\n"
              "row  x\n  1  1\n  2  2\n");
}

TEST(TextTable, FoldsAFewRowsAtATime) {
    TextTable table({"name", "first", "second"});
    for (int row = 1; row <= 45; ++row) table.add({fmt::format("a{:02}", row), "1", std::to_string(row)});
    const std::string text = table.text(12);
    const std::size_t first = text.find("a20       20\n");
    const std::size_t next = text.find("... further rows\nname  first\na21       1\n");
    ASSERT_NE(first, std::string::npos) << text;
    ASSERT_NE(next, std::string::npos) << text;
    EXPECT_LT(first, next) << "the last column of the first rows stands before further rows";
    EXPECT_NE(text.find("... further rows\nname  first\na41 "), std::string::npos) << text;
    EXPECT_TRUE(text.ends_with("a45       45\n")) << text;
}

TEST(TextTable, ReplacesControlCharacters) {
    TextTable table({"na\x1b[2Jme", "x"});
    table.add({"a\nb\x7f\t", "1\x1b]0;title\a"});
    const std::string text = table.text();
    EXPECT_EQ(text, "na?[2Jme            x\na b??     1?]0;title?\n");
}

TEST(CsvLine, PrefixesFormulasWithAnApostropheButNotNumbers) {
    EXPECT_EQ(csv_line({"=1+1", "+x", "-x", "@x", "\tx"}), "'=1+1,'+x,'-x,'@x,'?x\n");
    EXPECT_EQ(csv_line({"-1", "-3.5e-05", "-inf", "2", "", "a=b", "x-y"}), "-1,-3.5e-05,-inf,2,,a=b,x-y\n");
    EXPECT_EQ(csv_line({" =x", "\n=x", "\uff1dx", "\u200b@x"}), "' =x,\"'\n=x\",'\uff1dx,'\u200b@x\n");
    EXPECT_EQ(csv_line({"a;=b", "a;b"}), "\"a;=b\",\"a;b\"\n") << "a semicolon separates fields in some locales";
    EXPECT_EQ(csv_line({"=\"a\",b\n", "\x1b[2J", "\x9b"}), "\"'=\"\"a\"\",b\n\",?[2J,?\n");
}

TEST(MetricNames, FractionsAreShownInPercent) {
    EXPECT_EQ(heading_of("relative_l2"), "relative L2 %");
    EXPECT_EQ(narrow_heading_of("relative_l2"), "rel. L2 %");
    EXPECT_EQ(narrow_heading_of("added_nats"), heading_of("added_nats"));
    // A column that a folded table shows alone says what it is of.
    EXPECT_EQ(narrow_heading_of("ip_bias_plain_aligned"), "bias, aligned");
    EXPECT_EQ(narrow_heading_of("ip_std_plain_aligned"), "std, aligned");
    EXPECT_EQ(heading_of("ip_bias_random"), "") << "it has no column in these tables";
    EXPECT_EQ(heading_of("no_metric"), "");
    EXPECT_EQ(long_name_of("shared_bits"), "shared bits");
    for (const auto& metric : validation::metrics()) {
        const std::string heading = heading_of(metric.name);
        EXPECT_EQ(scale_of(metric.name), metric.unit.starts_with("share") ? 100.0 : 1.0) << metric.name;
        EXPECT_EQ(heading.ends_with(" %"), !heading.empty() && metric.unit.starts_with("share")) << metric.name;
    }
    for (const auto& metric : frontier_metrics()) EXPECT_NE(heading_of(metric), "") << metric;
}

TEST(MetricNames, EveryColumnHasPlainWords) {
    for (const auto& metric : validation::metrics())
        EXPECT_EQ(column_name_of(metric.name).find_first_of("_.%"), std::string::npos) << metric.name;
    EXPECT_EQ(column_name_of("rank_over"), "rank too high");
    EXPECT_EQ(column_name_of("subspace_outlier"), "mean outlier of close spikes");
}

TEST(MetricWords, AShareOfFewReplicatesIsNotShownAsCertain) {
    EXPECT_EQ(with_error(0.0, shown_error("rank_over", 0.0, 0.0, 10)), "0.00(16)");
    EXPECT_EQ(with_error(1.0, shown_error("rank_right", 1.0, 0.0, 1000)), "1.0000(19)");
    EXPECT_EQ(shown_error("rank_over", 0.5, 0.1, 10), 0.1);
    EXPECT_EQ(shown_error("bits_per_entry", 1.0, 0.0, 10), 0.0) << "control: constant by construction";
}

TEST(Text, LimitsAndWhatIsRandomInErrors) {
    EXPECT_EQ(limits_text(3.0, 3.0), "3 degrees of freedom: 95 % limits 3.18 standard errors away");
    EXPECT_EQ(limits_text(1.8033, 3.0), "1.8 to 3 degrees of freedom: 95 % limits 3.18 to 4.79 standard errors away");
    EXPECT_EQ(limits_text(1.0, 1.0), "1 degree of freedom: 95 % limits 12.7 standard errors away");
    EXPECT_EQ(limits_text(std::nan(""), std::nan("")), "");
    EXPECT_TRUE(errors_sentence("head").starts_with("Random in these errors: layers and heads"));
    EXPECT_TRUE(errors_sentence("prompt").ends_with("Fixed: the model, its layers and heads."));
    EXPECT_EQ(errors_sentence("\x1b[31m"), "");
}

TEST(CheckRows, ADeviationIsMeasuredByTheMarginOrByTheControl) {
    constexpr double none = std::numeric_limits<double>::infinity();
    const CheckRow both{.margin = 0.1, .allowed_low = 0.2, .allowed_high = 0.4, .control_expected = 0.7};
    EXPECT_EQ(stated_region(0.2, 0.4), "0.2 to 0.4");
    EXPECT_NEAR(both.margins_off(0.2), 1.0, 1e-12);
    EXPECT_NEAR(both.margins_off(0.7), 4.0, 1e-12);
    const CheckRow most{.allowed_low = -none, .allowed_high = 0.4, .control_expected = 0.5};
    EXPECT_EQ(stated_region(-none, 0.4), "at most 0.4");
    EXPECT_NEAR(most.margins_off(0.4), 1.0, 1e-12);
    EXPECT_NEAR(most.margins_off(0.5), 2.0, 1e-12);
    EXPECT_EQ(most.margins_off(-9.0), 0.0);
    const CheckRow least{.allowed_low = 0.4, .allowed_high = none, .control_expected = 0.0};
    EXPECT_EQ(stated_region(0.4, none), "at least 0.4");
    EXPECT_NEAR(least.margins_off(0.2), 1.5, 1e-12);
    EXPECT_EQ(least.margins_off(9.0), 0.0);
    EXPECT_TRUE(std::isnan(least.margins_off(std::nan("")))) << "not measured";
}

}  // namespace
}  // namespace spiked::reports

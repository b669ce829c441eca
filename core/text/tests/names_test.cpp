#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "core/text/names.hpp"

namespace spiked {
namespace {

TEST(Names, ParsingSeparatesThePartsOfAName) {
    const ParsedName parsed = parse_name("eoptshrink:edgefit:rank=3:margin=0.5");
    EXPECT_EQ(parsed.name, "eoptshrink");
    EXPECT_EQ(parsed.values, std::vector<std::string>{"edgefit"});
    EXPECT_EQ(parsed.option("rank"), "3");
    EXPECT_EQ(parsed.option("margin"), "0.5");
    EXPECT_FALSE(parsed.option("pilot").has_value());
}

TEST(Names, SuggestionsNameTheNearestOrAll) {
    const std::vector<std::string> legal = {"tq-mse", "tq-prod", "kivi"};
    EXPECT_EQ(suggestion("tq-mes", legal), "; did you mean \"tq-mse\"?");
    EXPECT_EQ(suggestion("completely different", legal), "; one of: tq-mse, tq-prod, kivi");
    EXPECT_EQ(suggestion("kivis", legal), "; did you mean \"kivi\"?");
    EXPECT_EQ(suggestion(std::string(10'000'000, 'k'), legal), "; one of: tq-mse, tq-prod, kivi");
    EXPECT_EQ(suggestion("", legal), "; one of: tq-mse, tq-prod, kivi");
}

TEST(Names, CaseBeginningsAndAliasesAreRecognised) {
    const std::vector<std::string> legal = {"gd-hard", "svd:1+tq-mse", "tq-mse", "kivi", "mx", "eoptshrinkq-mse"};
    const Aliases aliases = {{"turboquant", "tq-mse"}, {"pca", "svd"}};
    EXPECT_EQ(nearest("KIVI", legal), "kivi");
    EXPECT_EQ(nearest("eOptShrinkQ", legal), "eoptshrinkq-mse");
    EXPECT_EQ(nearest("TurboQuant", legal, aliases), "tq-mse");
    EXPECT_EQ(nearest("pca", legal, aliases), "svd:1+tq-mse");
    EXPECT_EQ(suggestion("ip_bias", std::vector<std::string>{"ip_bias_own", "rank", "ip_bias_query"}),
              "; one of: ip_bias_own, ip_bias_query");
    EXPECT_EQ(nearest("haar", legal), std::nullopt);
    EXPECT_EQ(nearest("q", legal), std::nullopt);
    EXPECT_EQ(nearest("my", legal), "mx");
    EXPECT_EQ(nearest("abc", legal), std::nullopt) << "of three letters one may differ";
    EXPECT_EQ(nearest("turboquant", std::vector<std::string>{"kivi"}, aliases), std::nullopt)
        << "only what can be typed there";
}

TEST(Names, NumbersAreParsedCompletelyOrNotAtAll) {
    EXPECT_EQ(to_number("1e-3"), 1e-3);
    EXPECT_EQ(to_integer("-12"), -12);
    for (const char* wrong : {"", "1x", " 1", "nan", "inf", "1e999"}) EXPECT_FALSE(to_number(wrong)) << wrong;
    for (const char* wrong : {"", "1.0", "99999999999999999999"}) EXPECT_FALSE(to_integer(wrong)) << wrong;
}

}  // namespace
}  // namespace spiked

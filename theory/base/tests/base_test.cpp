#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "theory/base/error.hpp"
#include "theory/base/float16.hpp"
#include "theory/base/json.hpp"
#include "theory/base/names.hpp"
#include "theory/base/once.hpp"
#include "theory/base/parallel.hpp"
#include "theory/base/quantities.hpp"
#include "theory/base/remembered.hpp"
#include "theory/base/sha256.hpp"
#include "theory/base/utf8.hpp"

namespace spiked {
namespace {

std::string message_of(const std::function<void()>& work) {
    try {
        work();
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

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

TEST(Names, PartsOfANameAreToldApart) {
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

TEST(Names, CaseBeginningsAndNamesElsewhereAreUnderstood) {
    const std::vector<std::string> legal = {"gd-hard", "svd:1+tq-mse", "tq-mse", "kivi", "mx", "eoptshrinkq-mse"};
    EXPECT_EQ(nearest("KIVI", legal), "kivi");
    EXPECT_EQ(nearest("eOptShrinkQ", legal), "eoptshrinkq-mse");
    EXPECT_EQ(nearest("TurboQuant", legal), "tq-mse");
    EXPECT_EQ(nearest("pca", legal), "svd:1+tq-mse");
    EXPECT_EQ(suggestion("ip_bias", std::vector<std::string>{"ip_bias_own", "rank", "ip_bias_query"}),
              "; one of: ip_bias_own, ip_bias_query");
    EXPECT_EQ(nearest("haar", legal), std::nullopt);
    EXPECT_EQ(nearest("q", legal), std::nullopt);
    EXPECT_EQ(nearest("my", legal), "mx");
    EXPECT_EQ(nearest("abc", legal), std::nullopt) << "of three letters one may differ";
    EXPECT_EQ(nearest("turboquant", std::vector<std::string>{"kivi"}), std::nullopt) << "only what can be typed there";
}

TEST(Names, NumbersAreReadWhollyOrNotAtAll) {
    EXPECT_EQ(to_number("1e-3"), 1e-3);
    EXPECT_EQ(to_integer("-12"), -12);
    for (const char* wrong : {"", "1x", " 1", "nan", "inf", "1e999"}) EXPECT_FALSE(to_number(wrong)) << wrong;
    for (const char* wrong : {"", "1.0", "99999999999999999999"}) EXPECT_FALSE(to_integer(wrong)) << wrong;
}

TEST(Json, NumbersReadBackExactly) {
    for (const double value : {0.1, 1.0 / 3.0, 5e-324, 1.7976931348623157e308, -0.0, 1e22, 4.0}) {
        const Json back = Json::parse(Json(value).text(), "test");
        const double found = back.real() != nullptr ? *back.real() : static_cast<double>(*back.integer());
        EXPECT_EQ(std::bit_cast<std::uint64_t>(found), std::bit_cast<std::uint64_t>(value)) << Json(value).text();
    }
}

TEST(Json, WhatIsNoNumberIsNull) {
    EXPECT_EQ(Json(std::nan("")).text(), "null");
    EXPECT_EQ(Json(std::numeric_limits<double>::infinity()).text(), "null");
}

TEST(Json, ObjectsKeepTheirOrderAndTextIsEscaped) {
    const Json json = Json::object({{"z", 1}, {"a", "quote \" and \n"}, {"list", Json::array()}});
    EXPECT_EQ(json.text(), R"({"z":1,"a":"quote \" and \n","list":[]})");
    EXPECT_EQ(Json::parse(json.text(), "test").text(), json.text());
}

TEST(Json, DamageIsRefusedByName) {
    EXPECT_NE(message_of([] { (void)Json::parse(R"({"a":1,"a":2})", "file x"); }).find("file x: duplicate name \"a\""),
              std::string::npos);
    EXPECT_NE(message_of([] { (void)Json::parse(std::string(40, '['), "x"); }).find("nested deeper"),
              std::string::npos);
    EXPECT_NE(message_of([] { (void)Json::parse("{\"a\":", "x"); }).find("not valid JSON"), std::string::npos);
    EXPECT_NE(message_of([] { (void)Json::parse("{} {}", "x"); }).find("not valid JSON"), std::string::npos);
    for (const char* integer : {"9223372036854775808", "18446744073709551615", "18446744073709551616",
                                "-9223372036854775809", "100000000000000000000000000000"})
        EXPECT_NE(message_of([&] { (void)Json::parse(integer, "x"); }).find("too large"), std::string::npos) << integer;
    EXPECT_EQ(*Json::parse("-9223372036854775808", "x").integer(), std::numeric_limits<std::int64_t>::min());
    EXPECT_EQ(*Json::parse("1e30", "x").real(), 1e30);
    EXPECT_NO_THROW((void)Json::parse(std::string(15, '[') + std::string(15, ']'), "x"));
}

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

// Halfway between neighbours goes to the even one, a hair more or less to the nearer one; subnormals included.
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

TEST(Sha256, GivesThePublishedAnswersForTextAndFile) {
    const std::string expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    EXPECT_EQ(hex(sha256("abc")), expected);
    const std::string path = testing::TempDir() + "/spiked-sha256";
    std::ofstream(path) << "abc";
    EXPECT_EQ(hex(sha256_of_file(path)), expected);
    std::remove(path.c_str());
    EXPECT_NE(message_of([&] { (void)sha256_of_file(path); }).find(path), std::string::npos);
}

TEST(Remembered, MakesAResultOnceAndForgetsWhatDoesNotFit) {
    Remembered<int, std::string, 2> known;
    int made = 0;
    const auto word = [&](int key) {
        return known.of(key, [&] {
            ++made;
            return std::to_string(key);
        });
    };
    for (int round = 0; round < 3; ++round)
        for (const int key : {1, 2}) EXPECT_EQ(word(key), std::to_string(key));
    EXPECT_EQ(made, 2);
    EXPECT_EQ(word(3), "3");
    EXPECT_EQ(word(3), "3");
    EXPECT_EQ(made, 4) << "a third argument is computed, and takes no other's place";
    EXPECT_EQ(word(1), "1");
    EXPECT_EQ(made, 4);
}

TEST(Remembered, AnswersThreadsThatAskAtOnce) {
    Remembered<std::size_t, std::string, 8> known;
    std::vector<std::string> said(400);
    for_each_parallel(said.size(), 4,
                      [&](std::size_t i) { said[i] = known.of(i % 16, [&] { return std::to_string(i % 16); }); });
    for (std::size_t i = 0; i < said.size(); ++i) EXPECT_EQ(said[i], std::to_string(i % 16));
}

TEST(Once, IsMadeByOneOfManyAndAgainAfterAFailure) {
    Once once;
    std::atomic<int> tries{0};
    int made = 0;  // written by one thread only, read after it
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

TEST(Utf8, CharactersAreThoseOfTheStandard) {
    const auto codes = [](std::string_view text) {
        std::vector<std::int64_t> found;  // -1: no character
        for (; !text.empty(); text.remove_prefix(first_character(text).bytes))
            found.push_back(first_character(text).valid ? static_cast<std::int64_t>(first_character(text).code) : -1);
        return found;
    };
    using Codes = std::vector<std::int64_t>;
    EXPECT_EQ(codes("a\u00e9\u20ac\U0001F600"), (Codes{0x61, 0xE9, 0x20AC, 0x1F600}));
    EXPECT_EQ(codes("\u0080\u07ff\u0800\ufffd\U00010000\U0010FFFF"),
              (Codes{0x80, 0x7FF, 0x800, 0xFFFD, 0x10000, 0x10FFFF}));
    // Lone and missing bytes, overlong forms, surrogates, beyond the last, U+FFFE.
    for (const std::string bytes :
         {"\x80", "\xbf", "\xc3", "\xe2\x82", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xed\xbf\xbf",
          "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xef\xbf\xbe"})
        EXPECT_EQ(codes(bytes), Codes(bytes.size(), -1)) << testing::PrintToString(bytes);
    EXPECT_EQ(codes("\xe2\x82z"), (Codes{-1, -1, 0x7A})) << "what follows a broken character is read";
}

TEST(Json, EscapesWhatATerminalObeys) {
    const std::string text = "a\x1b\x7f\u009b\u202e\u2066\u20ac";
    const Json json = Json::object({{text, text}});
    const std::string escaped = "\"a\\u001b\\u007f\\u009b\\u202e\\u2066\u20ac\"";
    EXPECT_EQ(json.text(), "{" + escaped + ":" + escaped + "}");
    EXPECT_EQ(*Json::parse(json.text(), "x").find(text)->string(), text);
    EXPECT_EQ(Json("a\x9b").text(), "\"a\ufffd\"") << "what is no UTF-8 cannot be written";
}

}  // namespace
}  // namespace spiked

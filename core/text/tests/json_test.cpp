#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "core/runtime/error.hpp"
#include "core/text/json.hpp"

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

TEST(Json, NumbersReadBackExactly) {
    for (const double value : {0.1, 1.0 / 3.0, 5e-324, 1.7976931348623157e308, -0.0, 1e22, 4.0}) {
        const Json back = Json::parse(Json(value).text(), "test");
        const double found = back.real() != nullptr ? *back.real() : static_cast<double>(*back.integer());
        EXPECT_EQ(std::bit_cast<std::uint64_t>(found), std::bit_cast<std::uint64_t>(value)) << Json(value).text();
    }
}

TEST(Json, NonFiniteNumbersAreNull) {
    EXPECT_EQ(Json(std::nan("")).text(), "null");
    EXPECT_EQ(Json(std::numeric_limits<double>::infinity()).text(), "null");
}

TEST(Json, ObjectsKeepTheirOrderAndTextIsEscaped) {
    const Json json = Json::object({{"z", 1}, {"a", "quote \" and \n"}, {"list", Json::array()}});
    EXPECT_EQ(json.text(), R"({"z":1,"a":"quote \" and \n","list":[]})");
    EXPECT_EQ(Json::parse(json.text(), "test").text(), json.text());
}

TEST(Json, DamagedDocumentsAreRejectedWithTheirName) {
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

TEST(Json, EscapesControlCharacters) {
    const std::string text = "a\x1b\x7f\u009b\u202e\u2066\u20ac";
    const Json json = Json::object({{text, text}});
    const std::string escaped = "\"a\\u001b\\u007f\\u009b\\u202e\\u2066\u20ac\"";
    EXPECT_EQ(json.text(), "{" + escaped + ":" + escaped + "}");
    EXPECT_EQ(*Json::parse(json.text(), "x").find(text)->string(), text);
    EXPECT_EQ(Json("a\x9b").text(), "\"a\ufffd\"") << "bytes that are not UTF-8 are replaced";
}

}  // namespace
}  // namespace spiked

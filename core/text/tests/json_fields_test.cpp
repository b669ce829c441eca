#include "core/text/json_fields.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "core/text/enum_names.hpp"

namespace spiked {
namespace {

const Json document =
    Json::object({{"text", "a"}, {"number", 7}, {"real", 0.5}, {"switch", true}, {"list", Json(Json::Array{1, 2})}});

std::string message(const std::function<void(const JsonFields&)>& read) {
    try {
        read(JsonFields(document, "file: the header"));
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::input);
        return error.what();
    }
    return "";
}

TEST(JsonFields, GivesMembersOfTheRightType) {
    const JsonFields fields(document, "file");
    EXPECT_EQ(fields.text("text"), "a");
    EXPECT_EQ(fields.number("number"), 7U);
    EXPECT_EQ(fields.number("number", 7, 7), 7U);
    EXPECT_EQ(fields.real("real"), 0.5);
    EXPECT_EQ(fields.real("number"), 7.0);
    EXPECT_TRUE(fields.boolean("switch"));
    EXPECT_EQ(fields.items("list").size(), 2U);
    EXPECT_EQ(fields.parsed([&] { return fields.number("number"); }), 7U);
}

TEST(JsonFields, NameTheMemberThatIsMissingOrOfAnotherType) {
    const std::string end = ": the file is damaged, forged or written by a newer program";
    const auto expect = [&](const std::string& problem, const std::function<void(const JsonFields&)>& read) {
        EXPECT_EQ(message(read), "file: the header " + problem + end);
    };
    expect("has no \"other\"", [](const auto& fields) { (void)fields.text("other"); });
    expect("has a \"number\" that is not a string", [](const auto& fields) { (void)fields.text("number"); });
    expect("has a \"number\" that is not a whole number from 1 to 6",
           [](const auto& fields) { (void)fields.number("number", 1, 6); });
    expect("has a \"real\" that is not a whole number from 0 to 9223372036854775807",
           [](const auto& fields) { (void)fields.number("real"); });
    expect("has a \"text\" that is not a number", [](const auto& fields) { (void)fields.real("text"); });
    expect("has a \"text\" that is neither true nor false", [](const auto& fields) { (void)fields.boolean("text"); });
    expect("has a \"text\" that is not a list", [](const auto& fields) { (void)fields.items("text"); });
    expect("is not usable (bad: write good)",
           [](const auto& fields) { fields.parsed([] { throw usage_error("bad: write good"); }); });
    EXPECT_THROW(JsonFields(Json(1), "file"), Error);
}

}  // namespace
}  // namespace spiked

#include <gtest/gtest.h>

#include "core/text/option_schema.hpp"

namespace spiked {
namespace {

TEST(OptionSchema, SaysWhatAnOptionAccepts) {
    EXPECT_EQ(option_schema({"margin", number("M", {.least = 0.0}), "of the rank", "k/2"}).text(),
              R"({"key":"margin","where":"key","type":"number","default":"k/2","help":"of the rank","value":"M",)"
              R"("minimum":0.0})");
    EXPECT_EQ(option_schema({"level", number("P", {.above = 0.0, .below = 1.0})}).text(),
              R"({"key":"level","where":"key","type":"number","default":null,"help":"","value":"P",)"
              R"("exclusive_minimum":0.0,"exclusive_maximum":1.0})");
    EXPECT_EQ(option_schema({"", whole("R", 1, 9), "rank"}).text(),
              R"({"key":"","where":"value","type":"integer","default":null,"help":"rank","value":"R","minimum":1,)"
              R"("maximum":9})");
    EXPECT_EQ(option_schema({"paper", {}, "as printed"}).text(),
              R"({"key":"paper","where":"word","type":"switch","default":null,"help":"as printed"})");
}

TEST(OptionSchema, ListsChoicesNamesAndOtherPlaces) {
    OptionSpec group{"pilot", one_of_or({"p", "d"}, "K"), "", "p"};
    group.also_option = "--pilot";
    EXPECT_EQ(option_schema(group).text(),
              R"({"key":"pilot","where":"key","type":"choice","default":"p","help":"","value":"p|d|K",)"
              R"("choices":["p","d"],"other_values":true,"other_type":"text","command_option":"--pilot"})");
    EXPECT_EQ(option_schema({"rank", one_of_or({"rd"}, whole("R", 1))}).text(),
              R"({"key":"rank","where":"key","type":"choice","default":null,"help":"","value":"R","choices":["rd"],)"
              R"("other_values":true,"other_type":"integer","minimum":1})");
    EXPECT_EQ(option_schema({"--method", several(names_from({"quantizers"}, any_text("NAME"))), "", "", true}).text(),
              R"({"key":"--method","where":"command","type":"text","default":null,"help":"","value":"NAME[,NAME...]",)"
              R"("list":true,"names":["quantizers"],"repeatable":true})");
    EXPECT_EQ(option_schema({"--plot", file_with({".svg", ".pdf"})}).find("suffixes")->items()->size(), 2U);
    EXPECT_EQ(option_schema(std::vector<OptionSpec>(3, group)).items()->size(), 3U);
}

}  // namespace
}  // namespace spiked

#include "core/text/registry.hpp"

#include <gtest/gtest.h>

#include "core/text/name_options.hpp"

namespace spiked {
namespace {
enum class Corner { left, top, right };
}
template <>
struct EnumNames<Corner> {
    static constexpr EnumName<Corner> table[] = {
        {Corner::left, "left"}, {Corner::top, "top"}, {Corner::right, "right"}};
};
namespace {

/// A row that is found by its name and is described nowhere.
struct Number {
    std::string name;
    int value;
};

struct Shape {
    RegistryEntry entry;
    int corners;
};

/// A row that keeps its description in another form.
struct Colour {
    std::string label;
};
RegistryEntry entry_of(const Colour& colour) { return {.name = colour.label, .summary = "a colour"}; }

template <class Work>
std::string usage_message(const Work& work) {
    try {
        work();
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::usage);
        return error.what();
    }
    return "";
}

TEST(Registry, FindsNamesAndSuggestsTheNearest) {
    const Registry<Shape> shapes("shape", {{{"square", "", {{"", number("SIDE")}}, "", {"quad"}}, 4},
                                           {{"triangle", "", {{"flat", {}}, {"area", number("A")}}}, 3}});
    EXPECT_EQ(shapes.named("square").corners, 4);
    EXPECT_EQ(shapes.find("circle"), nullptr);
    EXPECT_EQ(usage_message([&] { (void)shapes.named("squrae"); }),
              "unknown shape \"squrae\"; did you mean \"square\"?");
    EXPECT_EQ(usage_message([&] { (void)shapes.named("quad", "figure"); }),
              "unknown figure \"quad\"; did you mean \"square\"?");
    EXPECT_EQ(written_form(shapes.rows().front().entry), "square:SIDE");
    EXPECT_EQ(written_form(shapes.rows().back().entry), "triangle");
}

TEST(Registry, RowsMayBeEntriesOrKeepTheirDescriptionInAnotherForm) {
    const Registry<RegistryEntry> plain("name", {{"a", "first"}, {"b", "second"}});
    EXPECT_EQ(plain.named("b").summary, "second");
    const Registry<Colour> colours("colour", {{"red"}, {"green"}});
    EXPECT_EQ(colours.named("green").label, "green");
    EXPECT_EQ(colours.names(), (std::vector<std::string>{"red", "green"}));
    EXPECT_EQ(usage_message([&] { (void)colours.named("gren"); }), "unknown colour \"gren\"; did you mean \"green\"?");
}

TEST(Registry, RowsNeedNoMoreThanAName) {
    const Registry<Number> numbers("number", {{"one", 1}, {"two", 2}});
    EXPECT_EQ(numbers.named("two").value, 2);
    EXPECT_EQ(numbers.find("three"), nullptr);
    EXPECT_TRUE(numbers.aliases().empty());
    EXPECT_EQ(usage_message([&] { (void)numbers.named("tow"); }), "unknown number \"tow\"; did you mean \"two\"?");
    ASSERT_EQ(numbers.size(), 2U);
    EXPECT_EQ(numbers[0].name, "one");
}

TEST(NameOptions, WholeNumbersKeepTheLimitsOfTheirSpec) {
    const auto value = [](const char* text) {
        return NameOptions(parse_name(text), {{"group", whole("G", 1, 64)}}).whole("group");
    };
    EXPECT_EQ(value("kivi:group=64"), 64U);
    EXPECT_FALSE(value("kivi").has_value());
    EXPECT_EQ(usage_message([&] { (void)value("kivi:group=0"); }),
              "\"kivi:group=0\": group 0 is not possible: choose a whole number from 1 to 64");
    EXPECT_EQ(usage_message([&] { (void)value("kivi:group=65"); }),
              "\"kivi:group=65\": group 65 is not possible: choose a whole number from 1 to 64");
    EXPECT_EQ(usage_message([&] { (void)value("kivi:group=x"); }),
              "\"kivi:group=x\": group \"x\" is not a whole number from 1 to 64: write for example group=2");
}

TEST(OptionSpec, ChoicesMayBeSomeOfAnEnumeration) {
    EXPECT_EQ(one_of<Corner>().shown, "left|top|right");
    const ValueSpec sides = one_of({Corner::right, Corner::left});
    EXPECT_EQ(sides.shown, "right|left");
    EXPECT_TRUE(accepts(sides, "left"));
    EXPECT_FALSE(accepts(sides, "top"));
}

TEST(NameOptions, AreCheckedWhenTheNameIsParsed) {
    const std::vector<OptionSpec> specs = {{"", one_of_or({"rd"}, whole("R")), "rank"},
                                           {"share", number("SHARE", {.above = 0.0, .most = 0.5}), "", "0.25"},
                                           {"edge", one_of({"fit", "points"}), "", "points"},
                                           {"seed", any_text("HEX")},
                                           {"paper", {}}};
    const auto message = [&](const char* text) {
        return usage_message([&] { (void)NameOptions(parse_name(text), specs); });
    };
    for (const char* good : {"svd:3", "svd:rd:share=0.5", "svd:0:edge=fit:paper", "svd:rd:seed=anything"})
        EXPECT_EQ(message(good), "") << good;
    EXPECT_EQ(message("svd:-1"), "\"svd:-1\": \"-1\" is not possible: choose a whole number of at least 0, or rd");
    EXPECT_EQ(message("svd:1:share=0"),
              "\"svd:1:share=0\": share 0 is not possible: choose a number above 0 and at most 0.5");
    EXPECT_EQ(message("svd:1:share=half"),
              "\"svd:1:share=half\": share \"half\" is not a number above 0 and at most 0.5: give one number, with "
              "digits and a point, as 0.5");
    EXPECT_EQ(message("svd:1:edge=fti"), "\"svd:1:edge=fti\": edge \"fti\" is not possible; did you mean \"fit\"?");
    const auto value_alone = [&](const char* text) {
        return usage_message([&] { (void)NameOptions(parse_name(text), {{"", whole("R", 1), "rank"}}); });
    };
    EXPECT_EQ(value_alone("svd:rank=3"), "\"svd:rank=3\": svd has no option \"rank\"; did you mean \"svd:3\"?");
    EXPECT_EQ(value_alone("svd:rank=0"), "\"svd:rank=0\": svd has no option \"rank\"; write svd:R");
    EXPECT_EQ(message("svd:rank=3"), "\"svd:rank=3\": svd has no option \"rank\"; did you mean \"svd:3\"?");
    EXPECT_EQ(message("svd:sed=3"), "\"svd:sed=3\": svd has no option \"sed\"; did you mean \"seed\"?");
}

TEST(NameOptions, AValueThatIsWrittenLikeAnOptionIsRecognised) {
    const std::vector<OptionSpec> specs = {{"rank", one_of_or({"rd", "ed"}, whole("R"))},
                                           {"edge", one_of({"fit", "points"})},
                                           {"impute", one_of({"none", "fit"})},
                                           {"--rotation", one_of({"haar", "identity"})},
                                           {"paper", {}}};
    const auto message = [&](const char* text) {
        return usage_message([&] { (void)NameOptions(parse_name(text), specs); });
    };
    EXPECT_EQ(message("x:ed"), "\"x:ed\": x has no variant or option \"ed\"; did you mean \"rank=ed\"?");
    EXPECT_EQ(message("x:paper:fit"),
              "\"x:paper:fit\": x has no variant or option \"fit\"; did you mean \"edge=fit\" or \"impute=fit\"?");
    EXPECT_EQ(message("x:haar"), "\"x:haar\": x has no variant or option \"haar\"; did you mean \"--rotation haar\"?");
    EXPECT_EQ(message("x:papr"), "\"x:papr\": x has no variant or option \"papr\"; did you mean \"paper\"?");
}

TEST(NameOptions, HaveTheDefaultsOfTheirSpecs) {
    const std::vector<OptionSpec> specs = {{"group", whole("G", 1), "", "32"},
                                           {"rate", number("ETA"), "", "0.05"},
                                           {"edge", one_of({"fit", "points"}), "", "points"},
                                           {"margin", number("M"), "", "p^(-1/3)"}};
    const NameOptions usual(parse_name("x"), specs);
    EXPECT_EQ(usual.whole_or_default("group"), 32U);
    EXPECT_EQ(usual.number_or_default("rate"), 0.05);
    EXPECT_EQ(usual.choice_or_default("edge"), "points");
    EXPECT_FALSE(usual.number("margin").has_value());
    EXPECT_THROW((void)usual.number_or_default("margin"), Error);
    EXPECT_THROW((void)usual.choice_or_default("no"), Error);
    const NameOptions given(parse_name("x:group=4:rate=1:edge=fit:margin=0"), specs);
    EXPECT_EQ(given.whole_or_default("group"), 4U);
    EXPECT_EQ(given.number_or_default("rate"), 1.0);
    EXPECT_EQ(given.choice_or_default("edge"), "fit");
    EXPECT_EQ(given.number("margin"), 0.0);
}

}  // namespace
}  // namespace spiked

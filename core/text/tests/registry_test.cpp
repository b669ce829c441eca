#include "core/text/registry.hpp"

#include <gtest/gtest.h>

#include "core/text/name_options.hpp"

namespace spiked {
namespace {

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

TEST(NameOptions, WholeNumbersKeepTheLimitsOfTheirSpec) {
    const auto value = [](const char* text) {
        return NameOptions(parse_name(text), {{"group", whole("G", 1, 64)}}).whole("group");
    };
    EXPECT_EQ(value("kivi:group=64"), 64U);
    EXPECT_FALSE(value("kivi").has_value());
    EXPECT_EQ(usage_message([&] { (void)value("kivi:group=0"); }),
              "\"kivi:group=0\": group is a whole number of at least 1, not 0");
    EXPECT_EQ(usage_message([&] { (void)value("kivi:group=65"); }),
              "\"kivi:group=65\": group is a whole number of at most 64, not 65");
}

}  // namespace
}  // namespace spiked

// Pictures are edited as XML documents: a label is shown as it is, whatever text it holds, and nothing else changes.
#include "reports/figures/svg.hpp"

#include <gtest/gtest.h>

#include <pugixml.hpp>

#include "reports/figures/gnuplot.hpp"
#include "reports/tables/latex.hpp"
#include "reports/tables/store_queries.hpp"

namespace spiked::reports {
namespace {

const std::string labels[] = {"plain",
                              "scale(0.00)",
                              "color='white'/>",
                              "]]>",
                              "<g></g> & </svg>",
                              "url(#gpPt1)",
                              "<title>x</title>",
                              "stroke='black' preserveAspectRatio='none'",
                              "quote ' and \" both",
                              "two  blanks"};

std::string drawn(const std::string& label) {
    return *run_gnuplot(panel_script(label, "", "",
                                     {{label, "", {"[0:1] x with linespoints pt 6", "[0:1] x*x with points pt 4"}}},
                                     {{label, "linespoints pt 6"}}));
}

std::string all_texts(const pugi::xml_node& node) {
    std::string text;
    for (const auto& found : node.select_nodes(".//text")) {
        struct Collector : pugi::xml_tree_walker {
            std::string text;
            bool for_each(pugi::xml_node& at) override {
                text += at.value();
                return true;
            }
        } collector;
        pugi::xml_node at = found.node();
        at.traverse(collector);
        text += collector.text + "\n";
    }
    return text;
}

/// The number of elements by name, except tspan.
std::map<std::string, int> elements(const pugi::xml_node& root) {
    std::map<std::string, int> count;
    for (const auto& found : root.select_nodes(".//*")) ++count[found.node().name()];
    count.erase("tspan");
    return count;
}

TEST(Svg, AnyLabelIsShownAsItIsAndChangesNothingElse) {
    if (!run_gnuplot("set terminal svg\nplot x\n")) GTEST_SKIP() << "no gnuplot";
    pugi::xml_document plain;
    ASSERT_TRUE(plain.load_string(inline_svg(drawn("plain"), "f", "t", "d").c_str()));
    for (const auto& label : labels) {
        for (const bool page : {true, false}) {
            const std::string svg = drawn(label);
            const std::string edited =
                page ? inline_svg(svg, "f", "a title", "words") : titled_svg(svg, "a title", "words");
            EXPECT_EQ(edited.find("]]>"), std::string::npos) << label;
            pugi::xml_document document;
            ASSERT_TRUE(document.load_string(edited.c_str(), pugi::parse_default | pugi::parse_ws_pcdata)) << label;
            const std::string shown = all_texts(document);
            const std::size_t first = shown.find(label);
            EXPECT_NE(first, std::string::npos) << label << "\nis not in\n" << shown;
            EXPECT_NE(shown.find(label, first + 1), std::string::npos) << label << ": title and legend";
            if (page) {
                EXPECT_EQ(elements(document), elements(plain)) << label;
            }
            EXPECT_EQ(std::string(document.child("svg").child("title").text().get()), "a title");
        }
    }
}

TEST(Svg, IdsHaveThePrefixOfTheFigureAndEveryReferenceHasATarget) {
    if (!run_gnuplot("set terminal svg\nplot x\n")) GTEST_SKIP() << "no gnuplot";
    pugi::xml_document document;
    ASSERT_TRUE(document.load_string(inline_svg(drawn("plain"), "figure-7", "t", "d").c_str()));
    std::set<std::string> ids;
    for (const auto& found : document.select_nodes("//@id")) ids.insert(found.attribute().value());
    int references = 0;
    for (const auto& found : document.select_nodes("//@href")) {
        const std::string target = found.attribute().value();
        if (!target.starts_with('#')) continue;
        ++references;
        EXPECT_TRUE(ids.contains(target.substr(1))) << target;
    }
    EXPECT_GT(references, 3);
    for (const auto& id : ids) EXPECT_TRUE(id.starts_with("figure-7-")) << id;
    EXPECT_TRUE(document.select_nodes("//@stroke[.='black']|//@fill[.='black']|//@color[.='black']").empty());
    EXPECT_FALSE(document.select_nodes("//*[@stroke='currentColor' or @fill='currentColor']").empty());
}

TEST(LatexText, IsNotReadAsAnArgumentOfThePrecedingCommand) {
    EXPECT_EQ(latex_text("[-50pt]x"), "{}[-50pt]x");
    EXPECT_EQ(latex_text("*"), "{}*");
    EXPECT_EQ(latex_text("a[1]*"), "a[1]*");
}

TEST(ShortNumbers, AreShortenedInOnePass) {
    EXPECT_EQ(short_numbers("0.333333333 of 12.5, 1.23456789012, v1.2.3 and 7."),
              "0.3333 of 12.5, 1.235, v1.2.3 and 7.");
    EXPECT_EQ(short_numbers(std::string(1'000'000, '1')).size(), 1'000'000U);
}

TEST(LatexText, IsOneLineWithoutCommands) {
    const std::string text = latex_text("x\n\\immediate\\write18{rm}\r\\input{y}\x1b\x9b^^M");
    EXPECT_EQ(
        text,
        "x \\textbackslash{}immediate\\textbackslash{}write18\\{rm\\}?\\textbackslash{}input\\{y\\}??\\^{}\\^{}M");
}

}  // namespace
}  // namespace spiked::reports

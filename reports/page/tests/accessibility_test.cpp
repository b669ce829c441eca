// Tests of the accessibility of pages for blind and colour-blind readers.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <regex>
#include <set>

#include "reports/figures/gnuplot.hpp"
#include "reports/page/html_report.hpp"
#include "reports/page/page_style.hpp"
#include "reports/tests/fixture_store.hpp"

namespace spiked::reports {
namespace {

std::vector<std::string> matches(const std::string& text, const std::string& pattern) {
    std::vector<std::string> found;
    const std::regex expression(pattern);
    for (std::sregex_iterator at(text.begin(), text.end(), expression), end; at != end; ++at)
        found.push_back(at->size() > 1 ? (*at)[1].str() : at->str());
    return found;
}

class AccessiblePage : public testing::Test {
protected:
    std::vector<std::string> pages() {
        make_study(folder / "study.spiked");
        make_dump_store(folder / "dump.spiked");
        return {html_report({folder / "study.spiked"}), html_report({folder / "dump.spiked"}),
                html_report({folder / "study.spiked", folder / "dump.spiked"})};
    }
    Scratch folder;
};

/// The number of headings that skip a level, do not start at level 1 or repeat level 1.
std::size_t heading_errors(const std::string& page) {
    std::size_t errors = 0;
    int before = 0;
    for (const auto& level : matches(page, "<h([1-6])[ >]")) {
        const int now = std::stoi(level);
        if (now > before + 1 || (now == 1 && before != 0)) ++errors;
        before = now;
    }
    return errors + (before == 0 ? 1 : 0);
}

TEST_F(AccessiblePage, HeadingsAreNestedWithoutGapsBelowOneTitle) {
    for (const auto& page : pages()) {
        EXPECT_EQ(heading_errors(page), 0U);
        EXPECT_EQ(matches(page, "<h1>").size(), 1U);
        EXPECT_EQ(matches(page, "<main>").size(), 1U);
        EXPECT_NE(page.find("<html lang=\"en\">"), std::string::npos);
    }
}

TEST(AccessiblePageControl, WrongHeadingLevelsAreDetected) {
    EXPECT_EQ(heading_errors("<h1>a</h1><h3>b</h3>"), 1U);
    EXPECT_EQ(heading_errors("<h2>a</h2>"), 1U);
    EXPECT_EQ(heading_errors("<h1>a</h1><h2>b</h2><h1>c</h1>"), 1U);
    EXPECT_EQ(heading_errors("no heading"), 1U);
}

TEST_F(AccessiblePage, TablesHaveHeadersAndPicturesHaveDescriptions) {
    for (const auto& page : pages()) {
        for (const auto& header : matches(page, "<th[ >][^>]*>"))
            EXPECT_NE(header.find("scope=\"col\""), std::string::npos) << header;
        EXPECT_EQ(matches(page, "<table>").size(), matches(page, "<thead>").size());
        EXPECT_EQ(matches(page, "<img ").size(), matches(page, "<img alt=\"[^\"]+\"").size());
        const auto pictures = matches(page, "<svg [^>]*>");
        EXPECT_GE(pictures.size(), 2U);
        EXPECT_EQ(pictures.size(),
                  matches(page, "role=\"img\"><title>Figure [0-9]+\\. [^<]+</title><desc>[^<]{20,}").size());
        // Every picture has a table of its data and a caption.
        EXPECT_EQ(matches(page, "<figure ").size(), matches(page, "<summary>Data of figure [0-9]+</summary>").size());
        EXPECT_EQ(matches(page, "<figure ").size(), matches(page, "<figcaption>").size());
    }
}

using Rgb = std::array<double, 3>;  // linear, 0 to 1

Rgb color(const std::string& hex) {
    Rgb rgb{};
    const std::size_t digits = hex.size() == 4 ? 1 : 2;
    for (std::size_t i = 0; i < 3; ++i) {
        std::string part = hex.substr(1 + i * digits, digits);
        if (digits == 1) part += part;
        const double value = std::stoi(part, nullptr, 16) / 255.0;
        rgb[i] = value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
    }
    return rgb;
}

double luminance(const Rgb& rgb) { return 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2]; }

/// Contrast ratio of WCAG 2, which requires 4.5 for text and 3 for large text and lines.
double contrast(const std::string& a, const std::string& b) {
    const double first = luminance(color(a));
    const double second = luminance(color(b));
    return (std::max(first, second) + 0.05) / (std::min(first, second) + 0.05);
}

std::map<std::string, std::string> variables(const std::string& block) {
    std::map<std::string, std::string> found;
    const std::regex variable("--([a-z-]+):(#[0-9a-f]+)");
    for (std::sregex_iterator at(block.begin(), block.end(), variable), end; at != end; ++at)
        found[(*at)[1]] = (*at)[2];
    return found;
}

TEST(Colours, TextHasEnoughContrastOnEveryBackgroundOfEveryTheme) {
    EXPECT_NEAR(contrast("#000", "#ffffff"), 21.0, 1e-9);
    EXPECT_NEAR(contrast("#777777", "#fff"), 4.48, 0.005);  // a grey known to be just below 4.5
    const auto themes = matches(page_style, ":root\\{([^}]*)\\}");
    ASSERT_EQ(themes.size(), 3U);  // light, dark, print
    for (const auto& theme : themes) {
        const auto found = variables(theme);
        for (const char* text : {"ink", "soft", "link", "pass", "fail", "open"})
            for (const char* background : {"paper", "stripe"})
                EXPECT_GE(contrast(found.at(text), found.at(background)), 4.5) << text << " on " << background;
        for (const char* verdict : {"pass", "fail", "open"})
            for (const char* text : {verdict, "ink"})
                EXPECT_GE(contrast(found.at(text), found.at(verdict + std::string("-bg"))), 4.5) << text << verdict;
    }
}

/// A colour as seen by the three kinds of dichromats, 0 to 2 (Machado, Oliveira and Fernandes 2009, severity 1), and
/// with normal vision, 3.
Rgb seen_by(int kind, const Rgb& rgb) {
    static constexpr double matrices[3][3][3] = {
        {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
        {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
        {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}}};
    if (kind == 3) return rgb;
    Rgb seen{};
    for (std::size_t i = 0; i < 3; ++i) {
        for (std::size_t j = 0; j < 3; ++j) seen[i] += matrices[kind][i][j] * rgb[j];
        seen[i] = std::clamp(seen[i], 0.0, 1.0);
    }
    return seen;
}

/// CIE 1976 L*a*b* with the white point of sRGB.
Rgb lab(const Rgb& rgb) {
    const auto f = [](double t) { return t > 216.0 / 24389.0 ? std::cbrt(t) : (24389.0 / 27.0 * t + 16.0) / 116.0; };
    const double x = f((0.4124564 * rgb[0] + 0.3575761 * rgb[1] + 0.1804375 * rgb[2]) / 0.95047);
    const double y = f(luminance(rgb));
    const double z = f((0.0193339 * rgb[0] + 0.1191920 * rgb[1] + 0.9503041 * rgb[2]) / 1.08883);
    return {116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)};
}

/// The smallest distance of two of the colours for any kind of colour vision.
double least_distance(const std::vector<std::string>& colors) {
    double least = 1e9;
    for (int kind = 0; kind < 4; ++kind)
        for (std::size_t i = 0; i < colors.size(); ++i)
            for (std::size_t j = 0; j < i; ++j) {
                const Rgb a = lab(seen_by(kind, color(colors[i])));
                const Rgb b = lab(seen_by(kind, color(colors[j])));
                least = std::min(least, std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]));
            }
    return least;
}

struct Scheme {
    std::string paper;
    std::map<std::string, std::string> replaced;  ///< colours of curves and their replacements in the style sheet
};

std::string lower(std::string text) {
    for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return text;
}

/// `rgb(  0, 114, 178)` as `#0072b2`.
std::string hex_of(const std::string& rgb) {
    std::string hex = "#";
    for (const auto& number : matches(rgb, "([0-9]+)")) hex += fmt::format("{:02x}", std::stoi(number));
    return hex;
}

/// The light and the dark scheme of the style sheet.
std::vector<Scheme> schemes() {
    const auto themes = matches(page_style, ":root\\{([^}]*)\\}");
    Scheme light{variables(themes.at(0)).at("paper"), {}};
    Scheme dark{variables(themes.at(1)).at("paper"), {}};
    const std::string style = page_style;
    const std::regex rule(R"re(\.plot \[(stroke|color|fill)="(rgb\([^"]*\))"\]\{(stroke|color|fill):(#[0-9a-f]+)\})re");
    std::map<std::string, int> rules;
    for (std::sregex_iterator at(style.begin(), style.end(), rule), end; at != end; ++at) {
        EXPECT_EQ((*at)[1], (*at)[3]);
        const auto [old, fresh] = dark.replaced.emplace(hex_of((*at)[2]), (*at)[4]);
        EXPECT_TRUE(fresh || old->second == (*at)[4]) << at->str();
        ++rules[hex_of((*at)[2])];
    }
    for (const auto& [from, count] : rules) EXPECT_EQ(count, 3) << from << ": strokes, texts and fills";
    EXPECT_GT(style.find(".plot ["), style.find("@media (prefers-color-scheme:dark)"));
    return {light, dark};
}

std::string shown_as(const Scheme& scheme, const std::string& one) {
    const auto found = scheme.replaced.find(lower(one));
    return found == scheme.replaced.end() ? one : found->second;
}

TEST(Colours, OfSeriesHaveContrastAndDifferForEveryKindOfColourVisionInBothSchemes) {
    for (const auto& scheme : schemes()) {
        std::vector<std::string> colors;
        for (std::size_t i = 0; i < 7; ++i) colors.push_back(shown_as(scheme, series_style(i).color));
        EXPECT_GT(least_distance(colors), 10.0) << scheme.paper;
        for (const auto& one : colors) EXPECT_GE(contrast(one, scheme.paper), 3.0) << one << " on " << scheme.paper;
    }
}

/// A partly transparent colour on the colour of the paper.
std::string mixed(const std::string& above, const std::string& paper, double opacity) {
    const auto channel = [](const std::string& hex, std::size_t i) {
        const std::size_t digits = hex.size() == 4 ? 1 : 2;
        const std::string part = hex.substr(1 + i * digits, digits);
        return static_cast<double>(std::stoi(digits == 1 ? part + part : part, nullptr, 16));
    };
    std::string hex = "#";
    for (std::size_t i = 0; i < 3; ++i)
        hex += fmt::format(
            "{:02x}", static_cast<int>(std::lround(opacity * channel(above, i) + (1.0 - opacity) * channel(paper, i))));
    return hex;
}

/// The colours in the pictures of a page with their opacities, except grids, texts on heatmaps and the pale band around
/// a line with the same meaning.
std::set<std::pair<std::string, double>> plotted(const std::string& page) {
    std::set<std::pair<std::string, double>> found;
    const std::set<std::string> decoration = {"#999999", "#ffffff", "#111111"};
    const std::regex colour("(?:stroke|color|fill) *= *['\"](rgb\\([^'\"]*\\))['\"]");
    const std::regex cover("fill-opacity *= *['\"]([0-9.]+)");
    for (std::size_t start = 0; (start = page.find("<svg class=\"plot\"", start)) != std::string::npos;) {
        const std::string picture = page.substr(start, page.find("</svg>", start) - start);
        start += picture.size();
        if (picture.find(" by layer and head") != std::string::npos)
            continue;  // a heatmap, whose boxes show their numbers
        for (std::size_t at = 0; (at = picture.find('<', at)) != std::string::npos; ++at) {
            const std::string element = picture.substr(at, picture.find('>', at) - at);
            std::smatch one;
            if (!std::regex_search(element, one, colour)) continue;
            std::smatch opacity;
            const double covered = std::regex_search(element, opacity, cover) ? std::stod(opacity[1]) : 1.0;
            if (!decoration.contains(hex_of(one[1])) && covered > 0.4) found.emplace(hex_of(one[1]), covered);
        }
    }
    return found;
}

TEST_F(AccessiblePage, EveryCurvePointAndBarHasContrastInBothSchemes) {
    make_study(folder / "all.spiked");
    validation::Database(folder / "all.spiked", validation::Database::Mode::write)
        .execute(
            "INSERT INTO figure VALUES(1,'frontier','{}'),(2,'distortion','{}'),(3,'estimate-vs-theory','{\"y\":"
            "\"outlier\"}')");
    auto all = pages();
    all.push_back(html_report({folder / "all.spiked"}));
    std::set<std::pair<std::string, double>> colors;
    for (const auto& page : all) colors.merge(plotted(page));
    EXPECT_GE(colors.size(), 4U);
    for (const auto& scheme : schemes())
        for (const auto& [one, opacity] : colors)
            EXPECT_GE(contrast(mixed(shown_as(scheme, one), scheme.paper, opacity), scheme.paper), 3.0)
                << one << " at " << opacity << " on " << scheme.paper;
}

TEST(ColoursControl, LowContrastIsDetected) {
    EXPECT_LT(contrast("#e69f00", "#fff"), 3.0);
    EXPECT_LT(contrast(mixed("#1573d1", "#fff", 0.5), "#fff"), 3.0);
    EXPECT_EQ(plotted("<svg class=\"plot\"><path fill-opacity=\"0.5\" fill=\"rgb( 86, 180, 233)\"/></svg>"),
              (std::set<std::pair<std::string, double>>{{"#56b4e9", 0.5}}));
}

TEST(ColoursControl, AWellKnownPaletteIsNotDistinguishableForEveryone) {
    EXPECT_LT(least_distance({"#2ca02c", "#d62728"}), 10.0);
    EXPECT_LT(least_distance({"#2ca02c", "#ff7f0e"}), 10.0);
}

TEST(Colours, TheFirstSeriesDifferInColourAndShape) {
    std::set<std::pair<std::string, int>> styles;
    for (std::size_t i = 0; i < 63; ++i) {
        const auto style = series_style(i);
        EXPECT_TRUE(styles.insert({style.color, style.point}).second) << i;
    }
    std::set<int> shapes;
    for (std::size_t i = 0; i < 7; ++i) EXPECT_TRUE(shapes.insert(series_style(i).point).second) << i;
}

}  // namespace
}  // namespace spiked::reports

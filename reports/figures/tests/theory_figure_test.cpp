#include "reports/figures/theory_figure.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "core/runtime/error.hpp"
#include "reports/figures/gnuplot.hpp"
#include "reports/figures/svg.hpp"
#include "reports/tests/fixture_store.hpp"
#include "sim/spiked/spectrum_spec.hpp"
#include "theory/laws/support_gaps.hpp"

namespace spiked::reports {
namespace {

using theory::Loss;
using theory::SeparableLaw;

const std::vector<SignalStrength> strengths = {{0.7}, {4.0}, {1.5}, {2.0}};

SeparableLaw law_of(const std::string& row, const std::string& column, double aspect) {
    return {sim::parse_spectrum(row), sim::parse_spectrum(column), AspectRatio(aspect)};
}

SeparableLaw white(double aspect) { return law_of("identity", "identity", aspect); }

SeparableLaw shaped() { return law_of("ar1:0.7", "exponential:2", 0.5); }

struct Values {
    double strength, observed, left, right, frobenius, operator_norm, nuclear;
};

/// The rows of the CSV whose first field is `part`: `curve` or `marked`.
std::vector<Values> rows_of(const Figure& figure, const std::string& part) {
    std::vector<Values> rows;
    std::istringstream lines(figure.csv);
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with(part + ",")) continue;
        std::istringstream fields(line.substr(part.size() + 1));
        std::vector<double> numbers;
        for (std::string field; std::getline(fields, field, ',');) numbers.push_back(std::stod(field));
        EXPECT_EQ(numbers.size(), 7U) << line;
        rows.push_back({numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5], numbers[6]});
    }
    return rows;
}

std::optional<ErrorKind> error_of(const Figure& figure, const std::string& path, std::string* message = nullptr) {
    try {
        write_picture(figure, path);
    } catch (const Error& error) {
        if (message != nullptr) *message = error.what();
        return error.kind();
    }
    return std::nullopt;
}

std::size_t files_in(const std::string& folder) {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) count += entry.exists() ? 1 : 0;
    return count;
}

/// Sets PATH until the end of the scope.
class ScopedPath {
public:
    explicit ScopedPath(const std::string& path) : before_(std::getenv("PATH")) { setenv("PATH", path.c_str(), 1); }
    ScopedPath(const ScopedPath&) = delete;
    ScopedPath& operator=(const ScopedPath&) = delete;
    ~ScopedPath() { setenv("PATH", before_.c_str(), 1); }

private:
    std::string before_;
};

TEST(PhaseTransition, MarkedPointsAreThoseOfTheLawInTheOrderGiven) {
    const SeparableLaw law = shaped();
    const Figure figure = phase_transition(law, strengths);
    const auto marked = rows_of(figure, "marked");
    ASSERT_EQ(marked.size(), strengths.size());
    ASSERT_EQ(figure.rows.size(), strengths.size());
    for (std::size_t i = 0; i < strengths.size(); ++i) {
        const auto spike = law.spike(strengths[i]);
        EXPECT_EQ(marked[i].strength, strengths[i].value);
        EXPECT_EQ(marked[i].observed, root(spike.outlier).value);
        EXPECT_EQ(marked[i].left, spike.overlap_left.value);
        EXPECT_EQ(marked[i].right, spike.overlap_right.value);
        EXPECT_EQ(marked[i].frobenius, spike.shrunk(Loss::frobenius).value);
        EXPECT_EQ(marked[i].operator_norm, spike.shrunk(Loss::operator_norm).value);
        EXPECT_EQ(marked[i].nuclear, spike.shrunk(Loss::nuclear).value);
        EXPECT_EQ(figure.rows[i].size(), figure.columns.size());
        EXPECT_EQ(figure.rows[i][0], spike.detectable ? "yes" : "no");
    }
    EXPECT_NE(figure.description.find("4 strengths, 3 detectable"), std::string::npos) << figure.description;
}

// Closed forms of Benaych-Georges and Nadakuditi (2012) and Gavish and Donoho (2017), noise of variance 1/d.
TEST(PhaseTransitionReference, CurvesOfWhiteNoiseFollowTheClosedForms) {
    for (const double beta : {0.1, 1.0, 3.0}) {
        const auto curve = rows_of(phase_transition(white(beta), {}), "curve");
        ASSERT_GT(curve.size(), 200U);
        const double threshold = std::pow(beta, 0.25);
        std::size_t above = 0;
        for (const auto& at : curve) {
            const double s2 = at.strength * at.strength;
            if (at.strength <= threshold * (1.0 + 1e-12)) {
                EXPECT_NEAR(at.observed, 1.0 + std::sqrt(beta), 1e-12);
                EXPECT_EQ(at.left + at.right + at.frobenius + at.operator_norm + at.nuclear, 0.0);
                continue;
            }
            ++above;
            const double left = 1.0 - beta * (1.0 + s2) / (s2 * (s2 + beta));
            const double right = 1.0 - (beta + s2) / (s2 * (s2 + 1.0));
            EXPECT_NEAR(at.observed, std::sqrt((1.0 + s2) * (beta + s2) / s2), 1e-9);
            EXPECT_NEAR(at.left, left, 1e-9) << at.strength;
            EXPECT_NEAR(at.right, right, 1e-9) << at.strength;
            const double product = std::sqrt(left * right);
            EXPECT_NEAR(at.frobenius, at.strength * product, 1e-8);
            EXPECT_NEAR(at.operator_norm, at.strength * std::sqrt(std::min(left, right) / std::max(left, right)), 1e-6);
            EXPECT_NEAR(at.nuclear, std::max(0.0, at.strength * (product - std::sqrt((1.0 - left) * (1.0 - right)))),
                        1e-8);
        }
        EXPECT_GT(above, 200U);
    }
}

TEST(PhaseTransition, CurvesRiseFromTheThresholdToTheEndOfTheAxis) {
    const SeparableLaw law = shaped();
    const double threshold = law.detection_threshold().value;
    const double edge = root(law.bulk_edge()).value;
    for (const double largest : {1.0, 20.0}) {
        const std::vector<SignalStrength> marked = {{largest}};
        const auto curve = rows_of(phase_transition(law, marked), "curve");
        EXPECT_EQ(curve.front().strength, 0.0);
        EXPECT_DOUBLE_EQ(curve.back().strength, std::max(3.5 * threshold, 1.15 * largest));
        EXPECT_EQ(curve[1].strength, threshold);
        EXPECT_EQ(curve[1].observed, edge);
        EXPECT_EQ(curve[1].operator_norm, 0.0);
        EXPECT_GT(curve[2].operator_norm, 0.5 * threshold);  // the jump
        EXPECT_LT(curve[2].frobenius, 1e-3 * threshold);
        std::size_t near = 0;
        for (std::size_t i = 1; i < curve.size(); ++i) {
            EXPECT_GT(curve[i].strength, curve[i - 1].strength);
            EXPECT_GE(curve[i].observed, curve[i - 1].observed);
            EXPECT_GE(curve[i].left, curve[i - 1].left);
            EXPECT_GE(curve[i].right, curve[i - 1].right);
            EXPECT_GE(curve[i].frobenius, curve[i - 1].frobenius);
            EXPECT_LE(curve[i].nuclear, curve[i].frobenius);
            EXPECT_LE(curve[i].frobenius, curve[i].operator_norm);
            EXPECT_LE(curve[i].operator_norm, curve[i].observed);
            near += curve[i].strength > threshold && curve[i].strength < 1.1 * threshold ? 1 : 0;
        }
        EXPECT_GE(near, 20U);
    }
}

TEST(PhaseTransition, ShowsEdgeThresholdAndTitle) {
    const SeparableLaw law = shaped();
    const Figure figure = phase_transition(law, strengths);
    EXPECT_EQ(figure.title,
              fmt::format("n/d = 0.5: bulk edge {:.4g} (singular value {:.4g}), detection threshold "
                          "{:.4g} (signal strength)",
                          law.bulk_edge().value, std::sqrt(law.bulk_edge().value), law.detection_threshold().value));
    const auto shows = [&](const std::string& text) { return figure.script.find(text) != std::string::npos; };
    EXPECT_TRUE(shows(fmt::format("set arrow 1 from first {0:.8g}, graph 0 to first {0:.8g}, graph 1",
                                  law.detection_threshold().value)));
    EXPECT_TRUE(shows(fmt::format("plot {:.8g} with lines", std::sqrt(law.bulk_edge().value))));
    EXPECT_TRUE(shows("set multiplot title " + reports::gnuplot_quoted(figure.title)));

    Figure drawn = figure;
    draw(drawn);
    EXPECT_EQ(drawn.problem, "");
    for (const char* text : {"threshold", "bulk edge", "signal strength (singular value)", "squared inner product",
                             "left vectors (length n)", "operator loss", "observed: no shrinkage"})
        EXPECT_NE(drawn.svg.find(text), std::string::npos) << text;
    EXPECT_NE(drawn.svg.find(figure.title), std::string::npos);
    EXPECT_NE(inline_svg(drawn.svg, "f", drawn.title, drawn.description).find("role=\"img\""), std::string::npos);
}

TEST(PhaseTransition, OutliersInGapsAreDrawnWithTheComponentsOfTheBulk) {
    const SeparableLaw law = law_of("two-atom:1,25,0.5", "identity", 0.1);
    const theory::SupportGaps outside(law);
    const auto& gap = outside.gaps().front();
    const std::vector<SignalStrength> marked = {{0.5}, {1.67}, {4.0}};
    const Figure figure = phase_transition(law, marked);
    ASSERT_EQ(figure.rows.size(), 3U);
    EXPECT_EQ(figure.rows[0][0], "no");
    EXPECT_EQ(figure.rows[1][0], "in a gap");
    EXPECT_EQ(figure.rows[2][0], "yes");
    EXPECT_NE(figure.description.find("3 strengths, 1 detectable above the top edge, 1 in a gap only"),
              std::string::npos)
        << figure.description;
    const auto curve = rows_of(figure, "gap 1");
    ASSERT_GT(curve.size(), 200U);
    EXPECT_GT(curve.front().observed, root(gap.lower).value);
    EXPECT_LT(curve.back().observed, root(gap.upper).value);
    const auto points = rows_of(figure, "marked");  // one of the second strength, two of the third
    ASSERT_EQ(points.size(), 4U);
    EXPECT_EQ(points[1].observed, root(outside.spike(0, {1.67})->outlier).value);
    EXPECT_EQ(points[2].observed, root(law.spike({4.0}).outlier).value);
    EXPECT_EQ(points[3].right, outside.spike(0, {4.0})->overlap_right.value);
    // The lower component ends where the gap begins.
    const std::string& script = figure.script;
    EXPECT_NE(script.find(fmt::format("to graph 1, first {:.8g} behind", root(gap.lower).value)), std::string::npos);

    Figure drawn = figure;
    draw(drawn);
    EXPECT_EQ(drawn.problem, "");
    for (const char* text : {"density of the noise", "thin lines: in a gap", "outliers of the marked strengths"})
        EXPECT_NE(drawn.svg.find(text), std::string::npos) << text;
    EXPECT_EQ(phase_transition(shaped(), marked).script.find("density of the noise"), std::string::npos);
}

TEST(PhaseTransition, CurvesAreDistinguishableWithoutColour) {
    const std::string script = phase_transition(white(1.0), strengths).script;
    std::set<std::string> styles;
    std::size_t curves = 0;
    const std::regex legend("NaN with (linespoints|lines) ([^']*)rgb '[^']*'[^']* title '([^']*)'");
    std::string panel;
    for (std::sregex_iterator at(script.begin(), script.end(), legend), end; at != end; ++at) {
        const std::string before = script.substr(0, static_cast<std::size_t>(at->position()));
        panel = before.substr(before.rfind("set title"), 20);
        EXPECT_TRUE(styles.insert(panel + (*at)[2].str()).second) << (*at)[0];
        ++curves;
    }
    EXPECT_EQ(curves, 8U);  // the bulk edge is not counted, because its colour is a name
}

TEST(PhaseTransition, IsDrawnForAnyLaw) {
    const Scratch folder;
    const auto draws = [&](const SeparableLaw& law, const std::vector<SignalStrength>& marked) {
        std::string message;
        EXPECT_EQ(error_of(phase_transition(law, marked), folder / "any.svg", &message), std::nullopt) << message;
    };
    draws(white(0.01), {});
    draws(white(100.0), {{0.0}, {0.0}, {3.2}, {4.0}});
    draws(white(1.0), {{1e69}});
    draws(law_of("two-atom:1e-9,2e-9,0.5", "identity", 0.5), {{1e-5}});
    draws(law_of("two-atom:1e9,2e9,0.5", "uniform:1e8,1e9", 2.0), {{1e9}});
    draws(law_of("power:1", "two-atom:1,100,0.02", 0.25), strengths);
    draws(law_of("two-atom:0,1e9,0.5", "identity", 0.5), {{0.0}, {1e4}, {1e5}});
    draws(law_of("two-atom:1,1e4,0.5", "two-atom:1,1e5,0.3", 0.25), {});
    EXPECT_NE(phase_transition(law_of("two-atom:1e9,2e9,0.5", "identity", 1.0), {}).script.find("in 1e+05"),
              std::string::npos);
    const std::vector<SignalStrength> negative = {{-1.0}};
    EXPECT_THROW((void)phase_transition(white(1.0), negative), Error);
}

TEST(Picture, FormatFollowsTheExtension) {
    const Scratch folder;
    const Figure figure = phase_transition(shaped(), strengths);
    write_picture(figure, folder / "a.svg");
    write_picture(figure, folder / "a.png");
    write_picture(figure, folder / "a.PDF");
    const std::string svg = file_text(folder / "a.svg");
    EXPECT_TRUE(svg.starts_with("<?xml"));
    EXPECT_NE(svg.find("<title>" + figure.title + "</title>"), std::string::npos);
    EXPECT_NE(svg.find("<desc>" + figure.description), std::string::npos);
    EXPECT_EQ(svg.find("nuplot</title>"), std::string::npos);
    EXPECT_NE(svg.find("viewBox=\"0 0 1050 "), std::string::npos);
    EXPECT_NE(svg.find("fill=\"#ffffff\""), std::string::npos);
    const std::string png = file_text(folder / "a.png");
    EXPECT_TRUE(png.starts_with("\x89PNG\r\n\x1a\n"));
    EXPECT_EQ(png.substr(16, 4), std::string("\0\0\x08\x34", 4));  // 2100 pixels wide
    EXPECT_TRUE(png.ends_with("IEND\xAE\x42\x60\x82"));
    const std::string pdf = file_text(folder / "a.PDF");
    EXPECT_TRUE(pdf.starts_with("%PDF-"));
    EXPECT_EQ(pdf.find("Date"), std::string::npos);
    EXPECT_NE(pdf.find("%%EOF"), std::string::npos);
    EXPECT_EQ(files_in(folder / ""), 9U) << "each with its script and data";
    for (const char* name : {"a.svg", "a.png"}) {
        const std::string before = file_text(folder / name);
        write_picture(figure, folder / name);
        EXPECT_EQ(file_text(folder / name), before);
    }
}

TEST(Picture, RejectsAnUnknownExtensionAndNamesThePossibleOnes) {
    const Scratch folder;
    const Figure figure = phase_transition(white(1.0), {});
    for (const char* name : {"a.jpeg", "a", "a.", "a.svg.gz", "svg", "png.d/a"}) {
        std::string message;
        EXPECT_EQ(error_of(figure, folder / name, &message), ErrorKind::usage) << name;
        EXPECT_NE(message.find("end the name in .svg, .png or .pdf"), std::string::npos) << message;
        EXPECT_NE(message.find(name), std::string::npos) << message;
    }
    EXPECT_EQ(files_in(folder / ""), 0U);
}

TEST(Picture, IsWrittenWholeOrNotAtAll) {
    const Scratch folder;
    const Figure figure = phase_transition(white(1.0), {});
    EXPECT_EQ(error_of(figure, folder / "no/such/folder/a.svg"), ErrorKind::output);
    std::filesystem::create_directory(folder / "a.png");
    EXPECT_EQ(error_of(figure, folder / "a.png"), ErrorKind::output);

    std::ofstream(folder / "old.pdf") << "old";
    std::string message;
    {
        const ScopedPath no_programs(folder / "no-programs");
        EXPECT_EQ(error_of(figure, folder / "old.pdf", &message), ErrorKind::output);
        EXPECT_NE(message.find("gnuplot is not installed"), std::string::npos) << message;
    }
    {
        // This is the message of a gnuplot without Cairo.
        std::ofstream(folder / "gnuplot") << "#!/bin/sh\necho 'unknown or ambiguous terminal type' >&2\nexit 1\n";
        std::filesystem::permissions(folder / "gnuplot", std::filesystem::perms::owner_all);
        const ScopedPath without_cairo(folder / "");
        EXPECT_EQ(error_of(figure, folder / "old.pdf", &message), ErrorKind::output);
        EXPECT_NE(message.find("write .svg"), std::string::npos) << message;
    }
    EXPECT_EQ(file_text(folder / "old.pdf"), "old");
    EXPECT_EQ(files_in(folder / ""), 3U);
}

TEST(Picture, TheErrorContainsTheProblemOfTheFigure) {
    const Scratch folder;
    Figure empty;
    empty.problem = "the store holds no values";
    std::string message;
    EXPECT_EQ(error_of(empty, folder / "a.svg", &message), ErrorKind::input);
    EXPECT_NE(message.find("the store holds no values"), std::string::npos);
}

TEST(PictureControl, AScriptThatGnuplotRejectsIsABug) {
    const Scratch folder;
    Figure figure = phase_transition(white(1.0), {});
    figure.script += "plot (\n";
    EXPECT_EQ(error_of(figure, folder / "a.png"), ErrorKind::internal);
    EXPECT_EQ(files_in(folder / ""), 0U);
}

TEST(Panels, LongTitlesAreBrokenAfterCommasAndColons) {
    using Lines = std::vector<std::string>;
    EXPECT_EQ(wrapped("n = 128", 20), Lines{"n = 128"});
    EXPECT_EQ(wrapped("n = 128, d = 64", 15), Lines{"n = 128, d = 64"});
    EXPECT_EQ(wrapped("n = 128, d = 64", 14), (Lines{"n = 128,", "d = 64"}));
    EXPECT_EQ(wrapped("exponential:c=3", 14), (Lines{"exponential:", "c=3"}));
    EXPECT_EQ(wrapped("without any mark", 4), Lines{"without any mark"});
    EXPECT_EQ(wrapped("", 4), Lines{""});
    EXPECT_EQ(lines_quoted({"it's"}), gnuplot_quoted("it's"));
    EXPECT_EQ(lines_quoted({"a`b", "%s"}), R"(sprintf("%s\n%s", 'a`b', '%s'))");
}

TEST(Panels, HaveNoRoomForLegendsThatTheyDoNotHave) {
    const Panel plain{"a", "", {"x"}};
    Panel own = plain;
    own.legend = {{"line", "lines"}, {"other", "lines dt 2"}};
    const auto height = [](const std::string& script) {
        std::smatch found;
        EXPECT_TRUE(std::regex_search(script, found, std::regex("svg size [0-9]+,([0-9]+)")));
        return std::stoi(found[1]);
    };
    const std::string bare = panel_script("t", "", "", {plain}, {});
    EXPECT_EQ(bare.find("set key at"), std::string::npos);
    EXPECT_EQ(bare.find("multiplot title"), std::string::npos);
    EXPECT_GT(height(panel_script("t", "", "", {own}, {})), height(bare) + 40);
    EXPECT_GT(height(panel_script("t", "", "", {plain}, {}, {.heading = "heading"})), height(bare));
    const auto svg =
        run_gnuplot(panel_script("t", "", "", {plain, own}, {{"both", "lines"}}, {.heading = "it's a heading"}));
    ASSERT_TRUE(svg);
    for (const char* text : {">line<", ">other<", ">both<", "it's a heading"})
        EXPECT_NE(svg->find(text), std::string::npos) << text;
}

}  // namespace
}  // namespace spiked::reports

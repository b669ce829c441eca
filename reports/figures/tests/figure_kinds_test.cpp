#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "estimators/tests/noise_eigenvalues.hpp"
#include "reports/figures/figure_parts.hpp"
#include "reports/figures/figures.hpp"
#include "reports/figures/gnuplot.hpp"
#include "reports/figures/needle_figure.hpp"
#include "reports/figures/spectrum_figure.hpp"
#include "reports/figures/timing_figure.hpp"
#include "reports/page/html_report.hpp"
#include "reports/tables/text_table.hpp"
#include "reports/tests/fixture_store.hpp"
#include "sim/io/npy.hpp"

namespace spiked::reports {
namespace {

using estimators::noise_eigenvalues;
using validation::Database;

std::vector<std::vector<std::string>> csv_rows(const Figure& figure) {
    std::vector<std::vector<std::string>> rows;
    std::istringstream lines(figure.csv);
    std::string line;
    std::getline(lines, line);
    while (std::getline(lines, line)) {
        std::istringstream fields(line);
        auto& row = rows.emplace_back();
        for (std::string field; std::getline(fields, field, ',');) row.push_back(field);
    }
    return rows;
}

/// Expects that a figure is drawn and described, and has a table and a CSV of its data.
void expect_complete(const Figure& figure) {
    EXPECT_TRUE(has(figure.svg, "</svg>")) << figure.title << ": " << figure.problem;
    EXPECT_FALSE(figure.description.empty()) << figure.title;
    EXPECT_FALSE(figure.rows.empty()) << figure.title;
    for (const auto& row : figure.rows) EXPECT_EQ(row.size(), figure.columns.size()) << figure.title;
    EXPECT_EQ(csv_rows(figure).size(), figure.rows.size()) << figure.title;
}

/// A store of sizes 16 to 256 whose deviations from theory are c n^slope, with relative error `noise`.
void make_rates(const std::string& path, double slope, double noise) {
    FixtureStore store(path, "spiked");
    const auto sample = store.method("sample", "sample", "sample");
    for (const int n : {16, 32, 64, 128, 256}) {
        const auto cell = store.cell(fmt::format("n={}", n), n, n, 100);
        store.factor(cell, "n", n);
        store.factor(cell, "d", n);
        const double off = 3.0 * std::pow(n, slope);
        store.moment(cell, sample, "outlier", 1, 4.0 - off, noise * off);
        store.theory(cell, "outlier", 1, 4.0);
    }
    store.finish();
}

TEST(RateFigure, FitsTheSlopeAndItsError) {
    const Scratch folder;
    make_rates(folder / "rates.spiked", -2.0 / 3.0, 0.05);
    Database store(folder / "rates.spiked", Database::Mode::read);
    const auto figure = figures_of_kind("rate", store, Json::object({{"y", "outlier"}, {"slope", -1.0}})).front();
    expect_complete(figure);
    ASSERT_EQ(figure.rows.size(), 5U);
    // With equal relative errors e, the error of the slope is e over the root of the sum of squares of log n about its
    // mean.
    double squares = 0.0;
    for (const double step : {-2.0, -1.0, 0.0, 1.0, 2.0}) squares += step * step * std::log(2.0) * std::log(2.0);
    const double error = 0.05 / std::sqrt(squares);
    EXPECT_TRUE(has(figure.description, fmt::format("n^-0.667({:.0f}) over 5 points", 1000.0 * error)))
        << figure.description;
    EXPECT_TRUE(has(figure.description, fmt::format("{:.1f} standard errors from -1", (1.0 - 2.0 / 3.0) / error)));
    EXPECT_TRUE(has(figure.script, "slope -0.667"));
}

TEST(RateFigure, TheErrorOfAStandardDeviationDoesNotDependOnTheBatches) {
    const Scratch folder;
    for (const int per_batch : {1, 4, 100}) {
        const std::string path = folder / fmt::format("spread-{}.spiked", per_batch);
        {
            FixtureStore store(path, "spiked");
            const auto sample = store.method("sample", "sample", "sample");
            for (const int n : {16, 32, 64}) {
                const auto cell = store.cell(fmt::format("n={}", n), n, n, 100);
                store.factor(cell, "n", n);
                for (int first = 0; first < 100; first += per_batch) {
                    validation::Moments part;
                    for (int i = first; i < first + per_batch; ++i)
                        part.add((i % 7 + 0.1 * (i % 3)) / static_cast<double>(n));
                    store.moments(cell, first, sample, "outlier", 1, part);
                }
            }
            store.finish();
        }
        Database store(path, Database::Mode::read);
        const auto figure = figures_of_kind("rate", store, Json::object({{"y", "outlier"}, {"of", "spread"}})).front();
        ASSERT_EQ(figure.rows.size(), 3U);
        validation::Moments all;
        for (int i = 0; i < 100; ++i) all.add((i % 7 + 0.1 * (i % 3)) / 16.0);
        const double deviation = std::sqrt(all.m2 / 99.0);
        const double error =
            std::sqrt((all.m4 / 100.0 - deviation * deviation * deviation * deviation) / 100.0) / (2.0 * deviation);
        EXPECT_EQ(figure.rows[0].back(), with_error(deviation, error)) << per_batch << " replicates per batch";
    }
}

TEST(RateFigureControl, FitsAnotherSlopeAndNoneToNoise) {
    const Scratch folder;
    make_rates(folder / "other.spiked", -0.5, 0.05);
    Database other(folder / "other.spiked", Database::Mode::read);
    EXPECT_TRUE(has(figures_of_kind("rate", other, Json::object({{"y", "outlier"}})).front().description, "n^-0.500("));
    make_rates(folder / "noise.spiked", -0.5, 0.6);
    Database noise(folder / "noise.spiked", Database::Mode::read);
    const auto figure = figures_of_kind("rate", noise, Json::object({{"y", "outlier"}})).front();
    expect_complete(figure);
    EXPECT_FALSE(has(figure.description, "n^"));
    EXPECT_TRUE(has(figure.description, "1 have fewer than three points"));
    EXPECT_TRUE(has(figures_of_kind("rate", noise, Json::object({{"of", "beauty"}})).front().problem,
                    "deviation, spread, mean"));
}

// The title of a figure, which comes from the store, stands in a comment before the line that sets the size.
TEST(PictureScript, IgnoresASizeInTheTitle) {
    for (const char* title : {"set terminal svg size 9,9", "set terminal svg size x", "\nset terminal svg size 9,9"}) {
        const std::string script = panel_script(title, "", "", {Panel{}}, {});
        const std::string picture = picture_script(script, PictureFormat::png);
        EXPECT_TRUE(has(picture, "\nset terminal pngcairo size 1360,840 ")) << picture;
        EXPECT_TRUE(has(picture, "svg size")) << "the comment stays";
        EXPECT_FALSE(has(picture, "\nset terminal svg")) << picture;
        EXPECT_EQ(picture_script(script, PictureFormat::svg).find("\nset terminal svg size 680,420 "),
                  script.find("\nset terminal svg size 680,420 "));
    }
    EXPECT_THROW((void)picture_script("# set terminal svg size 9,9\n", PictureFormat::png), Error);
}

TEST(RateFigure, CountsPointsBelowTheFrame) {
    const Scratch folder;
    {
        FixtureStore store(folder / "low.spiked", "spiked");
        const auto sample = store.method("sample", "sample", "sample");
        for (const int n : {16, 32, 64, 128}) {
            const auto cell = store.cell(fmt::format("n={}", n), n, n, 100);
            store.factor(cell, "n", n);
            store.moment(cell, sample, "outlier", 1, 4.0 - (n == 128 ? 1e-9 : 1.0 / n), 1e-3);
            store.theory(cell, "outlier", 1, 4.0);
        }
        store.finish();
    }
    Database store(folder / "low.spiked", Database::Mode::read);
    const auto figure = figures_of_kind("rate", store, Json::object({{"y", "outlier"}})).front();
    EXPECT_TRUE(has(figure.description, "; 1 of them so close to it")) << figure.description;
}

TEST(MapFigure, ShowsAllDecimalPlacesAndLongNamesOfMetrics) {
    Figure figure;
    draw_map(figure, {{"", 0, 0, 1.25}, {"", 1, 0, 3.0}}, {"head", "layer", {"0", "1"}, {"0"}}, "mean rank");
    EXPECT_TRUE(has(figure.script, " 1.25\n")) << figure.script;
    EXPECT_TRUE(has(figure.script, "set y2label 'mean rank'"));
    Figure whole;
    draw_map(whole, {{"", 0, 0, 12.0}, {"", 1, 0, 3.0}}, {"head", "layer", {"0", "1"}, {"0"}}, "mean rank");
    EXPECT_TRUE(has(whole.script, " 12\n")) << whole.script;
    const Scratch folder;
    make_study(folder / "study.spiked");
    Database store(folder / "study.spiked", Database::Mode::read);
    const auto map = figures_of_kind(
        "map", store, Json::object({{"x", "signal.strength"}, {"by", "noise.row_cov.rho"}, {"y", "overlap.left"}}));
    EXPECT_TRUE(map.front().title.starts_with("overlap of left vectors by ")) << map.front().title;
}

TEST(MapFigure, PutsEveryCellInItsBox) {
    const Scratch folder;
    make_study(folder / "study.spiked");
    Database store(folder / "study.spiked", Database::Mode::read);
    const auto figure =
        figures_of_kind("map", store,
                        Json::object({{"x", "signal.strength"}, {"by", "noise.row_cov.rho"}, {"y", "rank"}}))
            .front();
    expect_complete(figure);
    EXPECT_EQ(figure.rows.size(), 28U);
    // Two shapes give two panels. Strength 3 is column 6 and rho 0.4 is row 1, where the rank is 1.
    EXPECT_TRUE(has(figure.script, "set title 'n = 64' "));
    EXPECT_TRUE(has(figure.script, "\n6 1 ")) << figure.script;
    EXPECT_TRUE(has(figure.script, " 1.00\n"));
    EXPECT_TRUE(has(figure.script, "\n0 0 ") && has(figure.script, " 0.19\n"));
    EXPECT_TRUE(has(figure.svg, "<text>rank</text>"));  // beside the colour scale
    const auto checks = figures_of_kind("map", store, Json::object({})).front();
    expect_complete(checks);
    EXPECT_TRUE(has(checks.description, "above 1 outside"));
    EXPECT_TRUE(has(figures_of_kind("map", store, Json::object({{"y", "beauty"}})).front().problem,
                    "holds no values of beauty"));
}

TEST(MapFigure, ShowsAllCellsOfALargeStudyInOneMap) {
    const Scratch folder;
    {
        FixtureStore store(folder / "large.spiked", "spiked");
        const auto estimator = store.method("eoptshrink", "estimator", "eoptshrink");
        for (int i = 0; i < 400; ++i) {
            const auto cell = store.cell(fmt::format("cell-{:03}", i), 64, 64);
            store.factor(cell, "signal.strength", i % 20);
            store.factor(cell, "noise.row_cov.rho", 0.01 * (i / 20));
            store.moment(cell, estimator, "relative_error", 0, i == 137 ? 0.9 : 0.5, 0.01);
        }
        store.finish();
    }
    const std::string page = html_report({folder / "large.spiked"});
    EXPECT_TRUE(has(page, "400 means over 20 x 20 values of"));
    EXPECT_TRUE(has(page, "Largest: 0.9 at cell-137"));
    EXPECT_TRUE(has(page, "the map are over all cells"));
}

/// A store with the draws 1/200, 2/200, ..., 1 of one quantity.
void make_draws(const std::string& path) {
    FixtureStore store(path, "spiked");
    const auto sample = store.method("sample", "sample", "sample");
    const auto metric = store.metric("outlier");
    const auto cell = store.cell("one", 64, 64, 200);
    for (int i = 0; i < 200; ++i) {
        validation::Statement value(store.database, "INSERT INTO value VALUES(?,?,?,?,1,?)");
        value.bind(1, cell).bind(2, i).bind(3, sample).bind(4, metric).bind_real(5, ((7 * i) % 200 + 1) / 200.0).run();
    }
    store.moment(cell, sample, "outlier", 1, 0.5025, 0.02, 200);
    store.theory(cell, "outlier", 1, 0.5);
    store.finish();
}

TEST(DistributionFigure, CountsEveryDrawAndHasTheConfidenceBand) {
    const Scratch folder;
    make_draws(folder / "draws.spiked");
    Database store(folder / "draws.spiked", Database::Mode::read);
    const auto figure = figures_of_kind("distribution", store, Json::object({{"y", "outlier"}})).front();
    expect_complete(figure);
    const auto rows = csv_rows(figure);
    ASSERT_EQ(rows.size(), 200U);
    const double band = std::sqrt(std::log(40.0) / 400.0);  // 95 %, 200 draws
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const double fraction = static_cast<double>(i + 1) / 200.0;
        EXPECT_NEAR(std::stod(rows[i][2]), fraction, 1e-12);
        EXPECT_NEAR(std::stod(rows[i][3]), fraction, 1e-12);
        EXPECT_NEAR(std::stod(rows[i][4]), std::max(0.0, fraction - band), 1e-9);
        EXPECT_NEAR(std::stod(rows[i][5]), std::min(1.0, fraction + band), 1e-9);
    }
    // The bins of the histogram contain all draws.
    std::istringstream lines(figure.script.substr(figure.script.find("$b0 << END") + 11));
    double count = 0.0;
    for (std::string line; std::getline(lines, line) && line != "END";) {
        std::istringstream numbers(line);
        double x = 0.0;
        double n = 0.0;
        numbers >> x >> n;
        count += n;
    }
    EXPECT_EQ(count, 200.0);
    EXPECT_TRUE(has(figure.description, "where theory says 0.5")) << figure.description;
    EXPECT_TRUE(has(figures_of_kind("distribution", store, Json::object({{"y", "rank"}})).front().problem,
                    "keeps no draws of rank"));
    EXPECT_FALSE(figures_of_kind("distribution", store, Json::object({{"y", "outlier"}, {"cell", "none"}}))
                     .front()
                     .problem.empty());
}

TEST(BiasFigure, IsTheRatioToTheFirstMethodOfTheSameBits) {
    const Scratch folder;
    {
        FixtureStore store(folder / "bias.spiked", "spiked");
        const auto plain = store.method("tq-mse B=2", "codec", "tq-mse", 2);
        const auto ours = store.method("eoptshrink+tq-mse B=2", "codec", "eoptshrink+tq-mse", 2);
        const auto cell = store.cell("keys", 64, 64);
        store.moment(cell, plain, "relative_l2", 0, 0.34, 1e-4);
        store.moment(cell, ours, "relative_l2", 0, 0.17, 1e-4);
        store.moment(cell, plain, "ip_bias_plain_own", 0, -0.12, 1e-4);
        store.moment(cell, ours, "ip_bias_plain_own", 0, -0.03, 1e-4);
        store.moment(cell, plain, "ip_bias_plain_random", 0, 1e-5, 1e-4);
        store.moment(cell, ours, "ip_bias_plain_random", 0, 1e-3, 1e-4);
        // The two batches differ, so that there is some noise.
        store.database.execute(
            "UPDATE moment SET mean = mean + (2 * batch - 1) * 1e-4 WHERE metric_id <> (SELECT metric_id FROM metric "
            "WHERE name = 'relative_l2')");
        store.finish();
    }
    Database store(folder / "bias.spiked", Database::Mode::read);
    const auto figure = figures_of_kind("bias-by-query", store, Json::object()).front();
    expect_complete(figure);
    const auto rows = csv_rows(figure);
    ASSERT_EQ(rows.size(), 2U) << figure.csv;  // random queries are left out, because their bias is within the noise
    EXPECT_TRUE(has(figure.description, "1 ratio of mean errors")) << figure.description;
    EXPECT_TRUE(has(figure.description, "queries: own (the row itself).")) << figure.description;
    EXPECT_TRUE(has(figure.description, "1 ratio of error\u00B2")) << figure.description;
    EXPECT_EQ(rows[0][3], "own");
    EXPECT_NEAR(std::stod(rows[0][6]), 0.25, 1e-12);
    EXPECT_NEAR(std::stod(rows[1][6]), 0.25, 1e-12);  // the squared errors
    // Columns without points are left out.
    EXPECT_TRUE(has(figure.script, "set xtics nomirror ('own' 0, 'error\u00B2' 1)\nset xrange [-0.5:1.5]"))
        << figure.script;
    const auto inverse = figures_of_kind("bias-by-query", store, Json::object({{"over", "eoptshrink+tq-mse"}})).front();
    EXPECT_NEAR(std::stod(csv_rows(inverse)[0][6]), 4.0, 1e-12);
    EXPECT_FALSE(figures_of_kind("bias-by-query", store, Json::object({{"bits", "3"}})).front().problem.empty());
}

TEST(DumpFigures, BiasByQueryAndRankMapWorkForDumps) {
    const Scratch folder;
    make_dump_store(folder / "dump.spiked");
    Database store(folder / "dump.spiked", Database::Mode::read);
    EXPECT_TRUE(has(figures_of_kind("bias-by-query", store, Json::object()).front().problem,
                    "where the bias of the first differs from zero"));
    const auto map = figures_of_kind("rank-map", store, Json::object()).front();
    expect_complete(map);
}

// The figure shows the first prompt only, before and after compression.
TEST(NeedleFigure, ShowsTheAttentionOfTheFirstPrompt) {
    const Scratch folder;
    const std::string path = folder / "needles.spiked";
    {
        FixtureStore store(path, "kv_model");
        const auto sample = store.method("sample", "sample", "sample");
        const auto coded = store.method("snapkv+tq-mse B=2 at 0.1", "codec", "snapkv+tq-mse B=2", 2);
        for (const int prompt : {0, 1}) {
            const auto cell = store.cell(fmt::format("prompt {}", prompt), 128, 64, 1);
            store.factor(cell, "side", "cache");
            store.factor(cell, "cluster", fmt::format("prompt {}", prompt));
            store.moment(cell, coded, "bits_per_entry", 0, 1.5, 0.0, 2);
            const double own = prompt == 0 ? 0.75 : 0.5;
            store.array(cell, sample, "needle_attention", arma::mat{{0.875, 0.0, 0.125}, {0.0, 1.0, 0.0}});
            store.array(cell, sample, "needle_head", arma::mat{{1.0, 3.0}});
            store.array(cell, coded, "needle_attention", arma::mat{{own, 0.0, 1.0 - own}, {0.0, own, 1.0 - own}});
        }
        store.finish();
    }
    Database store(path, Database::Mode::read);
    const auto figure = needle_attention(store, Json::object()).front();
    expect_complete(figure);
    EXPECT_TRUE(has(figure.title, "2 questions on their needles, layer 1, head 3"));
    const auto rows = csv_rows(figure);
    ASSERT_EQ(rows.size(), 2U * 2U * 3U);
    std::vector<std::string> own;
    for (const auto& row : rows)
        if (row[row.size() - 3] == row[row.size() - 2]) own.push_back(row.back());
    EXPECT_EQ(own, (std::vector<std::string>{"0.875", "1", "0.75", "0.75"}));
    EXPECT_TRUE(has(figure.svg, ">snapkv+tq-mse at 0.1, 1.50 bits<")) << figure.csv;
    const Scratch other;
    make_dump_store(other / "dump.spiked");
    Database dump(other / "dump.spiked", Database::Mode::read);
    EXPECT_TRUE(has(needle_attention(dump, Json::object()).front().problem, "no needle_attention"));
}

// The label of an axis must not be cut off where small numbers make its tic labels wide.
TEST(FrontierFigure, LabelsOfAxesLieInsideThePicture) {
    const Scratch folder;
    const std::string path = folder / "small.spiked";
    {
        FixtureStore store(path, "kv_model");
        const auto cell = store.cell("document 0", 128, 64, 1);
        store.factor(cell, "side", "cache");
        store.factor(cell, "cluster", "document 0");
        for (const int bits : {1, 2, 4, 6, 8}) {
            const auto coded = store.method(fmt::format("tq-mse B={}", bits), "codec", "tq-mse", bits);
            store.moment(cell, coded, "bits_per_entry", 0, bits, 0.0, 2);
            store.moment(cell, coded, "added_nats", 0, 0.3 * std::pow(0.2, bits), 0.0, 2);
        }
        store.finish();
    }
    Database store(path, Database::Mode::read);
    const auto figure = figures_of_kind("frontier", store, Json::object({{"y", "added_nats"}})).front();
    expect_complete(figure);
    EXPECT_EQ(figure.title, "added nats a token against stored bits");
    const std::size_t label = figure.svg.find(">added nats a token<");
    ASSERT_NE(label, std::string::npos);
    const std::size_t position = figure.svg.rfind("translate(", label);
    ASSERT_NE(position, std::string::npos);
    EXPECT_GT(std::stod(figure.svg.substr(position + 10)), 10.0);  // half a line of text
    EXPECT_FALSE(has(figure.svg, "0.10000"));
}

/// The figure of a block whose larger size is 60.
Figure spectrum_of(std::vector<double> singular, std::optional<Eigenvalue> edge, std::vector<double> noise = {}) {
    return spectrum_figure("block", validation::fit_spectrum(std::move(singular), edge, std::move(noise), 60));
}

TEST(SpectrumFigure, CountsValuesOnBothSidesOfTheEdge) {
    std::vector<double> singular = {5.0, 3.0};
    for (int i = 0; i < 50; ++i) singular.push_back(0.5 + 0.03 * i);
    auto figure = spectrum_of(singular, Eigenvalue{4.1}, std::vector<double>(50, 1.0));
    draw(figure);
    expect_complete(figure);
    EXPECT_TRUE(has(figure.description, "52 singular values from 5 down to 0.5. 2 lie above the estimated edge 2.025"));
    EXPECT_TRUE(has(figure.description, "The rank rule takes 2 of them for signal.")) << figure.description;
    EXPECT_TRUE(has(figure.description, "fitted to 50 of the other 50: ")) << figure.description;
    EXPECT_TRUE(has(figure.description, "white on ")) << figure.description;
    auto bare = spectrum_of(singular, std::nullopt);
    draw(bare);
    expect_complete(bare);
    EXPECT_FALSE(has(bare.script, "$density"));
}

TEST(SpectrumFigure, GivesTheReasonWhenItCannotBeDrawn) {
    const double missing = std::nan("");
    const auto expect_problem = [](Figure figure, const std::string& why) {
        draw(figure);
        EXPECT_TRUE(has(figure.problem, why)) << figure.problem;
        EXPECT_EQ(figure.script + figure.svg, "");
    };
    expect_problem(spectrum_of({}, std::nullopt), "no singular value is above 0");
    expect_problem(spectrum_of({0.0, 0.0}, Eigenvalue{0.0}, {0.0, 0.0}), "no singular value is above 0");
    expect_problem(spectrum_of({1e-170, 1e-180}, std::nullopt), "no singular value is above 0");
    expect_problem(spectrum_of({2.0, missing, 1.0}, std::nullopt), "not all finite");
    expect_problem(spectrum_of({1e160, 1.0}, std::nullopt), "not all finite");
    expect_problem(spectrum_of({2.0, 1.0}, std::nullopt, {missing, 1.0}), "not all finite");
    // An edge far below all values, or one that is not a number, does not prevent the picture.
    for (const double edge : {1e-40, missing, -1.0})
        expect_complete([&] {
            auto figure = spectrum_of({3.0, 2.0, 1.0}, Eigenvalue{edge});
            draw(figure);
            return figure;
        }());
}

TEST(SpectrumFigure, DescribesTheFittedLaw) {
    const auto of = [](const std::vector<double>& noise) {
        return spectrum_figure("block", validation::fit_spectrum({30.0, 20.0, 10.0}, Eigenvalue{2000.0}, noise, 128));
    };
    const Figure side = of(noise_eigenvalues(64, 128, 5.0, 3, true));
    EXPECT_TRUE(has(side.description, "on the side of 3, white on the side of 128")) << side.description;
    // Half of the eigenvalues are a thousand times smaller, which is not an exponential decay.
    std::vector<double> two = noise_eigenvalues(64, 128, 0.0, 1);
    for (const double weak : noise_eigenvalues(64, 128, 0.0, 2)) two.push_back(1e-3 * weak);
    const Figure differs = of(two);
    EXPECT_TRUE(has(differs.description, "this noise differs from the fit")) << differs.description;
    const Figure own = of(noise_eigenvalues(128, 128, 2.0, 3));
    EXPECT_TRUE(has(own.description, "is compatible with the fit")) << own.description;
    EXPECT_TRUE(has(own.script, "$density using 1:2 with lines"));
}

TEST(SpectrumFigure, LeavesZerosOutOfTheHistogramAndCountsThem) {
    std::vector<double> noise = noise_eigenvalues(64, 128, 0.0, 1);
    std::vector<double> singular;
    for (const double value : noise) singular.push_back(std::sqrt(value));
    singular.resize(100, 1e-9);
    noise.resize(100, 1e-18);
    const auto figure = spectrum_figure("block", validation::fit_spectrum(singular, Eigenvalue{4000.0}, noise, 128));
    EXPECT_TRUE(has(figure.description, "leaves out 36 singular values below 0.0001 of the largest"));
    EXPECT_TRUE(has(figure.script, "36 left out as 0")) << figure.script;
    const std::size_t bars = figure.script.find("$bins << END") + 13;
    double total = 0.0;
    std::istringstream lines(figure.script.substr(bars, figure.script.find("END\n", bars) - bars));
    for (double at = 0.0, count = 0.0; lines >> at >> count;) total += count;
    EXPECT_EQ(total, 64.0);
}

TEST(HeatmapFigure, ShowsBlockSignalAndResidualOnAxesWithAScale) {
    const Scratch folder;
    make_dump_store(folder / "dump.spiked");
    Database store(folder / "dump.spiked", Database::Mode::read);
    std::size_t found = 0;
    for (const auto& figure : figures_of_kind("head-picture", store, Json::object())) {
        if (!has(figure.title, "signal and residual")) continue;
        ++found;
        EXPECT_EQ(figure.rows.size(), 3U);
        const auto rows = csv_rows(figure);
        ASSERT_EQ(rows.size(), 128U * 128U);
        const auto& entry = rows[128 * 5 + 7];
        EXPECT_EQ(entry[0] + " " + entry[1], "5 7");
        EXPECT_NEAR(std::stod(entry[2]), std::stod(entry[3]) + std::stod(entry[4]), 1e-12);
        std::size_t images = 0;
        for (std::size_t at = 0; (at = figure.svg.find("<image", at)) != std::string::npos; ++at) ++images;
        EXPECT_EQ(images, 4U);  // three parts and the scale
        for (const char* word :
             {"<text>row</text>", "<text>channel</text>", "<text>entry</text>", "<text>residual</text>"})
            EXPECT_TRUE(has(figure.svg, word)) << word;
        EXPECT_TRUE(has(figure.description, "% of the block's energy is in the signal"));
    }
    EXPECT_EQ(found, 2U);
}

TEST(HeatmapFigure, ReportsRankZero) {
    const Scratch folder;
    make_dump_store(folder / "dump.spiked");
    sim::write_npy(folder / "zero.npy", arma::mat(128, 128, arma::fill::zeros));
    const std::string zero = file_text(folder / "zero.npy");
    Database store(folder / "dump.spiked", Database::Mode::write);
    validation::Statement change(store, "UPDATE array SET npy = ?1 WHERE name = 'signal'");
    change.bind_blob(1, {reinterpret_cast<const std::uint8_t*>(zero.data()), zero.size()});
    change.run();
    std::size_t found = 0;
    for (const auto& figure : figures_of_kind("head-picture", store, Json::object()))
        if (has(figure.description, "kept no component (rank 0)")) ++found;
    EXPECT_EQ(found, 2U);
}

TEST(TimingFigure, HasABarForEveryRow) {
    std::vector<Timing> timings;
    for (int i = 0; i < 33; ++i) timings.push_back({fmt::format("job-{}", i), 10.0 + i, 9.0 + i});
    auto figure = timing_figure("Jobs", timings);
    draw(figure);
    expect_complete(figure);
    EXPECT_EQ(csv_rows(figure)[0][3], "100000");
    EXPECT_TRUE(has(figure.script, "\"100 k\""));
    EXPECT_TRUE(has(figure.svg, "job-32"));
    EXPECT_FALSE(timing_figure("None", {}).problem.empty());
}

TEST(FigureKinds, AreAllInTheReadme) {
    const std::string page = file_text(SPIKED_SOURCE_DIR "/reports/README.md");
    for (const auto& kind : figure_kinds()) {
        const std::size_t line = page.find(fmt::format("\n| `{}` |", kind.entry.name));
        ASSERT_NE(line, std::string::npos) << kind.entry.name;
        const std::string row = page.substr(line + 1, page.find('\n', line + 1) - line);
        for (const auto& option : kind.entry.options)
            EXPECT_TRUE(has(row, "`" + option.key + "`")) << kind.entry.name << ": " << option.key;
    }
}

}  // namespace
}  // namespace spiked::reports

#include "reports/tables/method_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "core/runtime/error.hpp"
#include "core/text/json.hpp"
#include "reports/tables/export.hpp"
#include "reports/tables/latex.hpp"
#include "reports/tests/fixture_store.hpp"
#include "validation/kv/kv_table.hpp"

namespace spiked::reports {
namespace {

using validation::Database;
using validation::paired_difference;
using validation::paired_ratio;
using validation::PartEstimate;
using validation::Parts;

Parts draws(const std::vector<double>& values) {
    Parts parts;
    for (std::size_t i = 0; i < values.size(); ++i) parts.sums[static_cast<std::int64_t>(i)] = {1.0, values[i]};
    return parts;
}

/// Sample mean and its standard error.
std::pair<double, double> plain_mean(const std::vector<double>& values) {
    const double count = static_cast<double>(values.size());
    const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
    double squares = 0.0;
    for (const double value : values) squares += (value - mean) * (value - mean);
    return {mean, std::sqrt(squares / (count - 1.0) / count)};
}

TEST(PairedReference, DifferenceOfDrawsIsTheMeanOfDifferences) {
    const std::vector<double> a = {1.0, 4.0, 2.5, 7.0, 3.25};
    const std::vector<double> b = {0.5, 3.5, 2.75, 6.0, 2.0};
    std::vector<double> difference(a.size());
    std::transform(a.begin(), a.end(), b.begin(), difference.begin(), std::minus<>());
    const auto [mean, error] = plain_mean(difference);
    const auto paired = paired_difference(draws(a), draws(b));
    EXPECT_NEAR(paired.value, mean, 1e-14);
    EXPECT_NEAR(paired.error(), error, 1e-14);
    EXPECT_EQ(paired.influence.size(), 5U);
    EXPECT_NEAR(draws(a).mean().error(), plain_mean(a).second, 1e-14);
}

TEST(PairedReference, ErrorOfARatioAgreesWithTheJackknifeForSmallDeviations) {
    std::vector<double> a(200);
    std::vector<double> b(200);
    for (std::size_t i = 0; i < a.size(); ++i) {
        b[i] = 5.0 + 0.1 * std::sin(static_cast<double>(i));
        a[i] = 2.0 * b[i] + 0.05 * std::cos(1.7 * static_cast<double>(i));
    }
    const auto ratio = paired_ratio(draws(a), draws(b));
    const double sum_a = std::accumulate(a.begin(), a.end(), 0.0);
    const double sum_b = std::accumulate(b.begin(), b.end(), 0.0);
    std::vector<double> left_out;
    for (std::size_t i = 0; i < a.size(); ++i) left_out.push_back((sum_a - a[i]) / (sum_b - b[i]));
    const auto [center, error] = plain_mean(left_out);
    EXPECT_NEAR(ratio.value, sum_a / sum_b, 1e-14);
    EXPECT_NEAR(ratio.error(), error * 199.0, 0.01 * ratio.error());
}

/// An estimate of standard error 1 from this number of parts.
PartEstimate unit_estimate(double value, int parts) {
    PartEstimate estimate{value};
    for (int part = 0; part < parts; ++part) estimate.influence[part] = std::sqrt(1.0 / parts);
    estimate.degrees = parts - 1.0;
    return estimate;
}

TEST(Paired, FewPartsNeedMoreThanTwoStandardErrors) {
    EXPECT_NEAR(unit_estimate(0.0, 4).error(), 1.0, 1e-14);
    EXPECT_TRUE(unit_estimate(2.02, 100000).beyond_noise());
    EXPECT_FALSE(unit_estimate(1.99, 100000).beyond_noise());
    EXPECT_FALSE(
        unit_estimate(3.0, 4).beyond_noise());  // the quantile of Student's law with 3 degrees of freedom is 3.307
    EXPECT_TRUE(unit_estimate(3.32, 4).beyond_noise());
    EXPECT_FALSE(unit_estimate(9.0, 1).beyond_noise());
}

/// A store of two estimators on the same 40 blocks, whose errors vary much more between blocks than between the
/// estimators. With `swapped` the second one has the blocks in another order, so that pairing does not help.
std::string two_estimators(const std::string& path, bool swapped, bool keep_draws = true) {
    FixtureStore store(path, "spiked");
    const std::int64_t methods[] = {store.method("first", "estimator", "first"),
                                    store.method("second", "estimator", "second")};
    const auto cell = store.cell("one", 64, 64, 40);
    const auto metric = store.metric("relative_error");
    store.database.execute("UPDATE metric SET better = 'lower'; DELETE FROM batch");
    for (int batch = 0; batch < 4; ++batch)
        store.database.execute(
            fmt::format("INSERT INTO batch VALUES({},{},{},10,0,1,0.5,'x')", cell, batch, 10 * batch));
    for (int m = 0; m < 2; ++m)
        for (int batch = 0; batch < 4; ++batch) {
            std::vector<double> values;
            for (int r = 10 * batch; r < 10 * batch + 10; ++r) {
                const int block = swapped && m == 1 ? 7 * r % 40 : r;
                values.push_back(0.5 + 0.1 * std::sin(1.0 + block) - 0.002 * m + 0.0002 * std::cos(3.0 * r + m));
                if (!keep_draws) continue;
                validation::Statement value(store.database, "INSERT INTO value VALUES(?,?,?,?,0,?)");
                value.bind(1, cell).bind(2, r).bind(3, methods[m]).bind(4, metric).bind_real(5, values.back()).run();
            }
            const auto [mean, error] = plain_mean(values);
            validation::Statement moment(store.database, "INSERT INTO moment VALUES(?,?,?,?,0,10,0,?,?,0,0,0,1)");
            moment.bind(1, cell).bind(2, batch).bind(3, methods[m]).bind(4, metric);
            moment.bind_real(5, mean).bind_real(6, 90.0 * error * error).run();
        }
    store.finish();
    return path;
}

MethodTable table_of(const std::string& path) {
    Database store(path, Database::Mode::read);
    return method_table(store);
}

TEST(MethodTable, HasTheMetricsInTheRequestedOrderAndEveryLatexTableNamesItsPackages) {
    const Scratch folder;
    make_study(folder / "study.spiked");
    Database store(folder / "study.spiked", Database::Mode::read);
    for (const std::vector<std::string>& requested :
         {std::vector<std::string>{"relative_l2", "bits_per_entry", "distortion"},
          std::vector<std::string>{"distortion", "bits_per_entry", "relative_l2"}}) {
        const auto table = method_table(store, {.metrics = requested});
        ASSERT_EQ(table.columns.size(), 3U);
        for (std::size_t c = 0; c < 3; ++c) EXPECT_EQ(table.columns[c].metric, requested[c]);
        for (const auto& row : table.rows)
            if (row.kind == "codec" && row.bits == "2") {
                for (std::size_t c = 0; c < 3; ++c)
                    EXPECT_NEAR(row.means[c].mean,
                                requested[c] == "distortion"       ? 0.1172 * 1.001
                                : requested[c] == "bits_per_entry" ? 2.125
                                                                   : std::sqrt(0.1172),
                                1e-9);
            }
        const std::string latex = export_table(store, "methods", "latex", requested);
        EXPECT_LT(latex.find(latex_text(requested[0])), latex.find(latex_text(requested[2])));
    }
    for (const char* table : {"methods", "summary", "checks"})
        EXPECT_TRUE(has(export_table(store, table, "latex", {}), "% Needs booktabs")) << table;
}

TEST(MethodTable, MarksTheBestByPairedDifferences) {
    const Scratch folder;
    for (const bool keep_draws : {true, false}) {
        const auto table = table_of(two_estimators(folder / (keep_draws ? "draws" : "batches"), false, keep_draws));
        ASSERT_EQ(table.rows.size(), 2U);
        EXPECT_FALSE(table.rows[0].means[0].best);
        EXPECT_TRUE(table.rows[1].means[0].best) << keep_draws;
        EXPECT_EQ(table.rows[1].means[0].n, 40);
        // The difference is much smaller than the standard error of either mean.
        EXPECT_LT(table.rows[0].means[0].mean - table.rows[1].means[0].mean, 0.3 * table.rows[0].means[0].error);
    }
}

TEST(MethodTableControl, MarksNoBestWithoutPairing) {
    const Scratch folder;
    for (const auto& row : table_of(two_estimators(folder / "s", true)).rows) EXPECT_FALSE(row.means[0].best);
}

TEST(MethodTable, HasTheMeansAndErrorsOfTheViewsOfTheStore) {
    const Scratch folder;
    make_study(folder / "study.spiked");
    make_dump_store(folder / "dump.spiked");
    Database study(folder / "study.spiked", Database::Mode::read);
    const auto blocks = method_table(study);
    validation::Statement query(study,
                                "SELECT mean, mcse FROM v_summary s JOIN metric mt USING(metric_id) WHERE s.cell_id = "
                                "? AND s.method_id = ? AND s.metric = ? AND s.k = ?");
    std::size_t compared = 0;
    for (const auto& row : blocks.rows)
        for (std::size_t c = 0; c < blocks.columns.size(); ++c) {
            if (row.means[c].n == 0) continue;
            query.reset();
            query.bind(1, row.cell_id).bind(2, row.method_id);
            query.bind(3, blocks.columns[c].metric).bind(4, blocks.columns[c].k);
            ASSERT_TRUE(query.step());
            EXPECT_NEAR(row.means[c].mean, query.real(0), 1e-12);
            EXPECT_NEAR(row.means[c].error, query.real(1), 1e-12);
            if (row.means[c].n > 1) {
                EXPECT_EQ(row.means[c].df, static_cast<double>(row.means[c].n) - 1.0);
            }
            ++compared;
        }
    EXPECT_GT(compared, 200U);
    Database dump(folder / "dump.spiked", Database::Mode::read);
    const auto sides = method_table(dump, {.metrics = {"relative_l2", "bits_per_entry"}});
    validation::Statement clustered(
        dump, "SELECT mean, mcse FROM v_cluster WHERE side || 's' = ? AND method_id = ? AND metric = ?");
    ASSERT_EQ(sides.rows.size(), 12U);
    for (const auto& row : sides.rows)
        for (std::size_t c = 0; c < 2; ++c) {
            clustered.reset();
            clustered.bind(1, row.group).bind(2, row.method_id).bind(3, sides.columns[c].metric);
            ASSERT_TRUE(clustered.step());
            EXPECT_NEAR(row.means[c].mean, clustered.real(0), 1e-12);
            // All clusters have ten blocks.
            EXPECT_NEAR(row.means[c].error, clustered.real(1), 1e-12);
            EXPECT_EQ(row.means[c].df, static_cast<double>(row.means[c].parts.sums.size()) - 1.0);
        }
    EXPECT_TRUE(has(export_table(dump, "methods", "text"), "Clustered standard errors have "));
    EXPECT_FALSE(has(export_table(study, "methods", "text"), "Clustered"));
}

// Heads with 10, 30 and 20 blocks of means 1, 2 and 4: the mean is 2.5, w = 1/6, 1/2, 1/3, e = w (mean of the head
// - 2.5) = -.25, -.25, .5. By hand: sum e^2 / (1 - w) = .575; the sum of w_g^2 is 7/18 and that of the cross terms
// 19/90, so that there are 1 / .6 degrees of freedom. The view has 3/2 sum e^2 = .5625.
TEST(MethodTable, UnequalClustersHaveCr2AndFractionsOfADegreeOfFreedom) {
    const Scratch folder;
    const std::string path = folder / "unequal.spiked";
    {
        FixtureStore store(path, "kv_dump");
        const auto coded = store.method("tq-mse@2", "codec", "tq-mse", 2);
        int head = 0;
        for (const auto& [blocks, mean] : {std::pair{10, 1.0}, std::pair{30, 2.0}, std::pair{20, 4.0}}) {
            const auto cell = store.cell(fmt::format("head {}", head), 128, 64, blocks);
            store.factor(cell, "side", "key");
            store.factor(cell, "cluster", fmt::format("L0H{}", head++));
            store.factor(cell, "cluster_by", "head");
            store.moment(cell, coded, "relative_l2", 0, mean, 0.1, blocks);
            store.moment(cell, coded, "bits_per_entry", 0, 2.125, 0.0, blocks);
        }
        store.finish();
    }
    Database store(path, Database::Mode::read);
    const MethodMean shown = method_table(store, {.metrics = {"relative_l2"}}).rows.at(0).means.at(0);
    EXPECT_NEAR(shown.mean, 2.5, 1e-14);
    EXPECT_NEAR(shown.error, std::sqrt(0.575), 1e-14);
    EXPECT_NEAR(shown.df, 1.0 / 0.6, 1e-12);
    const validation::KvTable table = validation::kv_table(store);
    ASSERT_EQ(table.rows.size(), 1U);
    EXPECT_NEAR(table.rows[0].of("relative_l2").mean, 2.5, 1e-14);
    EXPECT_NEAR(table.rows[0].of("relative_l2").mcse, std::sqrt(0.575), 1e-14);
    EXPECT_NEAR(table.rows[0].degrees(), 1.0 / 0.6, 1e-12);
    EXPECT_EQ(table.rows[0].blocks, 60U);
    validation::Statement view(store, "SELECT mcse FROM v_cluster WHERE metric = 'relative_l2'");
    ASSERT_TRUE(view.step());
    EXPECT_NEAR(view.real(0), std::sqrt(0.5625), 1e-14);
    EXPECT_TRUE(has(export_table(store, "methods", "text"), "1.67 degrees of freedom: 95 % limits 5.24 standard"));
}

TEST(MethodTable, EveryFormatHoldsTheSameNumbers) {
    const Scratch folder;
    Database store(two_estimators(folder / "s", false), Database::Mode::read);
    const std::string csv = export_table(store, "methods", "csv");
    EXPECT_TRUE(
        csv.starts_with("group,method,bits,relative_error,relative_error mcse,relative_error best\none,first,,0."));
    const Json json = Json::parse(export_table(store, "methods", "json"), "json");
    const auto& rows = *json.find("rows")->items();
    ASSERT_EQ(rows.size(), 2U);
    EXPECT_TRUE(has(csv, fmt::format("{},{},1", *rows[1].find("mean")->real(), *rows[1].find("mcse")->real())));
    EXPECT_TRUE(*rows[1].find("best")->boolean());
    const std::string latex = export_table(store, "methods", "latex", {"relative_error"});
    EXPECT_TRUE(has(latex, "\\begin{tabular}{lrr}\n\\toprule\nmethod & $B$ & relative\\_error \\\\\n\\midrule"));
    validation::Statement study(store, "SELECT science_hash FROM study");
    ASSERT_TRUE(study.step());
    EXPECT_TRUE(latex.starts_with("% Table methods of study bbp-square, settings " + study.text(0))) << latex;
    EXPECT_TRUE(has(latex, "second &  & $\\mathbf{0.")) << latex;
    EXPECT_TRUE(has(latex, "first &  & $0.")) << latex;
    EXPECT_TRUE(has(export_table(store, "methods", "text"), ")*"));
    EXPECT_THROW((void)export_table(store, "methods", "csv", {"beauty"}), Error);
    EXPECT_THROW((void)export_table(store, "summary", "csv", {"relative_error"}), Error);
    EXPECT_THROW((void)export_npy(store, "methods"), Error);
}

/// Whether pdflatex reports that a page with this table is too wide or too high.
bool overfull(const std::string& table) {
    const Scratch folder;
    std::ofstream(folder / "page.tex") << "\\documentclass{article}\\usepackage{booktabs,graphicx}\\begin{document}\n"
                                       << table << "\\end{document}\n";
    const std::string log = folder / "page.log";
    EXPECT_EQ(std::system(fmt::format("cd '{}' && pdflatex -interaction=batchmode page.tex >/dev/null",
                                      std::filesystem::path(log).parent_path().string())
                              .c_str()),
              0);
    return has(file_text(log), "Overfull");
}

TEST(Latex, TablesLongerThanAPageAreSplit) {
    const std::vector<std::vector<std::string>> page(37, {"a", "1"});
    auto more = page;
    more.insert(more.begin(), {"a group"});
    EXPECT_EQ(occurrences(latex_table({"name", "x"}, {false, true}, page), "\\begin{tabular}"), 1U);
    const std::string text = latex_table({"name", "x"}, {false, true}, more);
    EXPECT_EQ(latex_packages(text), "booktabs");
    EXPECT_EQ(occurrences(text, "\\begin{tabular}{lr}\n\\toprule\nname & x \\\\\n\\midrule\n"), 2U);
    EXPECT_TRUE(text.ends_with("\\midrule\na & 1 \\\\\n\\bottomrule\n\\end{tabular}\n")) << text;
}

TEST(Latex, PagesAreNotTooHighAndDoNotEndWithAGroupHeading) {
    std::vector<std::vector<std::string>> rows;
    for (int cell = 0; cell < 24; ++cell) {
        rows.push_back({"a cell"});
        for (int method = 0; method < cell % 3 + 1; ++method) rows.push_back({"a", "1"});
    }
    const std::string text = latex_table({"name", "x"}, {false, true}, rows);
    EXPECT_EQ(occurrences(text, "a & 1"), 48U);
    EXPECT_EQ(occurrences(text, "a cell"), 24U);
    EXPECT_FALSE(has(text, "{a cell} \\\\\n\\bottomrule")) << text;
    if (std::system("command -v pdflatex >/dev/null 2>&1") != 0) GTEST_SKIP() << "pdflatex is not installed";
    EXPECT_FALSE(overfull(text));
}

TEST(Latex, WideTablesAreScaledToThePage) {
    const std::vector<std::string> header(14, "relative error");
    std::vector<bool> numeric(14, true);
    const std::vector<std::vector<std::string>> rows(60, std::vector<std::string>(14, "$0.7525(22)$"));
    const std::string wide = latex_table(header, numeric, rows);
    EXPECT_EQ(latex_packages(wide), "booktabs and graphicx");
    if (std::system("command -v pdflatex >/dev/null 2>&1") != 0) GTEST_SKIP() << "pdflatex is not installed";
    EXPECT_FALSE(overfull(wide));
    // Negative control: the same table without scaling does not fit.
    std::string plain = wide;
    for (std::size_t at = 0; (at = plain.find("\\noindent\\resizebox")) != std::string::npos;)
        plain.erase(at, plain.find('\n', at) - at);
    for (std::size_t at = 0; (at = plain.find("{tabular}}")) != std::string::npos;) plain.erase(at + 9, 1);
    EXPECT_TRUE(overfull(plain));
}

TEST(Latex, EscapesTextAndTypesetsNumbers) {
    EXPECT_EQ(latex_text("a_b & 50 % #1 {x} $5 ~^\\ <"),
              "a\\_b \\& 50 \\% \\#1 \\{x\\} \\$5 \\~{}\\^{}\\textbackslash{} $<$");
    EXPECT_EQ(latex_number("0.7525(22)"), "$0.7525(22)$");
    EXPECT_EQ(latex_number("-3.1e-05", true), "$\\mathbf{-3.1\\times 10^{-5}}$");
    EXPECT_EQ(latex_number("2e+12"), "$2\\times 10^{12}$");
    EXPECT_EQ(latex_number("-"), "--");
    EXPECT_EQ(latex_number("tq_mse"), "tq\\_mse");
}

TEST(Latex, EveryRowHasAsManyColumnsAsTheTable) {
    const Scratch folder;
    make_dump_store(folder / "dump.spiked");
    Database store(folder / "dump.spiked", Database::Mode::read);
    for (const char* table : {"methods", "summary", "bits"}) {
        std::istringstream lines(export_table(store, table, "latex"));
        std::size_t columns = 0;
        std::size_t rows = 0;
        for (std::string line; std::getline(lines, line);) {
            if (line.starts_with("\\noindent") || line.starts_with("\\end{tabular}"))
                continue;  // the lines around a scaled table
            if (line.starts_with("\\begin{tabular}"))
                columns = line.size() - line.find("}{") - 3;
            else if (line.ends_with("\\\\") && !line.starts_with("\\multicolumn")) {
                EXPECT_EQ(static_cast<std::size_t>(std::count(line.begin(), line.end(), '&')) + 1, columns) << line;
                ++rows;
            }
            EXPECT_EQ(std::count(line.begin(), line.end(), '{'), std::count(line.begin(), line.end(), '}')) << line;
        }
        EXPECT_GT(rows, 10U) << table;
    }
}

}  // namespace
}  // namespace spiked::reports

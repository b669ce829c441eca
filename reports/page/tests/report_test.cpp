#include <gtest/gtest.h>

#include <cstdlib>
#include <regex>
#include <set>
#include <thread>

#include "core/runtime/error.hpp"
#include "reports/figures/figures.hpp"
#include "reports/figures/gnuplot.hpp"
#include "reports/page/html.hpp"
#include "reports/page/html_report.hpp"
#include "reports/page/printed_values.hpp"
#include "reports/tables/csv_text.hpp"
#include "reports/tables/export.hpp"
#include "reports/tables/kv_report.hpp"
#include "reports/tables/store_queries.hpp"
#include "reports/tables/store_text.hpp"
#include "reports/tests/fixture_store.hpp"
#include "validation/kv/kv_table.hpp"
#include "validation/store/open_store.hpp"
#include "validation/store/tests/version_2_store.hpp"

namespace spiked::reports {
namespace {

using validation::Database;

void edit(const std::string& path, const std::string& sql) { Database(path, Database::Mode::write).execute(sql); }

std::string page_of(const std::string& path, const ReportOptions& options = {}) { return html_report({path}, options); }

/// The section with that id.
std::string section_of(const std::string& page, const std::string& id) {
    const std::size_t start = page.find("<section id=\"" + id + "\"");
    return start == std::string::npos ? "" : page.substr(start, page.find("</section>", start) - start);
}

/// The messages of tidy; empty when the page is valid.
std::string tidy(const std::string& page) {
    const Scratch folder;
    std::ofstream(folder / "page.html") << page;
    const int status =
        std::system(fmt::format("tidy -q -e -utf8 {0} > {1} 2>&1", folder / "page.html", folder / "tidy.txt").c_str());
    return status == 0 ? "" : file_text(folder / "tidy.txt");
}

class Report : public testing::Test {
protected:
    std::string study(const std::string& name = "bbp-square", const std::string& status = "complete") {
        const std::string path = folder / "study.spiked";
        make_study(path, name, status);
        return path;
    }
    std::string dump(int layers = 4, int heads = 4) {
        const std::string path = folder / "dump.spiked";
        make_dump_store(path, layers, heads);
        return path;
    }
    Scratch folder;
};

/// Version 2 is the schema of stores that version 0.1 of the program wrote.
TEST_F(Report, OfAStoreOfSchemaVersion2IsTheSameAndSoAreAllTables) {
    const auto tables_of = [](const std::string& path) {
        Database store = validation::open_store(path);
        std::string text = checks_text(store);
        for (const auto& table : store_tables())
            for (const char* format : {"csv", "json", "latex"}) text += export_table(store, table.name, format);
        return text;
    };
    for (const std::string& path : {study(), dump()}) {
        const std::string page = page_of(path);
        const std::string tables = tables_of(path);
        validation::write_version_2(path, folder / "older");
        std::filesystem::rename(folder / "older", path);
        EXPECT_EQ(validation::open_store(path).integer("PRAGMA user_version"), 2);
        EXPECT_TRUE(page_of(path) == page) << path;
        EXPECT_EQ(tables_of(path), tables);
    }
}

TEST_F(Report, SectionsAreInTheExpectedOrder) {
    const std::string page = page_of(study());
    std::size_t last = 0;
    for (const char* part :
         {"<h1>", "id=\"verdict\"", "id=\"checks\"", "id=\"figures\"", "id=\"results\"", "id=\"ledger\"",
          "id=\"failures\"", "id=\"conventions\"", "id=\"reproduce\"", "id=\"cite\""}) {
        const std::size_t at = page.find(part);
        ASSERT_NE(at, std::string::npos) << part;
        EXPECT_GT(at, last) << part;
        last = at;
    }
    EXPECT_LT(page.find("? inconclusive"), page.find("\u2713 pass"));
    EXPECT_TRUE(has(page, "Worst check: "));
    EXPECT_TRUE(has(page, "False-alarm rate of all checks together: 1e-06 (nominal)"));
    EXPECT_TRUE(has(page, "spiked run study.toml"));
    EXPECT_TRUE(has(page, "Spiked 0.1.0 (abc123)"));
}

TEST_F(Report, ShowsHowToCiteTheProgramAndThePaper) {
    const std::string cite = section_of(page_of(study()), "cite");
    for (const char* part : {"The Spiked authors", "Spiked 0.1.0 (abc123)", "BSD 3-Clause License",
                             "Pei-Chun Su. eOptShrinkQ: Near-Lossless KV Cache Compression"})
        EXPECT_TRUE(has(cite, part)) << part;
}

TEST_F(Report, APictureIsWrittenWithItsScriptAndData) {
    Database store(study(), Database::Mode::read);
    std::ofstream(folder / "picture.csv") << "the data of the picture";
    write_picture(figures_of(store).front(), folder / "picture.svg");
    EXPECT_TRUE(has(file_text(folder / "picture.svg.gp"), "set terminal svg"));
    EXPECT_TRUE(has(file_text(folder / "picture.svg.csv"), "cell,signal.strength,metric"));
    EXPECT_EQ(file_text(folder / "picture.csv"), "the data of the picture");
}

TEST_F(Report, WaitsForABatchThatIsBeingWritten) {
    const std::string path = study();
    Database writer(path, Database::Mode::write);
    writer.execute("BEGIN EXCLUSIVE; UPDATE study SET title = 'written meanwhile'");
    std::thread slow([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(2600));
        writer.execute("COMMIT");
    });
    std::string page;
    EXPECT_NO_THROW(page = page_of(path));
    slow.join();
    EXPECT_TRUE(has(page, "written meanwhile"));
}

TEST_F(Report, IsDeterministic) {
    for (const std::string& path : {study(), dump()}) EXPECT_EQ(page_of(path), page_of(path, {folder / "figures"}));
    EXPECT_TRUE(has(file_text(folder / "figures/figure-1-frontier.csv"), "eoptshrink+tq-mse,2,"));
    EXPECT_TRUE(has(file_text(folder / "figures/figure-1-frontier.gp"), "set terminal svg"));
}

TEST_F(Report, PicturesAreWrittenInTheGivenFormats) {
    (void)page_of(study(), {folder / "figures", {"pdf", "png"}});
    EXPECT_TRUE(file_text(folder / "figures/figure-1-estimate-vs-theory.pdf").starts_with("%PDF"));
    EXPECT_TRUE(file_text(folder / "figures/figure-2-estimate-vs-theory.png").starts_with("\x89PNG"));
    EXPECT_FALSE(std::filesystem::exists(folder / "figures/figure-1-estimate-vs-theory.svg"));
    EXPECT_TRUE(std::filesystem::exists(folder / "figures/figure-1-estimate-vs-theory.csv"));
    EXPECT_THROW((void)page_of(study("again"), {folder / "figures", {"gif"}}), Error);
}

TEST_F(Report, SeveralStoresHaveOneOverallVerdict) {
    const std::string first = study();
    const std::string second = folder / "second.spiked";
    make_study(second, "other", "stopped");
    edit(second, "UPDATE verdict SET verdict = 'fail' WHERE verdict_id = 1");
    const std::string page = html_report({first, second, dump()});
    EXPECT_TRUE(has(page, "<h1>3 studies</h1>"));
    EXPECT_EQ(occurrences(page, "<h1>"), 1U);
    EXPECT_TRUE(has(page, "<strong>PARTIAL</strong>: some of them"));
    EXPECT_TRUE(has(page, "1 failed"));
    EXPECT_TRUE(has(page, "href=\"#study-2-top\""));
    EXPECT_TRUE(has(page, "href=\"#study-2-check-1\""));
    for (const char* part : {"id=\"study-1-ledger\"", "id=\"study-2-ledger\"", "id=\"study-3-figure-4\""})
        EXPECT_TRUE(has(page, part)) << part;
    EXPECT_EQ(tidy(page), "");
    EXPECT_EQ(page, html_report({first, second, folder / "dump.spiked"}));
}

TEST_F(Report, PrintedValuesAreComparedAndDifferencesExplained) {
    const std::string path = study();
    std::ofstream(folder / "printed.csv")
        << "table,cell,method,metric,printed,note\n"
           "1 Losses,n=128 signal.strength=0.5 noise.row_cov.rho=0,tq-mse@2,relative_l2,0.34,a note that explains "
           "nothing\n"
           "1 Losses,n=64 signal.strength=2 noise.row_cov.rho=0.4,tq-mse@3,relative_l2,0.300,counted <b>otherwise</b>\n"
           "2 Ranks,n=64 signal.strength=2 noise.row_cov.rho=0.4,eoptshrink,rank,5.0,\n"
           "2 Ranks,n=64 signal.strength=2 noise.row_cov.rho=0.4,none,rank,5.0,\n";
    const std::string page = page_of(path, {.against = folder / "printed.csv"});
    EXPECT_TRUE(has(page, "4 printed values, 3 of them measured here: 1 agree, 1 differ with a reason, 1 without"));
    EXPECT_TRUE(has(page, "counted &lt;b&gt;otherwise&lt;/b&gt;"));
    EXPECT_FALSE(has(page, "explains nothing")) << "where a value agrees there is nothing to explain";
    EXPECT_TRUE(has(page, "no reason is given"));
    EXPECT_TRUE(has(page, "not measured"));
    EXPECT_TRUE(has(page, "href=\"#printed\""));
    EXPECT_EQ(tidy(page), "");
    EXPECT_THROW((void)html_report({path, dump()}, {.against = folder / "printed.csv"}), Error);
}

/// The measured value is 0.34; the last printed digit sets the tolerance, for any notation of the number.
TEST_F(Report, PrintedValuesMayHaveAnExponent) {
    const std::string path = study();
    std::ofstream file(folder / "printed.csv");
    file << "table,cell,method,metric,printed,note\n";
    for (const char* value : {"0.34", "3.4e-1", "34E-2", "3e-1", "1e-1", "0.1", "3.1e-1", "0.0034e+2"})
        file << "1,n=128 signal.strength=0.5 noise.row_cov.rho=0,tq-mse@2,relative_l2," << value << ",\n";
    file.close();
    const std::string page = page_of(path, {.against = folder / "printed.csv"});
    EXPECT_TRUE(has(page, "8 printed values, 8 of them measured here: 5 agree, 0 differ with a reason, 3 without"));
}

TEST_F(Report, PrintedValuesBelongToTheCellThatTheyName) {
    const std::string path = study();
    Database store(path, Database::Mode::read);
    const std::string file = folder / "printed.csv";
    const auto against = [&](Database& of, const std::string& text) {
        std::ofstream(file) << text;
        return against_printed(of, file, "json");
    };
    const std::string columns = "table,cell,method,metric,printed,note\n";
    // Cell 18 of the study has strength 1, the second shape and coloured noise; factors may be in any order.
    const Json found = Json::parse(
        against(store, columns + "1,noise.row_cov.rho=0.4 signal.strength=1.0 n=64,eoptshrink,relative_error,0.50,x\n"),
        "json");
    EXPECT_EQ(*found.find("rows")->items()->front().find("agree")->string(), "yes");
    EXPECT_EQ(*found.find("rows")->items()->front().find("why")->string(), "");
    const auto error_of = [&](Database& of, const std::string& text) -> std::string {
        try {
            return "no error: " + against(of, text);
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), ErrorKind::input);
            return error.what();
        }
    };
    EXPECT_TRUE(has(error_of(store, columns + "1,side=key,eoptshrink,rank,5,\n"),
                    "printed.csv:2: 0 cells of " + path + " match side=key (one is expected)"));
    EXPECT_TRUE(has(error_of(store, columns + "1,n=64,eoptshrink,rank,5,\n"), ": 14 cells of "));
    EXPECT_TRUE(has(error_of(store, columns + "1,1,eoptshrink,rank,5,\n"), "\"1\" names no cell"));
    EXPECT_TRUE(
        has(error_of(store, "study,demo\n" + columns), "is a store of study bbp-square, but these values belong to"));
    Database keys(dump(), Database::Mode::read);
    EXPECT_TRUE(has(error_of(keys, columns + "1,side=key layer=1,tq-mse@2,rank,5,\n"), "is not a side"));
    // For a side of a dump the mean is over all its blocks, with a clustered error.
    for (const std::string& text : {std::string(), columns})
        EXPECT_NE(error_of(store, text).find("holds no printed value"), std::string::npos);
    const Json side = Json::parse(against(keys, columns + "1,side=key,tq-mse@2,relative_l2,0.5,\n"), "json");
    validation::Statement mean(keys,
                               "SELECT mean, mcse FROM v_cluster WHERE side = 'key' AND method = 'tq-mse' AND bits = 2 "
                               "AND metric = 'relative_l2'");
    ASSERT_TRUE(mean.step());
    // Its clusters are equal, so that its error is that of the view.
    EXPECT_NEAR(*side.find("rows")->items()->front().find("mean")->real(), mean.real(0), 1e-14);
    EXPECT_NEAR(*side.find("rows")->items()->front().find("mcse")->real(), mean.real(1), 1e-14);
    const Json& df = *side.find("rows")->items()->front().find("df");
    EXPECT_EQ(df.real() != nullptr ? *df.real() : static_cast<double>(*df.integer()),
              static_cast<double>(keys.integer("SELECT count(DISTINCT txt) - 1 FROM factor WHERE name = 'cluster'")));
    // A component has the same name as in tables.
    const std::string cell = "1,noise.row_cov.rho=0.4 signal.strength=1.0 n=64,sample,";
    const Json spike = Json::parse(against(store, columns + cell + "overlap.left 1,0.5,\n"), "json");
    validation::Statement overlap(
        store,
        "SELECT mean FROM v_summary JOIN factor f USING(cell_id) JOIN factor g USING(cell_id) JOIN factor h "
        "USING(cell_id) WHERE method = 'sample' AND metric = 'overlap.left' AND k = 1 AND f.name = "
        "'noise.row_cov.rho' AND f.num = 0.4 AND g.name = 'signal.strength' AND g.num = 1 AND h.name = 'n' AND h.num "
        "= 64");
    ASSERT_TRUE(overlap.step());
    EXPECT_EQ(*spike.find("rows")->items()->front().find("mean")->real(), overlap.real(0));
    for (const char* other : {"overlap.left", "overlap.left 2", "overlap.left 1.5"}) {
        (void)against(store, columns + cell + other + ",0.5,\n");
        EXPECT_EQ(printed_without_partner(store, file).size(), 1U) << other;
    }
    // Printed values without a mean are reported.
    (void)against(keys, columns + "1,side=key,tq-mse@9,relative_l2,0.5,\n1,side=key,tq-mse@2,relative_l2,0.5,\n");
    EXPECT_EQ(printed_without_partner(keys, file), std::vector<std::string>{file + ":2: relative_l2 of tq-mse@9"});
}

TEST_F(Report, EscapesTextOfTheStore) {
    const std::string page = page_of(study("<b>&\"x\""));
    EXPECT_FALSE(has(page, "<b>"));
    EXPECT_TRUE(has(page, "<h1>&lt;b&gt;&amp;&quot;x&quot;</h1>"));
    EXPECT_EQ(tidy(page), "");
}

TEST_F(Report, NamesThatGnuplotOrAShellCouldExecuteAreOnlyText) {
    const std::string path = study();
    const std::string touched = folder / "touched";
    edit(path, fmt::format("UPDATE factor SET txt = '<b>''`touch {0}`$(touch {0})@x\nsystem(\"touch {0}\")' WHERE name "
                           "= 'noise.row_cov.rho' AND num = 0.4",
                           touched));
    const std::string page = page_of(path);
    EXPECT_FALSE(std::filesystem::exists(touched));
    EXPECT_FALSE(has(page, "<b>"));
    EXPECT_TRUE(has(page, "touch"));
    EXPECT_EQ(tidy(page), "");
}

TEST_F(Report, ShowsAnEditedValue) {
    const std::string path = study();
    EXPECT_FALSE(has(page_of(path), "0.123456789"));
    edit(path, "UPDATE verdict SET estimate = 0.123456789, mcse = NULL WHERE verdict_id = 1");
    EXPECT_TRUE(has(page_of(path), "0.1235"));
    edit(path,
         "UPDATE moment SET mean = 7.0251, m2 = 0 WHERE metric_id = (SELECT metric_id FROM metric WHERE name = "
         "'outlier') AND cell_id = 5");
    const std::string page = page_of(path);
    // It appears in the results and in the data of the figure.
    EXPECT_GE(occurrences(page, "7.025"), 2U);
    edit(path, "UPDATE study SET false_alarm = 0.0042");
    EXPECT_TRUE(has(page_of(path), "0.0042"));
}

TEST_F(Report, MarksAPartialStudyWithItsCounts) {
    EXPECT_FALSE(has(page_of(study()), "PARTIAL"));
    const std::string path = folder / "partial.spiked";
    make_study(path, "bbp-square", "stopped");
    edit(path, "UPDATE cell SET state = 'todo' WHERE cell_id > 20; DELETE FROM batch WHERE cell_id > 20");
    const std::string page = page_of(path);
    EXPECT_TRUE(
        has(page,
            "<strong>PARTIAL</strong> (the study is stopped): 20 of 28 cells done, 2000 of 2800 replicates measured"));
}

TEST_F(Report, ExplainsThatAFailedStudyCannotResume) {
    const std::string path = folder / "failed.spiked";
    make_study(path, "bbp-square", "failed");
    const std::string page = page_of(path);
    EXPECT_TRUE(has(page, "<strong>PARTIAL</strong> (the study is failed)"));
    EXPECT_TRUE(has(page, "more replicates of a cell failed than run.failure_budget allows"));
    EXPECT_FALSE(has(page, "the same command resumes"));
}

TEST_F(Report, MarksAShardAsPartial) {
    const std::string path = folder / "shard.spiked";
    make_study(path, "bbp-square", "shard 2/3");
    const std::string page = page_of(path);
    EXPECT_TRUE(has(page, "<strong>PARTIAL</strong> (shard 2/3 of the study): 28 of 28 cells done"));
    EXPECT_TRUE(has(page, "spiked merge joins it with the others"));
}

TEST_F(Report, ExplainsWhyCellsStopped) {
    const std::string path = study();
    EXPECT_FALSE(has(page_of(path), "chosen during the run"));
    edit(
        path,
        "INSERT INTO stop_rule(metric_id, relative, absolute) SELECT metric_id, 0.01, 0.5 FROM metric WHERE name = "
        "'relative_error'; UPDATE cell SET why = 'met'; UPDATE cell SET why = 'max' WHERE cell_id = 2; UPDATE cell SET "
        "why = 'absent' WHERE cell_id < 2");
    const std::string page = page_of(path);
    EXPECT_TRUE(has(page, "every mean of relative_error has a standard error of 0.01 of the mean and 0.5"));
    EXPECT_TRUE(has(page, "26 cells stopped with that accuracy, 1 cell ran to the end without it, 1 cell measured"));
    EXPECT_EQ(tidy(page), "");
}

TEST_F(Report, ACheckWhoseControlPassesIsShownAsFailed) {
    const std::string path = study();
    edit(path, "UPDATE verdict SET verdict = 'pass', control_verdict = 'fail'");
    EXPECT_TRUE(has(page_of(path), "104 passed, 0 failed, 0 inconclusive of 104"));
    edit(path,
         "UPDATE verdict SET verdict = 'fail', control_verdict = 'pass', reason = 'the control passes' WHERE "
         "verdict_id = 7");
    const std::string page = page_of(path);
    EXPECT_TRUE(has(page, "103 passed, 1 failed, 0 inconclusive of 104"));
    EXPECT_TRUE(has(page, "the control passes"));
    EXPECT_TRUE(has(page, "href=\"#check-7\""));
    Database store(path, Database::Mode::read);
    const std::string text = checks_text(store);
    EXPECT_TRUE(has(text, "103 passed, 1 failed, 0 inconclusive; nominal false-alarm rate for the whole run 1e-06"))
        << text;
    EXPECT_LT(text.find("passes: no power"), text.find("fails, as it should"));
}

TEST_F(Report, FoldsPassesAfterTwenty) {
    const std::string page = page_of(study());
    // 12 of the 104 checks are inconclusive.
    EXPECT_TRUE(has(page, "<summary>72 more passed</summary>"));
}

// The number beside the name is that of the subspace, not of the first spike.
TEST_F(Report, OnTerminalsChecksOfCloseSpikesAndOfGapsAreNamedByTheirMetric) {
    const std::string path = study();
    Database store(path, Database::Mode::write);
    EXPECT_TRUE(has(checks_text(store), "overlap.left k=1 "));
    EXPECT_FALSE(has(checks_text(store), "subspace_overlap.left"));
    store.execute("UPDATE verdict SET metric = 'subspace_overlap.left' WHERE claim = 'overlap.left' AND k = 1");
    EXPECT_TRUE(has(checks_text(store), "subspace_overlap.left k=1 "));
    EXPECT_FALSE(has(checks_text(store), " overlap.left k=1 "));
    store.execute("UPDATE verdict SET metric = 'gap_overlap.left' WHERE claim = 'overlap.left' AND k = 1");
    EXPECT_TRUE(has(checks_text(store), "gap_overlap.left k=1 ")) << "of a spike in a gap";
}

/// On a terminal each claim and spike has one line for its passes, that of the interval nearest to its margin; checks
/// that did not pass have a line each.
TEST_F(Report, OnTerminalsPassesAfterTwentyAreOneLinePerClaim) {
    const std::string path = study();
    Database store(path, Database::Mode::read);
    const std::string text = checks_text(store);
    const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
    const auto groups = static_cast<std::size_t>(
        store.integer("SELECT count(*) FROM (SELECT DISTINCT claim, k FROM verdict WHERE verdict = 'pass')"));
    EXPECT_EQ(lines, 12 + groups + 5) << text;
    validation::Statement nearest(store,
                                  "SELECT c.label, count(*) OVER () FROM verdict v JOIN cell c USING(cell_id) WHERE "
                                  "verdict = 'pass' AND claim = 'overlap.left' AND k = 1 ORDER BY max(abs(lo - "
                                  "expected), abs(hi - expected)) / margin DESC LIMIT 1");
    ASSERT_TRUE(nearest.step());
    EXPECT_TRUE(has(text, fmt::format("{} (closest of {})", nearest.text(0), nearest.integer(1)))) << text;
    EXPECT_TRUE(has(text, "all of them: spiked show " + path + " --table checks\n"));
}

TEST_F(Report, LoadsNothingAndRunsNoScripts) {
    for (const std::string& path : {study(), dump()}) {
        const std::string page = page_of(path);
        EXPECT_FALSE(has(page, "<script"));
        EXPECT_FALSE(has(page, "http:"));
        EXPECT_FALSE(has(page, "https:"));
        EXPECT_FALSE(has(page, "xlink"));
        EXPECT_FALSE(has(page, "@import"));
        EXPECT_FALSE(has(page, " style="));  // the policy allows only the style sheet of the page
        EXPECT_TRUE(has(page, "default-src 'none'; style-src 'sha256-"));
        EXPECT_TRUE(has(page, "prefers-color-scheme:dark"));
        EXPECT_TRUE(has(page, "@media print"));
        const std::regex source("(src|href)=[\"']([^\"'#d][^\"']*)");
        EXPECT_FALSE(std::regex_search(page, source));
        EXPECT_EQ(tidy(page), "");
    }
}

TEST_F(Report, IdsAreUniqueAndReferencesExist) {
    for (const std::string& path : {study(), dump()}) {
        const std::string page = page_of(path);
        std::set<std::string> ids;
        const std::regex id(" id=[\"']([^\"']*)[\"']");
        for (std::sregex_iterator at(page.begin(), page.end(), id), end; at != end; ++at)
            EXPECT_TRUE(ids.insert((*at)[1]).second) << (*at)[1];
        const std::regex reference("href=[\"']#([^\"']*)[\"']");
        for (std::sregex_iterator at(page.begin(), page.end(), reference), end; at != end; ++at)
            EXPECT_TRUE(ids.contains((*at)[1])) << (*at)[1];
        EXPECT_GT(ids.size(), 20U);
    }
}

TEST_F(Report, PicturesUseTheColourOfTheText) {
    const std::string page = page_of(study());
    EXPECT_TRUE(has(page, "fill=\"currentColor\" font-family"));
    const std::regex black("(stroke|fill|color)=[\"'](black|white|rgb\\( *0, *0, *0\\))");
    EXPECT_FALSE(std::regex_search(page, black));
    EXPECT_EQ(occurrences(page, "role=\"img\""), 2U);
    EXPECT_EQ(occurrences(page, "</desc>"), 2U);
}

TEST_F(Report, StaysSmallAndShowsTheWorstOfAThousandCells) {
    const std::string path = folder / "large.spiked";
    {
        FixtureStore store(path, "spiked");
        const auto sample = store.method("sample", "sample", "sample");
        const auto estimator = store.method("eoptshrink", "estimator", "eoptshrink");
        for (int i = 0; i < 1000; ++i) {
            const auto cell = store.cell(fmt::format("cell-{:04}", i), 64, 64);
            store.factor(cell, "signal.strength", 1.0 + i % 40);
            store.factor(cell, "noise.row_cov.rho", i / 40);
            const double off = i == 777 ? 0.5 : 1e-6 * i;
            for (const char* metric : {"overlap.left", "overlap.right", "outlier"}) {
                store.moment(cell, sample, metric, 1, 0.5 + off, 0.01);
                store.theory(cell, metric, 1, 0.5);
                store.verdict(cell, sample, metric, 1, 0.5 + off, 0.01, 0.5, 0.1, i == 777 ? "fail" : "pass");
            }
            store.moment(cell, estimator, "relative_error", 0, 0.5, 0.01);
        }
        store.finish();
    }
    const std::string page = page_of(path);
    EXPECT_LT(page.size(), 5'000'000U);
    EXPECT_TRUE(has(page, "1000 cells are too many for a page: tables by cell show the worst 50"));
    EXPECT_TRUE(has(page, "<td>cell-0777</td>"));
    EXPECT_TRUE(has(page, "<td>cell-0999</td>"));
    EXPECT_TRUE(has(page, "2997 passed, 3 failed, 0 inconclusive of 3000"));
    const std::string results = page.substr(page.find("id=\"results\""));
    std::set<std::string> shown;
    const std::regex cell("<td>(cell-[0-9]*)</td>");
    for (std::sregex_iterator at(results.begin(), results.end(), cell), end; at != end; ++at) shown.insert((*at)[1]);
    EXPECT_EQ(shown.size(), 50U);
    EXPECT_EQ(tidy(page), "");
}

/// A store of `cells` cells, each with codecs, their means and checks, and with long labels as in sweeps over many
/// factors.
void make_wide_store(const std::string& path, int cells, int codecs, const std::string& kind = "spiked") {
    FixtureStore store(path, kind);
    std::vector<std::int64_t> ids;
    for (int m = 0; m < codecs; ++m)
        ids.push_back(store.method(fmt::format("eoptshrink:rank={}+tq-mse B=2", m), "codec",
                                   fmt::format("eoptshrink:rank={}+tq-mse", m), 2));
    for (int i = 0; i < cells; ++i) {
        const auto cell =
            store.cell(fmt::format("signal.strength={} noise.row_cov.rho=0.{:03} context.rank=9", i % 17, i), 64, 64);
        store.factor(cell, "signal.strength", i % 17);
        for (const auto id : ids) {
            for (const char* metric : {"relative_l2", "distortion", "ip_bias", "rank"})
                store.moment(cell, id, metric, 0, 0.5 + 1e-6 * i, 0.01);
            store.verdict(cell, id, "distortion", 0, 0.5 + 1e-6 * i, 0.01, 0.5, 0.1, i == 77 ? "fail" : "pass");
        }
    }
    store.finish();
}

std::size_t cells_in(const std::string& markup) {
    std::set<std::string> found;
    const std::regex cell("<td>(signal.strength=[^<]*)</td>");
    for (std::sregex_iterator at(markup.begin(), markup.end(), cell), end; at != end; ++at) found.insert((*at)[1]);
    return found.size();
}

TEST_F(Report, ManyMethodsStaySmallBelowTwoHundredCells) {
    make_wide_store(folder / "wide.spiked", 200, 64);
    const std::string page = page_of(folder / "wide.spiked");
    EXPECT_LT(page.size(), 5'000'000U);
    const std::string results = section_of(page, "results");
    const std::size_t shown = cells_in(results);
    EXPECT_GE(shown, 10U);
    EXPECT_LT(shown, 200U);
    EXPECT_TRUE(has(results, fmt::format("200 cells of 64 methods are too many for a page: tables by cell show the "
                                         "worst {} ",
                                         shown)));
    EXPECT_TRUE(has(results, "<td>signal.strength=9 noise.row_cov.rho=0.077 context.rank=9</td>"));
    EXPECT_TRUE(has(page, "<code>spiked export STORE --table summary</code> has every row"));
    EXPECT_TRUE(has(page, "rows are left out to keep the page small; spiked export STORE --table checks has them all"));
    EXPECT_TRUE(has(page, "href=\"#check-"));
    EXPECT_EQ(tidy(page), "");
}

TEST_F(Report, MethodsThatDoNotFitOnAPageAreCounted) {
    make_wide_store(folder / "wide.spiked", 1, 6000);
    const std::string page = page_of(folder / "wide.spiked");
    EXPECT_LT(page.size(), 5'000'000U);
    const std::regex cut(
        "([0-9]+) of 6000 rows are left out to keep the page small; spiked export STORE --table summary has them all");
    std::smatch found;
    ASSERT_TRUE(std::regex_search(page, found, cut));
    EXPECT_EQ(occurrences(section_of(page, "results"), "<tr>") - 1U, 6000U - std::stoul(found[1]));
    EXPECT_EQ(tidy(page), "");
}

TEST_F(Report, ManyStoresShareTheSizeOfThePage) {
    std::vector<std::string> stores;
    for (int i = 0; i < 40; ++i) {
        stores.push_back(folder / fmt::format("{}.spiked", i));
        if (i == 0)
            make_study(stores.back());
        else
            std::filesystem::copy_file(stores.front(), stores.back());
    }
    const std::size_t alone = page_of(stores.front()).size();
    EXPECT_GT(40 * alone, 5'000'000U);
    const std::string page = html_report(stores);
    EXPECT_LT(page.size(), 5'000'000U);
    EXPECT_TRUE(has(page, "<h1>40 studies</h1>"));
    EXPECT_TRUE(has(page, "to keep the page small"));
    EXPECT_EQ(occurrences(page, "Worst check: "), 41U);
    EXPECT_EQ(tidy(page), "");
}

TEST_F(Report, RejectsAStoreThatIsGivenTwice) {
    const std::string path = study();
    for (const std::string& again : {path, folder / "./study.spiked"}) try {
            (void)html_report({path, again});
            ADD_FAILURE() << again;
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), ErrorKind::usage);
            EXPECT_TRUE(has(error.what(), "is given twice")) << error.what();
        }
}

/// A study of generated keys and values: plain and low-rank codecs at two bit widths, and one with a separate range of
/// bits.
void make_kv_like_store(const std::string& path) {
    FixtureStore store(path, "kv_like");
    struct Codec {
        std::int64_t id;
        double bits, error;
    };
    std::vector<Codec> codecs;
    for (const auto& [base, extra, factor] :
         {std::tuple{"tq-mse", 0.125, 1.37}, std::tuple{"eoptshrink+tq-mse", 0.4, 1.1},
          std::tuple{"tq-prod", 1.25, 1.2}})
        for (const int bits : {2, 3})
            codecs.push_back({store.method(fmt::format("{} B={}", base, bits), "codec", base, bits), bits + extra,
                              factor * std::pow(2.0, -bits)});
    for (const auto& [side, rank, n] : {std::tuple{"key", 9, 128}, std::tuple{"value", 7, 128},
                                        std::tuple{"value", 6, 128}, std::tuple{"key", 9, 512}}) {
        const auto cell =
            store.cell(fmt::format("n={} side={} context.rank={} context.key=1.3", n, side, rank), n, 128);
        store.factor(cell, "side", side);
        store.factor(cell, "context.rank", rank);
        store.factor(cell, "context.key", 1.3);
        store.factor(cell, "n", n);
        for (const auto& codec : codecs) {
            store.moment(cell, codec.id, "relative_l2", 0, codec.error * (rank == 9 ? 1.0 : 1.5), 1e-3);
            store.moment(cell, codec.id, "ip_bias_plain", 0, -0.1 * codec.error * codec.error, 1e-5);
            store.moment(cell, codec.id, "bits_per_entry", 0, codec.bits, 0);
            store.moment(cell, codec.id, "bits.indices", 0, std::floor(codec.bits), 0);
            store.moment(cell, codec.id, "bits.norms", 0, codec.bits - std::floor(codec.bits) + (n == 512 ? 0.25 : 0.0),
                         0);
        }
    }
    // The two batches differ, so that the biases have some noise.
    store.database.execute(
        "UPDATE moment SET mean = mean + (2 * batch - 1) * 1e-5 WHERE metric_id = (SELECT metric_id FROM metric WHERE "
        "name = 'ip_bias_plain')");
    store.finish();
}

TEST_F(Report, BitsOfGeneratedBlocksAreShownByCellAndComparedInTheCommonRange) {
    make_kv_like_store(folder / "kv.spiked");
    const std::string page = page_of(folder / "kv.spiked");
    const std::string ledger = section_of(page, "ledger");
    for (const char* cell : {"keys, n = 128", "keys, n = 512", "values, context.rank = 7", "values, context.rank = 6"})
        EXPECT_TRUE(has(ledger, cell)) << cell;
    std::set<std::string> rows;
    const std::regex row("<tr><td>([^<]*)</td><td>([^<]*)</td>");
    std::size_t count = 0;
    const std::string items = ledger.substr(0, ledger.find("At equal bits"));
    for (std::sregex_iterator at(items.begin(), items.end(), row), end; at != end; ++at, ++count)
        EXPECT_TRUE(rows.insert((*at)[1].str() + (*at)[2].str()).second) << at->str();
    EXPECT_EQ(count, 4U * 6);
    EXPECT_TRUE(has(ledger, "relative L2 error in percent at equal stored bits"));
    EXPECT_TRUE(has(ledger, ">2.5 bits</th>"));
    EXPECT_TRUE(has(
        ledger, "Not compared, measured around no number of bits that the others are: tq-prod (3.25 to 4.25 bits)."));
    EXPECT_EQ(tidy(page), "");
}

TEST_F(Report, EveryKindOfBlockHasItsOwnFrontier) {
    make_kv_like_store(folder / "kv.spiked");
    Database store(folder / "kv.spiked", Database::Mode::read);
    const auto figure = figures_of_kind("frontier", store, Json::object()).front();
    std::set<std::string> panels;
    for (const auto& row : figure.rows) panels.insert(row.front());
    EXPECT_EQ(panels, (std::set<std::string>{"keys, n = 128", "keys, n = 512", "values, context.rank = 6",
                                             "values, context.rank = 7"}));
    EXPECT_EQ(figure.rows.size(), 4U * 6);
    EXPECT_TRUE(has(figure.script, "convex hull"));
    EXPECT_TRUE(has(figure.script, "'values, context.rank = 7'"));
    EXPECT_FALSE(has(figure.description, "over all"));
    // The hull of keys has tq-mse at 2 bits and eoptshrink at 2 and 3 bits; the other codecs lie above it.
    EXPECT_TRUE(has(figure.script, "2.125 0.3425 NaN NaN\n2.4 0.275 NaN NaN\n3.4 0.1375 NaN NaN\nEND"))
        << figure.script;
    const auto bias = figures_of_kind("bias-by-query", store, Json::object({{"bits", "2"}})).front();
    EXPECT_TRUE(has(bias.script, "'keys, n = 512, B = 2'"));
    EXPECT_FALSE(has(bias.script, "'cell "));
    // More cells than panels are pooled, with a note.
    const std::string path = study();
    Database many(path, Database::Mode::read);
    const auto pooled = figures_of_kind("frontier", many, Json::object()).front();
    EXPECT_EQ(pooled.rows.size(), 2U);
    EXPECT_TRUE(has(pooled.description, "Means over all 28 cells, weighted by their replicates"));
}

TEST_F(Report, ADumpBeginsWithItsResultsInATableForEachGroupOfMetrics) {
    const std::string dump = folder / "dump.spiked";
    make_dump_store(dump);
    edit(dump,
         "INSERT INTO metric VALUES(NULL, 'attention_output', 'share', 'lower', 'x'); INSERT INTO moment SELECT "
         "cell_id, batch, method_id, (SELECT max(metric_id) FROM metric), k, n, n_null, mean, m2, m3, m4, lo, hi "
         "FROM moment JOIN metric USING(metric_id) WHERE name = 'relative_l2'");
    const std::string page = page_of(dump);
    EXPECT_LT(page.find("id=\"results\""), page.find("id=\"figures\""));
    const auto row_below = [&](const std::string& caption) {
        const std::size_t at = page.find("<caption>" + caption + "</caption>");
        return at == std::string::npos ? "no " + caption : page.substr(at, page.find("<tbody>", at) - at);
    };
    EXPECT_TRUE(has(row_below("keys, 160 blocks"), ">stored bits</th>")) << page;
    EXPECT_FALSE(has(row_below("keys, 160 blocks"), ">output error %</th>"));
    EXPECT_TRUE(has(row_below("keys, 160 blocks: attention"), ">output error %</th>"));
    EXPECT_FALSE(has(row_below("keys, 160 blocks: attention"), ">stored bits</th>"));
}

TEST(Paragraph, SetsTextBetweenBackticksAsCode) {
    EXPECT_EQ(paragraph("a `b<c` d"), "<p class=\"note\">a <code>b&lt;c</code> d</p>\n");
    EXPECT_EQ(paragraph("`a` `b`, one ` more"), "<p class=\"note\"><code>a</code> <code>b</code>, one ` more</p>\n");
}

TEST_F(Report, AWideTableScrollsByKeyboardAndHasANote) {
    const std::string page = page_of(study());
    EXPECT_EQ(occurrences(page, "<div class=\"scroll\""), occurrences(page, "<div class=\"scroll\" tabindex=\"0\">"));
    HtmlTable narrow("", std::vector<std::string>(9, "#x"));
    HtmlTable wide("", std::vector<std::string>(10, "#x"));
    EXPECT_FALSE(has(narrow.html(), "scrolls sideways"));
    EXPECT_TRUE(has(wide.html(), "10 columns: where they do not fit, the table scrolls sideways"));
}

TEST_F(Report, ColumnsThatDoNotFitAreListed) {
    make_dump_store(folder / "methods.spiked", 1, 1);
    edit(
        folder / "methods.spiked",
        "WITH RECURSIVE i(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM i WHERE x < 24) INSERT INTO method SELECT NULL, "
        "'codec ' || x, 'codec', 'codec ' || x, 2, '{}' FROM i; INSERT INTO moment SELECT cell_id, batch, m.method_id, "
        "metric_id, k, n, n_null, mean, m2, m3, m4, lo, hi FROM moment JOIN method m WHERE m.name LIKE 'codec %' AND "
        "moment.method_id = 2 AND metric_id = (SELECT metric_id FROM metric WHERE name = 'relative_l2')");
    const std::string heads = section_of(page_of(folder / "methods.spiked"), "results");
    // The columns are cell, n, d and 21 of 30 methods.
    EXPECT_TRUE(has(heads,
                    "9 columns are left out to keep the table readable: codec 16, codec 17, codec 18, codec 19, "
                    "codec 20, codec 21, codec 22, codec 23 and 1 more. spiked export STORE --table summary"));
    EXPECT_TRUE(has(heads, ">codec 15</th>"));

    const std::string path = study();
    edit(path,
         "WITH RECURSIVE i(x) AS (SELECT 2 UNION ALL SELECT x + 1 FROM i WHERE x < 30) INSERT INTO moment SELECT "
         "cell_id, batch, method_id, metric_id, i.x, n, n_null, mean, m2, m3, m4, lo, hi FROM moment JOIN i WHERE "
         "metric_id = (SELECT metric_id FROM metric WHERE name = 'outlier')");
    // The columns are cell, n, two overlaps and 20 of 30 outliers.
    const std::string sample = section_of(page_of(path), "results");
    EXPECT_TRUE(has(sample, "10 columns are left out to keep the table readable: outlier 21, outlier 22, "));
    EXPECT_TRUE(has(sample, ">outlier 20</th>"));
}

TEST_F(Report, UndefinedValuesAreNotFailures) {
    const std::string path = study();
    EXPECT_FALSE(has(page_of(path), "did not fail"));
    // Strengths are undefined at rank zero: in cell 1 always, in cell 2 they are defined in 10 of 100 replicates.
    edit(path,
         "INSERT INTO metric VALUES(NULL, 'strength', 'none', 'none', 'x'); INSERT INTO moment SELECT cell_id, batch, "
         "method_id, (SELECT MAX(metric_id) FROM metric), 1, CASE cell_id WHEN 1 THEN 0 WHEN 2 THEN 5 ELSE n END, CASE "
         "cell_id WHEN 1 THEN 50 WHEN 2 THEN 45 ELSE 0 END, CASE cell_id WHEN 1 THEN NULL ELSE 1.75 END, 0, 0, 0, 0, 1 "
         "FROM moment WHERE metric_id = (SELECT metric_id FROM metric WHERE name = 'rank')");
    std::string results = section_of(page_of(path), "results");
    EXPECT_TRUE(has(results, ">-<small class=\"part\">0 of 100</small></td>"));
    EXPECT_TRUE(has(results, "<small class=\"part\">10 of 100</small></td>"));
    EXPECT_EQ(occurrences(results, "class=\"part\""), 2U);
    EXPECT_FALSE(has(results, "missing"));
    EXPECT_FALSE(has(results, " failed</small>"));
    EXPECT_TRUE(has(results, "did not fail"));
    // Three replicates of a cell failed, so that every quantity has three fewer.
    edit(path,
         "UPDATE batch SET failed = 3 WHERE cell_id = 3; UPDATE moment SET n = 47, n_null = 3 WHERE cell_id = 3 AND "
         "batch = 1");
    results = section_of(page_of(path), "results");
    EXPECT_TRUE(has(results, ">97<small>3 failed</small></td>"));
    EXPECT_EQ(occurrences(results, "class=\"part\""), 2U);
}

TEST_F(Report, AllEventsAreCountedAndTheFirstAreShown) {
    const std::string path = study();
    edit(path,
         "WITH RECURSIVE i(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM i WHERE x < 250) INSERT INTO event(t_utc, "
         "level, code, message) SELECT '2025-01-02T03:04:05Z', 'warning', 'x', 'event ' || x FROM i");
    const std::string page = page_of(path);
    EXPECT_TRUE(has(page, "<summary>250 events</summary>"));
    EXPECT_TRUE(has(page, "The first 100 of 250 events"));
    EXPECT_TRUE(has(page, "<td>event 100</td>"));
    EXPECT_FALSE(has(page, "<td>event 101</td>"));
}

TEST_F(Report, ALargeDumpStaysSmall) {
    const std::string page = page_of(dump(32, 8));
    EXPECT_LT(page.size(), 5'000'000U);
    EXPECT_TRUE(has(page, "512 cells are too many for a page"));
    EXPECT_TRUE(has(page, "keys, 2560 blocks"));
}

TEST_F(Report, ADumpHasThePapersTableAndPictures) {
    const std::string path = dump();
    const std::string page = page_of(path);
    EXPECT_TRUE(has(page, "keys, 160 blocks"));
    EXPECT_TRUE(has(page, "values, 160 blocks"));
    EXPECT_TRUE(has(page, "<tr><td>eoptshrink+tq-mse B=2</td>")) << "the first cell stays in sight on a phone";
    EXPECT_TRUE(has(page, "paper bits"));
    EXPECT_TRUE(has(page, "dumps/a.safetensors"));
    EXPECT_TRUE(has(page, std::string(64, 'b')));
    EXPECT_TRUE(has(page, "4 lie above the estimated edge 2.025 (an eigenvalue of 4.1)"));
    EXPECT_EQ(occurrences(page, ", signal and residual</h"), 2U);  // for a key and a value
    Database store(path, Database::Mode::read);
    validation::Statement query(
        store,
        "SELECT mean FROM v_cluster WHERE side = 'key' AND method = 'tq-mse' AND bits = 2 AND metric = 'relative_l2'");
    ASSERT_TRUE(query.step());
    const auto figure = figures_of_kind("frontier", store, Json::object()).front();
    const std::string before = "keys,tq-mse,2,2.125,160,";
    const auto at = figure.csv.find(before);
    ASSERT_NE(at, std::string::npos) << figure.csv;
    // SQLite adds with a correction of rounding errors from 3.43 on, and without one before.
    EXPECT_NEAR(std::stod(figure.csv.substr(at + before.size())), query.real(0), 1e-14);
}

TEST_F(Report, AStudyOfAModelCountsDocumentsAndDrawsItsMetric) {
    const std::string path = folder / "model.spiked";
    {
        FixtureStore store(path, "kv_model", "kv-frontier");
        std::vector<std::int64_t> codecs;
        for (int bits = 1; bits <= 3; ++bits)
            codecs.push_back(store.method(fmt::format("tq-mse B={}", bits), "codec", "tq-mse", bits));
        for (int document = 0; document < 3; ++document) {
            const auto cell = store.cell(fmt::format("document {}", document), 128, 64, 2);
            for (const auto& [name, text] : {std::pair<std::string, std::string>{"side", "cache"},
                                             {"cluster", fmt::format("document {}", document)},
                                             {"cluster_by", "document"}})
                store.factor(cell, name, text);
            for (int bits = 1; bits <= 3; ++bits) {
                store.moment(cell, codecs[bits - 1], "added_nats", 0, 1.0 / bits + 0.01 * document, 0.0, 2);
                store.moment(cell, codecs[bits - 1], "bits_per_entry", 0, bits + 0.25, 0.0, 2);
            }
        }
        store.finish();
    }
    const std::string page = page_of(path);
    EXPECT_TRUE(has(page, "3 cells \u00b7 6 documents \u00b7 ")) << page.substr(0, 3000);
    EXPECT_TRUE(has(section_of(page, "figures"), "added nats a token against stored bits")) << page;
    EXPECT_FALSE(has(page, "overlap.left"));
    Database store(path, Database::Mode::read);
    EXPECT_TRUE(is_dump_study(store));
    EXPECT_EQ(frontier_metric(store), "added_nats");
    const std::string text = frontier_text(kv_table(store), frontier_metric(store), {});
    EXPECT_TRUE(has(text, "logarithm of the added nats a token over stored bits")) << text;
    // A figure can name another metric.
    store = Database(path, Database::Mode::write);
    store.execute("INSERT INTO figure VALUES(1, 'frontier', '{\"y\":\"wrong_answers\"}')");
    EXPECT_EQ(frontier_metric(store), "wrong_answers");
    store.execute("UPDATE figure SET spec = '{\"y\":\"no such\"}'");
    EXPECT_EQ(frontier_metric(store), "added_nats");
}

TEST_F(Report, FiguresHaveTheNumbersOfTheStore) {
    Database store(study(), Database::Mode::read);
    const auto figures = figures_of(store);
    ASSERT_EQ(figures.size(), 2U);
    EXPECT_EQ(figures[0].rows.size(), 2U * 28U);
    EXPECT_EQ(figures[1].rows.size(), 28U);
    validation::Statement query(store,
                                "SELECT mean, mcse, cell FROM v_summary WHERE metric = 'outlier' ORDER BY cell_id");
    for (const auto& row : figures[1].rows) {
        ASSERT_TRUE(query.step());
        EXPECT_EQ(row[0], query.text(2));
        EXPECT_TRUE(has(figures[1].csv, exact(query.real(0)) + "," + exact(query.real(1)) + ","));
    }
    for (const auto& figure : figures) {
        EXPECT_TRUE(has(figure.svg, "</svg>")) << figure.problem;
        EXPECT_TRUE(has(figure.svg, "threshold"));
        EXPECT_TRUE(has(figure.description, "in 4 panels"));
    }
    const auto distortion = figures_of_kind("distortion", store, Json::object()).front();
    ASSERT_EQ(distortion.rows.size(), 2U);
    EXPECT_EQ(distortion.rows[0].back(), "0.1172");
    EXPECT_TRUE(has(figures_of_kind("frontier", store, Json::object()).front().svg, "</svg>"));
    // Each codec is compared with its own prediction.
    const auto codecs = figures_of_kind("estimate-vs-theory", store, Json::object({{"y", "distortion"}})).front();
    ASSERT_EQ(codecs.rows.size(), 56U) << codecs.csv;
    EXPECT_EQ(codecs.rows[0].back(), "0.1172");
    EXPECT_EQ(codecs.rows[1].back(), "0.0343");
    // With x = cell there is one panel, and the caption explains the numbers of cells.
    const auto by_cell =
        figures_of_kind("estimate-vs-theory", store, Json::object({{"x", "cell"}, {"y", "outlier"}})).front();
    ASSERT_EQ(by_cell.rows.size(), 28U);
    EXPECT_EQ(by_cell.rows[27][1], "28");
    EXPECT_FALSE(has(by_cell.description, "panels"));
    EXPECT_TRUE(has(by_cell.description, " Cells 1: ")) << by_cell.description;
    EXPECT_TRUE(has(by_cell.description, "; 28: ")) << by_cell.description;
    // The mean farthest from theory lies at or below the threshold, where this study has no checks.
    const std::string not_judged = "No check of the study judges this mean.";
    EXPECT_TRUE(has(figures[0].description, " against the limit 0 (")) << figures[0].description;
    EXPECT_TRUE(has(figures[0].description, not_judged));
    EXPECT_FALSE(has(codecs.description, "limit")) << codecs.description;
    EXPECT_FALSE(has(codecs.description, not_judged)) << codecs.description;
    // Without theory the caption does not mention its dashed lines.
    const auto bare =
        figures_of_kind("estimate-vs-theory", store, Json::object({{"x", "cell"}, {"y", "relative_error"}})).front();
    EXPECT_FALSE(has(bare.description, "dashed")) << bare.description;
    EXPECT_TRUE(has(bare.csv, ",k,count,mean,")) << bare.csv;
    // Pictures use words, and their data the names of metrics.
    const auto overlaps =
        figures_of_kind("estimate-vs-theory", store,
                        Json::object({{"x", "cell"}, {"y", Json::parse(R"(["overlap.left", "rank"])", "y")}}))
            .front();
    EXPECT_EQ(overlaps.title, "overlap of left vectors, rank against cell");
    EXPECT_TRUE(has(overlaps.script, "overlap of left vectors")) << overlaps.script;
    EXPECT_FALSE(has(overlaps.svg + overlaps.script + overlaps.description, "overlap.left"));
    EXPECT_TRUE(has(overlaps.csv, ",overlap.left,"));
}

TEST_F(Report, ChecksShowTheoryAtTheirSizeAndResultsItsLimit) {
    const std::string page = page_of(study());
    EXPECT_TRUE(has(section_of(page, "checks"), ">theory at this size</th>"));
    const std::string results = section_of(page, "results");
    EXPECT_TRUE(has(results, "<small>limit 4.000</small>")) << results;
    EXPECT_FALSE(has(results, "<small>theory"));
    EXPECT_TRUE(has(results, ">left overlap 1</th>"));
    EXPECT_TRUE(has(results, ">relative squared error</th>"));
    EXPECT_TRUE(has(section_of(page, "conventions"), "<td><code>overlap.left</code></td><td>left overlap</td>"));
}

TEST_F(Report, OnAPhoneTheNumbersOfACheckHaveTheHeadsOfTheTable) {
    const std::string page = page_of(study());
    const std::string checks = section_of(page, "checks");
    const std::size_t begin = checks.find("<div class=\"checks\">");
    ASSERT_NE(begin, std::string::npos);
    std::size_t column = 0;
    for (std::size_t at = begin; (at = checks.find("<th scope=\"col\"", at)) < checks.find("</thead>", begin);) {
        at = checks.find('>', at) + 1;
        const std::string head = checks.substr(at, checks.find('<', at) - at);
        if (++column <= 3) continue;
        const std::string label = fmt::format(".checks td:nth-child({})::before{{content:\"{}\"}}", column, head);
        EXPECT_TRUE(has(page, label.c_str())) << head;
    }
    EXPECT_EQ(column, 10U);
}

TEST_F(Report, PrintedTablesHaveALegendOfHeadsThatDoNotSayWhatTheyAre) {
    Database store(study(), Database::Mode::read);
    const std::string summary = export_table(store, "summary", "text");
    EXPECT_TRUE(has(summary, "  no value  "));
    EXPECT_TRUE(has(summary, "\n\nk: the number of the component"));
    EXPECT_TRUE(has(summary, "no value: replicates that failed, and those in which there is nothing to measure"));
    EXPECT_FALSE(has(summary, "  failed  "));
    EXPECT_TRUE(has(export_table(store, "summary", "csv"), ",n,failed,mean,")) << "programs keep their names";
    EXPECT_FALSE(has(export_table(store, "summary", "csv"), "component"));
    EXPECT_TRUE(has(export_table(store, "checks", "text"), "detectable: the smallest deviation"));
}

TEST_F(Report, PrintedTablesHaveFourDigitsAndExportsHaveAll) {
    const std::string path = study();
    edit(path, "UPDATE verdict SET expected = 0.123456789, margin = 0.52, detectable = 0.07, control_expected = 3");
    const auto printed = [&](const char* table, const char* format = "text") {
        Database store(path, Database::Mode::read);
        return export_table(store, table, format);
    };
    const std::string checks = printed("checks");
    EXPECT_TRUE(has(checks, "  0.1235  ")) << checks;
    EXPECT_TRUE(has(checks, "  0.520  ")) << checks;
    EXPECT_TRUE(has(checks, "  0.070  ")) << checks;
    EXPECT_TRUE(has(checks, "  3  ")) << "a column of whole numbers\n" << checks;
    EXPECT_TRUE(has(printed("checks", "csv"), ",0.123456789,0.52,"));
    edit(path, "UPDATE verdict SET control_expected = 3.25 WHERE verdict_id = 1");
    EXPECT_TRUE(has(printed("checks"), "  3.000  ")) << "as the others of its column";
    // Quantities stand in one column: one whose numbers are whole is printed so.
    edit(path,
         "UPDATE theory SET value = CASE WHEN quantity = (SELECT min(quantity) FROM theory) THEN 7.5 ELSE 8.0 END");
    const std::string values = printed("theory");
    EXPECT_TRUE(has(values, "  7.500  ")) << values.substr(0, 1000);
    EXPECT_TRUE(has(values, "  8  ")) << values.substr(0, 1000);
    EXPECT_FALSE(has(values, "  8.000  "));
}

TEST_F(Report, AFigureThatCannotBeDrawnHasAReason) {
    const std::string path = study();
    edit(path,
         "INSERT INTO figure VALUES(1,'pie-chart','{}'),(2,'estimate-vs-theory','{\"x\":\"signal.rank\"}'),"
         "(3,'estimate-vs-theory','{\"y\":[\"beauty\"]}'),(4,'head-picture','{}'),(5,'rank-map','{}'),"
         "(6,'estimate-vs-theory','{\"x\":\"noise.row_cov.rho\",\"y\":\"outlier\",\"title\":\"Mine\"}')");
    const std::string page = page_of(path);
    EXPECT_TRUE(has(page, "no kind of figure is called pie-chart; there are: estimate-vs-theory, "));
    EXPECT_TRUE(has(page, "no cell has a factor called signal.rank"));
    EXPECT_TRUE(has(page, "the store holds no values of beauty yet"));
    EXPECT_TRUE(has(page, "the store holds no arrays of such a block"));
    EXPECT_TRUE(has(page, "the store holds no ranks by layer and head"));
    EXPECT_TRUE(has(page, "Figure 6. Mine"));
    EXPECT_EQ(tidy(page), "");
}

TEST_F(Report, TheThresholdIsDrawnWhereStrengthsAreInUnitsOfIt) {
    const std::string path = study();
    const auto first = [&] {
        Database store(path, Database::Mode::read);
        return figures_of(store).front();
    };
    EXPECT_TRUE(has(first().script, "'threshold'"));
    EXPECT_TRUE(has(first().description, "in units of the detection threshold"));
    edit(path, "UPDATE cell SET params = '{\"signal\":{\"unit\":\"absolute\"}}'");
    EXPECT_FALSE(has(first().script, "'threshold'"));
    EXPECT_TRUE(has(first().description, "the singular value of the clean signal"));
    edit(path, "UPDATE cell SET params = '{}' WHERE cell_id = 1");
    EXPECT_FALSE(has(first().script, "'threshold'"));
    EXPECT_FALSE(has(first().description, "Strength "));
}

TEST_F(Report, ChecksOfAKilledRunAreReportedAsNotYetJudged) {
    const std::string path = study();
    const std::string judged = page_of(path);
    EXPECT_FALSE(has(judged, "none judged yet"));
    edit(path,
         "INSERT INTO question SELECT NULL, check_name, claim, cell_id, method_id, (SELECT min(metric_id) FROM "
         "metric), k, 1, 1, 1, 0, 2, NULL FROM verdict; DELETE FROM verdict; UPDATE study SET status = 'running'");
    const std::string page = page_of(path);
    EXPECT_TRUE(has(page, " checks, none judged yet."));
    EXPECT_FALSE(has(page, "Measurements without a verdict"));
    EXPECT_TRUE(has(page, "the study is running, or was killed"));
}

TEST_F(Report, AStudyOfNoiseShowsItsRanks) {
    const std::string path = study();
    edit(path, "DELETE FROM moment WHERE metric_id IN (SELECT metric_id FROM metric WHERE name LIKE 'o%')");
    Database store(path, Database::Mode::read);
    const auto figures = figures_of(store);
    ASSERT_EQ(figures.size(), 1U);
    EXPECT_EQ(figures.front().title, "rank against signal.strength");
    EXPECT_TRUE(has(figures.front().svg, "</svg>"));
}

TEST_F(Report, SpikesOfAListAreDrawnAtTheirOwnStrengths) {
    const std::string path = study();
    edit(path, "UPDATE factor SET num = NULL, txt = '[7.25, ' || txt || ']' WHERE name = 'signal.strength'");
    edit(path,
         "UPDATE moment SET k = 2 WHERE k = 1 AND metric_id IN (SELECT metric_id FROM metric WHERE name = "
         "'overlap.left')");
    Database store(path, Database::Mode::read);
    const auto figure = figures_of(store).front();
    EXPECT_TRUE(has(figure.description, "Every spike stands at its own strength"));
    EXPECT_FALSE(has(figure.script, "set xtics nomirror ("));
    std::size_t first = 0;  // right overlaps belong to the first spike, left overlaps to the second
    for (std::size_t at = 0; (at = figure.script.find("\n7.25 ", at)) != std::string::npos; ++at) ++first;
    EXPECT_GT(first, 1U);
    for (const char* second : {"\n0.5 ", "\n0.8 "}) EXPECT_TRUE(has(figure.script, second)) << second;
}

TEST_F(Report, ListsOfStrengthsAreCategoriesForMetricsWithoutSpikes) {
    const std::string path = study();
    edit(path, "UPDATE factor SET num = NULL, txt = '[' || txt || ', 1]' WHERE name = 'signal.strength'");
    edit(path, "UPDATE moment SET k = 0");
    Database store(path, Database::Mode::read);
    const auto figure = figures_of(store).front();
    EXPECT_TRUE(has(figure.script, "set xtics nomirror ('[0.5, 1]' 1, '[0.8, 1]' 2"));
    EXPECT_TRUE(has(figure.svg, "</svg>"));
}

TEST_F(Report, WithoutGnuplotThePageHasANoteAndTheData) {
    const std::string path = study();
    const std::string before = std::getenv("PATH");
    setenv("PATH", (folder / "nothing-here").c_str(), 1);
    const std::string page = page_of(path);
    setenv("PATH", before.c_str(), 1);
    EXPECT_TRUE(has(page, "gnuplot is not installed"));
    EXPECT_FALSE(has(page, "<svg"));
    EXPECT_TRUE(has(page, "Data of figure 1"));
    EXPECT_EQ(tidy(page), "");
}

TEST_F(Report, RejectsOtherFilesAndNewerStores) {
    std::ofstream(folder / "text.spiked") << "hello, this is not a database at all, and long enough to be looked at";
    EXPECT_THROW(page_of(folder / "text.spiked"), Error);
    EXPECT_THROW(page_of(folder / "nothing.spiked"), Error);
    const std::string path = study();
    edit(path, "PRAGMA user_version = 99");
    EXPECT_THROW(page_of(path), Error);
}

TEST_F(Report, IsWrittenAtomically) {
    const std::string path = study();
    write_html_report({path}, folder / "page.html");
    EXPECT_EQ(file_text(folder / "page.html"), page_of(path));
    EXPECT_THROW(write_html_report({path}, folder / "no/such/folder/page.html"), Error);
}

TEST(Quoted, QuotesTextForGnuplot) {
    EXPECT_EQ(gnuplot_quoted("it's"), "'it''s'");
    EXPECT_EQ(gnuplot_quoted("a\nplot x"), "'a plot x'");
}

}  // namespace
}  // namespace spiked::reports

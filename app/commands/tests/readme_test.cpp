// Every command of the README, the tutorials and the how-to pages runs and prints the output that they show.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <sstream>

#include "app/tests/process.hpp"
#include "core/text/names.hpp"
#include "sim/io/npy.hpp"
#include "sim/random/normal.hpp"

namespace spiked::app {
namespace {

struct Snippet {
    std::string language;
    std::vector<std::string> lines;
};

std::vector<Snippet> snippets(const std::string& page) {
    std::vector<Snippet> found;
    bool inside = false;
    for (const auto& line : split(contents(SPIKED_SOURCE_DIR "/" + page), '\n')) {
        if (line.starts_with("```")) {
            if (!inside) found.push_back({line.substr(3), {}});
            inside = !inside;
        } else if (inside) {
            found.back().lines.push_back(line);
        }
    }
    return found;
}

/// Creates a folder with the files that the commands of the README use.
std::string reader_folder(const std::string& name) {
    const std::string folder = scratch(name);
    std::filesystem::create_directory(folder);
    arma::mat data(96, 64);
    stream::fill_normal(stream::Stream({}, "readme", stream::Role::noise, 0), {data.memptr(), data.n_elem});
    sim::write_npy(folder + "/data.npy", data + 0.5);
    std::filesystem::copy_file(sample_dump, folder + "/dump.safetensors");
    std::filesystem::create_directory(folder + "/model");
    const std::string model =
        "cd '" + folder +
        "' && /usr/bin/python3 '" SPIKED_SOURCE_DIR
        "/sim/llama/tests/llama_in_numpy.py' model untied 200 >model/out && mv model/documents.npy pages.npy";
    EXPECT_EQ(std::system(model.c_str()), 0);
    return folder;
}

std::vector<std::string> words(const std::string& text) {
    std::istringstream stream(text);
    std::vector<std::string> all;
    for (std::string word; stream >> word;) all.push_back(word);
    return all;
}

struct Shown {
    double value = 0.0;
    double error = 0.0;  ///< the standard error of `1.23(45)`; 0 without brackets
};

std::optional<Shown> shown_number(const std::string& word) {
    const std::size_t bracket = word.find('(');
    const auto value = to_number(word.substr(0, bracket));
    if (!value) return std::nullopt;
    if (bracket == std::string::npos) return Shown{*value, 0.0};
    const std::size_t point = word.find('.');
    const double places = point == std::string::npos ? 0.0 : static_cast<double>(bracket - point - 1);
    const auto digits = to_number(word.substr(bracket + 1, word.size() - bracket - 2));
    return Shown{*value, digits.value_or(0.0) * std::pow(10.0, -places)};
}

/// Whether two words are equal or are numbers that agree to 1 % or a third of their error, because last digits differ
/// between processors.
bool agree(const std::string& expected, const std::string& printed) {
    if (expected == printed) return true;
    const auto a = shown_number(expected);
    const auto b = shown_number(printed);
    return a && b && std::abs(a->value - b->value) <= std::max(0.01 * std::abs(a->value), a->error / 3.0);
}

/// Runs the shell commands of a page and returns their number.
int run_recipes(const std::string& page, const std::string& folder) {
    int count = 0;
    for (const auto& snippet : snippets(page))
        for (const auto& line : snippet.lines) {
            if (snippet.language != "sh" || !line.starts_with("spiked ")) continue;
            const Outcome found = spiked(line.substr(7), "cd '" + folder + "' &&");
            EXPECT_EQ(found.code, 0) << line << ": " << found.err;
            ++count;
        }
    return count;
}

/// Runs the Python snippets of a page in a folder, between `before`, which makes what they suppose, and `after`. What
/// they print is in the file `printed` of the folder. Returns the exit status.
int run_python(const std::string& page, const std::string& folder, const std::string& before = "",
               const std::string& after = "") {
    {
        std::ofstream file(folder + "/snippets.py");
        file << before << "\n";
        for (const auto& snippet : snippets(page))
            if (snippet.language == "python")
                for (const auto& line : snippet.lines) file << line << "\n";
        file << after << "\n";
    }
    return std::system(("cd '" + folder + "' && /usr/bin/python3 -B -W ignore snippets.py >printed").c_str());
}

struct Page {
    const char* name;
    int recipes;
};

std::string stem(const std::string& path) { return std::filesystem::path(path).stem().string(); }

void PrintTo(const Page& page, std::ostream* out) { *out << page.name; }

class Recipes : public testing::TestWithParam<Page> {};

TEST_P(Recipes, Run) {
    const std::string page = GetParam().name;
    const std::string folder = reader_folder("reader of " + stem(page));
    EXPECT_EQ(run_recipes(page, folder), GetParam().recipes);
    for (const char* made :
         {"clean.csv", "back.safetensors", "results/dump.html", "results/study.html", "whole.spiked"})
        EXPECT_EQ(std::filesystem::exists(folder + "/" + made),
                  contents(SPIKED_SOURCE_DIR "/" + page).find(made) != std::string::npos)
            << made;
}
INSTANTIATE_TEST_SUITE_P(Pages, Recipes,
                         testing::Values(Page{"docs/tutorials/matrix.md", 8}, Page{"docs/tutorials/cache.md", 8},
                                         Page{"docs/tutorials/study.md", 6}, Page{"docs/how-to/model.md", 3},
                                         Page{"docs/how-to/cluster.md", 6}, Page{"docs/how-to/gpu.md", 1}),
                         [](const auto& page) { return stem(page.param.name); });

TEST(Readme, TheStudyForCiPasses) {
    const std::string folder = reader_folder("ci");
    {
        // The parts of the page are one study: the claim is appended to it.
        std::ofstream file(folder + "/overlaps.toml");
        for (const auto& snippet : snippets("docs/how-to/ci.md"))
            if (snippet.language == "toml")
                for (const auto& line : snippet.lines) file << line << "\n";
    }
    EXPECT_EQ(run_recipes("docs/how-to/ci.md", folder), 4);
    EXPECT_NE(contents(folder + "/overlaps.xml").find("loss-of-denoising"), std::string::npos);
    EXPECT_NE(contents(folder + "/CLAIMS.md").find("prop.norm"), std::string::npos);
}

TEST(Readme, TheSectionsOfStudiesThatPagesShowAreAccepted) {
    const std::string folder = scratch("reader of sections");
    std::filesystem::create_directory(folder);
    const std::string cd = "cd '" + folder + "' &&";
    const auto first_section = [](const std::string& page) {
        for (const auto& snippet : snippets(page))
            if (snippet.language == "toml") {
                std::string text;
                for (const auto& line : snippet.lines) text += line + "\n";
                return text;
            }
        return std::string();
    };
    const auto accepted = [&](const std::string& study) {
        std::ofstream(folder + "/tried.toml") << study;
        return spiked("run tried.toml --dry-run", cd);
    };
    ASSERT_EQ(spiked("init --kind bbp study.toml", cd).code, 0);
    const std::string begun = contents(folder + "/study.toml");
    const std::string without_checks = begun.substr(0, begun.find("[[check]]"));
    const Outcome check = accepted(without_checks + first_section("docs/tutorials/study.md"));
    EXPECT_EQ(check.code, 0) << check.err;
    EXPECT_NE((check.out + check.err).find("1 check"), std::string::npos) << check.out << check.err;

    const std::string for_ci = first_section("docs/how-to/ci.md");
    const std::string of_gpu = first_section("docs/how-to/gpu.md");
    const std::string without_run = for_ci.substr(0, for_ci.find("[run]"));
    const Outcome many = accepted(without_run + of_gpu);
    EXPECT_EQ(many.code, 0) << many.err;
    EXPECT_NE((many.out + many.err).find("1048576 replicates"), std::string::npos) << many.out << many.err;
    EXPECT_EQ(accepted(without_run + std::regex_replace(of_gpu, std::regex("raw"), "rows")).code, 2) << "control";
}

TEST(Readme, TheStudyOfARateIsTheOneOfThePage) {
    std::set<std::vector<std::string>> study;  // its lines without comments, as words
    for (const auto& line : split(contents(SPIKED_SOURCE_DIR "/validation/studies/own-exponent.toml"), '\n'))
        study.insert(words(line.substr(0, line.find('#'))));
    const std::string page = contents(SPIKED_SOURCE_DIR "/docs/how-to/ci.md");
    const std::size_t begin = page.find("    [sweep]");
    ASSERT_NE(begin, std::string::npos);
    int count = 0;
    for (const auto& line : split(page.substr(begin, page.find("\n\n`equals`", begin) - begin), '\n')) {
        if (line.empty()) continue;
        EXPECT_TRUE(study.contains(words(line))) << line;
        ++count;
    }
    EXPECT_EQ(count, 14);
}

TEST(Readme, TheSnippetOnACacheInMemoryWritesADump) {
    const std::string folder = scratch("reader with a cache");
    std::filesystem::create_directory(folder);
    std::filesystem::create_directory_symlink(SPIKED_SOURCE_DIR "/tools", folder + "/tools");
    const std::string cache =
        "import numpy, types\n"
        "cache = [(numpy.zeros((1, 2, 128, 16)), numpy.ones((1, 2, 128, 16)))]\n"
        "model = types.SimpleNamespace(config=types.SimpleNamespace(rope_theta=5e5))\n";
    ASSERT_EQ(run_python("docs/tutorials/cache.md", folder, cache), 0);
    const Outcome seen = spiked("kv inspect '" + folder + "/dump.safetensors' --json");
    EXPECT_EQ(seen.code, 0) << seen.err;
    for (const char* text : {"layers.0.value", "\"model\": \"mine\"", "500000"})
        EXPECT_NE(seen.out.find(text), std::string::npos) << text << "\n" << seen.out;
}

TEST(Readme, TheSnippetOnTokensWritesPagesOf1024) {
    const std::string folder = scratch("reader with a tokenizer");
    std::filesystem::create_directory(folder);
    const std::string library =
        "import sys, types\n"
        "one = lambda folder: lambda text: {'input_ids': list(range(len(text)))}\n"
        "sys.modules['transformers'] = "
        "types.SimpleNamespace(AutoTokenizer=types.SimpleNamespace(from_pretrained=one))\n"
        "open('page.txt', 'w').write('x' * 2100)\n";
    const std::string pages =
        "x = numpy.load('pages.npy')\n"
        "assert x.shape == (2, 1024) and x[1, 0] == 1024, x.shape\n";
    EXPECT_EQ(run_python("docs/how-to/model.md", folder, library, pages), 0);
    EXPECT_NE(run_python("docs/how-to/model.md", folder, library, "assert numpy.load('pages.npy').shape == (1, 2048)"),
              0)
        << "control";
}

TEST(Readme, TheOptionsForCachesOfOtherProgramsReadThem) {
    const std::string folder = scratch("reader of other programs");
    std::filesystem::create_directory(folder);
    const std::string check = "/usr/bin/python3 '" SPIKED_SOURCE_DIR
                              "/app/commands/tests/dump_page_check.py' '" SPIKED_BINARY "' '" +
                              folder + "'";
    EXPECT_EQ(std::system(check.c_str()), 0);
}

TEST(Readme, TheSnippetsAboutStoresRun) {
    const std::string folder = reader_folder("stores");
    const std::string cd = "cd '" + folder + "' &&";
    ASSERT_EQ(spiked("init --kind bbp study.toml", cd).code, 0);
    ASSERT_EQ(
        spiked("run study.toml --set run.reps.min=5 --set run.reps.batch=5 --no-report -o results/study.spiked", cd)
            .code,
        0);
    EXPECT_EQ(run_recipes("docs/how-to/stores.md", folder), 2);
    ASSERT_EQ(run_python("docs/how-to/stores.md", folder), 0);
    EXPECT_NE(contents(folder + "/printed").find("n=64 signal.strength=0.5"), std::string::npos);
    EXPECT_NE(contents(folder + "/summary.csv").find("outlier"), std::string::npos);
}

TEST(Readme, TheRSnippetAboutStoresRuns) {
    if (std::system("Rscript -e 'library(RSQLite)' >/dev/null 2>&1") != 0) GTEST_SKIP() << "R has no RSQLite here";
    const std::string folder = scratch("stores in R");
    std::filesystem::create_directories(folder);
    const std::string cd = "cd '" + folder + "' &&";
    ASSERT_EQ(spiked("init --kind bbp study.toml", cd).code, 0);
    ASSERT_EQ(
        spiked("run study.toml --set run.reps.min=5 --set run.reps.batch=5 --no-report -o results/study.spiked", cd)
            .code,
        0);
    const std::string page = contents(SPIKED_SOURCE_DIR "/docs/how-to/stores.md");
    const std::size_t section = page.find("## R\n");
    ASSERT_NE(section, std::string::npos);
    std::ofstream script(folder + "/snippet.R");
    for (const auto& line : split(page.substr(section, page.find("\n## ", section + 1) - section), '\n'))
        if (line.starts_with("    ")) script << line.substr(4) << "\n";
    script << "stopifnot('overlap.left' %in% table$metric)\n";
    script.close();
    EXPECT_EQ(std::system((cd + " Rscript snippet.R >printed 2>&1").c_str()), 0) << contents(folder + "/printed");
}

/// Whether the lines are shown: a line `...` stands for any number of others.
testing::AssertionResult shown(const std::vector<std::string>& page, const std::vector<std::string>& printed) {
    const auto differs = [](const std::string& expected, const std::string& found) -> std::string {
        const auto a = words(expected);
        const auto b = words(found);
        if (a.size() != b.size()) return expected;
        for (std::size_t i = 0; i < a.size(); ++i)
            if (!agree(a[i], b[i])) return a[i];
        return "";
    };
    std::size_t at = 0;
    bool anywhere = false;
    for (const auto& line : page) {
        if (line == "...") {
            anywhere = true;
            continue;
        }
        while (anywhere && at < printed.size() && !differs(line, printed[at]).empty()) ++at;
        if (at == printed.size()) return testing::AssertionFailure() << "\"" << line << "\" is not printed";
        if (const auto word = differs(line, printed[at]); !word.empty())
            return testing::AssertionFailure() << word << " of \"" << line << "\" is not printed: " << printed[at];
        anywhere = false;
        ++at;
    }
    if (!anywhere && at < printed.size()) return testing::AssertionFailure() << "not shown: " << printed[at];
    return testing::AssertionSuccess();
}

TEST(Readme, ShowsThePrintedOutput) {
    int count = 0;
    for (const char* page : {"README.md", "docs/tutorials/matrix.md", "docs/tutorials/cache.md"})
        for (const auto& snippet : snippets(page)) {
            if (snippet.language != "console") continue;
            ASSERT_TRUE(snippet.lines.front().starts_with("$ spiked "));
            const Outcome found = spiked(snippet.lines.front().substr(9), "cd '" SPIKED_SOURCE_DIR "' &&");
            ASSERT_EQ(found.code, 0) << found.err;
            auto printed = split(found.out, '\n');
            if (!printed.empty() && printed.back().empty()) printed.pop_back();
            EXPECT_TRUE(shown({snippet.lines.begin() + 1, snippet.lines.end()}, printed)) << page << "\n" << found.out;
            ++count;
        }
    EXPECT_EQ(count, 4);
}

TEST(ReadmeControl, OtherOutputIsNotShown) {
    EXPECT_TRUE(shown({"a  1", "...", "b 2.00(3)"}, {"a 1", "x", "y", "b 2.005(30)"}));
    EXPECT_FALSE(shown({"a 1", "b 2"}, {"a 1", "x", "b 2"}));
    EXPECT_FALSE(shown({"a 1"}, {"a 1", "x"}));
    EXPECT_FALSE(shown({"...", "b 2.5", "..."}, {"a 1", "b 2.4"}));
}

/// The keys that the functions of a source file read from a study, by function.
std::map<std::string, std::set<std::string>> keys_by_function(const std::string& source) {
    const std::regex head("^[A-Za-z][^=;]*?([a-z_]+)\\(");
    const std::regex reads("\\.(text|count|numbers?|choice|flag|second_of|node|table|table_or_false)\\(\"([a-z_]+)\"");
    std::map<std::string, std::set<std::string>> keys;
    std::string function;
    std::istringstream lines(source);
    for (std::string line; std::getline(lines, line);) {
        if (std::smatch found; std::regex_search(line, found, head)) function = found[1];
        for (std::sregex_iterator at(line.begin(), line.end(), reads), end; at != end; ++at)
            keys[function].insert((*at)[2]);
    }
    return keys;
}

/// Whether a section of a page names a key: in its heading, or in backquotes.
bool names_key(const std::string& section, const std::string& key) {
    const std::string heading = section.substr(0, section.find('\n'));
    return std::regex_search(heading, std::regex("\\b" + key + "\\b")) ||
           std::regex_search(section, std::regex("`[^`\n]*\\b" + key + "\\b[^`\n]*`"));
}

TEST(Readme, TheReferenceOfStudyFilesNamesEveryKeyInItsSection) {
    const char* const of_spiked = "[model] kind = \"spiked\"";
    const char* const of_dumps = "[model] kind = \"kv_dump\"";
    const std::map<std::string, std::set<std::string>> sections_of = {
        {"read_version", {"The file"}},
        {"read_about", {"The file"}},
        {"read_store", {"The file"}},
        {"read_exec", {"The file"}},
        {"read_covariance", {of_spiked}},
        {"read_spiked", {of_spiked}},
        {"read_counts", {"[model] kind = \"counts\""}},
        {"read_kv_like", {"[model] kind = \"kv_like\""}},
        {"read_source", {"[model] kind = \"matrix\"", of_dumps}},
        {"read_dialect", {"[model] kind = \"matrix\""}},
        {"read_matrices", {"[model] kind = \"matrix\""}},
        {"read_dump_model", {of_dumps}},
        {"read_estimators", {"Methods"}},
        {"read_codecs", {"Methods"}},
        {"read_run", {"[run]"}},
        {"read_stop_rule", {"[run]"}},
        {"read_figures", {"[[figure]]"}},
        {"read_checks", {"Checks and claims"}},
        {"read_claims", {"Checks and claims"}},
        {"read_margin", {"Checks and claims"}},
        {"read_region", {"Checks and claims"}},
        {"read_where", {"Checks and claims"}},
    };
    std::map<std::string, std::string> sections;
    const std::string page = contents(SPIKED_SOURCE_DIR "/docs/reference/study.md");
    for (std::size_t at = page.find("\n## "); at != std::string::npos;) {
        const std::size_t next = page.find("\n## ", at + 1);
        const std::string section = page.substr(at + 4, next == std::string::npos ? next : next - at - 4);
        sections[section.substr(0, section.find('\n'))] = section;
        at = next;
    }
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(SPIKED_SOURCE_DIR "/validation/study")) {
        if (entry.path().extension() != ".cpp") continue;
        for (const auto& [function, keys] : keys_by_function(contents(entry.path().string()))) {
            if (function == "parse_study") continue;  // it reads the tables that are the headings of the page
            ASSERT_TRUE(sections_of.contains(function)) << function << " reads keys: add the section of the page";
            for (const auto& section : sections_of.at(function))
                for (const auto& key : keys) {
                    ++count;
                    // `covariance` is looked up for a message alone.
                    EXPECT_TRUE(key == "covariance" || names_key(sections[section], key))
                        << "docs/reference/study.md, section \"" << section << "\" does not name `" << key << "`";
                }
        }
    }
    EXPECT_GE(count, 90U);
}

TEST(ReadmeControl, AKeyOutsideItsSectionOrWithoutBackquotesIsNotNamed) {
    EXPECT_TRUE(names_key("[model] kind = \"a\"\n| `noise` `row_cov` | text |\n", "row_cov"));
    EXPECT_TRUE(names_key("[model] kind = \"a\"\n", "kind"));
    EXPECT_TRUE(names_key("[run]\n`{ min = 2, max = 3 }`\n", "max"));
    EXPECT_FALSE(names_key("[run]\nthe max of `min`\n", "max"));
    EXPECT_FALSE(names_key("[run]\n`max_rank`\n", "max"));
    const auto keys = keys_by_function("void read_run(Section& root) {\n    root.count(\"min\", 1);\n}\n");
    EXPECT_EQ(keys, (std::map<std::string, std::set<std::string>>{{"read_run", {"min"}}}));
}

/// The README of the module or of a folder in it must name every file.
TEST(Readme, NamesEveryFileOfEveryModule) {
    namespace fs = std::filesystem;
    const std::set<std::string> code = {".hpp", ".cpp", ".cuh", ".cu"};
    const std::set<std::string> others = {"tests", "bench", "fuzz"};
    for (const char* module : {"core", "theory", "sim", "estimators", "codec", "validation", "reports", "app"}) {
        const fs::path folder = fs::path(SPIKED_SOURCE_DIR) / module;
        std::string pages;
        for (const auto& entry : fs::recursive_directory_iterator(folder))
            if (entry.path().filename() == "README.md") pages += contents(entry.path().string());
        for (auto entry = fs::recursive_directory_iterator(folder); entry != fs::recursive_directory_iterator();
             ++entry) {
            const fs::path path = entry->path();
            if (entry->is_directory() && others.contains(path.filename().string())) entry.disable_recursion_pending();
            if (!code.contains(path.extension().string())) continue;
            const std::string name = path.stem().string();
            EXPECT_TRUE(pages.find("`" + name) != std::string::npos || pages.find("/" + name) != std::string::npos)
                << module << "/README.md does not name " << fs::relative(path, folder);
        }
    }
}

TEST(Readme, NamesEveryTool) {
    const std::filesystem::path tools = std::filesystem::path(SPIKED_SOURCE_DIR) / "tools";
    const std::string page = contents((tools / "README.md").string());
    for (const auto& entry : std::filesystem::directory_iterator(tools)) {
        const std::string name = entry.path().filename().string();
        if (name == "README.md" || name == "__pycache__") continue;
        EXPECT_NE(page.find("`" + name), std::string::npos) << "tools/README.md does not name " << name;
    }
}

}  // namespace
}  // namespace spiked::app

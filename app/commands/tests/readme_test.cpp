// Every command of the README runs and prints the output that the README shows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <set>

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

TEST(Readme, RecipesRun) {
    const std::string folder = reader_folder("reader");
    EXPECT_EQ(run_recipes("README.md", folder), 26);
    EXPECT_TRUE(std::filesystem::exists(folder + "/clean.npy"));
}

TEST(Readme, TheTutorialOnDumpsRuns) {
    const std::string folder = reader_folder("tutorial");
    EXPECT_EQ(run_recipes("docs/YOUR_DUMP.md", folder), 7);
    EXPECT_TRUE(std::filesystem::exists(folder + "/back.safetensors"));
    EXPECT_TRUE(std::filesystem::exists(folder + "/results/dump.html"));
}

TEST(Readme, ShowsThePrintedOutput) {
    int count = 0;
    for (const auto& snippet : snippets("README.md")) {
        if (snippet.language != "console") continue;
        ASSERT_TRUE(snippet.lines.front().starts_with("$ spiked "));
        std::string shown;
        for (std::size_t i = 1; i < snippet.lines.size(); ++i) shown += snippet.lines[i] + "\n";
        const Outcome found = spiked(snippet.lines.front().substr(9), "cd '" SPIKED_SOURCE_DIR "' &&");
        ASSERT_EQ(found.code, 0) << found.err;
        const auto expected = words(shown);
        const auto printed = words(found.out);
        ASSERT_EQ(expected.size(), printed.size()) << found.out;
        for (std::size_t i = 0; i < expected.size(); ++i)
            EXPECT_TRUE(agree(expected[i], printed[i])) << expected[i] << " is shown, " << printed[i] << " is printed";
        ++count;
    }
    EXPECT_GE(count, 1);
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

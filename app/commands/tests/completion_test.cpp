// The completion scripts, called as a shell calls them, and the manual page, compared with the command table.
#include <gtest/gtest.h>

#include <filesystem>

#include "app/tests/process.hpp"
#include "core/text/names.hpp"

namespace spiked::app {
namespace {

std::string output_of(const std::string& line) {
    const std::string file = scratch("completion-out");
    EXPECT_EQ(std::system((line + " >'" + file + "' 2>&1").c_str()), 0) << line << "\n" << contents(file);
    return contents(file);
}

std::string script(const std::string& shell) {
    const std::string path = scratch("completion." + shell);
    std::ofstream(path) << spiked("completion " + shell).out;
    return path;
}

/// Names of all commands, as the overview shows them.
std::vector<std::string> command_names() {
    const std::string overview = spiked("--help").out;
    std::istringstream lines(overview.substr(overview.find("\nA matrix\n")));
    std::vector<std::string> names;
    for (std::string line; std::getline(lines, line);)
        if (line.starts_with("  ") && !line.starts_with("   ")) names.push_back(line.substr(2, line.find("  ", 2) - 2));
    EXPECT_GT(names.size(), 25U);
    return names;
}

bool installed(const std::string& program) {
    return std::system(("command -v " + program + " >/dev/null 2>&1").c_str()) == 0;
}

TEST(Completion, BashCompletesFromTheCommandTable) {
    const std::string path = script("bash");
    const auto answer = [&](const std::string& words) {
        return output_of("bash -c 'source " + path + "; COMP_WORDS=(spiked " + words +
                         "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _spiked; echo \"${COMPREPLY[*]}\"'");
    };
    EXPECT_EQ(answer("val"), "validate\n");
    EXPECT_EQ(answer("kv fr"), "frontier\n");
    EXPECT_EQ(answer("validate --tier \"\""), "quick full\n");
    EXPECT_EQ(answer("validate dump.safetensors --clai"), "--claim\n");
    EXPECT_EQ(answer("kv run --json --norm f"), "fp16 fp32 fp64\n");
    EXPECT_EQ(answer("run --tier \"\"").find("quick"), std::string::npos) << "an option of another command";
    EXPECT_EQ(answer("kv run --layers \"\""), "\n") << "free text: left to file names";
    EXPECT_EQ(answer("validate dump"), "\n") << "a file";
    EXPECT_EQ(answer("completion \"\""), "bash zsh fish man\n") << "values of a positional argument";
    EXPECT_EQ(answer("report --figure-format svg,p"), "svg,pdf svg,png\n") << "the last word of a list";
    EXPECT_EQ(answer("list cov"), "covariances\n");
    EXPECT_EQ(answer("kv run --method tq-mse,tcq"), "tq-mse,tcq\n") << "names from spiked list";
    EXPECT_EQ(answer("validate --claim overlap.l"), "overlap.left\n");
    // A name with a parameter, which bash splits into three words.
    EXPECT_EQ(answer("kv run --method svd : 2+tq-m"), "2+tq-mse\n");
    EXPECT_EQ(answer("kv run --method tq-mse,svd : 2+tq-m"), "2+tq-mse\n");
    EXPECT_EQ(answer("kv run --method tq-mse,svd :"), "\n");
    EXPECT_EQ(answer("export --metric relative_l"), "relative_l2\n");
    const std::string folder = scratch("completion-files");
    std::filesystem::create_directories(folder + "/deeper");
    for (const char* name : {"a.toml", "b.toml", "c.spiked", "d.txt"}) std::ofstream(folder + "/" + name) << "x";
    EXPECT_EQ(answer("run " + folder + "/"), folder + "/a.toml " + folder + "/b.toml " + folder + "/deeper\n");
    EXPECT_EQ(answer("show " + folder + "/c"), folder + "/c.spiked\n");
    const std::string all = answer("\"\"");
    for (const auto& name : command_names())
        EXPECT_NE(all.find(name.substr(0, name.find(' '))), std::string::npos) << name;
}

TEST(Completion, ContainsCompositionsAndTheCommandsOfGroups) {
    const std::string bash = spiked("completion bash").out;
    for (const char* method : {"eoptshrink+tq-mse", "eoptshrink+tcq", "tw-test+tq-prod"})
        EXPECT_NE(bash.find(method), std::string::npos) << method;
    const std::string fish = spiked("completion fish").out;
    EXPECT_EQ(fish.find("several commands"), std::string::npos);
    EXPECT_NE(fish.find("-a kv -d 'dump, inspect, "), std::string::npos);
}

TEST(Completion, ZshAndFishAcceptTheirScripts) {
    if (!installed("zsh") && !installed("fish")) GTEST_SKIP() << "neither zsh nor fish is installed";
    if (installed("zsh")) output_of("zsh -n " + script("zsh"));
    if (!installed("fish")) return;
    const std::string path = script("fish");
    output_of("fish -n " + path);
    EXPECT_NE(output_of("fish -c \"source " + path + "; complete -C 'spiked validate --tier '\"").find("quick"),
              std::string::npos);
}

TEST(Completion, TheManualPageFitsItsLines) {
    if (!installed("groff")) GTEST_SKIP() << "groff is not installed";
    const std::string path = scratch("spiked.1");
    std::ofstream(path) << spiked("completion man").out;
    EXPECT_EQ(output_of("sh -c \"groff -man -ww -Tutf8 " + path + " 2>&1 >/dev/null\""), "");
}

TEST(Completion, TheManualPageHasEveryCommandAndOption) {
    const std::string page = spiked("completion man").out;
    EXPECT_EQ(page.rfind(".TH SPIKED 1", 0), 0U);
    const auto plain = [&] {
        std::string text = page;
        for (std::size_t at; (at = text.find("\\-")) != std::string::npos;) text.erase(at, 1);
        return text;
    }();
    for (const auto& name : command_names()) {
        EXPECT_NE(plain.find(".SS " + name + "\n"), std::string::npos) << name;
        std::istringstream lines(spiked(name + " --help").out);
        for (std::string line; std::getline(lines, line);) {
            const std::size_t option = line.find("--");
            if (!line.starts_with("  -") || option == std::string::npos) continue;
            for (const auto& word : split(line.substr(option, line.find(' ', option) - option), ','))
                EXPECT_NE(plain.find(word), std::string::npos) << name << " " << word;
        }
    }
    // A line that begins with a dot is a troff request; only intended ones may occur.
    std::istringstream lines(page);
    for (std::string line; std::getline(lines, line);)
        if (line.starts_with(".")) {
            EXPECT_TRUE(line.starts_with(".TH ") || line.starts_with(".S") || line.starts_with(".B ") ||
                        line.starts_with(".I") || line == ".TP" || line == ".PP" || line == ".nf" || line == ".fi" ||
                        line == ".ad l")
                << line;
        }
    if (installed("groff")) {
        std::ofstream(scratch("spiked.1")) << page;
        EXPECT_NE(output_of("groff -man -Tascii -P-c -P-b -P-u " + scratch("spiked.1")).find("EXIT STATUS"),
                  std::string::npos);
    }
}

TEST(Completion, FileNamesMayHoldBlanks) {
    const std::string path = script("bash");
    const std::string folder = scratch("with blanks");
    std::filesystem::create_directories(folder + "/a folder");
    std::ofstream(folder + "/a study.toml") << "";
    std::ofstream(folder + "/a * b.toml") << "";
    std::ofstream(folder + "/a note.txt") << "";
    EXPECT_EQ(output_of("cd '" + folder + "' && bash -c 'source " + path +
                        "; COMP_WORDS=(spiked run a); COMP_CWORD=2; _spiked; printf \"<%s>\\n\" \"${COMPREPLY[@]}\" | "
                        "LC_ALL=C sort'"),
              "<a * b.toml>\n<a folder>\n<a study.toml>\n");
}

TEST(Completion, AnUnknownShellIsAnError) {
    const Outcome found = spiked("completion fihs");
    EXPECT_EQ(found.code, 2);
    EXPECT_NE(found.err.find("did you mean \"fish\""), std::string::npos) << found.err;
    EXPECT_EQ(*spiked("completion bash --json").json().find("for")->string(), "bash");
}

}  // namespace
}  // namespace spiked::app

// tools/needle-prompts and `kv retrieve --prompts-file`, with a random model whose tokens are characters.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "app/tests/process.hpp"
#include "sim/io/npy.hpp"
#include "validation/store/sqlite.hpp"

namespace spiked::app {
namespace {

/// The exit code of tools/needle-prompts, and what it wrote to standard error.
Outcome needle_prompts(const std::string& folder, const std::string& words) {
    const std::string line = "/usr/bin/python3 '" SPIKED_SOURCE_DIR "/app/commands/tests/needle_prompts_check.py' '" +
                             folder + "' " + words + " >'" + scratch("tool.out") + "' 2>'" + scratch("tool.err") + "'";
    const int status = std::system(line.c_str());
    return {WEXITSTATUS(status), contents(scratch("tool.out")), contents(scratch("tool.err"))};
}

/// A random model of 50 tokens with a context of 1200, and prompts of 2 and 3 needles with one control.
struct Asked {
    std::string folder = scratch("instruct");
    std::string prompts = scratch("prompts.json");

    Asked() {
        std::filesystem::create_directories(folder);
        const std::string line = "/usr/bin/python3 '" SPIKED_SOURCE_DIR "/sim/llama/tests/llama_in_numpy.py' '" +
                                 folder + "' untied 1200 > '" + folder + "/out'";
        EXPECT_EQ(std::system(line.c_str()), 0);
        std::ofstream(folder + "/tokenizer.json") << "{}";
        const Outcome made = needle_prompts(
            folder, "--needles 2,3 --context 1000,1200 --prompts 1 --answer-tokens 20 --seed 5 -o '" + prompts + "'");
        EXPECT_EQ(made.code, 0) << made.err;
        EXPECT_NE(made.out.find("6 prompts of "), std::string::npos) << made.out;
    }
};

const Asked& asked() {
    static const Asked made;
    return made;
}

std::string command() {
    return "kv retrieve --model '" + asked().folder + "' --prompts-file '" + asked().prompts + "' --threads 1 ";
}

TEST(NeedlePromptsTool, PlantsEveryNeedleAtItsDepth) {
    const Json file = Json::parse(contents(asked().prompts), asked().prompts);
    EXPECT_EQ(*file.find("schema")->string(), "spiked.needle-prompts/1");
    EXPECT_EQ(*file.find("end_tokens")->items()->front().integer(), 43);
    const auto& vocabulary = *file.find("vocabulary")->items();
    ASSERT_EQ(vocabulary.size(), 44);
    std::size_t controls = 0;
    for (const Json& prompt : *file.find("prompts")->items()) {
        std::string text;
        for (const Json& token : *prompt.find("tokens")->items())
            text += *vocabulary[static_cast<std::size_t>(*token.integer())].string();
        EXPECT_LE(text.size() + 20, static_cast<std::size_t>(*prompt.find("context")->integer()));
        EXPECT_GT(text.size() + 20 + 60, static_cast<std::size_t>(*prompt.find("context")->integer()));
        const bool control = *prompt.find("control")->boolean();
        controls += control ? 1 : 0;
        const auto question_at = static_cast<std::size_t>(*prompt.find("question_at")->integer());
        EXPECT_EQ(text.substr(question_at, 10), "\n\nwhat are");
        const auto& needles = *prompt.find("needles")->items();
        for (std::size_t n = 0; n < needles.size(); ++n) {
            const std::string& key = *needles[n].find("key")->string();
            const std::string& answer = *needles[n].find("answer")->string();
            const auto at = static_cast<std::size_t>(*needles[n].find("first_token")->integer());
            const std::string sentence =
                text.substr(at, static_cast<std::size_t>(*needles[n].find("tokens")->integer()));
            EXPECT_EQ(answer.size(), 7);
            EXPECT_EQ(sentence == "one of the special magic numbers for " + key + " is: " + answer + ".", !control);
            EXPECT_EQ(text.find(answer) == std::string::npos, control);
            EXPECT_NE(text.find(key, question_at), std::string::npos);
            EXPECT_EQ(text.find(key) >= question_at, control);
            // Within half a needle and half a sentence of the aim.
            EXPECT_NEAR(number(needles[n], "depth"),
                        (static_cast<double>(n) + 0.5) / static_cast<double>(needles.size()), 0.1);
        }
    }
    EXPECT_EQ(controls, 2);
}

TEST(NeedlePromptsTool, IsAFunctionOfItsSeed) {
    const std::string other = scratch("other.json");
    const std::string words = "--needles 2,3 --context 1000,1200 --prompts 1 --answer-tokens 20 -o '" + other + "' ";
    ASSERT_EQ(needle_prompts(asked().folder, words + "--seed 5").code, 0);
    EXPECT_EQ(contents(other), contents(asked().prompts));
    ASSERT_EQ(needle_prompts(asked().folder, words + "--seed 6").code, 0);
    EXPECT_NE(contents(other), contents(asked().prompts));
}

TEST(NeedlePromptsTool, RejectsWhatCannotBeMade) {
    const auto expect = [&](const std::string& words, const std::string& part) {
        const Outcome made = needle_prompts(asked().folder, words + " -o '" + scratch("never.json") + "'");
        EXPECT_EQ(made.code, 1);
        EXPECT_NE(made.err.find(part), std::string::npos) << made.err;
        EXPECT_EQ(made.err.find('\n'), made.err.size() - 1) << made.err;
    };
    expect("--context 300", "--context 300 has no room for 2 needles");
    expect("--needles 0", "--needles 0 is not possible");
    expect("--needles 300", "--needles 300 is not possible (there are keys for 264)");
    expect("--haystack /nowhere/text", "/nowhere/text: no such file");
    EXPECT_NE(needle_prompts(scratch("nowhere"), "-o '" + scratch("never.json") + "'")
                  .err.find("tokenizer.json: no such file"),
              std::string::npos);
    EXPECT_FALSE(std::filesystem::exists(scratch("never.json")));
}

TEST(AnswersCommand, ReportsRecallOfTheModelsText) {
    const std::string picture = scratch("recall.svg");
    const Outcome found = spiked(command() + "--method tq-mse --bits 2 --block 64 --json --plot '" + picture + "'");
    ASSERT_EQ(found.code, 0) << found.err;
    const Json json = found.json();
    EXPECT_EQ(*json.find("schema")->string(), "spiked.answers/1");
    EXPECT_EQ(json.find("prompts")->items()->size(), 6);
    const auto& rows = *json.find("rows")->items();
    ASSERT_EQ(rows.size(), 2);
    for (const Json& row : rows) {
        EXPECT_EQ(number(row, "recall"), 0.0);  // a random model states no fact
        EXPECT_EQ(number(*row.find("control"), "recall"), 0.0);
        EXPECT_GT(number(row, "high"), 0.0);
        EXPECT_EQ(row.find("answers")->items()->size(), 6);
        EXPECT_EQ(row.find("parts")->items()->size(), 2 + 2 + 5 + 4 + 10);
    }
    EXPECT_GT(number(rows[1], "bits_per_entry"), 2.0);
    EXPECT_NE(contents(picture).find("<svg"), std::string::npos);
    EXPECT_NE(contents(picture).find("depth in %"), std::string::npos);

    const Outcome text =
        spiked(command() + "--method tq-mse --bits 2 --block 64 --plot-rows needles -v --plot '" + picture + "'");
    ASSERT_EQ(text.code, 0) << text.err;
    for (const char* part : {"absent facts", "recall: fraction of the 10 facts asked for in 4 prompts",
                             "answers to the first prompt", "states fewer than half of the facts"})
        EXPECT_NE(text.out.find(part), std::string::npos) << part << "\n" << text.out;
    EXPECT_NE(contents(picture).find("facts asked at once"), std::string::npos);
}

TEST(AnswersCommand, AStoreResumesAfterKillsAndGivesTheSameAnswers) {
    const std::string words = command() + "--method tq-mse,snapkv --bits 2 --budget 0.5 --block 64 --json --quiet ";
    const Outcome plain = spiked(words);
    ASSERT_EQ(plain.code, 0) << plain.err;
    const std::string store = "-o '" + scratch("answers.spiked") + "'";
    int kills = 0;
    for (int attempt = 0; attempt < 100; ++attempt) {
        // Killed later each time, so that some run makes progress.
        const std::string limit = "timeout -s KILL " + std::to_string(0.1 + 0.02 * attempt);
        const int code = spiked(words + store, limit).code;
        if (code == 0) break;
        ASSERT_EQ(code, 137);
        ++kills;
    }
    EXPECT_GE(kills, 1);
    const Outcome whole = spiked(command() + "--method tq-mse,snapkv --bits 2 --budget 0.5 --block 64 --json " + store);
    EXPECT_EQ(whole.code, 0) << whole.err;
    EXPECT_EQ(whole.out, plain.out);
    EXPECT_NE(whole.err.find("6 batches are kept"), std::string::npos) << whole.err;

    const Outcome other =
        spiked(command() + "--method tq-mse,snapkv --bits 2 --budget 0.5 --block 64 --exact-questions " + store);
    EXPECT_EQ(other.code, 2);
    EXPECT_NE(other.err.find("(settings.exact_questions: false, now true)"), std::string::npos) << other.err;
    const Outcome shown = spiked("show '" + scratch("answers.spiked") + "'");
    EXPECT_EQ(shown.code, 0) << shown.err;
    EXPECT_NE(shown.out.find("snapkv"), std::string::npos) << shown.out;
}

TEST(AnswersCommand, RejectsAStoreWithAnswersThatNoRunWrites) {
    const std::string store = scratch("forged.spiked");
    const std::string words = command() + "--method tq-mse --bits 2 --block 64 -o '" + store + "'";
    ASSERT_EQ(spiked(words).code, 0);
    for (const double token : {50.0, -1.0, std::nan("")}) {
        const std::string npy = sim::npy_bytes(arma::rowvec{1.0, 0.0, 0.0, 0.0, 0.0, 0.0, token});
        const std::vector<unsigned char> bytes(npy.begin(), npy.end());
        const std::string row = fmt::format("{:02x}", fmt::join(bytes, ""));
        validation::Database(store, validation::Database::Mode::trusted)
            .execute("UPDATE array SET npy = x'" + row + "' WHERE method_id = 1 AND cell_id = 2");
        const Outcome found = spiked(words);
        EXPECT_EQ(found.code, 4);
        EXPECT_NE(found.err.find("its answer to prompt 1 is none"), std::string::npos) << found.err;
    }
}

TEST(AnswersCommand, RejectsOptionsWithoutEffect) {
    const auto expect = [&](const std::string& words, int code, const std::string& part) {
        const Outcome found = spiked(words);
        EXPECT_EQ(found.code, code) << words;
        EXPECT_NE(found.err.find(part), std::string::npos) << found.err;
    };
    expect("kv retrieve --prompts-file '" + asked().prompts + "'", 2, "--prompts-file has no effect without --model");
    for (const char* option : {"--needles 4", "--prompts 2", "--context 512", "--asked 1"})
        expect(command() + option, 2, "--prompts-file and ");
    expect(command() + "--plot x.gif", 2, "x.gif");
    expect("kv retrieve --model '" + asked().folder + "' --plot-rows needles", 2, "--plot-rows has no effect");
    expect("kv retrieve --model '" + asked().folder + "' -o x.spiked", 2, "--output has no effect");
    expect(command() + "-o '" + asked().prompts + "'", 2, "prompts.json");
    expect(command() + "--block 1100 --method tq-mse", 4, "more than a block of 1100 are expected");
    const std::string other = scratch("foreign.json");
    std::ofstream(other) << "{\"schema\": \"spiked.run/1\"}";
    expect("kv retrieve --model '" + asked().folder + "' --prompts-file '" + other + "'", 4, "no prompts with needles");
}

}  // namespace
}  // namespace spiked::app

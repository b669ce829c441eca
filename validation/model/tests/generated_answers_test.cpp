#include "validation/model/generated_answers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "core/files/tests/scratch.hpp"
#include "core/text/json.hpp"
#include "sim/llama/llama.hpp"
#include "validation/engine/engine.hpp"
#include "validation/model/model_study.hpp"
#include "validation/store/store.hpp"
#include "validation/study/command_studies.hpp"

namespace spiked::validation {
namespace {

using sim::expect_error;
using sim::ScratchFolder;

TEST(StatedAnswer, IsAWholeNumberOfTheText) {
    for (const char* text : {"1234567", "It is 1234567.", "KEY: 1234567\n", "91234567, then 1234567", "a1234567b"})
        EXPECT_TRUE(states(text, "1234567")) << text;
    for (const char* text :
         {"", "123456", "1234568", "12345670", "91234567", "1,234,567", "1234 567", "12345671234567"})
        EXPECT_FALSE(states(text, "1234567")) << text;
}

/// A random model with 50 tokens, written by NumPy, whose context is `context`.
std::string random_model(const ScratchFolder& scratch, std::size_t context) {
    const std::string folder = scratch.path("model");
    std::filesystem::create_directories(folder);
    const std::string line = "/usr/bin/python3 '" SPIKED_SOURCE_DIR "/sim/llama/tests/llama_in_numpy.py' '" + folder +
                             "' untied " + std::to_string(context) + " > '" + folder + "/out'";
    EXPECT_EQ(std::system(line.c_str()), 0);
    return folder;
}

std::vector<std::int32_t> some_tokens(std::size_t count) {
    std::vector<std::int32_t> tokens;
    for (std::size_t t = 0; t < count; ++t) tokens.push_back(static_cast<std::int32_t>((7 * t * t + 3 * t + 1) % 50));
    return tokens;
}

TEST(GreedyTextReference, IsThatOfRepeatedForwardPasses) {
    const ScratchFolder scratch;
    const sim::Llama model(random_model(scratch, 80));
    sim::ForwardOptions changed{.block_tokens = 16};
    changed.keep = [](const sim::CacheAddress& at, const arma::fmat& block) -> arma::fmat {
        return (at.side == sim::Side::key ? 0.4F : 1.3F) * block;
    };
    std::vector<std::vector<std::int32_t>> texts;
    for (const sim::ForwardOptions& options : {sim::ForwardOptions{.block_tokens = 16}, changed}) {
        const std::vector<std::int32_t> prompt = some_tokens(29);
        std::vector<std::int32_t> sequence = prompt;
        while (sequence.size() < 29 + 40) {  // over two ends of blocks
            arma::frowvec last;
            sim::ForwardOptions pass = options;
            pass.predicted = [&](std::size_t, const arma::fmat& rows) { last = rows.tail_rows(1); };
            model.forward(sequence, pass);
            sequence.push_back(static_cast<std::int32_t>(last.index_max()));
        }
        const std::vector<std::int32_t> expected(sequence.begin() + 29, sequence.end());
        const GreedyText found = generate_greedily(model, prompt, options, {}, 40);
        EXPECT_EQ(found.tokens, expected);
        EXPECT_FALSE(found.ended);
        texts.push_back(found.tokens);

        // An end token ends the text before its first place.
        const auto end = std::find(expected.begin(), expected.end(), expected[20]);
        const GreedyText ended = generate_greedily(model, prompt, options, {expected[20]}, 40);
        EXPECT_EQ(ended.tokens, std::vector<std::int32_t>(expected.begin(), end));
        EXPECT_TRUE(ended.ended);
    }
    EXPECT_NE(texts[0], texts[1]);
}

/// A vocabulary in which token t is the number 1000000 + t between blanks.
Json number_vocabulary() {
    Json texts = Json::array();
    for (int t = 0; t < 50; ++t) texts.push(" " + std::to_string(1000000 + t) + " ");
    return texts;
}

Json ids(const std::vector<std::int32_t>& tokens) {
    Json list = Json::array();
    for (const std::int32_t token : tokens) list.push(token);
    return list;
}

/// A needle whose answer is the token at a place of the prompt.
Json needle_json(std::int32_t answer, std::size_t at, double depth) {
    return Json::object({{"key", "key"},
                         {"answer", std::to_string(1000000 + answer)},
                         {"answer_tokens", ids({answer})},
                         {"depth", depth},
                         {"first_token", at},
                         {"tokens", 1}});
}

Json prompt_json(const std::vector<std::int32_t>& tokens, Json::Array needles, bool control = false) {
    return Json::object({{"tokens", ids(tokens)},
                         {"context", tokens.size() + 1},
                         {"question_at", tokens.size() - 4},
                         {"most_tokens", 1},
                         {"control", control},
                         {"needles", Json(std::move(needles))}});
}

std::string file_of(const ScratchFolder& scratch, Json::Array prompts) {
    const Json file = Json::object({{"schema", "spiked.needle-prompts/1"},
                                    {"model", "random"},
                                    {"end_tokens", Json::array()},
                                    {"vocabulary", number_vocabulary()},
                                    {"prompts", Json(std::move(prompts))}});
    return scratch.write("prompts.json", file.text());
}

/// Two prompts that ask for the token that the model writes and for one that it does not, and a control.
struct Asked {
    ScratchFolder scratch;
    AnswerPlan plan;

    explicit Asked(std::size_t block = 16) {
        plan.model = random_model(scratch, 80);
        plan.block_tokens = block;
        plan.threads = 1;
        const sim::Llama model(plan.model);
        Json::Array prompts;
        for (const std::size_t length : {50UL, 70UL}) {
            auto tokens = some_tokens(length);
            // The answer must stand in the prompt; its place changes the answer, so places are tried.
            std::size_t place = 0;
            for (std::int32_t next = -1; place < length - 8; ++place) {
                tokens = some_tokens(length);
                for (int attempt = 0; attempt < 20 && tokens[place] != next; ++attempt) {
                    if (next >= 0) tokens[place] = next;
                    next = generate_greedily(model, tokens, {.block_tokens = block}, {}, 1).tokens.front();
                }
                if (tokens[place] == next) break;
            }
            EXPECT_LT(place, length - 8);
            const std::int32_t written = tokens[place];
            std::size_t other = 0;
            while (tokens[other] == written) ++other;
            prompts.push_back(
                prompt_json(tokens, {needle_json(written, place, 0.05), needle_json(tokens[other], other, 0.72)}));
        }
        auto tokens = std::vector<std::int32_t>(40, 3);
        const std::int32_t next = generate_greedily(model, tokens, {.block_tokens = block}, {}, 1).tokens.front();
        std::int32_t absent = 4;
        while (absent == next) ++absent;
        prompts.push_back(prompt_json(tokens, {needle_json(absent, 0, 0.5)}, true));
        plan.prompts = file_of(scratch, std::move(prompts));
    }
};

TEST(StoredAnswers, AreThoseThatAreMeasuredWithoutAStore) {
    Asked asked;
    asked.plan.methods = codec::cache_requests({"tq-mse", "snapkv"}, {1.0}, {0.5});
    const auto open = std::make_shared<const OpenAnswers>(open_answers(asked.plan));
    const Experiment experiment = answers_experiment(open, {});
    Store store(":memory:", experiment, "", 1, Json::object());
    EXPECT_FALSE(stored_answers(store.database(), *open)) << "nothing is answered yet";
    ASSERT_EQ(run_experiment(experiment, store, {.threads = 1}), RunOutcome::complete);
    const auto found = stored_answers(store.database(), *open);
    ASSERT_TRUE(found);
    const GeneratedAnswers measured = measure_answers(asked.plan);
    EXPECT_EQ(found->at_once, measured.at_once);
    ASSERT_EQ(found->rows.size(), 3);
    for (std::size_t r = 0; r < 3; ++r) {
        const AnswerRow& row = found->rows[r];
        const AnswerRow& expected = measured.rows[r];
        EXPECT_EQ(row.method, expected.method);
        EXPECT_EQ(row.ledger.total(), expected.ledger.total());
        EXPECT_EQ(row.recall.fraction, expected.recall.fraction);
        EXPECT_EQ(row.lost.mean, expected.lost.mean);
        for (std::size_t p = 0; p < 3; ++p) {
            EXPECT_EQ(row.answers[p].tokens, expected.answers[p].tokens);
            EXPECT_EQ(row.answers[p].text, expected.answers[p].text);
            EXPECT_EQ(row.answers[p].found, expected.answers[p].found);
            EXPECT_EQ(row.answers[p].ended, expected.answers[p].ended);
        }
        if (r == 0) continue;
        // Each prompt has as many facts, and the control none that could be found.
        Statement wrong(store.database(),
                        "SELECT avg(mean), count(*) FROM moment JOIN metric USING(metric_id) WHERE name = "
                        "'wrong_answers' AND method_id = ?");
        wrong.bind(1, r + 1);
        ASSERT_TRUE(wrong.step());
        EXPECT_DOUBLE_EQ(wrong.real(0), 1.0 - expected.recall.fraction);
        EXPECT_EQ(wrong.integer(1), 2);
    }
    store.database().execute("DELETE FROM array WHERE cell_id = 2 AND method_id = 2");
    EXPECT_FALSE(stored_answers(store.database(), *open)) << "an answer is absent";
}

TEST(MeasuredAnswers, AreCountedByNeedle) {
    Asked asked;
    asked.plan.methods = codec::cache_requests({"tq-mse"}, {1.0, 8.0});
    const GeneratedAnswers found = measure_answers(asked.plan);
    ASSERT_EQ(found.rows.size(), 3);
    const AnswerRow& exact = found.rows.front();
    EXPECT_EQ(exact.method, "none");
    EXPECT_EQ(exact.recall.asked, 4);
    EXPECT_EQ(exact.recall.prompts, 2);
    EXPECT_EQ(exact.recall.fraction, 0.5);
    EXPECT_LT(exact.recall.low, 0.5);
    EXPECT_GT(exact.recall.high, 0.5);
    ASSERT_TRUE(exact.control);
    EXPECT_EQ(exact.control->asked, 1);
    EXPECT_EQ(exact.control->fraction, 0.0);
    for (std::size_t p = 0; p < 2; ++p) EXPECT_EQ(exact.answers[p].found, (std::vector<bool>{true, false}));
    // 2 contexts, 1 number of needles, 2 depths, and both pairs of these.
    ASSERT_EQ(exact.parts.size(), 2 + 1 + 2 + 2 + 4);
    EXPECT_EQ(exact.parts[0].context, 51);
    EXPECT_EQ(exact.parts[0].fraction, 0.5);
    EXPECT_EQ(exact.parts[2].needles, 2);
    EXPECT_EQ(exact.parts[2].asked, 4);
    EXPECT_EQ(exact.parts[3].tenth, 0);
    EXPECT_EQ(exact.parts[3].fraction, 1.0);
    EXPECT_EQ(exact.parts[4].tenth, 7);
    EXPECT_EQ(exact.parts[4].fraction, 0.0);
    EXPECT_EQ(exact.parts.back().context, 71);
    EXPECT_EQ(exact.parts.back().tenth, 7);
    EXPECT_EQ(exact.tokens, 1.0);
    EXPECT_EQ(exact.ended, 0.0);
    EXPECT_GT(found.rows[1].ledger.total(), 1.0);
    EXPECT_GT(found.rows[2].ledger.total(), 8.0);
    EXPECT_EQ(found.rows[2].lost.mean, exact.recall.fraction - found.rows[2].recall.fraction);

    asked.plan.threads = 2;
    const GeneratedAnswers again = measure_answers(asked.plan);
    for (std::size_t r = 0; r < 3; ++r)
        for (std::size_t p = 0; p < 3; ++p) EXPECT_EQ(again.rows[r].answers[p].tokens, found.rows[r].answers[p].tokens);
}

/// An eviction that keeps all tokens is the identity.
TEST(MeasuredAnswersControl, AnEvictionThatKeepsAllChangesNothing) {
    Asked asked;
    asked.plan.methods = codec::cache_requests({"snapkv"}, {2.0}, {1.0, 0.25});
    for (const bool observe : {false, true}) {
        asked.plan.observe_questions = observe;
        const GeneratedAnswers found = measure_answers(asked.plan);
        EXPECT_TRUE(found.at_once);
        EXPECT_EQ(found.rows[1].ledger.total(), 16.0);
        EXPECT_LE(found.rows[2].ledger.total(), 4.0);
        for (std::size_t p = 0; p < 3; ++p) EXPECT_EQ(found.rows[1].answers[p].tokens, found.rows[0].answers[p].tokens);
    }
}

TEST(MeasuredAnswers, NeedABlockToCompress) {
    Asked asked;
    asked.plan.block_tokens = 40;
    asked.plan.methods = codec::cache_requests({"tq-mse"}, {2.0});
    expect_error(ErrorKind::input, [&] { (void)measure_answers(asked.plan); },
                 {"prompt 2 has 40 tokens (more than a block of 40 are expected"});
    asked.plan.exact_questions = true;
    EXPECT_GT(measure_answers(asked.plan).rows[1].ledger.total(), 2.0);
    asked.plan.exact_questions = false;
    asked.plan.observe_questions = true;
    expect_error(ErrorKind::usage, [&] { (void)measure_answers(asked.plan); }, {"no method evicts tokens"});
}

sim::LlamaConfig config_of(std::size_t context) {
    sim::LlamaConfig config;
    config.vocabulary = 50;
    config.context = context;
    return config;
}

TEST(FactPrompts, OfBadFilesGiveOneClearLine) {
    const ScratchFolder scratch;
    const auto good = [] {
        return Json::object({{"schema", "spiked.needle-prompts/1"},
                             {"model", "random"},
                             {"end_tokens", ids({49})},
                             {"vocabulary", number_vocabulary()},
                             {"prompts", Json(Json::Array{prompt_json(some_tokens(30), {needle_json(1, 0, 0.0)})})}});
    };
    const auto read = [&](const Json& file, std::size_t context = 31) {
        return read_fact_prompts(scratch.write("prompts.json", file.text()), config_of(context));
    };
    const FactPrompts fine = read(good());
    EXPECT_EQ(fine.prompts.front().tokens, some_tokens(30));
    EXPECT_EQ(fine.text({4, 49, 60}), " 1000004  1000049 ");

    const auto bad = [&](const char* key, const Json& value, std::initializer_list<std::string_view> parts) {
        Json file = good();
        file.set(key, value);
        expect_error(
            ErrorKind::input, [&] { (void)read(file); }, parts);
    };
    const auto bad_prompt = [&](const char* key, const Json& value, std::initializer_list<std::string_view> parts) {
        Json prompt = prompt_json(some_tokens(30), {needle_json(1, 0, 0.0)});
        prompt.set(key, value);
        bad("prompts", Json(Json::Array{prompt}), parts);
    };
    const auto bad_needle = [&](const Json& needle, std::initializer_list<std::string_view> parts) {
        bad_prompt("needles", Json(Json::Array{needle}), parts);
    };
    bad("schema", "spiked.needle-prompts/2", {"no prompts with needles", "tools/needle-prompts"});
    bad("vocabulary", Json(), {"has a \"vocabulary\" that is not a list"});
    bad("vocabulary", ids({1}), {"\"vocabulary\" that is not a list of texts of at most 256 bytes"});
    bad("prompts", Json::array(), {"has no prompt that is not a control"});
    bad("end_tokens", ids({50}), {"end_tokens: token 0 is 50 (expected a whole number from 0 to 49"});
    bad_prompt("tokens", ids({1, 2, -1}), {"prompt 0: token 2 is -1 (expected a whole number from 0 to 49"});
    bad_prompt("tokens", Json::array(), {"prompt 0 has no \"tokens\""});
    bad_prompt("question_at", 30, {"prompt 0 has a \"question_at\" that is not a whole number from 1 to 29"});
    bad_prompt("most_tokens", Json(), {"prompt 0 has a \"most_tokens\""});
    bad_prompt("needles", Json::array(), {"prompt 0 has 0 \"needles\" (expected 1 to 100)"});
    bad_prompt("control", true, {"needle 0: its answer \"1000001\" stands in the prompt (a control must not have it)"});
    bad_needle(needle_json(1, 1, 0.0),
               {"needle 0: tokens 1 to 1 of the prompt are \" 1000011 \" (its answer \"1000001\""});
    bad_needle(needle_json(1, 30, 0.0), {"\"first_token\" that is not a whole number from 0 to 29"});
    bad_needle(needle_json(1, 0, 1.5), {"\"depth\" that is not from 0 to 1"});
    Json other = needle_json(1, 0, 0.0);
    other.set("answer_tokens", ids({2}));
    bad_needle(other, {"its answer_tokens are the text \" 1000002 \" (expected \"1000001\")"});
    expect_error(ErrorKind::input, [&] { (void)read(good(), 30); },
                 {"prompt 0: 30 tokens and an answer of 1 (the model's context is 30)"});
    expect_error(ErrorKind::input, [&] { (void)read_fact_prompts(scratch.path("none.json"), config_of(31)); },
                 {"none.json"});
}

}  // namespace
}  // namespace spiked::validation

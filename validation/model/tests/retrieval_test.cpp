#include "validation/model/retrieval.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "core/runtime/error.hpp"
#include "validation/model/perplexity.hpp"

namespace spiked::validation {
namespace {

sim::LlamaConfig shape_of(std::size_t context) {
    sim::LlamaConfig shape;
    shape.vocabulary = 1536;
    shape.context = context;
    return shape;
}

const std::vector<std::vector<std::int32_t>> filler(3, std::vector<std::int32_t>(300, 7));

TEST(NeedlePrompt, HasNeedlesAndQuestionsAtItsPositions) {
    RetrievalPlan plan;
    plan.needles = 40;
    std::set<std::vector<std::int32_t>> different;
    for (std::uint64_t number = 0; number < 20; ++number) {
        const NeedlePrompt prompt = needle_prompt(plan, shape_of(256), filler, number);
        EXPECT_EQ(prompt.context, 256 - 64);
        ASSERT_EQ(prompt.tokens.size(), 256);
        EXPECT_EQ(prompt.tokens[0], 0);
        std::set<std::int32_t> keys;
        std::size_t values = 0;
        for (std::size_t t = 1; t < prompt.context; ++t) {
            const std::int32_t token = prompt.tokens[t];
            if (token >= 512 && token < 1024) {
                EXPECT_TRUE(keys.insert(token).second);
                EXPECT_GE(prompt.tokens[t + 1], 1024);
            } else {
                EXPECT_TRUE(token == 7 || token >= 1024);
            }
            values += token >= 1024 ? 1 : 0;
        }
        EXPECT_EQ(keys.size(), 40);
        EXPECT_EQ(values, 40);
        ASSERT_EQ(prompt.needles.size(), 32);
        for (const Needle& needle : prompt.needles) {
            EXPECT_EQ(needle.value_at, needle.key_at + 1);
            EXPECT_EQ(prompt.tokens[needle.value_at], needle.answer);
            EXPECT_EQ(prompt.tokens[needle.asked_at], prompt.tokens[needle.key_at]);
            EXPECT_EQ(prompt.tokens[needle.asked_at - 1], 1);
        }
        EXPECT_EQ(prompt.tokens, needle_prompt(plan, shape_of(256), filler, number).tokens);
        different.insert(prompt.tokens);
    }
    EXPECT_EQ(different.size(), 20);
}

TEST(NeedlePrompt, RejectsWhatDoesNotFit) {
    const auto expect_error = [](const RetrievalPlan& plan, std::size_t context, const std::string& part,
                                 ErrorKind kind = ErrorKind::input) {
        try {
            (void)needle_prompt(plan, shape_of(context), filler, 0);
            ADD_FAILURE() << "nothing was thrown for " << part;
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), kind);
            EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
        }
    };
    RetrievalPlan plan;
    plan.needles = 0;
    expect_error(plan, 256, "0 needles");
    plan.needles = 600;
    expect_error(plan, 4096, "1 to 512, the keys of the vocabulary");
    plan.needles = 100;
    expect_error(plan, 256, "do not fit a context of 256 tokens (95 do)");
    plan.needles = 16;
    plan.prompt_tokens = 1024;
    expect_error(plan, 1024, "a stream of the filler has 300 tokens (expected 992 or more)");
    expect_error(plan, 1023, "--context 1024 is not possible (the model reads 1023 tokens at most): give a smaller one",
                 ErrorKind::usage);
    plan.prompt_tokens = 60;
    expect_error(plan, 1024, "do not fit a context of 60 tokens (13 do)");
}

TEST(NeedlePrompt, HasTheRequestedLengthOrThatOfTheFiller) {
    RetrievalPlan plan;
    EXPECT_EQ(needle_prompt(plan, shape_of(1 << 20), filler, 0).tokens.size(), 300 + 2 * 16);
    EXPECT_EQ(needle_prompt(plan, shape_of(200), filler, 0).tokens.size(), 200);
    plan.prompt_tokens = 100;
    const NeedlePrompt prompt = needle_prompt(plan, shape_of(1024), filler, 0);
    EXPECT_EQ(prompt.context, 100 - 2 * 16);
    EXPECT_EQ(prompt.tokens, needle_prompt(RetrievalPlan(), shape_of(100), filler, 0).tokens);
}

/// Tests with a trained model in $SPIKED_EXTRA_MODELS/needle. They are skipped if the variable is not set.
class Needles : public testing::Test {
protected:
    void SetUp() override {
        const char* models = std::getenv("SPIKED_EXTRA_MODELS");
        if (models == nullptr) GTEST_SKIP() << "SPIKED_EXTRA_MODELS names no folder";
        plan_.model = std::string(models) + "/needle";
        if (!std::filesystem::exists(plan_.model)) GTEST_SKIP() << "no needle in " << models;
        plan_.filler = plan_.model + "/filler.npy";
        plan_.prompts = 24;
    }
    RetrievalPlan plan_;
};

/// Compares with a prototype in NumPy that uses other prompts and rotations: fractions of 1024 questions with their
/// standard errors over prompts.
TEST_F(Needles, SurviveCompressionAsInAPrototype) {
    struct Row {
        double right, error;
    };
    const auto agree = [&](const std::vector<Row>& expected) {
        const Retrieval found = measure_retrieval(plan_);
        ASSERT_EQ(found.rows.size(), 1 + expected.size());
        EXPECT_GE(found.rows[0].right.mean, 0.99);
        EXPECT_GE(found.rows[0].mass.mean, 0.9);
        for (std::size_t i = 0; i < expected.size(); ++i) {
            const auto& right = found.rows[i + 1].right;
            // A few prompts without a wrong answer give no standard error, so that of one wrong answer is used.
            const double own = std::max(right.mcse, 1.0 / static_cast<double>(found.questions));
            EXPECT_NEAR(right.mean, expected[i].right, 5.0 * std::hypot(expected[i].error, own)) << i;
        }
    };
    plan_.methods = codec::cache_requests({"tq-mse", "svd:1+tq-mse"}, {1.0, 2.0});
    agree({{0.851, 0.010}, {0.998, 0.001}, {0.954, 0.007}, {0.999, 0.001}});
    plan_.last_layer_only = true;
    plan_.methods = codec::cache_requests({"tq-mse"}, {1.0});
    agree({{0.997, 0.002}});
    plan_.last_layer_only = false;
    plan_.prompts = 8;
    plan_.needles = 240;
    plan_.methods = codec::cache_requests({"tq-mse"}, {1.0, 3.0});
    agree({{0.648, 0.010}, {0.997, 0.002}});
}

TEST_F(Needles, ScoreTheSameOnAnyNumberOfThreads) {
    plan_.methods = codec::cache_requests({"tq-mse"}, {1.0, 4.0});
    plan_.threads = 1;
    plan_.prompts = 2;
    const auto one = measure_retrieval(plan_);
    EXPECT_DOUBLE_EQ(one.rows[1].ledger.total(), 1.125);
    EXPECT_GT(one.rows[2].log_probability.mean, one.rows[1].log_probability.mean);
    plan_.threads = 2;
    EXPECT_EQ(one.rows[1].log_probability.mean, measure_retrieval(plan_).rows[1].log_probability.mean);
}

TEST_F(Needles, SurviveAnEvictionThatObservesTheQuestions) {
    plan_.prompts = 10;
    plan_.methods = codec::cache_requests({"snapkv"}, {2}, {1.0, 0.25});
    const Retrieval context_only = measure_retrieval(plan_);
    ASSERT_EQ(context_only.rows.size(), 3);
    EXPECT_TRUE(context_only.at_once);
    EXPECT_EQ(context_only.rows[1].log_probability.mean, context_only.rows[0].log_probability.mean);
    EXPECT_EQ(context_only.rows[1].mass.mean, context_only.rows[0].mass.mean);
    EXPECT_EQ(context_only.rows[1].ledger.total(), 16.0);
    EXPECT_LE(context_only.rows[2].ledger.total(), 4.0);
    plan_.observe_questions = true;
    const Retrieval observing = measure_retrieval(plan_);
    EXPECT_GE(observing.rows[2].right.mean, 0.97);
    EXPECT_GE(observing.rows[2].mass.mean, 0.9);
    EXPECT_LT(context_only.rows[2].right.mean, 0.75);
    EXPECT_LT(context_only.rows[2].mass.mean, 0.6);
    // 32 questions, the largest number: twice as many tokens as the observation window.
    plan_.needles = 32;
    plan_.prompts = 4;
    plan_.methods = codec::cache_requests({"snapkv"}, {2}, {0.4});
    EXPECT_GE(measure_retrieval(plan_).rows[1].right.mean, 0.95);
}

TEST_F(Needles, AreFoundOnlyByChanceWhenAnswersAreSwapped) {
    const sim::Llama model(plan_.model);
    const auto streams = read_documents(plan_.filler, model.config(), 1 << 20);
    double right = 0.0;
    double mass = 0.0;
    for (std::uint64_t number = 0; number < 8; ++number) {
        NeedlePrompt prompt = needle_prompt(plan_, model.config(), streams, number);
        const std::vector<Needle> was = prompt.needles;
        for (std::size_t n = 0; n < was.size(); ++n) {
            prompt.needles[n].answer = was[(n + 1) % was.size()].answer;
            prompt.needles[n].value_at = was[n].value_at + 1;
        }
        const auto score = score_prompt(model, prompt, plan_, nullptr);
        right += score.right / 8.0;
        mass += score.mass.max() / 8.0;
    }
    EXPECT_LT(right, 0.05);
    EXPECT_LT(mass, 0.1);
}

}  // namespace
}  // namespace spiked::validation

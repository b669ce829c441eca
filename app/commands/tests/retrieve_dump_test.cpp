// `spiked kv retrieve DUMP...`: recomputes the last layer of a model for the questions of a dump.

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "app/tests/process.hpp"

namespace spiked::app {
namespace {

constexpr int asked = 24;
constexpr int heads = 4;

/// A dump and the results of NumPy for its needles: means of log-probabilities, and of attention by head.
struct Dump {
    std::string path;
    double log_probability = 0.0;
    std::vector<double> mass = std::vector<double>(heads, 0.0);

    explicit Dump(const std::string& change = "") : path(scratch("readout" + change + ".safetensors")) {
        const std::string line = "/usr/bin/python3 '" SPIKED_SOURCE_DIR "/sim/llama/tests/readout_in_numpy.py' '" +
                                 path + "' " + change + " > '" + path + ".txt'";
        EXPECT_EQ(std::system(line.c_str()), 0);
        std::ifstream file(path + ".txt");
        for (int n = 0; n < asked; ++n) {
            double value = 0.0;
            file >> value;
            log_probability += value / asked;
            for (double& head : mass) {
                file >> value;
                head += value / asked;
            }
        }
        EXPECT_TRUE(file);
    }
};

Outcome retrieve(const Dump& dump, const std::string& words) {
    return spiked("kv retrieve '" + dump.path + "' --block 64 " + words);
}

Json found_in(const Dump& dump, const std::string& words) {
    const Outcome found = retrieve(dump, "--json " + words);
    EXPECT_EQ(found.code, 0) << found.err;
    return found.json();
}

const Json& nth_row(const Json& document, std::size_t row) { return (*document.find("rows")->items())[row]; }

TEST(RetrieveDump, FullPrecisionIsNumpysAndCompressionCosts) {
    const Dump dump;
    const Json document = found_in(dump, "--method tq-mse --bits 1,8");
    EXPECT_EQ(*document.find("schema")->string(), "spiked.retrieve/1");
    EXPECT_EQ(document.find("rows")->items()->size(), 3);
    const Json& exact = nth_row(document, 0);
    EXPECT_EQ(number(exact, "right"), 1.0);
    EXPECT_EQ(*exact.find("layers")->string(), "last");
    EXPECT_EQ(number(exact, "questions"), asked);
    EXPECT_NEAR(number(exact, "log_probability"), dump.log_probability, 1e-5);
    EXPECT_TRUE(exact.find("mcse_right")->is_null());  // one dump has no standard error
    const auto& by_head = *exact.find("heads")->items();
    ASSERT_EQ(by_head.size(), heads);
    for (std::size_t head = 0; head < heads; ++head) {
        EXPECT_EQ(number(by_head[head], "layer"), 2);
        EXPECT_NEAR(number(by_head[head], "attention_mass"), dump.mass[head], 1e-6);
    }
    EXPECT_EQ(number(nth_row(document, 1), "bits_per_entry"), 2.0);  // a norm of 16 bits for 16 entries
    EXPECT_LT(number(nth_row(document, 1), "right"), 0.7);
    EXPECT_GT(number(nth_row(document, 2), "right"), 0.9);
    EXPECT_NE(number(nth_row(document, 2), "log_probability"), number(exact, "log_probability"));
    EXPECT_NEAR(number(nth_row(document, 2), "log_probability"), number(exact, "log_probability"), 0.1);

    const std::string picture = scratch("needles.svg");
    const Outcome drawn = retrieve(dump, "--method tq-mse --bits 1 --plot '" + picture + "'");
    EXPECT_EQ(drawn.code, 0) << drawn.err;
    for (const char* part : {"full precision", "tq-mse, 2.00 bits", "layer 2, head 3", "elsewhere"})
        EXPECT_NE(contents(picture).find(part), std::string::npos) << part;
    EXPECT_EQ(retrieve(dump, "--plot x.gif").code, 2);

    const Outcome two = spiked("kv retrieve --block 64 '" + dump.path + "' '" + Dump("another-prompt").path +
                               "' --method tq-mse --bits 4");
    EXPECT_NE(two.out.find("48 questions of 2 dumps"), std::string::npos) << two.err;
    EXPECT_NE(two.out.find("in brackets standard errors over prompts, paired for what is lost;"), std::string::npos);
    EXPECT_NE(drawn.out.find("without standard errors because there is one prompt"), std::string::npos) << drawn.out;
    EXPECT_EQ(drawn.out.find("in brackets"), std::string::npos);
    const Outcome rejected = retrieve(dump, "--context 100");
    EXPECT_EQ(rejected.code, 2);
    EXPECT_NE(rejected.err.find("DUMP and --context exclude each other"), std::string::npos) << rejected.err;
}

/// The errors of differences between methods are computed from paired differences by prompt.
TEST(RetrieveDump, ComparesMethodsPromptByPrompt) {
    const std::string words = "kv retrieve --block 64 '" + Dump("another-prompt").path + "' '" + Dump("few").path +
                              "' '" + Dump().path + "' --method tq-mse,kivi --bits 1,3";
    const Json document = spiked(words + " --json").json();
    EXPECT_EQ(document.find("at_once")->boolean() != nullptr && *document.find("at_once")->boolean(), false);
    EXPECT_EQ(*document.find("observe_questions")->boolean(), false);
    const auto list = [](const Json& of, const char* key) {
        std::vector<double> values;
        for (const auto& value : *of.find(key)->items())
            values.push_back(value.real() != nullptr ? *value.real() : static_cast<double>(*value.integer()));
        return values;
    };
    const auto asked_each = list(document, "questions_by_prompt");
    EXPECT_EQ(asked_each, (std::vector<double>{24, 6, 24}));
    const Json& first = nth_row(document, 1);
    for (std::size_t r = 0; r < 5; ++r)
        for (const std::string key : {"right", "log_probability"}) {
            const Json& row = nth_row(document, r);
            const auto own = list(row, (key + "_by_prompt").c_str());
            const auto other = list(first, (key + "_by_prompt").c_str());
            ASSERT_EQ(own.size(), 3);
            double mean = 0.0, gain = 0.0, squares = 0.0;
            for (std::size_t p = 0; p < 3; ++p) {
                mean += asked_each[p] * own[p] / 54.0;
                gain += asked_each[p] * (own[p] - other[p]) / 54.0;
            }
            for (std::size_t p = 0; p < 3; ++p)
                squares +=
                    std::pow(asked_each[p] / 54.0 * (own[p] - other[p] - gain), 2) / (1.0 - asked_each[p] / 54.0);
            EXPECT_NEAR(number(row, key.c_str()), mean, 1e-12);
            EXPECT_NEAR(number(row, (key + "_over_first").c_str()), gain, 1e-12);
            EXPECT_NEAR(number(row, ("mcse_" + key + "_over_first").c_str()), std::sqrt(squares), 1e-12);
        }
    // A method compared with itself, and two different methods.
    EXPECT_EQ(number(first, "mcse_log_probability_over_first"), 0.0);
    EXPECT_GT(number(nth_row(document, 2), "mcse_log_probability_over_first"), 0.0);
    const Outcome text = spiked(words);
    for (const char* part : {"right - first", "log p - first", "First: tq-mse of 1 bits.", "differences to the first"})
        EXPECT_NE(text.out.find(part), std::string::npos) << part << text.out;
}

/// 24 right answers of 24 and 5 of 6 are 29 of 30; the mean over prompts would be eleven twelfths.
TEST(RetrieveDump, FractionsAreOverAllQuestions) {
    const Outcome found = spiked("kv retrieve '" + Dump("another-prompt").path + "' '" + Dump("few").path +
                                 "' --method tq-mse --bits 8 --json");
    ASSERT_EQ(found.code, 0) << found.err;
    const Json document = found.json();
    const Json& exact = nth_row(document, 0);
    EXPECT_EQ(number(exact, "questions"), 30);
    EXPECT_NEAR(number(exact, "right"), 29.0 / 30.0, 1e-12);
    // The standard error of a ratio of sums: the residuals 24 (1 - 29/30) and 5 - 6 29/30, which cancel, over 30; their
    // squares over 1 - 24/30 and 1 - 6/30. Two prompts have one degree of freedom.
    EXPECT_NEAR(number(exact, "mcse_right"), std::sqrt(0.8 * 0.8 * (1.0 / 0.2 + 1.0 / 0.8)) / 30.0, 1e-12);
    EXPECT_NEAR(number(exact, "df"), 1.0, 1e-12);
}

TEST(RetrieveDump, TellsAPlaceThatIsWrongByOne) {
    const auto hits = [](const Json& document) {
        double sum = 0.0;
        for (const auto& head : *nth_row(document, 0).find("heads")->items()) sum += number(head, "peaks") * asked;
        return sum;
    };
    const double right = hits(found_in(Dump(), "--method tq-mse --bits 4"));
    const double wrong = hits(found_in(Dump("shifted"), "--method tq-mse --bits 4"));
    EXPECT_GT(right, 90.0);  // of 96
    // By chance a question finds one of 150 tokens, in all heads alike. The probability of more than 4 of 24 is below
    // 24 C 5 / 150^5 < 1e-6.
    EXPECT_LE(wrong, 4.0 * heads);
}

TEST(RetrieveDump, EvictsLikeAModel) {
    const Dump dump;
    const Json document = found_in(dump, "--method streaming,h2o,dmc,snapkv --budget 1,0.2");
    const auto& exact = nth_row(document, 0);
    for (std::size_t rule = 0; rule < 4; ++rule) {
        const Json& all = nth_row(document, 1 + 2 * rule);
        EXPECT_EQ(number(all, "log_probability"), number(exact, "log_probability"));
        EXPECT_EQ(number(all, "bits_per_entry"), 16.0);
        const Json& few = nth_row(document, 2 + 2 * rule);
        EXPECT_LE(number(few, "bits_per_entry"), 3.2);
        EXPECT_LT(number(few, "right"), 0.6);
    }
    const Json known = found_in(dump, "--method h2o --budget 0.5 --observe-questions");
    const Json unknown = found_in(dump, "--method h2o --budget 0.5");
    EXPECT_NE(number(nth_row(known, 1), "attention_mass"), number(nth_row(unknown, 1), "attention_mass"));
    // Only the context is compressed.
    EXPECT_NE(number(nth_row(found_in(dump, "--method tq-mse --bits 2"), 1), "log_probability"),
              number(nth_row(found_in(dump, "--method tq-mse --bits 2 --exact-questions"), 1), "log_probability"));
}

TEST(RetrieveDump, RejectsInconsistentDumpsAndOptions) {
    struct Case {
        const char* change;
        const char* part;
    };
    for (const auto& [change, part] : std::vector<Case>{
             {"outside", "needles[3]: value_at is 200 (the sequence has tokens 0 to 199)"},
             {"too-early", "needles[3] lies at "},
             {"another-answer", "full precision gives 23 right answers of 24 (its metadata say the model gave 24)"},
             {"no-such-answer", "needles[3]: answer is 100 (readout.unembed has tokens 70 to 99)"},
             {"value-is-key", "(expected the value behind its key)"},
             {"twice", "(expected distinct tokens)"},
             {"one-key", "(expected distinct tokens)"},
             {"asked-twice", "(expected distinct tokens)"},
             {"no-epsilon", "metadata readout: rms_eps is missing (expected a number above 0"},
             {"odd-epsilon", "metadata readout: rms_eps is \"x\" (expected a number above 0"},
             {"odd-scale", "metadata readout: attention_scale is 0.5 (expected dim^-0.5, 0.25 of 16 channels)"},
             {"odd-context", "metadata context is \"many\" (expected "},
             {"long-context", "metadata context is \"154\" (expected "},
             {"all-correct", "metadata readout: correct is 25 (expected at most 24, the needles)"},
             {"no-position", "needles[3]: key_at is missing"},
             {"no-queries", "layer 2 has no query tensor"},
             {"odd-heads", "layers.2.query has 3 heads"},
             {"short-queries", "199 tokens"},
             {"no-wo", "tensor readout.wo is missing"},
             {"narrow-wo", "readout.wo is F16 [24, 63] (expected numbers, 24 x 64)"},
             {"few-residuals", "readout.residual is F16 [23, 24] (expected numbers, 24 x any)"},
             {"not-finite", "readout.gate holds NaN or infinity"},
             {"bidirectional", "metadata attention is \"bidirectional\""},
             {"no-needles", "metadata needles is missing"},
             {"no-readout", "metadata readout is missing"}}) {
        const Outcome found = retrieve(Dump(change), "--method tq-mse --bits 2");
        EXPECT_EQ(found.code, 4) << change << found.err;
        EXPECT_NE(found.err.find(part), std::string::npos) << found.err;
        EXPECT_EQ(found.err.find('\n'), found.err.size() - 1) << found.err;
    }
    const Dump dump;
    const Outcome mixed =
        spiked("kv retrieve '" + dump.path + "' '" + Dump("another-model").path + "' --method tq-mse");
    EXPECT_EQ(mixed.code, 4);
    EXPECT_NE(mixed.err.find("are of different models"), std::string::npos) << mixed.err;
    EXPECT_EQ(retrieve(Dump("said-scale"), "--method tq-mse").code, 0);
    const Outcome same = spiked("kv retrieve '" + dump.path + "' '" + dump.path + "' --method tq-mse");
    EXPECT_EQ(same.code, 4);
    EXPECT_NE(same.err.find("have the same content"), std::string::npos) << same.err;
    const Outcome unrope = retrieve(dump, "--method unrope+tq-mse --bits 2");
    EXPECT_EQ(unrope.code, 4);
    EXPECT_NE(unrope.err.find("the rotary embedding cannot be undone"), std::string::npos) << unrope.err;
    for (const char* words :
         {"--needles 3", "--model x", "--layers all", "--budget 0.5", "--block 0", "--observe-questions"}) {
        const Outcome found = spiked("kv retrieve '" + dump.path + "' --method tq-mse " + words);
        EXPECT_EQ(found.code, 2) << words << found.err;
    }
}

/// Uses dumps of a trained model in the folder $SPIKED_EXTRA_DUMPS, if it is given.
TEST(RetrieveDump, AnswersFromDumpsOfATrainedModel) {
    const char* dumps = std::getenv("SPIKED_EXTRA_DUMPS");
    if (dumps == nullptr) GTEST_SKIP() << "SPIKED_EXTRA_DUMPS names no folder";
    const std::string folder = dumps;
    if (!std::filesystem::exists(folder + "/needle-a-d128.safetensors")) GTEST_SKIP() << "no needles in " << folder;
    std::string files;
    for (const char* name : {"needle-a", "needle-b", "needle-hard-a", "needle-hard-b"})
        files += "'" + folder + "/" + name + "-d128.safetensors' ";
    const Outcome found = spiked("kv retrieve " + files + "--method tq-mse --bits 1,3 --json");
    ASSERT_EQ(found.code, 0) << found.err;
    const Json document = found.json();
    EXPECT_EQ(number(nth_row(document, 0), "right"), 1.0);
    EXPECT_GT(number(nth_row(document, 0), "attention_mass"), 0.9);
    // A prototype found .950 with 240 needles and .997 with 16, both with standard errors below .006.
    EXPECT_NEAR(number(nth_row(document, 1), "right"), 0.97, 0.04);
    EXPECT_EQ(number(nth_row(document, 2), "bits_per_entry"), 3.125);
    EXPECT_GE(number(nth_row(document, 2), "right"), 0.98);
}

}  // namespace
}  // namespace spiked::app

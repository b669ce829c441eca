// The command `kv frontier`.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "app/tests/process.hpp"

namespace spiked::app {
namespace {

struct Row {
    std::string side, method;
    double bits, stored, error;  ///< error: the logarithm of the error
    bool on_hull;
};

/// The entries that have the metric.
std::vector<Row> rows_of(const Json& json, const char* metric = "relative_l2") {
    std::vector<Row> rows;
    for (const auto& row : *json.find("rows")->items())
        if (row.find(metric)->is_null()) {
            EXPECT_FALSE(*row.find("on_hull")->boolean());
        } else {
            rows.push_back({*row.find("side")->string(), *row.find("method")->string(), number(row, "bits"),
                            number(row, "bits_per_entry"), std::log(number(row, metric)),
                            *row.find("on_hull")->boolean()});
        }
    return rows;
}

/// Whether no other entry of the side, and no mixture of two, has a smaller error at no more bits.
bool undominated(const Row& row, const std::vector<Row>& rows) {
    for (const auto& a : rows)
        for (const auto& b : rows) {
            if (a.side != row.side || b.side != row.side || a.stored > row.stored) continue;
            if (a.stored <= row.stored && a.error < row.error - 1e-12) return false;
            if (b.stored <= row.stored || &a == &row) continue;
            const double weight = (row.stored - a.stored) / (b.stored - a.stored);
            if ((1.0 - weight) * a.error + weight * b.error < row.error - 1e-12) return false;
        }
    return true;
}

TEST(KvFrontierCommand, MarksTheHullAndOrdersMethodsAtOneBudget) {
    const Outcome found = spiked(
        "kv frontier '" + sample_dump +
        "' --attention none --layers 0 --method "
        "tq-mse,tcq:state=6,ecsq,eoptshrink+tcq:state=6,unrope+eoptshrink+tcq:state=6 --bits 2,3,4 --at 3.2 --json");
    ASSERT_EQ(found.code, 0) << found.err;
    const Json json = found.json();
    EXPECT_EQ(*json.find("schema")->string(), "spiked.frontier/1");
    const auto rows = rows_of(json);
    ASSERT_EQ(rows.size(), 2U * 5 * 3);
    std::size_t on_hull = 0;
    for (const auto& row : rows) {
        EXPECT_EQ(row.on_hull, undominated(row, rows)) << row.side << " " << row.method << " " << row.bits;
        on_hull += row.on_hull ? 1 : 0;
    }
    EXPECT_GE(on_hull, 4U);
    EXPECT_LT(on_hull, rows.size());

    // At the budget: linear interpolation of the logarithm of the error between the two nearest bit widths.
    double before = -HUGE_VAL;
    std::string side;
    double best = 0.0;
    std::size_t checked = 0;
    for (const auto& one : *json.find("at")->items()) {
        if (*one.find("side")->string() != side) {
            side = *one.find("side")->string();
            before = -HUGE_VAL;
            best = number(one, "relative_l2");
            EXPECT_EQ(number(one, "ratio"), 1.0);
        }
        const double error = number(one, "relative_l2");
        EXPECT_GE(error, before);
        before = error;
        EXPECT_NEAR(number(one, "ratio"), error / best, 1e-9);
        const Row* low = nullptr;
        const Row* high = nullptr;
        for (const auto& row : rows) {
            if (row.side != side || row.method != *one.find("method")->string()) continue;
            if (row.stored <= 3.2 && (low == nullptr || row.stored > low->stored)) low = &row;
            if (row.stored > 3.2 && (high == nullptr || row.stored < high->stored)) high = &row;
        }
        ASSERT_TRUE(low != nullptr && high != nullptr);
        const double weight = (3.2 - low->stored) / (high->stored - low->stored);
        EXPECT_NEAR(std::log(error), (1.0 - weight) * low->error + weight * high->error, 1e-9);
        EXPECT_GT(number(one, "mcse_relative_l2"), 0.0);
        ++checked;
    }
    // Values have no embedding, so the method with unrope is left out for them.
    EXPECT_EQ(checked, 9U);
    // On this dump, trellis coding of de-rotated keys is the best method.
    EXPECT_EQ(*json.find("at")->items()->front().find("method")->string(), "unrope+eoptshrink+tcq:state=6");
}

TEST(KvFrontierCommand, ShowsReverseWaterFillingBesideMethods) {
    const std::string picture = scratch("references.svg");
    const std::string words =
        "kv frontier '" + sample_dump + "' --attention none --layers 0 --method tq-mse,causal-klt --bits 1,3 ";
    const Outcome found = spiked(words + "--json --plot '" + picture + "'");
    ASSERT_EQ(found.code, 0) << found.err;
    const Json json = found.json();
    // From 1 to 3.5 bits, because tq-mse stores 1.125 and 3.125.
    std::map<std::string, std::map<double, double>> curves;
    for (const auto& point : *json.find("references")->items())
        curves[*point.find("side")->string() + " " + *point.find("name")->string()].emplace(
            number(point, "bits_per_entry"), number(point, "relative_l2"));
    ASSERT_EQ(curves.size(), 4U);
    for (const std::string side : {"key ", "value "}) {
        const auto& white = curves.at(side + "water-filling");
        const auto& predicted = curves.at(side + "water-filling+ar");
        ASSERT_EQ(white.size(), 6U);
        EXPECT_EQ(white.begin()->first, 1.0);
        EXPECT_EQ(white.rbegin()->first, 3.5);
        for (const auto& [bits, error] : white) {
            EXPECT_LT(error, std::exp2(-bits)) << "unequal variances are easier than equal ones";
            EXPECT_LE(predicted.at(bits), error);
        }
    }
    for (const auto& row : rows_of(json))
        if (row.bits == 3.0) {
            EXPECT_GT(std::exp(row.error), curves.at(row.side + " water-filling").at(3.0)) << row.method;
        }
    const std::string drawn = contents(picture);
    for (const char* curve : {"water-filling of normal rows", "water-filling+ar of normal rows"})
        EXPECT_NE(drawn.find(curve), std::string::npos) << curve;
    const std::string text = spiked(words).out;
    EXPECT_NE(text.find("relative L2 % at bits of"), std::string::npos) << text;
    EXPECT_NE(text.find("\nwater-filling+ar "), std::string::npos) << text;
}

TEST(KvFrontierCommand, RejectsBudgetsThatNoMethodReaches) {
    const std::string command = "kv frontier '" + sample_dump + "' --method tq-mse,ecsq --bits 2,3 --side key ";
    EXPECT_EQ(spiked(command + "--at 0").code, 2);
    EXPECT_EQ(spiked(command + "--at x").code, 2);
    const Outcome beyond = spiked(command + "--at 6");
    EXPECT_EQ(beyond.code, 2);
    EXPECT_NE(beyond.err.find("--bits"), std::string::npos) << beyond.err;
    const Outcome text = spiked(command);
    EXPECT_EQ(text.code, 0) << text.err;
    EXPECT_NE(text.out.find("convex hull"), std::string::npos);
    EXPECT_NE(text.out.find("ecsq"), std::string::npos);
}

TEST(KvFrontierCommand, ShowsErrorsOfAttention) {
    const std::string common = "'" + sample_dump + "' --layers 0 --bits 2,3 --json --method ";
    const std::string methods = "tq-mse,ecsq,eoptshrink+tq-mse,unrope+eoptshrink+tq-mse";
    // The same numbers as those of kv run, under the same names.
    const Json run = spiked("kv run " + common + methods).json();
    const std::string picture = scratch("attention.svg");
    const std::string command = "kv frontier " + common + methods + " --at 2.7 ";
    const Outcome output = spiked(command + "--metric attention_output --plot '" + picture + "'");
    ASSERT_EQ(output.code, 0) << output.err;
    const Json document = output.json();
    const auto& shown = *document.find("rows")->items();
    const auto& measured = *run.find("rows")->items();
    ASSERT_EQ(shown.size(), measured.size());
    for (std::size_t i = 0; i < shown.size(); ++i) {
        const bool key = *shown[i].find("side")->string() == "key";
        for (const std::string metric : {"relative_l2", "attention_logits", "attention_output"})
            for (const std::string& name : {metric, "mcse_" + metric}) {
                EXPECT_EQ(shown[i].find(name)->text(), measured[i].find(name)->text()) << name;
                EXPECT_EQ(shown[i].find(name)->is_null(), metric == "attention_logits" && !key) << name;
            }
    }
    const auto first_methods = [](const Json& json) {
        std::vector<std::string> first;
        std::string side;
        for (const auto& one : *json.find("at")->items())
            if (*one.find("side")->string() != side) {
                side = *one.find("side")->string();
                first.push_back(side + " " + *one.find("method")->string());
            }
        return first;
    };
    EXPECT_EQ(*document.find("metric")->string(), "attention_output");
    const auto rows = rows_of(document, "attention_output");
    ASSERT_EQ(rows.size(), 2U * 4 * 2);
    for (const auto& row : rows)
        EXPECT_EQ(row.on_hull, undominated(row, rows)) << row.side << " " << row.method << " " << row.bits;
    EXPECT_EQ(first_methods(document).size(), 2U);
    EXPECT_GT(number(document.find("at")->items()->front(), "attention_output"), 0.0);
    const std::string svg = contents(picture);
    EXPECT_NE(svg.find(">relative error of attention output<"), std::string::npos);
    EXPECT_NE(svg.find("convex hull"), std::string::npos);
    EXPECT_EQ(svg.find("Shannon bound of normal entries"), std::string::npos);

    // Errors of logits exist only for keys.
    const Outcome logits = spiked(command + "--metric attention_logits");
    ASSERT_EQ(logits.code, 0) << logits.err;
    const auto of_keys = rows_of(logits.json(), "attention_logits");
    ASSERT_EQ(of_keys.size(), 4U * 2);
    for (const auto& row : of_keys) EXPECT_EQ(row.on_hull, undominated(row, of_keys)) << row.method << " " << row.bits;
    EXPECT_EQ(first_methods(logits.json()).size(), 1U);

    const std::string text =
        spiked("kv frontier '" + sample_dump + "' --layers 0 --bits 2 --method tq-mse --metric attention_logits").out;
    for (const char* head : {"rel. L2 %", "logits", "attention %", "logarithm of the error of attention logits"})
        EXPECT_NE(text.find(head), std::string::npos) << head;

    // A method that is not measured on both sides of the budget is named, not silently left out.
    const std::string apart =
        spiked("kv frontier '" + sample_dump +
               "' --layers 0 --side key --attention none --method tq-mse,ecsq,gear --bits 2,3 --at 2.5")
            .out;
    EXPECT_NE(apart.find("not measured on both sides of 2.5 bits (more --bits may change that): gear ("),
              std::string::npos)
        << apart;

    // Rejected before a block is coded.
    const auto rejected = [&](const std::string& words, int code, const char* says) {
        const Outcome found = spiked("kv frontier '" + sample_dump + "' --method tq-mse --bits 2,3 " + words);
        EXPECT_EQ(found.code, code) << words;
        EXPECT_NE(found.err.find(says), std::string::npos) << found.err;
    };
    rejected("--metric attention", 2, "attention_output");
    rejected("--metric attention_logits --side value", 2, "of keys");
    rejected("--metric attention_output --attention none", 2, "--attention");
}

TEST(KvFrontierCommand, ErrorsAreClusteredByPromptFromEightOn) {
    constexpr int prompts = 8;
    const std::string words = " --layers 0 --heads 0 --bits 2,3 --method tq-mse --metric attention_output --json";
    std::string all;
    std::vector<double> means;
    for (int p = 0; p < prompts; ++p) {
        const std::string path = scratch("one-of-eight-" + std::to_string(p) + ".safetensors");
        ASSERT_EQ(spiked("kv generate -o '" + path + "' --prompt " + std::to_string(p)).code, 0);
        all += " '" + path + "'";
        const Outcome alone = spiked("kv frontier '" + path + "'" + words);
        ASSERT_EQ(alone.code, 0) << alone.err;
        means.push_back(number(alone.json().find("rows")->items()->front(), "attention_output"));
    }
    const Outcome joint = spiked("kv frontier" + all + words);
    ASSERT_EQ(joint.code, 0) << joint.err;
    const Json json = joint.json();
    EXPECT_EQ(*json.find("cluster")->string(), "prompt");
    EXPECT_EQ(number(json, "clusters"), prompts);
    // The standard error of eight independent means.
    double mean = 0.0;
    double squares = 0.0;
    for (const double one : means) mean += one / prompts;
    for (const double one : means) squares += (one - mean) * (one - mean);
    const auto& row = json.find("rows")->items()->front();
    EXPECT_NEAR(number(row, "attention_output") / mean, 1.0, 1e-12);
    EXPECT_NEAR(number(row, "mcse_attention_output") / std::sqrt(squares / prompts / (prompts - 1)), 1.0, 1e-9);
    EXPECT_EQ(number(row, "df"), prompts - 1);
}

TEST(KvFrontierCommand, TheRecommendedCompositionIsAmongTheDefaults) {
    const std::string words = " --layers 0 --heads 0 --attention none --rotation rht2 --bits 2 --json";
    const auto has = [](const Outcome& found, const std::string& method) {
        EXPECT_EQ(found.code, 0) << found.err;
        const auto rows = rows_of(found.json());
        return std::any_of(rows.begin(), rows.end(), [&](const Row& row) { return row.method == method; });
    };
    const Outcome rotated = spiked("kv frontier '" + sample_dump + "'" + words);
    EXPECT_TRUE(has(rotated, "svd:rd+tcq"));
    EXPECT_TRUE(has(rotated, "unrope+svd:rd+tcq"));
    EXPECT_FALSE(has(rotated, "pq")) << "slow, and not among the best";
    EXPECT_NE(rotated.err.find("for a first look name methods"), std::string::npos) << rotated.err;
    EXPECT_NE(spiked("kv frontier no.safetensors").err.find("for a first look add --layers 0, or name methods"),
              std::string::npos);
    const Outcome named = spiked("kv frontier '" + sample_dump + "'" + words + " --method tq-mse");
    EXPECT_EQ(named.err.find("first look"), std::string::npos) << named.err;
}

// The default recommendation of README and `spiked list`, and the committed study that asks for it.
TEST(KvFrontierCommand, TheRecommendedCompositionIsFarAheadOfThePapersAt2Point5Bits) {
    const Outcome planned = spiked("run validation/studies/budget.toml --dry-run", "cd '" SPIKED_SOURCE_DIR "' &&");
    EXPECT_EQ(planned.code, 0) << planned.err;
    const Outcome found = spiked("kv frontier '" + sample_dump +
                                 "' --attention none --bits 1,2,3 --at 2.5 --rotation rht2 --json --method "
                                 "tq-mse,eoptshrink+tq-mse,eoptshrink+tcq:state=6,unrope+svd:rd+tcq:state=6");
    ASSERT_EQ(found.code, 0) << found.err;
    const Json json = found.json();
    for (const char* side : {"key", "value"}) {
        std::vector<std::string> order;
        for (const auto& one : *json.find("at")->items()) {
            if (*one.find("side")->string() != side) continue;
            order.push_back(*one.find("method")->string());
            if (order.back() != "eoptshrink+tq-mse") continue;
            EXPECT_GT(number(one, "ratio"), 1.5) << side;
        }
        EXPECT_EQ(order, (std::vector<std::string>{"unrope+svd:rd+tcq:state=6", "eoptshrink+tcq:state=6",
                                                   "eoptshrink+tq-mse", "tq-mse"}))
            << side;
    }
}

}  // namespace
}  // namespace spiked::app

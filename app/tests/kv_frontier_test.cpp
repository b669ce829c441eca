// spiked kv frontier as users run it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "app/tests/process.hpp"

namespace spiked::app {
namespace {

struct Row {
    std::string side, method;
    double bits, stored, error;
    bool on_hull;
};

std::vector<Row> rows_of(const Json& json) {
    std::vector<Row> rows;
    for (const auto& row : *json.find("rows")->items())
        rows.push_back({*row.find("side")->string(), *row.find("method")->string(), number(row, "bits"),
                        number(row, "bits_per_entry"), std::log(number(row, "relative_l2")),
                        *row.find("on_hull")->boolean()});
    return rows;
}

/// Whether no mixture of two others of the side, and no single one, takes as few bits for less error.
bool undominated(const Row& row, const std::vector<Row>& rows) {
    for (const auto& a : rows)
        for (const auto& b : rows) {
            if (a.side != row.side || b.side != row.side || a.stored > row.stored) continue;
            if (a.stored <= row.stored && a.error < row.error - 1e-12) return false;
            if (b.stored <= row.stored || &a == &row) continue;
            const double share = (row.stored - a.stored) / (b.stored - a.stored);
            if ((1.0 - share) * a.error + share * b.error < row.error - 1e-12) return false;
        }
    return true;
}

TEST(KvFrontierCommand, MarksTheHullAndOrdersMethodsAtOneBudget) {
    const Outcome found =
        spiked("kv frontier '" + sample_dump +
               "' --attention none --layers 0 --method "
               "tq-mse,tcq:state=6,ecsq,eoptshrink+tcq:state=6,unrope+eoptshrink+tcq:state=6 --bits 2,3,4 --at "
               "3.2 --json");
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

    // At the budget: between the two widths around it, on a line of the logarithm.
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
        const double share = (3.2 - low->stored) / (high->stored - low->stored);
        EXPECT_NEAR(std::log(error), (1.0 - share) * low->error + share * high->error, 1e-9);
        EXPECT_GT(number(one, "mcse_relative_l2"), 0.0);
        ++checked;
    }
    EXPECT_EQ(checked, 10U);
    // The finding this dump is known for: un-rotated keys, trellis-coded.
    EXPECT_EQ(*json.find("at")->items()->front().find("method")->string(), "unrope+eoptshrink+tcq:state=6");
}

TEST(KvFrontierCommand, RefusesBudgetsThatNothingReaches) {
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

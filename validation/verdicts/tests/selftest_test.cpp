#include "validation/verdicts/selftest.hpp"

#include <gtest/gtest.h>

namespace spiked::validation {
namespace {

TEST(Selftest, FailsWhenADefectIsNotCaught) {
    SelftestPlan plan;
    plan.seed = stream::StudySeed::parse("0x5e1f");
    plan.defects = {{"constant off", "qjl.mean", "corrected", "constant"},
                    {"nothing planted", "qjl.mean", "corrected", "nothing"}};
    const Selftest found = run_selftest(plan);
    EXPECT_TRUE(found.defects[0].caught);
    EXPECT_FALSE(found.defects[1].caught);
    EXPECT_TRUE(found.defects[1].intact);
    EXPECT_EQ(found.caught(), 1);
    EXPECT_FALSE(found.passed());
    for (const auto& one : found.calibrations) EXPECT_TRUE(one.passed && one.control_rejected) << one.name;
}

TEST(Selftest, ADefectIsNotCaughtByACriterionThatFailsWithoutIt) {
    SelftestPlan plan;
    plan.seed = stream::StudySeed::parse("0x5e1f");
    plan.defects = {{"of a printed form that is refuted", "qjl.mean", "printed", "constant"}};
    const Selftest found = run_selftest(plan);
    EXPECT_FALSE(found.defects[0].intact);
    EXPECT_FALSE(found.defects[0].caught);
    EXPECT_FALSE(found.passed());
}

}  // namespace
}  // namespace spiked::validation

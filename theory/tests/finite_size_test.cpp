#include "theory/finite_size.hpp"

#include <cmath>

#include "theory/tests/reference.hpp"
#include "theory/tracy_widom.hpp"

namespace spiked::theory {
namespace {

using test::expect_refused;

SeparableLaw white(double beta = 1.0) { return {identity_spectrum(), identity_spectrum(), AspectRatio(beta)}; }

const RankRule& rule(const FiniteSize& theory, const std::string& name) {
    for (const RankRule& found : theory.rules)
        if (found.name == name) return found;
    throw bug("no rule {}", name);
}

TEST(FiniteSize, SmallestStrengthOfTheMarginRuleMatchesTheAudit) {
    // theory.md C7, in units of the detection threshold.
    const double table[][3] = {{64, 1.62, 1.34}, {128, 1.54, 1.29}, {256, 1.47, 1.25}, {1024, 1.36, 1.19}};
    for (const auto& [size, plain, coloured] : table) {
        const auto n = static_cast<std::size_t>(size);
        const SeparableLaw noise(ar1_symbol_spectrum(0.5, 512), exponential_spectrum(3.0, 512), AspectRatio(1.0));
        const auto ratio = [&](const SeparableLaw& law) {
            return rule(finite_size(law, n, n), "eoptshrink").smallest_strength.value / law.detection_threshold().value;
        };
        EXPECT_NEAR(ratio(white()), plain, 0.0051) << n;
        EXPECT_NEAR(ratio(noise), coloured, 0.01) << n;  // printed with two digits; the first is 1.331
    }
}

TEST(FiniteSize, WhiteFluctuationIsTheCentredAndScaledLawOfJohnstone) {
    const FiniteSize theory = finite_size(white(0.5), 256, 512);
    const double root = std::sqrt(256.0) + std::sqrt(512.0);
    const double unit = root * std::cbrt(1.0 / std::sqrt(256.0) + 1.0 / std::sqrt(512.0)) / 512.0;
    EXPECT_NEAR(theory.top_noise_shift, -1.2065335745820 * unit, 1e-12);
    EXPECT_NEAR(theory.top_noise_standard_deviation, std::sqrt(1.607781034581) * unit, 1e-12);
    EXPECT_TRUE(theory.regularity.regular);
}

TEST(FiniteSize, RulesRaiseTheFalseAlarmsTheyPromise) {
    const FiniteSize theory = finite_size(white(), 128, 128, 0.01);
    const RankRule& test = rule(theory, "tw-test:level=0.01");
    EXPECT_NEAR(test.false_alarm_probability, 0.01, 1e-12);
    EXPECT_NEAR(test.expected_false_alarms, 0.01, 1e-4);
    EXPECT_GE(test.expected_false_alarms, test.false_alarm_probability);
    EXPECT_NEAR(rule(theory, "eoptshrink:margin=0").false_alarm_probability, 1.0 - 0.8319080662029523, 1e-13);
    EXPECT_LT(rule(theory, "eoptshrink").false_alarm_probability, 1e-6);
    EXPECT_NEAR(rule(theory, "eoptshrink").cutoff.value, 4.0 * (1.0 + std::pow(128.0, -1.0 / 3.0)), 1e-13);
    EXPECT_LT(rule(theory, "tw-test:level=0.01").smallest_strength, rule(theory, "eoptshrink").smallest_strength);
    EXPECT_EQ(rule(theory, "eoptshrink:margin=0").smallest_strength, white().detection_threshold());
}

TEST(FiniteSize, TheMarginDependsOnTheShortSideOnly) {
    const FiniteSize tall = finite_size(white(8.0), 512, 64);
    const double edge = white(8.0).bulk_edge().value;
    EXPECT_NEAR(rule(tall, "eoptshrink").cutoff.value / edge - 1.0, 0.25, 1e-13);
}

TEST(FiniteSize, AGenerousLevelNeverAsksForLessThanTheThreshold) {
    const FiniteSize theory = finite_size(white(), 128, 128, 0.9);
    EXPECT_EQ(rule(theory, "tw-test:level=0.9").smallest_strength, white().detection_threshold());
}

TEST(FiniteSize, SaysWhenTheEdgeIsIrregular) {
    const SeparableLaw law(identity_spectrum(), two_atom_spectrum(1.0, 8.0, 1.0 / 128.0), AspectRatio(1.0));
    EXPECT_FALSE(finite_size(law, 128, 128).regularity.regular);
}

TEST(FiniteSize, RefusesSizesThatDoNotFitTheLaw) {
    expect_refused([] { (void)finite_size(white(), 64, 128); }, "64x128 does not fit the law");
    expect_refused([] { (void)finite_size(white(), 0, 128); }, "0x128");
    expect_refused([] { (void)finite_size(white(), 128, 128, 0.0); }, "strictly between 0 and 1");
}

}  // namespace
}  // namespace spiked::theory

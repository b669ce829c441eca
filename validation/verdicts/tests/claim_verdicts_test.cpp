#include "validation/verdicts/claim_verdicts.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <fstream>
#include <iostream>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <tuple>

#include "core/runtime/error.hpp"
#include "sim/kv/rope.hpp"
#include "sim/spiked/spectrum_spec.hpp"
#include "theory/laws/finite_size.hpp"
#include "theory/laws/support_gaps.hpp"
#include "validation/claims/parts/fixture.hpp"
#include "validation/claims/parts/printed_tables.hpp"
#include "validation/kv/open_dumps.hpp"
#include "validation/verdicts/claim_runs.hpp"
#include "validation/verdicts/selftest.hpp"

namespace spiked::validation {
namespace {

/// A criterion whose number alternates between `centre` + `deviation` and `centre` - `deviation`.
Criterion made_up(Form form, std::string name, double centre, double deviation,
                  std::vector<Control> negative_controls = {}, double control_centre = 0.0) {
    return {.form = form,
            .name = std::move(name),
            .measures = "a made-up number",
            .summary = Summary::mean,
            .prepare = [=](const TrialPlace& place) -> Trial {
                const double mean = place.control.empty() ? centre : control_centre;
                return [=](std::uint64_t replicate) { return mean + (replicate % 2 == 0 ? deviation : -deviation); };
            },
            .region = [](std::size_t) { return around(0.0, 1.0); },
            .quick = {{16, 100}},
            .full = {},
            .negative_controls = std::move(negative_controls)};
}

ClaimOutcome judged(std::vector<Criterion> criteria, PrintedVerdict expected_verdict = PrintedVerdict::holds) {
    static std::vector<Claim> claims;  // outcomes refer to them
    claims.push_back({.id = "made-up",
                      .place = "",
                      .statement = "",
                      .corrected = "",
                      .expected_verdict = expected_verdict,
                      .criteria = std::move(criteria)});
    static std::vector<std::vector<Claim>> kept;
    kept.push_back({claims.back()});
    return validate_claims({.false_alarm = 1e-6, .threads = 2}, kept.back()).claims.front();
}

const Control shifted{"shifted", "another centre"};

TEST(ClaimVerdicts, AFormHoldsWhenItsIntervalIsInsideAndThatOfItsControlOutside) {
    const auto claim = judged({made_up(Form::printed, "a", 0.0, 0.1, {shifted}, 5.0)});
    EXPECT_EQ(claim.printed, PrintedVerdict::holds);
    EXPECT_EQ(claim.corrected, PrintedVerdict::none);
    EXPECT_FALSE(claim.failed);
    EXPECT_FALSE(claim.criteria[0].extended);
    ASSERT_EQ(claim.criteria[0].controls.size(), 1U);
    EXPECT_TRUE(claim.criteria[0].controls[0].fails());
}

TEST(ClaimVerdicts, AControlThatPassesMakesThePrintedFormVacuousAndTheCorrectedOneFail) {
    const auto printed = judged({made_up(Form::printed, "a", 0.0, 0.1, {shifted}, 0.5)}, PrintedVerdict::vacuous);
    EXPECT_EQ(printed.printed, PrintedVerdict::vacuous);
    EXPECT_FALSE(printed.failed);
    EXPECT_FALSE(printed.criteria[0].controls[0].fails());
    const auto corrected = judged({made_up(Form::corrected, "a", 0.0, 0.1, {shifted}, 0.5)}, PrintedVerdict::none);
    EXPECT_EQ(corrected.corrected, PrintedVerdict::refuted);
    EXPECT_TRUE(corrected.failed);
    EXPECT_EQ(corrected.reason, "a: the negative control \"shifted\" passes");
}

// Equal trials decide only where the criterion bounds rare others, or where nothing is random.
TEST(ClaimVerdicts, EqualTrialsAreInconclusiveUnlessTheirReachIsKnown) {
    const auto with_reach = [](double reach, const Control& control, double control_centre) {
        auto criterion = made_up(Form::printed, "a", 0.0, 0.0, {control}, control_centre);
        criterion.reach = reach;
        return judged({criterion}, PrintedVerdict::none);
    };
    const double unknown = std::numeric_limits<double>::infinity();
    const auto open = with_reach(unknown, with_equal_trials(shifted), 5.0);
    EXPECT_EQ(open.printed, PrintedVerdict::inconclusive);
    EXPECT_TRUE(open.criteria[0].controls[0].fails()) << "the control is constant";
    EXPECT_EQ(with_reach(0.0, shifted, 5.0).printed, PrintedVerdict::holds);
    EXPECT_FALSE(with_reach(0.0, shifted, 0.5).criteria[0].controls[0].fails());
    // 400 trials at 1e-6 and less: others are in less than 4 % of the trials, so that 10 is within the margin of 1 and
    // 100 is not.
    const auto bounded = with_reach(10.0, with_equal_trials(shifted), 5.0);
    EXPECT_EQ(bounded.printed, PrintedVerdict::holds);
    EXPECT_GT(bounded.criteria[0].outcome.findings[0].interval.error, 0.0);
    EXPECT_EQ(with_reach(100.0, with_equal_trials(shifted), 50.0).printed, PrintedVerdict::inconclusive);
    // A criterion that is not constant does not make its control so.
    EXPECT_FALSE(with_reach(unknown, shifted, 5.0).criteria[0].controls[0].fails());
}

TEST(ClaimVerdicts, APrintedFormMayBeRefutedWhenTheCorrectedOneHolds) {
    const auto claim =
        judged({made_up(Form::printed, "a", 5.0, 0.1), made_up(Form::corrected, "b", 0.0, 0.1, {shifted}, 9.0)},
               PrintedVerdict::refuted);
    EXPECT_EQ(claim.printed, PrintedVerdict::refuted);
    EXPECT_EQ(claim.corrected, PrintedVerdict::holds);
    EXPECT_FALSE(claim.failed);
    EXPECT_EQ(claim.shown().criterion->name, "b");
}

// The constants that two claims use are those of the committed table, which was checked against the paper.
TEST(Claims, PrintedTablesEqualTheCommittedTable) {
    std::ifstream file(SPIKED_SOURCE_DIR "/validation/studies/paper-tables.csv");
    std::map<std::string, double> printed;  // by table, method and metric
    for (std::string line; std::getline(file, line);) {
        std::istringstream fields(line);
        std::string table, cell, method, metric, value;
        for (auto* field : {&table, &cell, &method, &metric, &value}) std::getline(fields, *field, ',');
        if (metric == "bits_per_entry" || metric == "relative_l2")
            printed[table.substr(0, 1) + " " + method + " " + metric] = std::stod(value);
    }
    const auto expect = [&](std::size_t table, const std::string& method, std::size_t bits, const BitsAndError& found) {
        const std::string key = std::to_string(table + 1) + " " + method + " B=" + std::to_string(bits);
        EXPECT_NEAR(printed.at(key + " bits_per_entry"), found.bits, 1e-12) << key;
        EXPECT_NEAR(100.0 * printed.at(key + " relative_l2"), found.error, 1e-12) << key;
    };
    ASSERT_EQ(std::size(printed_tables), 4U);
    for (std::size_t table = 0; table < 4; ++table)
        for (std::size_t i = 0; i < 3; ++i) {
            expect(table, "tq-mse", 2 + i, printed_tables[table].one[i]);
            expect(table, "svd:1+tq-mse", 2 + i, printed_tables[table].first[i]);
            if (i < 2) expect(table, "eoptshrink+tq-mse", 2 + i, printed_tables[table].shrunk[i]);
        }
}

// The statistic of delocalisation from its definition with LAPACK: vectors 2, 3, .. up to half the size, both sides.
TEST(Claims, DelocalisationStatisticMatchesItsDefinition) {
    const Claim* claim = find_claim("delocalisation");
    const auto growth = std::find_if(claim->criteria.begin(), claim->criteria.end(),
                                     [](const Criterion& one) { return one.name == "growth-coloured"; });
    ASSERT_NE(growth, claim->criteria.end());
    const TrialPlace place{24, "", stream::StudySeed::parse("0xde10"), "delocalisation by hand"};
    const Trial trial = growth->prepare(place);
    const Fixture fixture = make_fixture({Noise::coloured, 1.0, {2.0}}, place.size);
    const double d = 24.0;
    const double alpha_plus = fixture.strength(0) / 2.0;  // at 2 thresholds the excess equals the threshold
    for (std::uint64_t replicate = 0; replicate < 40; ++replicate) {
        const auto sample = fixture.draw(place, replicate);
        arma::mat left, right;
        arma::vec values;
        ASSERT_TRUE(arma::svd(left, values, right, sample.observed, "std"));
        double largest = 0.0;
        for (arma::uword i = 2; i <= 12; ++i)
            for (const double inner :
                 {arma::dot(left.col(i - 1), sample.left.col(0)), arma::dot(right.col(i - 1), sample.right.col(0))}) {
                const double kappa = std::cbrt(std::pow((static_cast<double>(i) - 1.0) / d, 2));
                largest = std::max(largest, inner * inner * d * (alpha_plus * alpha_plus + kappa));
            }
        EXPECT_NEAR(trial(replicate), largest / std::log(d), 1e-9 * largest);
    }
}

// All sizes count, in any order: one size outside refutes, one inconclusive size makes the verdict inconclusive.
TEST(ClaimVerdicts, CombineAllSizes) {
    const auto by_size = [](double at_16, double at_32) {
        auto criterion = made_up(Form::printed, "a", 0.0, 0.1, {shifted}, 9.0);
        criterion.prepare = [=](const TrialPlace& place) -> Trial {
            const double mean = !place.control.empty() ? 9.0 : place.size == 16 ? at_16 : at_32;
            return [=](std::uint64_t replicate) { return mean + (replicate % 2 == 0 ? 0.1 : -0.1); };
        };
        criterion.quick = {{16, 100}, {32, 100}};
        return judged({criterion}, PrintedVerdict::none).printed;
    };
    EXPECT_EQ(by_size(0.0, 0.5), PrintedVerdict::holds);
    for (const auto& [a, b] : {std::pair{0.0, 5.0}, std::pair{5.0, 0.0}, std::pair{1.0, 5.0}})
        EXPECT_EQ(by_size(a, b), PrintedVerdict::refuted) << a << " " << b;
    for (const auto& [a, b] : {std::pair{0.0, 1.0}, std::pair{1.0, 0.0}})
        EXPECT_EQ(by_size(a, b), PrintedVerdict::inconclusive) << a << " " << b;
    // A slope is one comparison for any number of sizes.
    auto slope = made_up(Form::printed, "a", 1.0, 0.1);
    slope.summary = Summary::rate;
    slope.quick = {{16, 100}, {32, 100}, {64, 100}};
    const std::vector<Claim> claims = {{.id = "made-up",
                                        .place = "",
                                        .statement = "",
                                        .corrected = "",
                                        .expected_verdict = PrintedVerdict::none,
                                        .criteria = {slope}}};
    EXPECT_EQ(validate_claims({.threads = 1}, claims).comparisons, 1U);
}

TEST(ClaimsOnDumps, TitlesOfDumpsAreDistinct) {
    EXPECT_EQ(dump_titles({"a/x.safetensors", "b/y.safetensors"}),
              (std::vector<std::string>{"x.safetensors", "y.safetensors"}));
    EXPECT_EQ(dump_titles({"a/x.npz", "b/x.npz", "c.npz"}), (std::vector<std::string>{"a/x.npz", "b/x.npz", "c.npz"}));
}

/// A criterion whose mean is 4 times the fault and must lie within 1, with the number of its trials.
Criterion with_fault_size(std::atomic<int>& drawn) {
    auto criterion = made_up(Form::printed, "a", 0.0, 0.1, {{"shifted", "another centre", FaultSize{12.0, "units"}}});
    criterion.prepare = [&drawn](const TrialPlace& place) -> Trial {
        return [&drawn, shift = 4.0 * place.fault_of("shifted")](std::uint64_t replicate) {
            ++drawn;
            return shift + (replicate % 2 == 0 ? 0.1 : -0.1);
        };
    };
    return criterion;
}

// The boundary is known: the fault fails once its lower limit, 4 f - half width, exceeds 1.
TEST(ClosestFault, IsFoundInItsOwnUnit) {
    std::atomic<int> drawn = 0;
    const std::vector<Claim> claims = {
        {.id = "made-up", .place = "", .statement = "", .corrected = "", .criteria = {with_fault_size(drawn)}}};
    const auto found = validate_claims({.tier = Tier::full, .threads = 2}, claims).claims.front();
    ASSERT_EQ(found.printed, PrintedVerdict::holds);
    ASSERT_TRUE(found.closest_fault);
    const ClosestFault& closest = *found.closest_fault;
    EXPECT_EQ(closest.fault, "shifted");
    EXPECT_EQ(closest.unit, "units");
    EXPECT_TRUE(closest.own_unit);
    EXPECT_EQ(closest.words, "another centre: up to 3.5 units");
    const Interval& interval = found.criteria[0].outcome.findings[0].interval;
    const double boundary = 12.0 * (1.0 + interval.high - interval.estimate) / 4.0;
    EXPECT_LE(closest.passes, boundary);
    EXPECT_GE(closest.fails, boundary);
    EXPECT_LE(closest.fails, 1.25 * boundary);
    EXPECT_EQ(drawn, 200 + 200) << "the mean is linear in the fault, which the first draw shows";
}

// Sizes that are interpolated far off cost more runs.
TEST(ClosestFault, IsFoundWhereItsEffectIsFarFromLinear) {
    for (const double power : {0.1, 12.0}) {
        std::atomic<int> drawn = 0;
        auto criterion = with_fault_size(drawn);
        criterion.prepare = [&drawn, power](const TrialPlace& place) -> Trial {
            return [&drawn, shift = 4.0 * std::pow(place.fault_of("shifted"), power)](std::uint64_t replicate) {
                ++drawn;
                return shift + (replicate % 2 == 0 ? 0.1 : -0.1);
            };
        };
        const std::vector<Claim> claims = {
            {.id = "made-up", .place = "", .statement = "", .corrected = "", .criteria = {criterion}}};
        const auto found = validate_claims({.tier = Tier::full, .threads = 2}, claims).claims.front();
        ASSERT_TRUE(found.closest_fault) << power;
        const ClosestFault& closest = *found.closest_fault;
        const Interval& interval = found.criteria[0].outcome.findings[0].interval;
        const double boundary = 12.0 * std::pow((1.0 + interval.high - interval.estimate) / 4.0, 1.0 / power);
        EXPECT_LE(closest.passes, boundary) << power;
        EXPECT_GE(closest.fails, boundary) << power;
        EXPECT_LE(closest.fails - closest.passes, std::max(boundary / 2.0, 12.0 / 16.0)) << power;
        EXPECT_GE(drawn, 200 + 100) << power;
        EXPECT_LE(drawn, 200 + 3 * 100) << power;
    }
}

TEST(ClosestFault, NeedsNoTrialsAsAShareOfThem) {
    std::atomic<int> drawn = 0;
    const std::vector<Claim> claims = {
        {.id = "made-up", .place = "", .statement = "", .corrected = "", .criteria = {with_fault_size(drawn)}}};
    const auto found = validate_claims({.threads = 2}, claims).claims.front();
    EXPECT_EQ(drawn, 200);
    ASSERT_TRUE(found.closest_fault);
    EXPECT_EQ(found.closest_fault->unit, "of the trials");
    EXPECT_EQ(found.closest_fault->words,
              fmt::format("another centre, in {:.2g} to {:.2g} % of the trials", 100.0 * found.closest_fault->passes,
                          100.0 * found.closest_fault->fails));
    // The mean is 4 times the share, its half width 5 to 8 standard errors of at most 2 / sqrt(100).
    EXPECT_GT(found.closest_fault->passes, 0.25);
    EXPECT_LT(found.closest_fault->passes, 0.25 + 8.0 * 0.2 / 4.0);
}

// The numbers of with_fault_size are linear in the fault, so that its size needs no trials in either tier.
TEST(ClosestFault, NeedsNoTrialsInItsOwnUnitWhereTheNumbersAreLinearInIt) {
    for (const Tier tier : {Tier::quick, Tier::full}) {
        std::atomic<int> drawn = 0;
        auto criterion = with_fault_size(drawn);
        criterion.negative_controls = {
            linear({"shifted", "another centre", FaultSize{12.0, "units", 4.0, "a centre {} % off"}})};
        const std::vector<Claim> claims = {
            {.id = "made-up", .place = "", .statement = "", .corrected = "", .criteria = {criterion}}};
        const auto found = validate_claims({.tier = tier, .threads = 2}, claims).claims.front();
        EXPECT_EQ(drawn, 200);
        ASSERT_TRUE(found.closest_fault);
        const ClosestFault& closest = *found.closest_fault;
        EXPECT_TRUE(closest.own_unit);
        EXPECT_EQ(closest.unit, "units");
        // From 4, which changes nothing, to 12, which shifts the mean by 4.
        const Interval& interval = found.criteria[0].outcome.findings[0].interval;
        const double boundary = 4.0 + 8.0 * (1.0 + interval.high - interval.estimate) / 4.0;
        EXPECT_LE(closest.passes, boundary);
        EXPECT_GE(closest.fails, boundary);
        EXPECT_NEAR(closest.fails - closest.passes, 8.0 / 256.0, 1e-9);
        EXPECT_EQ(closest.words,
                  fmt::format("a centre {:.0f} to {:.0f} % off", 100.0 * closest.passes, 100.0 * closest.fails));
    }
    std::atomic<int> drawn = 0;
    auto criterion = with_fault_size(drawn);
    criterion.negative_controls = {only_whole({"shifted", "another centre"})};
    const std::vector<Claim> claims = {
        {.id = "made-up", .place = "", .statement = "", .corrected = "", .criteria = {criterion}}};
    EXPECT_FALSE(validate_claims({.threads = 2}, claims).claims.front().closest_fault) << "no part of it makes sense";
}

/// Whether the control is the second implementation of the quantizer, which draws other rotations than the first.
bool has_other_rotations(const Control& control) {
    return control.name == "half-variance" || control.size->unit.ends_with("wrong levels");
}

/// Every control with a size: none of the fault changes no trial, the whole one changes some, and half of it lies in
/// the middle exactly where the control is marked as linear.
TEST(ClosestFault, SizesOfFaultsBeginWhereNothingIsChangedAndAreLinearWhereTheySaySo) {
    std::map<std::string, int> kinds;
    for (const Claim& claim : claims())
        for (const Criterion& criterion : claim.criteria)
            for (const Control& control : criterion.negative_controls) {
                ++kinds[control.size    ? (control.linear ? "linear" : "sized")
                        : control.whole ? "whole"
                                        : "there or not"];
                if (!control.size) continue;
                EXPECT_NE(control.size->words.find("{}"), std::string::npos) << claim.id << " " << control.name;
                const std::size_t size = 32;
                const auto number = [&](std::string name, double fault, std::uint64_t replicate) {
                    const TrialPlace place{size, std::move(name), stream::StudySeed::parse("0x5eed"),
                                           claim.id + criterion.name, fault};
                    return criterion.prepare(place)(replicate);
                };
                const std::string what = claim.id + " " + criterion.name + " " + control.name;
                double changed = 0.0;
                double bent = 0.0;
                for (std::uint64_t r = 0; r < 4; ++r) {
                    const double sound = number("", 1.0, r);
                    const double whole = number(control.name, 1.0, r);
                    const double scale = 1e-9 * (1.0 + std::abs(sound) + std::abs(whole));
                    EXPECT_NEAR(number(control.name, 0.0, r), sound,
                                has_other_rotations(control) ? 0.2 * std::abs(sound) : scale)
                        << what;
                    changed = std::max(changed, std::abs(whole - sound) / scale);
                    bent = std::max(bent, std::abs(number(control.name, 0.5, r) - 0.5 * (sound + whole)) / scale);
                }
                if (criterion.summary == Summary::share) continue;  // few replicates need not change
                EXPECT_GT(changed, 1.0) << what;
                if (control.linear) {
                    EXPECT_LE(bent, 1.0) << what << " is not linear";
                }
            }
    for (const auto& [kind, count] : kinds) std::cout << kind << ": " << count << "\n";
    EXPECT_EQ(kinds["whole"], 2);
    EXPECT_GT(kinds["linear"] + kinds["sized"], 2 * kinds["there or not"]);
}

// A fault that is planted in two criteria counts where it is found soonest; a form that fails has no closest fault.
TEST(ClosestFault, IsTheLargestOfThoseThatNoCriterionFinds) {
    const auto weak = made_up(Form::printed, "a", 0.0, 0.1, {shifted}, 2.0);
    const auto sharp = made_up(Form::printed, "b", 0.0, 0.1, {shifted}, 50.0);
    auto other = made_up(Form::printed, "c", 0.0, 0.1, {{"other", "a third centre"}}, 10.0);
    const auto all = judged({weak, sharp, other});
    ASSERT_TRUE(all.closest_fault);
    EXPECT_EQ(all.closest_fault->fault, "other");
    EXPECT_LT(all.criteria[1].controls[0].closest->passes, all.criteria[0].controls[0].closest->passes);
    EXPECT_FALSE(judged({made_up(Form::printed, "a", 5.0, 0.1, {shifted}, 9.0)}).closest_fault);
}

// The first criterion fails from about 2.4 units on, a fifth of what is planted in it; the second one from 10 units on,
// a tenth of it.
TEST(ClosestFault, IsTheSmallerSizeWhereCriteriaPlantDifferentOnes) {
    Control moved{"moved", "another centre", FaultSize{12.0, "units"}};
    moved.linear = true;
    Control far_moved = moved;
    far_moved.size->planted = 100.0;
    const auto found = judged({made_up(Form::printed, "a", 0.0, 0.1, {moved}, 5.0),
                               made_up(Form::printed, "b", 0.0, 0.1, {far_moved}, 10.0)});
    ASSERT_TRUE(found.closest_fault);
    EXPECT_LT(found.criteria[1].controls[0].closest->part, found.criteria[0].controls[0].closest->part);
    EXPECT_EQ(found.closest_fault->criterion, "a");
    EXPECT_LT(found.closest_fault->passes, 4.0);
}

TEST(ClaimVerdicts, SlopesStateTheLevelAtEachSize) {
    auto slope = made_up(Form::printed, "a", 0.0, 0.0);
    slope.summary = Summary::rate;
    slope.prepare = [](const TrialPlace& place) -> Trial {
        const double size = static_cast<double>(place.size);
        return [size](std::uint64_t replicate) { return (replicate % 2 == 0 ? 3.0 : -1.0) / size; };
    };
    slope.quick = {{16, 100}, {32, 100}, {64, 100}};
    const auto found = judged({slope}, PrintedVerdict::none);
    const auto& levels = found.criteria[0].outcome.levels;
    ASSERT_EQ(levels.size(), 3U);
    for (const auto& at : levels) {
        EXPECT_NEAR(at.level * static_cast<double>(at.size), std::sqrt(5.0), 1e-12);
        EXPECT_NEAR(at.mean * static_cast<double>(at.size), 1.0, 1e-12);
    }
    EXPECT_TRUE(judged({made_up(Form::printed, "a", 0.0, 0.1)}).criteria[0].outcome.levels.empty());
}

// A criterion that also fails where the statement is true has no specificity.
TEST(ClaimVerdicts, ARefutationNeedsAPositiveControlThatPasses) {
    const auto with_positive_control = [](double centre, double true_centre) {
        auto criterion = made_up(Form::printed, "a", centre, 0.1, {}, true_centre);
        criterion.positive_controls = {{"case", "another centre"}};
        return judged({criterion}, PrintedVerdict::refuted);
    };
    const auto sound = with_positive_control(5.0, 0.5);
    EXPECT_EQ(sound.printed, PrintedVerdict::refuted);
    EXPECT_FALSE(sound.failed);
    ASSERT_EQ(sound.criteria[0].positive_controls.size(), 1U);
    EXPECT_TRUE(sound.criteria[0].positive_controls[0].passes());
    EXPECT_FALSE(sound.criteria[0].extended);
    const auto without_specificity = with_positive_control(5.0, 4.0);
    EXPECT_EQ(without_specificity.printed, PrintedVerdict::inconclusive);
    EXPECT_TRUE(without_specificity.failed);
    EXPECT_EQ(without_specificity.reason,
              "a: the positive control \"case\" fails, although the statement is true there");
    const auto open = with_positive_control(5.0, 1.0);
    EXPECT_EQ(open.printed, PrintedVerdict::inconclusive);
    EXPECT_FALSE(open.failed);
    EXPECT_TRUE(open.criteria[0].extended);
    EXPECT_EQ(open.reason, "a: the positive control \"case\" is inconclusive");
    // Controls are additional comparisons.
    const auto comparisons = [](std::vector<Criterion> criteria) {
        const std::vector<Claim> claims = {{.id = "made-up",
                                            .place = "",
                                            .statement = "",
                                            .corrected = "",
                                            .expected_verdict = PrintedVerdict::refuted,
                                            .criteria = std::move(criteria)}};
        return validate_claims({.threads = 1}, claims).comparisons;
    };
    auto criterion = made_up(Form::printed, "a", 5.0, 0.1);
    EXPECT_EQ(comparisons({criterion}), 1U);
    criterion.positive_controls = {{"case", "another centre"}};
    EXPECT_EQ(comparisons({criterion}), 2U);
    criterion.negative_controls = {shifted, {"again", "another centre"}};
    EXPECT_EQ(comparisons({criterion}), 4U);
}

TEST(ClaimVerdicts, AConclusiveVerdictOtherThanTheExpectedOneFails) {
    EXPECT_TRUE(judged({made_up(Form::printed, "a", 5.0, 0.1)}).failed);
    EXPECT_TRUE(judged({made_up(Form::printed, "a", 0.0, 0.1)}, PrintedVerdict::refuted).failed);
    EXPECT_FALSE(judged({made_up(Form::printed, "a", 1.0, 0.1)}, PrintedVerdict::refuted).failed) << "inconclusive";
    // Two criteria are expected to be refuted, and one of them holds.
    const auto one =
        judged({made_up(Form::printed, "a", 5.0, 0.1), made_up(Form::printed, "b", 0.0, 0.1)}, PrintedVerdict::refuted);
    EXPECT_TRUE(one.failed);
    EXPECT_EQ(one.reason, "b: holds, but is expected to be refuted");
    EXPECT_FALSE(judged({made_up(Form::printed, "a", 5.0, 0.1), made_up(Form::printed, "b", 0.0, 0.1, {shifted}, 9.0)},
                        PrintedVerdict::refuted)
                     .failed);
}

TEST(ClaimVerdicts, InconclusiveCriteriaGetOneSecondAnalysis) {
    // The interval of 100 values crosses the margin, that of 400 values does not.
    const auto decided = judged({made_up(Form::printed, "a", 0.0, 2.5)});
    EXPECT_TRUE(decided.criteria[0].extended);
    EXPECT_EQ(decided.criteria[0].outcome.findings[0].interval.count, 400U);
    EXPECT_EQ(decided.printed, PrintedVerdict::holds);
    const auto open = judged({made_up(Form::printed, "a", 1.0, 0.1)});
    EXPECT_EQ(open.printed, PrintedVerdict::inconclusive);
    EXPECT_TRUE(open.open());
    EXPECT_EQ(open.reason, "a is inconclusive");
    EXPECT_EQ(open.criteria[0].outcome.findings[0].interval.count, 400U);
    // An inconclusive negative control also gets more trials where its criterion holds.
    const auto by_control = judged({made_up(Form::printed, "a", 0.0, 0.1, {shifted}, 1.0)});
    EXPECT_TRUE(by_control.criteria[0].extended);
    EXPECT_EQ(by_control.printed, PrintedVerdict::inconclusive);
    EXPECT_FALSE(judged({made_up(Form::printed, "a", 5.0, 0.1, {shifted}, 1.0)}).criteria[0].extended);
    // A control has as many trials as its criterion.
    const auto control = judged({made_up(Form::printed, "a", 0.0, 2.5, {shifted}, 9.0)});
    EXPECT_EQ(control.criteria[0].controls[0].outcome.findings[0].interval.count, 400U);
}

// The false-alarm rate of the tier is divided equally among all comparisons and their two interim analyses.
TEST(ClaimVerdicts, InterimAnalysesAndComparisonsShareTheFalseAlarmRate) {
    const auto claim = [](std::string id, double deviation) -> Claim {
        return {.id = std::move(id),
                .place = "",
                .statement = "",
                .corrected = "",
                .criteria = {made_up(Form::printed, "a", 0.0, deviation)}};
    };
    const std::vector<Claim> two = {claim("decided", 0.1), claim("extended", 2.5)};
    const auto found = validate_claims({.false_alarm = 1e-4, .threads = 1}, two);
    EXPECT_EQ(found.comparisons, 2U);
    for (const auto& [at, deviation, trials] : {std::tuple{0, 0.1, 100}, std::tuple{1, 2.5, 400}}) {
        std::vector<double> values;
        for (int i = 0; i < trials; ++i) values.push_back(i % 2 == 0 ? deviation : -deviation);
        const Interval expected = mean_interval(values, 1e-4 / 2.0 / 2.0);
        const Interval& interval = found.claims[at].criteria[0].outcome.findings[0].interval;
        ASSERT_EQ(interval.count, expected.count);
        EXPECT_NEAR(interval.high, expected.high, 1e-12 * deviation);
        EXPECT_NEAR(interval.low, expected.low, 1e-12 * deviation);
    }
}

TEST(ClaimVerdicts, IntervalsOfSharesAndDistancesAreExactAndOthersNominal) {
    for (const Summary one : {Summary::share, Summary::distance}) EXPECT_EQ(rate_of(one), Rate::exact);
    for (const Summary one : {Summary::mean, Summary::rate, Summary::growth}) EXPECT_EQ(rate_of(one), Rate::nominal);
}

TEST(ClaimVerdicts, DoNotDependOnThreadsOrOnOtherClaims) {
    const std::vector<std::string> some = {"qjl.mean", "thin-shell"};
    ValidationPlan plan{.seed = stream::StudySeed::parse("0x77"), .claims = some, .threads = 1};
    const auto alone = validate_claims(plan);
    plan.threads = 3;
    plan.claims = {"thin-shell"};
    const auto other = validate_claims(plan);
    ASSERT_EQ(alone.claims.size(), 2U);
    ASSERT_EQ(other.claims.size(), 1U);
    const auto numbers = [](const ClaimOutcome& claim) {
        std::vector<double> all;
        for (const auto& one : claim.criteria)
            for (const auto& finding : one.outcome.findings)
                all.insert(all.end(), {finding.interval.estimate, finding.interval.low, finding.interval.high});
        return all;
    };
    const auto same = std::find_if(alone.claims.begin(), alone.claims.end(),
                                   [](const ClaimOutcome& one) { return one.claim->id == "thin-shell"; });
    EXPECT_EQ(numbers(*same), numbers(other.claims[0]));
}

TEST(ClaimVerdicts, UnknownIdsAreRejectedWithASuggestion) {
    try {
        (void)validate_claims({.claims = {"prop.nrm"}});
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::usage);
        EXPECT_STREQ(error.what(), "unknown claim \"prop.nrm\"; did you mean \"prop.norm\"?");
    }
}

// A block that was used again must stay in the cache longer than blocks used before that.
TEST(Claims, TheBlockCacheDropsTheLeastRecentlyUsedBlock) {
    const auto block = [](double value) { return arma::mat(3, 3, arma::fill::value(value)); };
    const auto* first = &analysed(block(1.0));
    for (const double value : {2.0, 3.0, 4.0}) EXPECT_NE(&analysed(block(value)), first);
    EXPECT_EQ(&analysed(block(1.0)), first);
    for (const double value : {5.0, 6.0, 7.0}) EXPECT_NE(&analysed(block(value)), first);
    EXPECT_EQ(&analysed(block(1.0)), first);
    EXPECT_EQ(first->block()(0, 0), 1.0);
    // Another treatment of zero rows and columns is another decomposition.
    EXPECT_NE(&analysed(block(1.0), EmptyLines::keep), first);
}

// The corrected form about the threshold looks above the top edge only. So its noise must have no gap where a spike can
// be seen; that of the printed form has one.
TEST(Claims, TheCorrectedThresholdIsJudgedInNoiseOfOneBulkComponent) {
    const auto place_for_a_spike = [](const theory::SeparableLaw& law) {
        const auto gaps = theory::SupportGaps(law).gaps();
        return std::any_of(gaps.begin(), gaps.end(), [](const theory::SupportGap& gap) {
            return gap.lower.value > 0.0 || std::isfinite(gap.weakest.value);
        });
    };
    const Claim& claim = *find_claim("threshold.detection");
    EXPECT_NE(claim.corrected.find("one bulk component"), std::string::npos) << claim.corrected;
    for (const auto& one : claim.criteria) {
        if (one.form == Form::printed) continue;
        EXPECT_NE(one.measures.find("coloured noise (one bulk component)"), std::string::npos) << one.measures;
        for (const auto& plans : {one.quick, one.full})
            for (const auto& plan : plans)
                EXPECT_FALSE(place_for_a_spike(*make_fixture({Noise::coloured, 1.0, {}}, plan.size).law)) << plan.size;
    }
    EXPECT_TRUE(place_for_a_spike(theory::SeparableLaw(sim::parse_spectrum("two-atom:1,25,0.5"),
                                                       theory::identity_spectrum(), AspectRatio(0.25))));
    const std::vector<Claim> only = {claim};
    const auto judged = validate_claims({.threads = 2}, only).claims.front();
    EXPECT_EQ(judged.printed, PrintedVerdict::refuted);
    EXPECT_EQ(judged.corrected, PrintedVerdict::holds);
    EXPECT_FALSE(judged.failed) << judged.reason;
}

TEST(Claims, AllIdsInUseExist) {
    for (const char* id : {"outlier.location",   "overlap.left",      "overlap.right",        "threshold.detection",
                           "sticking",           "delocalisation",    "isotropic.edge",       "isotropic.all",
                           "shrinker.frobenius", "shrinker.operator", "shrinker.nuclear",     "edge.estimator",
                           "noise-law",          "rank.consistency",  "rank.false-alarm",     "prop.esd",
                           "prop.norm",          "prop.no-outlier",   "prop.bias-ratio",      "corollary.constant",
                           "thin-shell",         "sphere.marginal",   "lloyd-max.distortion", "clustered-rows",
                           "bias.linear",        "qjl.mean",          "qjl.variance",         "tq-prod.unbiased",
                           "residual-value",     "signal-error",      "cross-term",           "bits.formula",
                           "one-bit-saved",      "adaptive-rank",     "whitening.below",      "rope.cost",
                           "spectrum.gain"})
        EXPECT_NE(find_claim(id), nullptr) << id;
}

// A claim without controls, or with controls that change nothing, shows nothing.
TEST(Claims, HaveAllTheirFields) {
    std::set<std::string> ids;
    for (const auto& claim : claims()) {
        EXPECT_TRUE(ids.insert(claim.id).second) << claim.id << " twice";
        EXPECT_FALSE(claim.place.empty() || claim.statement.empty()) << claim.id;
        std::set<std::string> names;
        bool quick = false;
        bool corrected = false;
        for (const auto& one : claim.criteria) {
            EXPECT_TRUE(names.insert(one.name).second) << claim.id << " " << one.name << " twice";
            quick = quick || !one.quick.empty();
            corrected = corrected || one.form == Form::corrected;
            EXPECT_FALSE(one.quick.empty() && one.full.empty()) << claim.id << " " << one.name;
            EXPECT_TRUE(one.region && one.prepare) << claim.id << " " << one.name;
            EXPECT_EQ(one.law != nullptr, one.summary == Summary::distance) << claim.id << " " << one.name;
            // A criterion that is expected to hold has a negative control.
            EXPECT_FALSE((one.form == Form::corrected || claim.expected_verdict == PrintedVerdict::vacuous) &&
                         one.negative_controls.empty())
                << claim.id << " " << one.name;
            // A criterion that is expected to be refuted has a positive control.
            EXPECT_EQ(one.form == Form::printed && claim.expected_verdict == PrintedVerdict::refuted,
                      !one.positive_controls.empty())
                << claim.id << " " << one.name;
        }
        EXPECT_TRUE(quick) << claim.id << " is missing in the quick tier";
        if (claim.expected_verdict == PrintedVerdict::holds) {
            EXPECT_TRUE(std::any_of(claim.criteria.begin(), claim.criteria.end(), [](const Criterion& one) {
                return !one.negative_controls.empty();
            })) << claim.id;
        } else if (claim.id != "prop.esd") {
            EXPECT_TRUE(corrected) << claim.id << " is " << name_of(claim.expected_verdict)
                                   << ", but there is no corrected form";
            EXPECT_FALSE(claim.corrected.empty()) << claim.id;
        }
    }
}

// A kind never contradicts a verdict: two follow from it, the others are stated where a refutation is expected.
TEST(Claims, KindsFollowFromVerdicts) {
    EXPECT_EQ(enum_name(ClaimKind::untrue), "false");
    EXPECT_EQ(names_of<ClaimKind>().size(), 8U);
    for (const auto& claim : claims()) {
        const auto kind_if = [&](PrintedVerdict printed) { return ClaimOutcome{&claim, printed}.kind(); };
        EXPECT_EQ(kind_if(PrintedVerdict::holds), ClaimKind::holds);
        EXPECT_EQ(kind_if(PrintedVerdict::vacuous), ClaimKind::vacuous);
        EXPECT_EQ(kind_if(PrintedVerdict::inconclusive), std::nullopt);
        EXPECT_EQ(kind_if(PrintedVerdict::none), std::nullopt);
        EXPECT_EQ(claim.refuted_as.has_value(), claim.expected_verdict == PrintedVerdict::refuted) << claim.id;
        if (!claim.refuted_as) continue;
        for (const ClaimKind never : {ClaimKind::holds, ClaimKind::vacuous, ClaimKind::does_not_transfer})
            EXPECT_NE(*claim.refuted_as, never) << claim.id;
        EXPECT_FALSE(claim.note.empty()) << claim.id << " does not say under which hypotheses it is refuted";
    }
}

// The summary needs a sentence for each claim and a number that both tiers have.
TEST(Claims, HavePlainWords) {
    for (const auto& claim : claims()) {
        EXPECT_TRUE(claim.plain.says.ends_with('.')) << claim.id;
        EXPECT_FALSE(claim.plain.number.empty()) << claim.id;
        const auto one = std::find_if(claim.criteria.begin(), claim.criteria.end(),
                                      [&](const Criterion& each) { return each.name == claim.plain.criterion; });
        ASSERT_NE(one, claim.criteria.end()) << claim.id << " " << claim.plain.criterion;
        EXPECT_FALSE(one->quick.empty()) << claim.id;
        // The number of a claim that is refuted or vacuous is that of the printed form.
        EXPECT_TRUE(claim.expected_verdict == PrintedVerdict::holds || one->form == Form::printed) << claim.id;
    }
}

// Assumption (iv) asks for d - alpha > phi_d + d^(-1/3), in white noise with alpha = 1. Rademacher entries have phi_d =
// d^(-1/2); Gaussian ones reach sqrt(2 log(n d) / d), which is too much for these spikes.
TEST(Claims, SpikesOfPrintedFormsAreAsFarAboveTheThresholdAsAssumed) {
    for (const auto& [id, excess] :
         {std::pair{"rank.consistency", +[](double d) { return 1.5 * std::pow(d, -1.0 / 3.0); }},
          std::pair{"prop.no-outlier", +[](double d) { return 0.9 * std::pow(d, -0.2); }}}) {
        const Claim& claim = *find_claim(id);
        const auto gap = std::find_if(claim.criteria.begin(), claim.criteria.end(),
                                      [](const Criterion& one) { return one.name == "gap"; });
        ASSERT_NE(gap, claim.criteria.end()) << id;
        EXPECT_NE(gap->measures.find("Rademacher entries"), std::string::npos) << gap->measures;
        for (const auto& plans : {gap->quick, gap->full})
            for (const auto& plan : plans) {
                const auto d = static_cast<double>(plan.size);
                EXPECT_GT(excess(d), std::pow(d, -0.5) + std::pow(d, -1.0 / 3.0)) << id << " " << d;
                EXPECT_LT(excess(d), std::sqrt(2.0 * std::log(d * d) / d) + std::pow(d, -1.0 / 3.0)) << id << " " << d;
                const Fixture fixture = make_fixture({Noise::white, 1.0, {}, "rademacher"}, plan.size);
                const arma::mat noise = fixture.draw({.size = plan.size}, 0).noise;
                EXPECT_NEAR(arma::abs(noise).max(), std::pow(d, -0.5), 1e-12);
            }
    }
}

// Numbers that notes state.
TEST(Claims, NotesStateWhatIsComputed) {
    const std::string rank = find_claim("rank.consistency")->note;
    for (const auto& [size, stated, power] : {std::tuple{128, "1.54", "1.45"}, std::tuple{512, "1.41", "1.35"}}) {
        const Fixture fixture = make_fixture({Noise::white, 1.0, {}}, static_cast<std::size_t>(size));
        const auto rules = theory::finite_size(*fixture.law, fixture.rows(), fixture.columns()).rules;
        const auto rule =
            std::find_if(rules.begin(), rules.end(), [](const auto& one) { return one.name == "eoptshrink"; });
        ASSERT_NE(rule, rules.end());
        EXPECT_NEAR(rule->smallest_strength.value / fixture.law->detection_threshold().value, std::stod(stated), 0.005);
        EXPECT_NEAR(1.0 + std::pow(size, -1.0 / 6.0), std::stod(power), 0.005);
        EXPECT_NE(rank.find(stated), std::string::npos);
        EXPECT_NE(rank.find(power), std::string::npos);
    }
    // Savings of the printed tables at equal error, on keys and on values.
    const std::string saved = find_claim("one-bit-saved")->note;
    EXPECT_NE(saved.find(".64 to .72 at equal error on keys and .06 to .09 on values"), std::string::npos);
    std::vector<double> keys, values;
    for (std::size_t table = 0; table < std::size(printed_tables); ++table)
        for (const auto& shrunk : printed_tables[table].shrunk) {
            const auto& one = printed_tables[table].one;
            const std::size_t from = shrunk.error > one[1].error ? 0 : 1;
            const double per_bit = std::log(one[from].error / one[from + 1].error);
            (table % 2 == 0 ? keys : values)
                .push_back(one[from].bits + std::log(one[from].error / shrunk.error) / per_bit - shrunk.bits);
        }
    EXPECT_NEAR(*std::min_element(keys.begin(), keys.end()), 0.64, 0.005);
    EXPECT_NEAR(*std::max_element(keys.begin(), keys.end()), 0.72, 0.005);
    EXPECT_NEAR(*std::min_element(values.begin(), values.end()), 0.06, 0.005);
    EXPECT_NEAR(*std::max_element(values.begin(), values.end()), 0.09, 0.005);
}

// Each control changes the measured number or its prediction; a misspelt name would change nothing.
TEST(Claims, EveryControlChangesItsTrials) {
    for (const auto& claim : claims())
        for (const auto& one : claim.criteria) {
            std::size_t size = 32;
            if (claim.id == "rope.cost" || claim.id == "bits.formula" || one.summary == Summary::distance) size = 16;
            if (claim.id == "one-bit-saved" || claim.id == "adaptive-rank" || claim.id.starts_with("rank.")) size = 64;
            const std::uint64_t replicates = claim.id == "spectrum.gain" ? 2 : 60;  // slow
            auto changes = one.negative_controls;
            changes.insert(changes.end(), one.positive_controls.begin(), one.positive_controls.end());
            for (const auto& change : changes) {
                const auto sum = [&](const std::string& control, double fault = 1.0) {
                    const Trial trial = one.prepare({size, control, {}, "test", fault});
                    double total = 0.0;
                    for (std::uint64_t replicate = 0; replicate < replicates; ++replicate) total += trial(replicate);
                    return total;
                };
                if (change.name == "no-rotation" && claim.id == "rope.cost") continue;  // slow
                const double sound = sum("");
                EXPECT_NE(sound, sum(change.name)) << claim.id << " " << one.name << " " << change.name;
                // A fault of size 0 changes nothing but rotations.
                if (change.size) {
                    EXPECT_NEAR(sound, sum(change.name, 0.0),
                                (has_other_rotations(change) ? 0.03 : 1e-9) * std::abs(sound))
                        << claim.id << " " << one.name << " " << change.name;
                }
            }
        }
}

/// Fraction of the energy outside the first four directions, with LAPACK.
double tail_of(const arma::mat& block) {
    const arma::vec energies = arma::square(arma::svd(block));
    return arma::accu(energies.tail(energies.n_elem - 4)) / arma::accu(energies);
}

TEST(ClaimsOnDumps, AreJudgedOnTheBlocksOfEachDump) {
    KvPlan plan;
    plan.dumps = {SPIKED_SOURCE_DIR "/sim/kv/tests/data/rope-lm-cut.safetensors"};
    plan.layers = {0};
    plan.heads = {0};
    const auto open = std::make_shared<const OpenDumps>(open_dumps(plan));
    const auto claims = claims_on_dumps(open, {"rope-lm-cut.safetensors"}, plan.block_tokens);
    ASSERT_EQ(claims.size(), 3U);
    const auto found = validate_claims({.threads = 2}, claims);
    for (const auto& claim : found.claims) {
        EXPECT_EQ(claim.claim->on, "rope-lm-cut.safetensors");
        EXPECT_FALSE(claim.failed) << claim.claim->id << " " << claim.reason;
        EXPECT_EQ(claim.kind(), claim.printed == PrintedVerdict::holds     ? std::optional(ClaimKind::holds)
                                : claim.printed == PrintedVerdict::refuted ? std::optional(ClaimKind::does_not_transfer)
                                                                           : std::nullopt)
            << claim.claim->id;
        EXPECT_NE(claim.claim->note.find("with the blocks fixed"), std::string::npos) << claim.claim->id;
        for (const auto& one : claim.criteria) {
            // Only savings are judged as a statement that may be refuted.
            const bool saving = one.criterion->form == Form::printed && claim.claim->id == "one-bit-saved";
            EXPECT_EQ(one.criterion->negative_controls.empty(), saving) << one.criterion->name;
            EXPECT_EQ(one.criterion->positive_controls.empty(), !saving && one.criterion->name != "order");
            for (const auto& control : one.controls) EXPECT_TRUE(control.fails()) << one.criterion->name;
            for (const auto& each : one.positive_controls) EXPECT_TRUE(each.passes()) << one.criterion->name;
        }
    }
    const auto& rope = found.claims[2];
    ASSERT_EQ(rope.claim->id, "rope.cost");
    ASSERT_EQ(rope.criteria.size(), 2U);
    EXPECT_EQ(rope.printed, PrintedVerdict::holds);
    EXPECT_EQ(rope.corrected, PrintedVerdict::holds);

    const sim::KvDump dump(plan.dumps[0]);
    double stored = 0.0;
    double derotated = 0.0;
    for (const auto& tensor : dump.tensors())
        if (tensor.side == sim::Side::key && tensor.layer == 0)
            for (std::size_t first = 0; first + 128 <= tensor.tokens; first += 128) {
                const arma::mat block = dump.read_block(tensor, 0, first, 128);
                stored += tail_of(block);
                derotated += tail_of(sim::undo_rope(block, {}, static_cast<double>(first)));
            }
    EXPECT_NEAR(rope.criteria[1].outcome.findings[0].interval.estimate, stored / derotated, 1e-6);
}

TEST(ClaimsOnDumps, AnyPrintedVerdictIsAResult) {
    std::vector<Claim> one{{.id = "made-up",
                            .place = "",
                            .statement = "",
                            .corrected = "",
                            .expected_verdict = PrintedVerdict::none,
                            .criteria = {made_up(Form::printed, "a", 5.0, 0.1)}}};
    EXPECT_FALSE(validate_claims({.threads = 1}, one).claims.front().failed);
    one.front().expected_verdict = PrintedVerdict::holds;
    EXPECT_TRUE(validate_claims({.threads = 1}, one).claims.front().failed);
}

TEST(Selftest, NamesControlsThatExist) {
    for (const auto& defect : planted_defects()) {
        const Claim* claim = find_claim(defect.claim);
        ASSERT_NE(claim, nullptr) << defect.name;
        const auto one = std::find_if(claim->criteria.begin(), claim->criteria.end(),
                                      [&](const Criterion& criterion) { return criterion.name == defect.criterion; });
        ASSERT_NE(one, claim->criteria.end()) << defect.name;
        EXPECT_TRUE(std::any_of(one->negative_controls.begin(), one->negative_controls.end(), [&](const Control& each) {
            return each.name == defect.control;
        })) << defect.name;
        EXPECT_FALSE(one->quick.empty()) << defect.name;
    }
}

}  // namespace
}  // namespace spiked::validation

#include "validation/verdicts/claim_comparison.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "sim/random/normal.hpp"
#include "validation/engine/tests/fake_study.hpp"
#include "validation/verdicts/selftest.hpp"

namespace spiked::validation {
namespace {

/// Normal trials about 0, which `fault` and the control `shifted` move by 2, or of a standard deviation that falls as
/// size^-1/2, which they take as size^-1/4 with the same mean.
Criterion normal_trials(std::string name, Summary summary, bool fault, std::vector<SizePlan> sizes) {
    return {.form = Form::printed,
            .name = std::move(name),
            .measures = "normal numbers",
            .summary = summary,
            .prepare = [=](const TrialPlace& place) -> Trial {
                const bool faulty = fault || place.control_is("shifted");
                const double size = static_cast<double>(place.size);
                const double scale = summary == Summary::rate ? std::pow(size, faulty ? -0.25 : -0.5) : 1.0;
                const double mean = summary != Summary::rate && faulty ? 2.0 : 0.0;
                return [=](std::uint64_t replicate) {
                    std::array<double, 1> z{};
                    stream::fill_normal(stream::Stream(place.seed, place.cell, stream::Role::noise, replicate), z);
                    return mean + scale * z[0];
                };
            },
            .region = [=](std::size_t) { return summary == Summary::rate ? around(-0.5, 0.1) : around(0.0, 1.0); },
            .quick = std::move(sizes),
            .full = {},
            .negative_controls = {{"shifted", "another mean or slope"}}};
}

/// What a test changes in one of two stores.
struct Version {
    const char* seed = "0x47";
    bool moved = false;   ///< the mean of the claim `mean`
    bool slower = false;  ///< the slope of the claim `slope`
    bool open = false;    ///< the claim `mean` has too few trials for its first analysis
    Tier tier = Tier::quick;
    std::vector<std::string> claims = {};
    double false_alarm = 1e-3;
    bool grows = true;
};

std::vector<Claim> claims_of(const Version& of) {
    return {{.id = "mean",
             .place = "",
             .statement = "",
             .criteria = {normal_trials("a", Summary::mean, of.moved, {{16, of.open ? 20U : 200U}, {32, 200}})}},
            {.id = "slope",
             .place = "",
             .statement = "",
             .criteria = {normal_trials("b", Summary::rate, of.slower, {{16, 2000}, {64, 2000}, {256, 2000}})}}};
}

std::string claims_store(const Version& of, const std::string& name) {
    const std::string path = scratch_path(name);
    Experiment experiment = claim_experiment({.tier = of.tier,
                                              .seed = stream::StudySeed::parse(of.seed),
                                              .false_alarm = of.false_alarm,
                                              .claims = of.claims,
                                              .threads = 2},
                                             claims_of(of));
    if (!of.grows) experiment.grow = {};
    EXPECT_EQ(run_into(experiment, path), RunOutcome::complete);
    return path;
}

/// The comparison of two stores, with the claims that it points to.
struct Pair {
    Pair(const Version& of_a, const Version& of_b)
        : claims_a(claims_of(of_a)),
          claims_b(claims_of(of_b)),
          a(open_store(claims_store(of_a, "claims-a"))),
          b(open_store(claims_store(of_b, "claims-b"))),
          found(compare_claims(a, claims_a, b, claims_b)) {}
    std::vector<Claim> claims_a, claims_b;
    Database a, b;
    ClaimComparison found;
};

TEST(ClaimComparison, EqualStoresAndOtherSeedsDoNotDiffer) {
    const Pair equal({}, {});
    EXPECT_EQ(equal.found.claims.size(), 2U);
    EXPECT_EQ(equal.found.with_other_verdicts(), 0U);
    EXPECT_EQ(equal.found.means.beyond, 0U);
    EXPECT_EQ(equal.found.means.batches_changed, 0U);
    const Pair seeds({}, {.seed = "0x48"});
    EXPECT_EQ(seeds.found.with_other_verdicts(), 0U);
    EXPECT_EQ(seeds.found.means.beyond, 0U);
    ASSERT_EQ(seeds.found.claims.size(), 2U);
    const ComparedClaim& mean = seeds.found.claims[0];
    EXPECT_EQ(mean.a->claim->id, "mean");
    EXPECT_EQ(mean.compared, 4U) << "two sizes, the criterion and its control";
    EXPECT_EQ(seeds.found.claims[1].compared, 8U) << "three sizes and their slope";
    EXPECT_NE(mean.finding_a->interval.estimate, mean.finding_b->interval.estimate);
    EXPECT_EQ(mean.finding_a->size, mean.finding_b->size);
}

// The defect is that of the claim's own control, which the verdict must find as well.
TEST(ClaimComparison, APlantedDefectIsFoundInItsClaim) {
    for (const char* seed : {"0x47", "0x48"}) {
        const Pair pair({}, {.seed = seed, .moved = true});
        EXPECT_EQ(pair.found.with_other_verdicts(), 1U) << seed;
        const ComparedClaim& mean = pair.found.claims.at(0);
        EXPECT_EQ(mean.a->printed, PrintedVerdict::holds);
        EXPECT_EQ(mean.b->printed, PrintedVerdict::refuted);
        EXPECT_EQ(mean.beyond, 2U) << "both sizes of the criterion; its control is moved in both stores";
        EXPECT_NEAR(mean.finding_b->interval.estimate - mean.finding_a->interval.estimate, 2.0, 0.6);
        EXPECT_EQ(pair.found.claims.at(1).beyond, 0U) << seed;
    }
}

// The means of these trials are 0 with the defect too.
TEST(ClaimComparison, ADefectOfASlopeIsFound) {
    const Pair pair({}, {.seed = "0x48", .slower = true});
    const ComparedClaim& slope = pair.found.claims.at(1);
    EXPECT_EQ(slope.b->printed, PrintedVerdict::refuted);
    EXPECT_EQ(slope.beyond, 1U);
    for (const ComparedMean& row : pair.found.means.rows)
        EXPECT_EQ(row.beyond, row.metric == "slope over sizes" && row.method == as_stated) << row.cell;
    EXPECT_NEAR(slope.finding_a->interval.estimate, -0.5, 0.05);
    EXPECT_NEAR(slope.finding_b->interval.estimate, -0.25, 0.05);
}

TEST(ClaimComparison, SaysWhichClaimsAndAnalysesOnlyOneStoreHas) {
    const Pair pair({.false_alarm = 1e-2}, {.seed = "0x48", .tier = Tier::full, .claims = {"slope"}});
    ASSERT_EQ(pair.found.only_a.size(), 1U);
    EXPECT_EQ(pair.found.only_a[0]->claim->id, "mean");
    EXPECT_TRUE(pair.found.only_b.empty());
    EXPECT_EQ(pair.found.claims.size(), 1U);
    EXPECT_EQ(pair.found.a.false_alarm, 1e-2);
    EXPECT_EQ(pair.found.means.false_alarm, 1e-3) << "the smaller one";
    EXPECT_EQ(pair.found.b.tier, Tier::full);
    const Pair unfinished({.open = true}, {.open = true, .grows = false});
    EXPECT_EQ(unfinished.found.a.lacking, 0U);
    EXPECT_GT(unfinished.found.b.lacking, 0U);
    EXPECT_FALSE(unfinished.found.means.only_a.empty()) << "the second analysis";
    EXPECT_NE(message_of([] { const Pair none({.claims = {"mean"}}, {.claims = {"slope"}}); }, ErrorKind::usage)
                  .find("have no mean in common"),
              std::string::npos);
}

// Two seeds of a claim of the paper, then a version with an error that programs in this field have (selftest).
TEST(ClaimComparison, AKnownErrorInOneVersionIsFound) {
    const auto& defects = planted_defects();
    const auto defect = std::find_if(defects.begin(), defects.end(), [](const PlantedDefect& one) {
        return one.name == "QJL constant off by sqrt(2)";
    });
    ASSERT_NE(defect, defects.end());
    std::vector<Claim> sound = {*find_claim(defect->claim)};
    std::vector<Claim> faulty = sound;
    for (Criterion& criterion : faulty[0].criteria) {
        criterion.quick = {{32, 4000}};
        if (criterion.name != defect->criterion) continue;
        criterion.prepare = [prepare = criterion.prepare, control = defect->control](TrialPlace place) {
            if (place.control.empty()) place.control = control;
            return prepare(place);
        };
    }
    for (Criterion& criterion : sound[0].criteria) criterion.quick = {{32, 4000}};
    const auto store_of = [](const std::vector<Claim>& claims, const char* seed, const std::string& name) {
        const std::string path = scratch_path(name);
        EXPECT_EQ(run_into(claim_experiment({.seed = stream::StudySeed::parse(seed), .threads = 2}, claims), path),
                  RunOutcome::complete);
        return open_store(path);
    };
    Database before = store_of(sound, "0x1", "claims-before");
    Database other_seed = store_of(sound, "0x2", "claims-other-seed");
    Database after = store_of(faulty, "0x2", "claims-after");
    const auto seeds = compare_claims(before, sound, other_seed, sound);
    EXPECT_EQ(seeds.means.beyond, 0U);
    EXPECT_EQ(seeds.with_other_verdicts(), 0U);
    const auto versions = compare_claims(before, sound, after, sound);
    EXPECT_EQ(versions.with_other_verdicts(), 1U);
    EXPECT_GE(versions.claims.at(0).beyond, 1U);
    EXPECT_TRUE(versions.claims.at(0).b->failed);
    EXPECT_EQ(versions.claims.at(0).shown->criterion->name, defect->criterion);
}

}  // namespace
}  // namespace spiked::validation

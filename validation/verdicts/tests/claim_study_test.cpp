#include "validation/verdicts/claim_study.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <tuple>

#include "core/runtime/error.hpp"
#include "validation/engine/judge.hpp"
#include "validation/engine/merge.hpp"
#include "validation/engine/replay.hpp"
#include "validation/engine/tests/fake_study.hpp"

namespace spiked::validation {
namespace {

/// The numbers of all criteria and controls, and the closest faults.
std::vector<double> numbers_of(const Validation& found) {
    std::vector<double> all;
    const auto add = [&](const Outcome& outcome) {
        for (const auto& one : outcome.findings)
            all.insert(all.end(), {one.interval.estimate, one.interval.low, one.interval.high,
                                   static_cast<double>(one.interval.count)});
    };
    for (const auto& claim : found.claims)
        for (const auto& one : claim.criteria) {
            add(one.outcome);
            for (const auto& control : one.controls) {
                add(control.outcome);
                if (control.closest) all.insert(all.end(), {control.closest->passes, control.closest->fails});
            }
        }
    return all;
}

/// Trials that alternate around `centre`, and around 4 times the size of the fault of the control `shifted` in units
/// where the planted one is 12; a slow search finds 0.25.
Criterion made_up(std::string name, double deviation, std::vector<SizePlan> sizes) {
    return {.form = Form::printed,
            .name = std::move(name),
            .measures = "a made-up number",
            .summary = Summary::mean,
            .prepare = [=](const TrialPlace& place) -> Trial {
                const double mean = 4.0 * place.fault_of("shifted") + 1e-3 * static_cast<double>(place.size);
                return [=](std::uint64_t replicate) {
                    return mean + (replicate % 2 == 0 ? deviation : -deviation) + 1e-6 * static_cast<double>(replicate);
                };
            },
            .region = [](std::size_t) { return around(0.0, 1.0); },
            .quick = std::move(sizes),
            .full = {},
            .negative_controls = {{"shifted", "another centre", FaultSize{12.0, "units"}}}};
}

/// One criterion that the first analysis decides, and one that needs the second, at two sizes.
const std::vector<Claim>& made_up_claims() {
    static const std::vector<Claim> claims = {
        {.id = "decided", .place = "", .statement = "", .criteria = {made_up("a", 0.1, {{16, 100}, {32, 50}})}},
        {.id = "extended",
         .place = "",
         .statement = "",
         .criteria = {made_up("a", 2.5, {{16, 100}, {32, 100}}), made_up("b", 0.1, {{8, 40}})}}};
    return claims;
}

ValidationPlan plan_for(Tier tier) { return {.tier = tier, .seed = stream::StudySeed::parse("0x47"), .threads = 2}; }

Validation judged(const std::string& path, double false_alarm = 1e-3) {
    Database store = open_store(path);
    ClaimStore trials(store);
    return judge_claims(trials, made_up_claims(), false_alarm);
}

// Estimates are those that the program of 0.1.0 printed, which drew as many trials as stand here with a scheduler of
// its own. Limits depend on the number of comparisons of the tier.
TEST(ClaimStudy, EstimatesAreThoseOfTheSchedulerOf0_1) {
    std::vector<Claim> claims = spiked::validation::claims().rows();
    // 0.1 did not have these claims. Each comparison has its part of the false-alarm rate.
    std::erase_if(claims, [](const Claim& claim) {
        return claim.id == "clustered-rows" || claim.id == "spectrum.gain" || claim.id.starts_with("pca.") ||
               claim.id.starts_with("wigner.") || claim.id == "interval.coverage" || claim.id == "rank.level";
    });
    const std::map<std::string, std::vector<SizePlan>> plans = {
        {"qjl.mean printed", {{32, 20000}}},
        {"qjl.mean corrected", {{32, 20000}}},
        {"thin-shell variance", {{128, 2000}}},
        {"thin-shell rate", {{32, 2000}, {64, 1500}, {128, 1000}, {256, 400}}}};
    for (Claim& claim : claims)
        for (Criterion& one : claim.criteria)
            if (const auto plan = plans.find(claim.id + " " + one.name); plan != plans.end()) one.quick = plan->second;
    const auto found = validate_claims({.seed = stream::StudySeed::parse("0x5eed000000000000000000000000c1a1"),
                                        .claims = {"qjl.mean", "thin-shell"},
                                        .threads = 2},
                                       claims);
    using Expected = std::tuple<double, double, double, std::uint64_t>;  // estimate, limits, trials
    const std::map<std::string, Expected> expected = {
        {"qjl.mean printed", {0.4792197939816496, 0.47393985883706002, 0.4844999412048091, 20000}},
        {"qjl.mean corrected", {0.4792197939816496, 0.47393985883706002, 0.4844999412048091, 20000}},
        {"thin-shell variance", {0.006253609696176565, -0.0085178874388525741, 0.021300988497094584, 2000}},
        {"thin-shell rate", {-0.5014879376205958, -0.51035186151164891, -0.49267444812534694, 4900}}};
    std::size_t compared = 0;
    for (const auto& claim : found.claims)
        for (const auto& one : claim.criteria) {
            const auto& [estimate, low, high, trials] = expected.at(claim.claim->id + " " + one.criterion->name);
            const Interval& interval = one.outcome.findings.at(0).interval;
            EXPECT_NEAR(interval.estimate, estimate, 1e-12) << one.criterion->name;
            EXPECT_NEAR(interval.low, low, 1e-12) << one.criterion->name;
            EXPECT_NEAR(interval.high, high, 1e-12) << one.criterion->name;
            EXPECT_EQ(interval.count, trials);
            ++compared;
        }
    EXPECT_EQ(compared, expected.size());
    const auto& controls = found.claims.at(0).criteria.at(0).controls;
    const auto& heavy =
        found.claims.at(0).claim->id == "thin-shell" ? controls : found.claims.at(1).criteria.at(0).controls;
    ASSERT_EQ(heavy.size(), 1U);
    EXPECT_NEAR(heavy[0].outcome.findings[0].interval.estimate, 1.5096465679295972, 1e-12);
    EXPECT_NEAR(heavy[0].closest->passes, 0.05078125, 1e-12);
}

TEST(ClaimStudy, SecondAnalysesAndSearchesAreCellsOfTheStore) {
    const Experiment experiment = claim_experiment(plan_for(Tier::full), made_up_claims());
    EXPECT_EQ(experiment.cells.size(), 5U);
    EXPECT_EQ(experiment.cells.front().rows, 32U) << "large blocks come first";
    const std::string path = scratch_path("claims-grown");
    EXPECT_EQ(run_into(experiment, path), RunOutcome::complete);
    Database store = open_store(path);
    const auto cells = [&](const std::string& like) {
        return store.integer("SELECT count(*) FROM cell WHERE label LIKE '" + like + "'");
    };
    EXPECT_EQ(cells("extended a % second analysis"), 2);
    EXPECT_EQ(cells("% second analysis"), 2);
    EXPECT_EQ(store.integer("SELECT reps_target FROM cell WHERE label = 'extended a 16 second analysis'"), 300);
    EXPECT_GE(cells("decided a 16 with faults shifted=%"), 1);
    EXPECT_EQ(store.integer("SELECT count(*) FROM cell WHERE state <> 'done'"), 0);
    const auto found = judged(path);
    EXPECT_EQ(found.lacking, 0U);
    EXPECT_TRUE(found.claims.at(1).criteria.at(0).extended);
    EXPECT_TRUE(found.claims.at(0).closest_fault->own_unit);
    EXPECT_EQ(numbers_of(found), numbers_of(validate_claims(plan_for(Tier::full), made_up_claims())));
}

TEST(ClaimStudy, ResultsDoNotDependOnThreadsAndStops) {
    std::vector<double> expected;
    for (const std::size_t threads : {1U, 2U, 4U}) {
        auto plan = plan_for(Tier::full);
        plan.threads = threads;
        const auto found = numbers_of(validate_claims(plan, made_up_claims()));
        if (expected.empty()) expected = found;
        EXPECT_EQ(found, expected) << threads;
    }
    const std::string path = scratch_path("claims-stopped");
    int sessions = 0;
    for (RunOutcome outcome = RunOutcome::stopped; outcome == RunOutcome::stopped; ++sessions) {
        ASSERT_LT(sessions, 400);
        // Another process: what the first one knows of added cells is lost.
        const Experiment experiment = claim_experiment(plan_for(Tier::full), made_up_claims());
        std::atomic<bool> stop{false};
        int batches = 0;
        outcome = run_into(experiment, path, {.threads = 2, .stop = &stop, .progress = [&](auto, auto) {
                                                  if (++batches == 2) stop = true;
                                              }});
    }
    EXPECT_GT(sessions, 20);
    EXPECT_EQ(numbers_of(judged(path)), expected);
}

TEST(ClaimStudy, ShardsAreMergedAndContinued) {
    const std::string whole = scratch_path("claims-merged");
    std::vector<std::string> parts;
    for (std::size_t i = 1; i <= 3; ++i) {
        const Experiment experiment = claim_experiment(plan_for(Tier::full), made_up_claims());
        parts.push_back(scratch_path("claims-part-" + std::to_string(i)));
        EXPECT_EQ(run_into(experiment, parts.back(), {.threads = 1, .shard = {i, 3}}), RunOutcome::part_complete);
    }
    merge_stores(parts, whole);
    // The first analyses are there; second ones and searches depend on all parts.
    const auto first = judged(whole);
    EXPECT_EQ(first.claims.size(), 2U);
    EXPECT_GT(first.lacking, 0U);
    EXPECT_FALSE(first.claims.at(1).criteria.at(0).extended);
    ASSERT_TRUE(first.claims.at(0).closest_fault);
    EXPECT_FALSE(first.claims.at(0).closest_fault->own_unit) << "no size was tried yet";
    EXPECT_EQ(run_into(claim_experiment(plan_for(Tier::full), made_up_claims()), whole), RunOutcome::complete);
    EXPECT_EQ(numbers_of(judged(whole)), numbers_of(validate_claims(plan_for(Tier::full), made_up_claims())));
    const std::string again = scratch_path("claims-merged-again");
    for (const bool part_first : {true, false}) {
        const std::vector<std::string> two = {part_first ? parts[0] : whole, part_first ? whole : parts[0]};
        const std::string message = message_of([&] { merge_stores(two, again); }, ErrorKind::usage);
        const std::string which = part_first ? "the second" : "the first";
        EXPECT_NE(message.find("(" + which + " has further cells, such as second analyses"), std::string::npos)
            << message;
    }
}

TEST(ClaimStudy, VerdictsAreMadeAgainAtAnotherFalseAlarmRate) {
    const std::string path = scratch_path("claims-rates");
    EXPECT_EQ(run_into(claim_experiment(plan_for(Tier::quick), made_up_claims()), path), RunOutcome::complete);
    auto plan = plan_for(Tier::quick);
    plan.false_alarm = 0.2;  // decides more claims at the first analysis, whose trials the store has
    EXPECT_EQ(numbers_of(judged(path, 0.2)), numbers_of(validate_claims(plan, made_up_claims())));
    const auto strict = judged(path, 1e-12);
    for (const auto& claim : strict.claims)
        for (const auto& one : claim.criteria)
            EXPECT_LT(one.outcome.findings[0].interval.low,
                      judged(path).claims[0].criteria[0].outcome.findings[0].interval.low);
}

// A version with other numbers of trials, and fewer sizes, reads the store as it is.
TEST(ClaimStudy, AStoreOfOtherNumbersOfTrialsIsJudgedByItsOwn) {
    auto other = made_up_claims();
    for (Claim& claim : other)
        for (Criterion& criterion : claim.criteria)
            for (SizePlan& one : criterion.quick) one.trials += 17;
    other[0].criteria[0].quick.push_back({64, 90});
    const std::string path = scratch_path("claims-other-numbers");
    EXPECT_EQ(run_into(claim_experiment(plan_for(Tier::quick), other), path), RunOutcome::complete);
    EXPECT_EQ(numbers_of(judged(path)), numbers_of(validate_claims(plan_for(Tier::quick), other)));
    EXPECT_NE(numbers_of(judged(path)), numbers_of(validate_claims(plan_for(Tier::quick), made_up_claims())));
    EXPECT_EQ(judged(path).lacking, 0U);
}

TEST(ClaimStudy, ATrialOfAnAddedCellIsReplayed) {
    const std::string path = scratch_path("claims-replayed");
    EXPECT_EQ(run_into(claim_experiment(plan_for(Tier::full), made_up_claims()), path), RunOutcome::complete);
    Database store = open_store(path);
    Experiment experiment = claim_experiment(plan_for(Tier::full), made_up_claims());
    EXPECT_TRUE(experiment.grow(store).empty());
    const std::size_t cell = find_cell(store, "extended a 16 second analysis");
    const Replay found = replay(store, experiment, cell, 299, 0.0);
    EXPECT_EQ(found.compared(), 2U);
    EXPECT_EQ(found.differing(), 0U);
    EXPECT_NEAR(found.values.at(0).now.value, -2.5 + 16e-3 + 399e-6, 1e-12) << "trial 399";
}

// A process that has the claims but not the store, as a rank of MPI.
TEST(ClaimStudy, AnotherProcessDrawsTheCellsThatItIsToldOf) {
    const Experiment other = claim_experiment(plan_for(Tier::full), made_up_claims());
    std::size_t told = 0;
    const BatchExecutor elsewhere = [&](const std::vector<BatchJob>& jobs, const GrownCells& grown,
                                        const std::function<void(Batch)>& finished, const auto&) {
        for (const auto& [cell, kept] : grown) {
            EXPECT_GE(cell, other.cells.size());
            other.adopt(cell, kept);
            ++told;
        }
        for (const BatchJob& job : jobs) finished(*run_batch(other, job));
    };
    const std::string path = scratch_path("claims-elsewhere");
    EXPECT_EQ(run_into(claim_experiment(plan_for(Tier::full), made_up_claims()), path, {.executor = elsewhere}),
              RunOutcome::complete);
    EXPECT_GT(told, 4U);
    EXPECT_EQ(numbers_of(judged(path)), numbers_of(validate_claims(plan_for(Tier::full), made_up_claims())));
    // A cell of no claim that it has gets no worker.
    for (const char* params :
         {R"({"claim":"unknown","criterion":"a","size":16,"first":0})", R"({"claim":"decided","size":16,"first":0})",
          R"({"claim":"decided","criterion":"a","size":-1,"first":0})", "[]"}) {
        other.adopt(900, {params, 100});
        EXPECT_NE(message_of(
                      [&] {
                          (void)other.worker(900, {0, 1});
                      },
                      ErrorKind::input)
                      .find("is of no claim"),
                  std::string::npos)
            << params;
    }
}

// Their cells and methods have the numbers of the store, which has more claims than these.
TEST(ClaimStudy, SomeOfTheClaimsOfAStoreAreReplayed) {
    const std::string path = scratch_path("claims-some");
    auto all = made_up_claims();
    all[1].criteria[0].negative_controls.front().name = "moved";
    all[1].criteria[0].negative_controls.push_back({"shifted", "as of the other claim"});
    std::swap(all[0], all[1]);  // now the method "moved" comes first
    EXPECT_EQ(run_into(claim_experiment(plan_for(Tier::quick), all), path), RunOutcome::complete);
    Database store = open_store(path);
    const std::vector<Claim> some = {all[1]};
    const Experiment experiment = stored_claims(store, some);
    const Replay found = replay(store, experiment, find_cell(store, "decided a 32"), 7, 0.0);
    EXPECT_EQ(found.compared(), 2U);
    EXPECT_EQ(found.differing(), 0U);
    EXPECT_NE(
        message_of([&] { (void)replay(store, experiment, find_cell(store, "extended b 8"), 0, 0.0); }, ErrorKind::input)
            .find("is of no claim that this program has"),
        std::string::npos);
    judge_again(store, 1e-6);
    const auto verdicts = stored_verdicts(store, some);
    ASSERT_EQ(verdicts.claims.size(), 1U);
    EXPECT_EQ(verdicts.claims[0].claim->id, "decided");
    EXPECT_EQ(verdicts.false_alarm, 1e-6);
}

TEST(ClaimStudy, OtherStoresAndOtherPlansAreRejected) {
    const std::string path = scratch_path("claims-other");
    EXPECT_EQ(run_into(claim_experiment(plan_for(Tier::quick), made_up_claims()), path), RunOutcome::complete);
    auto other = plan_for(Tier::quick);
    other.false_alarm = 1e-4;
    EXPECT_NE(message_of([&] { run_into(claim_experiment(other, made_up_claims()), path); }, ErrorKind::usage)
                  .find("false_alarm: 0.001, now 0.0001"),
              std::string::npos);
    const std::string study = scratch_path("claims-none");
    run_into(FakeStudy{}.experiment(), study);
    Database store = open_store(study);
    EXPECT_FALSE(holds_claims(store));
    EXPECT_NE(message_of([&] { (void)ClaimStore(store); }, ErrorKind::input).find("not a store of claims"),
              std::string::npos);
}

// A trial that cannot be computed ends the run, because a claim is judged on all of its trials.
TEST(ClaimStudy, AnErrorOfATrialEndsTheRun) {
    auto claims = made_up_claims();
    claims[0].criteria[0].prepare = [](const TrialPlace&) -> Trial {
        return [](std::uint64_t) -> double { throw input_error("no block"); };
    };
    EXPECT_EQ(message_of([&] { (void)validate_claims(plan_for(Tier::quick), claims); }, ErrorKind::input), "no block");
}

}  // namespace
}  // namespace spiked::validation

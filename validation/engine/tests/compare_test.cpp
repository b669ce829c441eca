// Compares differences between stores with numbers computed by hand, and tests the rate of false alarms.
#include "validation/engine/compare.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "sim/random/normal.hpp"
#include "validation/engine/tests/fake_study.hpp"
#include "validation/statistics/statistics.hpp"

namespace spiked::validation {
namespace {

/// A store with one cell, in which the metric of spike k has the k-th list of values.
struct Listed {
    std::vector<std::vector<double>> values;
    std::string seed = "0x5eed";
    std::string cell = "x";
    std::string label = "cell";
    std::string method = "sample";
    std::size_t raw = static_cast<std::size_t>(-1);
    double false_alarm = 1e-3;
    std::string metric = "outlier";
};

std::string store_of(const Listed& listed, const std::string& name) {
    Experiment experiment;
    experiment.name = "listed";
    experiment.kind = "spiked";
    experiment.seed = stream::StudySeed::parse(listed.seed);
    experiment.false_alarm = listed.false_alarm;
    experiment.batch = 7;
    experiment.raw_per_cell = listed.raw;
    experiment.methods = {{listed.method, "sample", listed.method, std::nullopt, Json::object()}};
    ExperimentCell cell;
    cell.label = listed.label;
    cell.rows = cell.columns = 4;
    cell.replicates = listed.values.front().size();
    cell.params = Json::object({{"cell", listed.cell}});
    experiment.cells = {cell};
    experiment.science = Json::object({{"cell", listed.cell}, {"replicates", cell.replicates}});
    experiment.worker = [values = listed.values, metric = metric_index(listed.metric)](
                            std::size_t, ReplicateRange) -> Experiment::Worker {
        return [values, metric](std::uint64_t r) {
            std::vector<Observation> found;
            for (std::size_t k = 0; k < values.size(); ++k)
                found.push_back({0, metric, static_cast<int>(k) + 1, values[k][r]});
            return found;
        };
    };
    const std::string path = scratch_path(name);
    run_into(experiment, path);
    return path;
}

// Three of three replicates against none of three: no variance, and little evidence.
TEST(Compare, FractionsOfFewReplicatesThatAllAgreeAreNotCertain) {
    const auto row_of = [](const std::string& metric, const std::string& other_seed) {
        const std::string a = store_of({.values = {{0.0, 0.0, 0.0}}, .metric = metric}, "a");
        const std::string b = store_of({.values = {{1.0, 1.0, 1.0}}, .seed = other_seed, .metric = metric}, "b");
        return compared(a, b).rows.front();
    };
    const ComparedMean paired = row_of("rank_right", "0x5eed");
    EXPECT_EQ(paired.pairs, 3U);
    EXPECT_EQ(paired.p, 0.25) << "a sign test of three pairs";
    const ComparedMean means = row_of("rank_right", "0xb");
    EXPECT_EQ(means.pairs, 0U);
    EXPECT_NEAR(means.standard_error, std::sqrt(2.0) * fraction_error(0, 3), 1e-12);
    EXPECT_GT(means.p, 0.01);
    EXPECT_FALSE(means.beyond);
    // The control: a metric that is no count differs by a constant.
    EXPECT_EQ(row_of("outlier", "0x5eed").p, 0.0);
    EXPECT_EQ(row_of("outlier", "0xb").p, 0.0);
}

// The verdict flips where the numbers do, or where only the margin is another one.
TEST(Compare, JoinsTheVerdictsOfBothStores) {
    FakeStudy study;
    study.cells = {{"a", 1.0, 0.5}, {"b", 2.0, 0.5}};
    const auto store_of_study = [&](const FakeStudy& of, double moved, const std::string& name) {
        Experiment experiment = of.experiment();
        experiment.cells[1].predictions[0].value += moved;
        const std::string path = scratch_path(name);
        run_into(experiment, path);
        return path;
    };
    const std::string a = store_of_study(study, 0.0, "verdicts-a");
    const VerdictComparison same = compared(a, a).verdicts;
    EXPECT_EQ(same.rows.size(), 2U);
    EXPECT_EQ(same.others(), 0U);
    const VerdictComparison moved = compared(a, store_of_study(study, 2.0, "verdicts-b")).verdicts;
    ASSERT_EQ(moved.rows.size(), 2U);
    EXPECT_EQ(moved.others(), 1U);
    const ComparedVerdict& flipped = moved.rows[1];
    EXPECT_EQ(flipped.check + "|" + flipped.cell + "|" + flipped.method, "mean|cell b|sample");
    EXPECT_EQ(flipped.a.verdict + " " + flipped.b.verdict, "pass fail");
    EXPECT_EQ(flipped.a.estimate, flipped.b.estimate);
    EXPECT_EQ(flipped.b.expected - flipped.a.expected, 2.0);
    study.cells.push_back({"c", 3.0, 0.5});
    const VerdictComparison more = compared(a, store_of_study(study, 0.0, "verdicts-b")).verdicts;
    EXPECT_EQ(more.rows.size(), 2U);
    EXPECT_EQ(more.only_a, 0U);
    EXPECT_EQ(more.only_b, 1U);
}

// The mean of the larger size is that of a program with a defect.
TEST(Compare, JudgesTheDifferenceOfExponents) {
    const auto store_of_sizes = [](double larger, const std::string& seed, const std::string& name) {
        FakeStudy study;
        study.seed = seed;
        study.most = 200;
        study.cells = {{"a", 1.0, 0.1}, {"b", 2.0, 0.1}};
        Experiment experiment = study.experiment();
        experiment.cells[0].factors = {{"n", 32.0, "32"}};
        experiment.cells[1].factors = {{"n", 64.0, "64"}};
        for (auto& cell : experiment.cells) cell.predictions = {{"overlap.left", "overlap.left", 0, 1, 1.0, 5.0}};
        experiment.checks[0].exponent_of = "n";
        experiment.worker = [larger, worker = experiment.worker](std::size_t c, ReplicateRange range) {
            return [c, larger, draw = worker(c, range)](std::uint64_t replicate) {
                auto values = draw(replicate);
                if (c == 1)
                    for (auto& one : values) one.value *= larger;
                return values;
            };
        };
        const std::string path = scratch_path(name);
        run_into(experiment, path);
        return path;
    };
    const std::string a = store_of_sizes(1.0, "0x1", "exponents-a");
    const auto exponent = [&](double larger) {
        const StoreComparison found = compared(a, store_of_sizes(larger, "0x2", "exponents-b"));
        EXPECT_EQ(found.verdicts.rows.size(), 1U);
        EXPECT_EQ(found.rows.back().cell, "exponent of n up to cell b");
        return found.rows.back();
    };
    const ComparedMean seeds = exponent(1.0);
    EXPECT_FALSE(seeds.beyond) << seeds.p;
    EXPECT_NEAR(seeds.a.mean, 1.0, 0.05);
    const ComparedMean defect = exponent(1.5);
    EXPECT_TRUE(defect.beyond) << defect.p;
    EXPECT_NEAR(defect.difference, std::log2(1.5), 0.05);
}

TEST(Compare, AStoreWithItselfDiffersNowhere) {
    for (const std::size_t raw : {static_cast<std::size_t>(-1), std::size_t{0}, std::size_t{10}}) {
        FakeStudy study;
        study.raw = raw;
        const std::string a = scratch_path("a");
        const std::string b = scratch_path("b");
        run_into(study.experiment(), a);
        run_into(study.experiment(), b, {.threads = 2});
        for (const auto& other : {a, b}) {
            const StoreComparison found = compared(a, other);
            EXPECT_EQ(found.rows.size(), 5U * 7);
            EXPECT_EQ(found.beyond, 0U);
            for (const auto& row : found.rows) {
                EXPECT_EQ(row.difference, 0.0) << row.metric;
                EXPECT_EQ(row.p, 1.0);
                EXPECT_FALSE(row.beyond);
                EXPECT_EQ(row.standard_error, 0.0);
                if (raw > 47) {
                    EXPECT_LE(row.pairs, 47U);
                    EXPECT_GE(row.pairs, 2U);
                } else {
                    EXPECT_EQ(row.pairs, 0U);
                    EXPECT_EQ(row.batches, 10U);
                }
            }
            EXPECT_TRUE(found.only_a.empty());
            EXPECT_TRUE(found.only_b.empty());
            EXPECT_EQ(found.batches_in_both, 50U);
            EXPECT_EQ(found.batches_changed, 0U);
        }
    }
}

TEST(Compare, PairedAndWelchDifferencesAreThoseComputedByHand) {
    const std::string a = store_of({.values = {{1, 2, 4}}}, "a");
    const std::string b = store_of({.values = {{2, 4, 5}}}, "b");
    const StoreComparison paired = compared(a, b);
    ASSERT_EQ(paired.rows.size(), 1U);
    // Differences 1, 2, 1: mean 4/3, variance 1/3; t = 4 at two degrees, where P(|T| > t) = 1 - t / sqrt(2 + t^2).
    EXPECT_EQ(paired.rows[0].pairs, 3U);
    EXPECT_NEAR(paired.rows[0].difference, 4.0 / 3.0, 1e-15);
    EXPECT_NEAR(paired.rows[0].standard_error, 1.0 / 3.0, 1e-15);
    EXPECT_NEAR(paired.rows[0].p, 1.0 - 4.0 / std::sqrt(18.0), 1e-14);
    EXPECT_NEAR(compared(b, a).rows[0].difference, -4.0 / 3.0, 1e-15) << "b - a";
    EXPECT_EQ(paired.batches_in_both, 1U);
    EXPECT_EQ(paired.batches_changed, 1U);
    EXPECT_EQ(paired.first_changed, "batch 0 of cell");
    EXPECT_EQ(paired.seed_a, paired.seed_b);
    EXPECT_EQ(paired.cells_by_label, 0U);

    // Other draws: both variances are 7/3, so each standard error is sqrt(7/9) and there are four degrees, where
    // P(|T| > t) = 1 - (3/2) u (1 - u^2 / 3) with u = t / sqrt(4 + t^2).
    const std::string c = store_of({.values = {{2, 4, 5}}, .seed = "0x1"}, "c");
    EXPECT_NE(compared(a, c).seed_a, compared(a, c).seed_b);
    const ComparedMean welch = compared(a, c).rows.at(0);
    EXPECT_EQ(welch.pairs, 0U);
    EXPECT_NEAR(welch.difference, 4.0 / 3.0, 1e-15);
    EXPECT_NEAR(welch.standard_error, std::sqrt(14.0 / 9.0), 1e-15);
    const double t = (4.0 / 3.0) / std::sqrt(14.0 / 9.0);
    const double u = t / std::sqrt(4.0 + t * t);
    EXPECT_NEAR(welch.p, 1.0 - 1.5 * u * (1.0 - u * u / 3.0), 1e-14);
    // Variances 7/3 and 1 of three and five values: df = (7/9 + 1/5)^2 / ((7/9)^2 / 2 + (1/5)^2 / 4) = 3.05966. The
    // reference value of p was integrated by Simpson's rule.
    const std::string d = store_of({.values = {{0, 2, 0, 2, 1}}, .seed = "0x2"}, "d");
    const ComparedMean unequal = compared(a, d).rows.at(0);
    const double va = 7.0 / 9.0;
    const double vd = 1.0 / 5.0;
    EXPECT_NEAR(unequal.difference, 1.0 - 7.0 / 3.0, 1e-15);
    EXPECT_NEAR(unequal.standard_error, std::sqrt(va + vd), 1e-15);
    EXPECT_NEAR(unequal.p, 0.268660666645260, 1e-12);
    // The same draws, but store e keeps only one of them.
    const std::string e = store_of({.values = {{2, 4, 5}}, .raw = 1}, "e");
    EXPECT_EQ(compared(a, e).rows.at(0).pairs, 0U) << "one common draw has no variance";
}

TEST(Compare, PairsOnlyReplicatesThatBothStoresHave) {
    const double none = std::nan("");
    const std::string a = store_of({.values = {{1, none, 4, 3, 9}}}, "a");
    const std::string b = store_of({.values = {{2, 8, none, 5, 10, 3, 4}}}, "b");
    const ComparedMean row = compared(a, b).rows.at(0);
    EXPECT_EQ(row.pairs, 3U);
    EXPECT_NEAR(row.difference, 4.0 / 3.0, 1e-15);
    EXPECT_EQ(row.a.count, 4U);
    EXPECT_EQ(row.b.count, 6U);
}

TEST(Compare, DividesTheSmallerFalseAlarmRateAmongAllRows) {
    std::vector<std::vector<double>> left(4, std::vector<double>(20));
    std::vector<std::vector<double>> right = left;
    for (std::size_t k = 0; k < 4; ++k)
        for (std::size_t r = 0; r < 20; ++r) {
            left[k][r] = std::sin(static_cast<double>(7 * r + k));
            right[k][r] = left[k][r] + (k == 2 ? 1.0 + 0.1 * std::cos(static_cast<double>(r)) : 0.0);
        }
    const std::string a = store_of({.values = left, .false_alarm = 0.01}, "a");
    const std::string b = store_of({.values = right, .false_alarm = 0.04}, "b");
    const StoreComparison found = compared(a, b);
    EXPECT_EQ(found.false_alarm, 0.01);
    EXPECT_EQ(found.alpha, 0.0025);
    EXPECT_EQ(found.beyond, 1U);
    EXPECT_TRUE(found.rows[2].beyond);
    const Json json = found.json();
    EXPECT_EQ(*json.find("schema")->string(), "spiked.compare/1");
    EXPECT_EQ(json.find("rows")->items()->size(), 4U);
    EXPECT_NO_THROW((void)Json::parse(json.text(), "json"));
}

TEST(Compare, RoundingIsNoDifferenceButASmallShiftIs) {
    std::vector<double> x(50);
    for (std::size_t r = 0; r < x.size(); ++r) x[r] = 2.0 + std::sin(static_cast<double>(r));
    const auto shifted = [&](double by) {
        std::vector<double> y = x;
        for (double& v : y) v *= 1.0 + by;
        return compared(store_of({.values = {x}}, "a"), store_of({.values = {y}}, "b")).rows.at(0);
    };
    EXPECT_FALSE(shifted(4e-16).beyond);
    EXPECT_TRUE(shifted(1e-12).beyond);
    // Constants have no variance, but can differ.
    const auto constant = [](double value, const std::string& seed) {
        return store_of({.values = {std::vector<double>(5, value)}, .seed = seed}, "constant" + seed);
    };
    EXPECT_TRUE(compared(constant(2.125, "0x1"), constant(2.25, "0x2")).rows.at(0).beyond);
    EXPECT_FALSE(compared(constant(2.125, "0x1"), constant(2.125, "0x2")).rows.at(0).beyond);
}

TEST(Compare, ASingleValueDecidesNothing) {
    const ComparedMean row = compared(store_of({.values = {{1}}}, "a"), store_of({.values = {{2}}}, "b")).rows.at(0);
    EXPECT_EQ(row.difference, 1.0);
    EXPECT_TRUE(std::isnan(row.standard_error));
    EXPECT_TRUE(std::isnan(row.p));
    EXPECT_FALSE(row.beyond);
}

TEST(Compare, MatchesCellsByHashThenByLabel) {
    const std::string a = store_of({.values = {{1, 2, 3}, {1, 2, 3}}}, "a");
    // Another model with the same label is compared, but not paired.
    const std::string relabelled = store_of({.values = {{1, 2, 3}}, .cell = "y"}, "b");
    const StoreComparison by_label = compared(a, relabelled);
    ASSERT_EQ(by_label.rows.size(), 1U);
    EXPECT_EQ(by_label.rows[0].pairs, 0U);
    EXPECT_EQ(by_label.only_a, std::vector<std::string>{"cell | sample | outlier 2"});
    EXPECT_EQ(by_label.batches_in_both, 0U);
    EXPECT_EQ(by_label.cells_by_label, 1U);
    // The same model with another label has the same draws.
    const StoreComparison by_hash = compared(a, store_of({.values = {{1, 2, 3}}, .label = "other"}, "c"));
    ASSERT_EQ(by_hash.rows.size(), 1U);
    EXPECT_EQ(by_hash.rows[0].pairs, 3U);
    // Stores without a common mean are an error, not an agreement.
    const std::string apart = store_of({.values = {{1, 2, 3}}, .cell = "z", .label = "other", .method = "new"}, "d");
    EXPECT_NE(message_of([&] { (void)compared(a, apart); }, ErrorKind::usage).find("no mean in common"),
              std::string::npos);
    message_of([&] { (void)compared(a, "/nowhere/x.spiked"); }, ErrorKind::input);
}

// The stores keep no draws, only three batches of 7, 7 and 6 replicates.
TEST(Compare, PairsBatchesWhereNoDrawsAreKept) {
    std::vector<double> x(20);
    std::vector<double> y(20);
    for (std::size_t r = 0; r < x.size(); ++r) {
        x[r] = 5.0 * std::sin(static_cast<double>(r));
        y[r] = x[r] + 0.25 + 0.01 * std::cos(3.0 * static_cast<double>(r));
    }
    const std::string a = store_of({.values = {x}, .raw = 0}, "a");
    const ComparedMean row = compared(a, store_of({.values = {y}, .raw = 0}, "b")).rows.at(0);
    EXPECT_EQ(row.batches, 3U);
    EXPECT_EQ(row.pairs, 0U);
    // CR2 of a mean over parts of unequal size: the squares of (s_g - n_g m) / 20 over 1 - n_g / 20. The degrees of
    // freedom of sizes 7, 7, 6 follow from the covariances of these terms, n_g [g = h] / 20 - n_g n_h / 400, divided by
    // the roots of both 1 - n / 20.
    double sums[3] = {};
    double total = 0.0;
    for (std::size_t r = 0; r < x.size(); ++r) {
        sums[r / 7] += y[r] - x[r];
        total += y[r] - x[r];
    }
    double squares = 0.0;
    for (std::size_t g = 0; g < 3; ++g) {
        const double weight = (g < 2 ? 7.0 : 6.0) / 20.0;
        const double e = sums[g] / 20.0 - weight * total / 20.0;
        squares += e * e / (1.0 - weight);
    }
    EXPECT_NEAR(row.difference, total / 20.0, 1e-14);
    EXPECT_NEAR(row.standard_error, std::sqrt(squares), 1e-14);
    const double trace = 2.0 * 0.1225 + 0.09 + 2.0 * std::pow(0.1225 / 0.65, 2) + 4.0 * (0.1225 / 0.65) * (0.09 / 0.7);
    EXPECT_NEAR(row.p, student_p_value(row.difference / row.standard_error, 1.0 / trace), 1e-12);
    // Without pairs the difference would not be detected (see `apart`).
    EXPECT_LT(row.p, 1e-3);
    const ComparedMean apart = compared(a, store_of({.values = {y}, .seed = "0x1", .raw = 0}, "c")).rows.at(0);
    EXPECT_EQ(apart.batches, 0U);
    EXPECT_GT(apart.p, 0.5);
    // If one store has more replicates, only batches that both have completely are paired.
    std::vector<double> longer = y;
    longer.resize(34, 1.0);
    const ComparedMean first = compared(store_of({.values = {std::vector<double>(x.begin(), x.begin() + 14)}}, "d"),
                                        store_of({.values = {longer}, .raw = 0}, "e"))
                                   .rows.at(0);
    EXPECT_EQ(first.batches + first.pairs, 0U) << "two batches are too few";
}

TEST(Compare, OtherMethodsOrMoreReplicatesDoNotCountAsChangedNumbers) {
    FakeStudy study;
    const std::string a = scratch_path("a");
    run_into(study.experiment(), a);
    const auto edited = [&](const std::string& name, const std::string& sql) {
        const std::string path = scratch_path(name);
        std::filesystem::copy_file(a, path);
        Database(path, Database::Mode::write).execute(sql);
        return compared(a, path);
    };
    const StoreComparison exchanged =
        edited("b",
               "UPDATE metric SET name = 'another' WHERE metric_id = (SELECT MAX(metric_id) FROM moment); UPDATE "
               "batch SET digest = 'other'");
    EXPECT_EQ(exchanged.batches_in_both, 50U);
    EXPECT_EQ(exchanged.batches_changed, 0U);
    EXPECT_FALSE(exchanged.only_b.empty());
    FakeStudy more = study;
    more.most = 67;
    const std::string longer = scratch_path("c");
    run_into(more.experiment(), longer);
    const StoreComparison grown = compared(a, longer);
    EXPECT_EQ(grown.batches_in_both, 45U) << "the last batch of a has two replicates";
    EXPECT_EQ(grown.batches_changed, 0U);
    // Negative control: a number that was changed.
    const StoreComparison changed = edited("d",
                                           "UPDATE moment SET mean = mean + 1 WHERE cell_id = 2 AND batch = 3; UPDATE "
                                           "batch SET digest = 'other' WHERE cell_id = 2 AND batch = 3");
    EXPECT_EQ(changed.batches_changed, 1U);
    EXPECT_EQ(changed.first_changed.substr(0, 8), "batch 3 ");
}

// If two stores draw from the same law, p is uniform, with and without pairs.
TEST(CompareLaw, FalseAlarmsHaveTheDeclaredRate) {
    constexpr std::size_t rows = 4000;
    constexpr std::size_t count = 8;
    const auto draw = [](std::uint64_t seed) {
        std::vector<std::vector<double>> values(rows, std::vector<double>(count));
        for (std::size_t k = 0; k < rows; ++k)
            stream::fill_normal(stream::Stream({}, "compare", stream::Role::noise, seed * rows + k), values[k]);
        return values;
    };
    for (const char* seed : {"0x5eed", "0x1"}) {
        const StoreComparison found =
            compared(store_of({.values = draw(1)}, "a"), store_of({.values = draw(2), .seed = seed}, "b"));
        ASSERT_EQ(found.rows.size(), rows);
        int small = 0;
        for (const auto& row : found.rows) {
            EXPECT_EQ(row.pairs, seed == std::string("0x5eed") ? count : 0U);
            if (row.p < 0.05) ++small;
        }
        // 200 expected, binomial standard deviation 13.8; the limit is five of these. Welch's test with eight values
        // per side is slightly conservative.
        EXPECT_NEAR(small, 200, 5 * 14) << seed;
        EXPECT_EQ(found.beyond, 0U);
    }
}

TEST(CompareLaw, FalseAlarmsHaveTheDeclaredRateIfPairedByBatch) {
    constexpr std::size_t rows = 4000;
    const auto draw = [](std::uint64_t seed) {
        std::vector<std::vector<double>> values(rows, std::vector<double>(56));
        for (std::size_t k = 0; k < rows; ++k)
            stream::fill_normal(stream::Stream({}, "compare", stream::Role::noise, seed * rows + k), values[k]);
        return values;
    };
    const StoreComparison found =
        compared(store_of({.values = draw(3), .raw = 0}, "a"), store_of({.values = draw(4), .raw = 0}, "b"));
    int small = 0;
    for (const auto& row : found.rows) {
        EXPECT_EQ(row.batches, 8U);
        if (row.p < 0.05) ++small;
    }
    EXPECT_NEAR(small, 200, 5 * 14);  // Student's law is exact for batches of equal size
    EXPECT_EQ(found.beyond, 0U);
}

}  // namespace
}  // namespace spiked::validation

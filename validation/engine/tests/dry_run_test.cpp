#include "validation/engine/dry_run.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <filesystem>

#include "validation/engine/tests/fake_study.hpp"

namespace spiked::validation {
namespace {

double bytes_of(const std::string& path) { return static_cast<double>(std::filesystem::file_size(path)); }

TEST(DryRun, ForecastsTheSizeOfTheStore) {
    for (const std::size_t raw : {std::size_t{0}, std::size_t{1000000}}) {
        FakeStudy study;
        study.most = 4000;
        study.batch = 50;
        study.raw = raw;
        const Experiment experiment = study.experiment();
        const std::string path = scratch_path("forecast");
        ASSERT_EQ(run_into(experiment, path), RunOutcome::complete);
        const double forecast = static_cast<double>(dry_run(experiment, 1, 60.0).store_bytes);
        EXPECT_NEAR(forecast / bytes_of(path), 1.0, 0.25) << raw;
    }
}

TEST(DryRun, TriesEveryCell) {
    FakeStudy study;
    const Experiment experiment = study.experiment();
    const Forecast forecast = dry_run(experiment, 2, 60.0);
    EXPECT_EQ(forecast.cells_tried, experiment.cells.size());
    EXPECT_EQ(forecast.replicates_tried, 8 * experiment.cells.size());
    EXPECT_GT(forecast.most_seconds, 0.0);
    EXPECT_EQ(forecast.most_seconds, forecast.least_seconds);
    EXPECT_GT(forecast.memory_bytes, 1000000U);
}

TEST(DryRun, SaysWhatTheLargestCellTakes) {
    Experiment experiment = FakeStudy().experiment();
    experiment.methods.clear();  // a codec is among them
    experiment.cells[1].rows = 5000;
    experiment.cells[1].columns = 4000;
    const double block = 8.0 * 5000.0 * 4000.0;
    experiment.kind = "spiked";
    experiment.methods.push_back({.name = "svd:1", .kind = "estimator", .base = "svd:1", .bits = {}});
    const LargestCell largest = largest_cell(experiment, 3);
    EXPECT_EQ(largest.rows, 5000U);
    EXPECT_EQ(largest.columns, 4000U);
    EXPECT_EQ(largest.at_once, 3U);
    EXPECT_GE(static_cast<double>(largest.least_bytes), 5.0 * block);
    EXPECT_LE(largest.least_bytes, largest.bytes);
    // Many threads for few replicates: not all have one.
    EXPECT_EQ(largest_cell(experiment, 100000).at_once, experiment.replicates());
    // The message has the figure of all threads.
    const std::string message = message_of([&] { reject_beyond_memory(experiment, 4000); }, ErrorKind::memory);
    const double needed =
        static_cast<double>(largest.least_bytes) * static_cast<double>(largest_cell(experiment, 4000).at_once) / 1e9;
    EXPECT_NE(message.find(fmt::format("blocks of 5000 x 4000 need {:.1f} GB", needed)), std::string::npos) << message;
    EXPECT_NE(message.find("give fewer --threads"), std::string::npos) << message;
    experiment.methods.push_back({.name = "tq-mse", .kind = "codec", .base = "tq-mse", .bits = {}});
    EXPECT_GT(largest_cell(experiment, 3).bytes, largest.bytes);
    experiment.cells.clear();
    EXPECT_EQ(largest_cell(experiment, 3).bytes, 0U);
    EXPECT_NO_THROW(reject_beyond_memory(experiment, 3));
}

/// Blocks that are small are decomposed in groups, and a worker holds all of a group.
TEST(DryRun, CountsTheBlocksOfAGroup) {
    Experiment experiment = FakeStudy().experiment();
    experiment.methods.clear();
    for (auto& cell : experiment.cells) cell.rows = cell.columns = 1000;
    const std::uint64_t one = largest_cell(experiment, 1).least_bytes;
    experiment.kind = "spiked";
    experiment.batch = 50;
    experiment.methods.push_back({.name = "svd:1", .kind = "estimator", .base = "svd:1", .bits = {}});
    EXPECT_EQ(largest_cell(experiment, 1).least_bytes, 6 * one);  // 6 copies of 4 blocks, where it was 4 of one
}

TEST(DryRun, ForecastsTheCostOfStopRules) {
    FakeStudy study;
    study.least = 10;
    study.most = 100000;
    study.until = {{.metric = metric_index("relative_l2"), .relative = 0.01}};
    const Forecast forecast = dry_run(study.experiment(), 1, 60.0);
    EXPECT_GT(forecast.most_seconds, 100.0 * forecast.least_seconds);
}

TEST(DryRun, ForecastsWhichChecksReachTheirMargin) {
    FakeStudy study;
    study.cells = {{"narrow", 1.0, 0.01}, {"wide", 1.0, 5.0}};
    study.most = 100;
    study.margin = 0.5;
    const Forecast forecast = dry_run(study.experiment(), 1, 60.0);
    ASSERT_EQ(forecast.checks.size(), 1U);
    const CheckForecast& check = forecast.checks[0];
    EXPECT_EQ(check.questions, 2U);
    EXPECT_EQ(check.reachable, 1U);
    EXPECT_EQ(check.without_power, 0U);
    EXPECT_EQ(check.cell, "cell wide");
    EXPECT_EQ(check.room, 0.5);
    // `needed` is the smallest number of replicates at which the half width is below the margin.
    const double deviation =
        check.half_width * std::sqrt(100.0) / boost::math::quantile(boost::math::students_t(99.0), 1.0 - 0.5e-3 / 2.0);
    const auto half = [&](double count) {
        return boost::math::quantile(boost::math::students_t(count - 1.0), 1.0 - 0.5e-3 / 2.0) * deviation /
               std::sqrt(count);
    };
    EXPECT_LT(half(static_cast<double>(check.needed)), 0.5);
    EXPECT_GE(half(static_cast<double>(check.needed) - 1.0), 0.5);
    // A run with four times that many replicates decides the check, so the forecast agrees with a run.
    study.most = check.needed * 4;
    study.raw = 0;
    study.batch = 100;
    Experiment longer = study.experiment();
    const std::string path = scratch_path("decided");
    ASSERT_EQ(run_into(longer, path), RunOutcome::complete);
    Database store = open_store(path);
    EXPECT_EQ(count_verdicts(store).passed, 2U);
}

TEST(DryRun, ReportsMarginsWithoutPowerAgainstTheDefect) {
    FakeStudy study;
    study.margin = 11.0;  // the planted defect is a deviation of 10
    const Forecast forecast = dry_run(study.experiment(), 1, 60.0);
    EXPECT_EQ(forecast.checks[0].without_power, forecast.checks[0].questions);
    EXPECT_EQ(forecast.checks[0].reachable, 0U);
}

// Means that change as the size to the power of 1, with a relative error of .01 / sqrt(n) at each of two sizes.
TEST(DryRun, ForecastsWhetherAnExponentCanBeDecided) {
    FakeStudy study;
    study.cells = {{"a", 1.0, 0.01}, {"b", 2.0, 0.02}};
    study.most = 100;
    const auto forecast = [&](double margin) {
        Experiment experiment = study.experiment();
        experiment.checks = {{.name = "grows", .claim = "overlap.left", .where = {}, .margin_absolute = margin}};
        experiment.checks[0].exponent_of = "mean";
        for (auto& cell : experiment.cells) cell.predictions[0].value = 1.0, cell.predictions[0].with_fault = 0.0;
        return dry_run(experiment, 1, 60.0).checks.at(0);
    };
    const CheckForecast wide = forecast(0.2);
    EXPECT_EQ(wide.questions, 1U);
    EXPECT_EQ(wide.reachable, 1U);
    // 3.29 standard errors at the rate of 1e-3, the errors of two sizes together; few values tell the deviation.
    EXPECT_NEAR(wide.half_width, 3.4 * 0.001 * std::sqrt(2.0) / std::log(2.0), 0.006);
    EXPECT_NEAR(wide.room, 0.2, 1e-12);
    EXPECT_EQ(forecast(1e-4).reachable, 0U);
    EXPECT_EQ(forecast(1.5).without_power, 1U);
}

TEST(DryRun, StopsInTimeAndReportsUntriedQuestions) {
    FakeStudy study;
    study.cells.clear();
    for (int i = 0; i < 200; ++i) study.cells.push_back({std::to_string(i)});
    const Experiment experiment = study.experiment();
    const Forecast forecast = dry_run(experiment, 1, 0.0);
    EXPECT_LT(forecast.cells_tried, 200U);
    EXPECT_GE(forecast.cells_tried, 1U);
    EXPECT_GT(forecast.checks[0].untried, 150U);
}

}  // namespace
}  // namespace spiked::validation

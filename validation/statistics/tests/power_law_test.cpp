#include "validation/statistics/power_law.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "validation/statistics/moments.hpp"

namespace spiked::validation {
namespace {

TEST(PowerLaw, IsExactForPointsOnALaw) {
    std::vector<MeasuredPoint> points;
    double squares = 0.0;
    for (const double step : {-2.0, -1.0, 0.0, 1.0, 2.0}) {
        const double x = 64.0 * std::exp2(step);
        const double y = 3.0 * std::pow(x, -2.0 / 3.0);
        points.push_back({x, y, 0.05 * y});
        squares += std::pow(step * std::log(2.0), 2);
    }
    const PowerLaw law = fit_power_law(points);
    EXPECT_EQ(law.points, 5U);
    EXPECT_NEAR(law.exponent, -2.0 / 3.0, 1e-14);
    // With equal relative errors e, the error is e over the root of the sum of squares of log x about its mean.
    EXPECT_NEAR(law.error, 0.05 / std::sqrt(squares), 1e-15);
    EXPECT_NEAR(law.chi_square, 0.0, 1e-20);
    EXPECT_NEAR(law.center_y, std::log(3.0) - 2.0 / 3.0 * law.center_x, 1e-13);
}

TEST(PowerLaw, LeavesOutPointsWithoutALogarithm) {
    std::vector<MeasuredPoint> points = {{16.0, 1.0, 0.1}, {32.0, 0.5, 0.05}, {64.0, 0.25, 0.025}};
    const PowerLaw law = fit_power_law(points);
    points.push_back({128.0, 0.1, 0.051});  // within two errors of zero
    points.push_back({0.0, 1.0, 0.1});
    points.push_back({128.0, 1.0, 0.0});
    points.push_back({128.0, 1.0, std::nan("")});
    const PowerLaw same = fit_power_law(points);
    EXPECT_EQ(same.points, 3U);
    EXPECT_EQ(same.exponent, law.exponent);
    points.resize(2);
    EXPECT_EQ(fit_power_law(points).points, 2U);
    EXPECT_TRUE(std::isnan(fit_power_law(points).exponent));
    EXPECT_TRUE(std::isnan(fit_power_law({}).exponent));
    const PowerLaw vertical = fit_power_law(std::vector<MeasuredPoint>(3, {10.0, 1.0, 0.1}));
    EXPECT_EQ(vertical.points, 3U);
    EXPECT_TRUE(std::isnan(vertical.exponent));
    EXPECT_TRUE(std::isnan(vertical.error));
}

// Over repeated draws the exponents scatter as their standard errors say, and chi-square has the mean of its law.
TEST(PowerLawLaw, ErrorsDescribeTheScatter) {
    std::mt19937_64 random(5);
    std::normal_distribution<double> normal;
    constexpr int draws = 4000;
    Moments exponents, chi_squares, of_small_errors;
    double error = 0.0;
    for (int draw = 0; draw < draws; ++draw) {
        std::vector<MeasuredPoint> points;
        for (const double x : {16.0, 32.0, 64.0, 128.0, 256.0}) {
            const double y = 2.0 / x;
            const double relative = x < 100.0 ? 0.01 : 0.02;
            points.push_back({x, y * (1.0 + relative * normal(random)), relative * y});
        }
        const PowerLaw law = fit_power_law(points);
        exponents.add(law.exponent);
        chi_squares.add(law.chi_square);
        error = law.error;
        for (MeasuredPoint& point : points) point.error *= 0.9;
        of_small_errors.add(fit_power_law(points).chi_square);
    }
    // Six standard errors of each mean: a false alarm in 5e8 runs. A variance has the relative error sqrt(2 / draws),
    // and the linearised logarithm shifts means by less than a tenth of the errors.
    EXPECT_NEAR(exponents.mean, -1.0, 6.0 * exponents.standard_error() + 1e-3);
    const double variance = exponents.m2 / (draws - 1.0);
    EXPECT_NEAR(variance / (error * error), 1.0, 6.0 * std::sqrt(2.0 / draws) + 0.05);
    const double reach = 6.0 * chi_squares.standard_error() + 0.03;
    EXPECT_NEAR(chi_squares.mean, 3.0, reach);
    // Control: errors that are a tenth too small.
    EXPECT_GT(std::abs(of_small_errors.mean - 3.0), reach) << "detects a deviation of " << reach;
}

}  // namespace
}  // namespace spiked::validation

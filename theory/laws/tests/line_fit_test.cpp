#include "theory/laws/line_fit.hpp"

#include <gtest/gtest.h>

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <random>
#include <vector>

#include "core/runtime/error.hpp"
#include "theory/tests/reference.hpp"

namespace spiked::theory {
namespace {

using Exact = boost::multiprecision::cpp_bin_float_100;

struct ExactLine {
    double slope;
    double intercept;
};

/// The normal equations without means, solved with 100 digits.
ExactLine by_normal_equations(const std::vector<double>& x, const std::vector<double>& y,
                              const std::vector<double>& weights) {
    Exact w = 0, wx = 0, wy = 0, wxx = 0, wxy = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const Exact weight = weights.empty() ? 1.0 : weights[i];
        w += weight;
        wx += weight * x[i];
        wy += weight * y[i];
        wxx += weight * x[i] * x[i];
        wxy += weight * x[i] * y[i];
    }
    const Exact determinant = w * wxx - wx * wx;
    return {static_cast<double>((w * wxy - wx * wy) / determinant),
            static_cast<double>((wxx * wy - wx * wxy) / determinant)};
}

TEST(LineFitReference, AgreesWithTheNormalEquationsInHundredDigits) {
    std::mt19937_64 random(11);
    std::normal_distribution<double> normal;
    // At a mean of 1e6 the distances to it keep 10 of 16 digits.
    for (const auto& [mean, tolerance] : {std::pair{0.0, 1e-12}, std::pair{1.0, 1e-12}, std::pair{1e6, 1e-9}})
        for (const std::size_t count : {2U, 3U, 40U})
            for (const bool weighted : {false, true}) {
                std::vector<double> x, y, weights;
                for (std::size_t i = 0; i < count; ++i) {
                    x.push_back(mean + normal(random) + static_cast<double>(i));
                    y.push_back(3.0 - 2.0 * x.back() + 0.1 * normal(random));
                    if (weighted) weights.push_back(std::exp(2.0 * normal(random)));
                }
                const LineFit found = fit_line(x, y, weights);
                const ExactLine exact = by_normal_equations(x, y, weights);
                test::expect_relative(found.slope, exact.slope, tolerance, "slope");
                EXPECT_NEAR(found.intercept(), exact.intercept, tolerance * (10.0 + mean)) << count;
            }
}

TEST(LineFit, EqualWeightsAreNoWeights) {
    const std::vector<double> x = {0.3, 1.7, 2.9, 5.3};
    const std::vector<double> y = {1.1, 0.2, 4.5, 3.3};
    const LineFit plain = fit_line(x, y);
    const LineFit weighted = fit_line(x, y, std::vector<double>(4, 1.0));
    EXPECT_EQ(plain.slope, weighted.slope);
    EXPECT_EQ(plain.intercept(), weighted.intercept());
    EXPECT_NEAR(fit_line(x, y, std::vector<double>(4, 0.2)).slope, plain.slope, 1e-15);
    // A point of weight 3 counts as three points.
    const LineFit repeated = fit_line(std::vector{1.0, 2.0, 2.0, 2.0, 4.0}, std::vector{5.0, 1.0, 1.0, 1.0, 0.0});
    const LineFit heavy = fit_line(std::vector{1.0, 2.0, 4.0}, std::vector{5.0, 1.0, 0.0}, std::vector{1.0, 3.0, 1.0});
    EXPECT_NEAR(heavy.slope, repeated.slope, 1e-15);
    EXPECT_NEAR(heavy.x_squares, repeated.x_squares, 1e-14);
}

TEST(LineFit, HasNoSlopeWhereAllXAreEqual) {
    // The mean of three times 0.1 is not 0.1.
    for (const std::vector<double>& x : {std::vector<double>(3, 0.1), std::vector<double>(1, 2.0), {}}) {
        const LineFit line = fit_line(x, std::vector<double>(x.size(), 7.0));
        EXPECT_TRUE(std::isnan(line.slope));
        EXPECT_EQ(line.x_squares, 0.0);
        EXPECT_TRUE(x.empty() || line.y_mean == 7.0);
    }
}

TEST(LineFit, RejectsDifferentLengths) {
    const std::vector<double> two = {1.0, 2.0};
    const std::vector<double> three = {1.0, 2.0, 3.0};
    EXPECT_THROW((void)fit_line(two, three), Error);
    EXPECT_THROW((void)fit_line(two, two, three), Error);
}

}  // namespace
}  // namespace spiked::theory

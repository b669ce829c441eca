#include "theory/laws/tracy_widom.hpp"

#include <boost/math/quadrature/gauss.hpp>
#include <boost/math/special_functions/airy.hpp>
#include <cmath>

#include "theory/tests/reference.hpp"

namespace spiked::theory {
namespace {

using test::expect_rejected;
using test::expect_relative;

TEST(TracyWidom, MatchesDeterminantsOfFortyDigits) {
    // Determinants computed with mpmath, 72 nodes on (s, s + max(18, 2 (14 - s))).
    const double table[][2] = {{-6.0, 2.70731932530477305e-6},
                               {-5.0, 0.00027791775491679037},
                               {0.0, 0.831908066202951927},
                               {4.0, 0.999779655512567001}};
    for (const auto& [s, value] : table) expect_relative(tracy_widom_cdf(s), value, 1e-11, "cdf");
    EXPECT_NEAR(tracy_widom_cdf(0.0), 0.831908066202951927, 1e-14);
    EXPECT_NEAR(tracy_widom_cdf(4.0), 0.999779655512567001, 1e-14);
}

TEST(TracyWidom, BothTailsKeepTheirRelativeAccuracy) {
    const double left[][3] = {{-9.0, 7.57642214187232419e-17, 1e-8},
                              {-8.0, 1.80682792118541665e-12, 2e-10},
                              {-7.0, 5.48286259155970602e-9, 2e-11}};
    for (const auto& [s, value, tolerance] : left) expect_relative(tracy_widom_cdf(s), value, tolerance, "left tail");
    const double right[][2] = {{4.0, 0.000220344487432998648},
                               {10.0, 1.70821586952710684e-11},
                               {13.0, 5.43766043993422845e-16},
                               {16.0, 5.1374250160504342e-21}};
    for (const auto& [s, value] : right) expect_relative(tracy_widom_survival(s), value, 1e-12, "right tail");
    // The expansion below -10 continues the determinant, and stays valid for very negative arguments.
    expect_relative(tracy_widom_cdf(-10.0 - 1e-9), tracy_widom_cdf(-10.0), 0.02, "seam");
    EXPECT_EQ(tracy_widom_cdf(-100.0), 0.0);
    EXPECT_EQ(tracy_widom_cdf(1000.0), 1.0);
    EXPECT_EQ(tracy_widom_survival(1000.0), 0.0);
}

TEST(TracyWidom, QuantilesMatchKnownValues) {
    const double right[][2] = {{0.5, -1.268574617},   {0.95, 0.979316053},   {0.975, 1.453771352},
                               {0.99, 2.023449281},   {0.995, 2.422326586},  {0.999, 3.272196059},
                               {0.9999, 4.359420344}, {0.99999, 5.344295940}};
    for (const auto& [p, s] : right) EXPECT_NEAR(tracy_widom_quantile(p), s, 6e-10) << p;
    // Left of the median the research note has errors of up to 4e-5; these two values are from 25-digit determinants.
    EXPECT_NEAR(tracy_widom_quantile(0.0005), -4.846522120451, 1e-11);
    EXPECT_NEAR(tracy_widom_quantile(0.01), -3.895432673064, 1e-11);
}

TEST(TracyWidom, QuantilesMatchDeterminantsOfFortyFiveDigits) {
    // Computed by secant steps on the determinant with mpmath, 88 nodes on (s, s + max(18, 2 (14 - s))); 104 nodes
    // agree to 1e-17.
    const double left[][2] = {{1e-12, -8.065187420331296}, {1e-10, -7.529569115107806}, {1e-8, -6.914041998184699},
                              {1e-6, -6.180459080236247},  {1e-4, -5.249581566889548},  {0.01, -3.895432673064221},
                              {0.5, -1.268574616581071}};
    for (const auto& [p, s] : left) EXPECT_NEAR(tracy_widom_quantile(p), s, 1e-11) << p;
    const double right[][2] = {{0.01, 2.023449281380163}, {1e-6, 6.256354429569264}, {1e-10, 9.446275599785166}};
    for (const auto& [tail, s] : right) EXPECT_NEAR(tracy_widom_upper_quantile(tail), s, 1e-12) << tail;
    EXPECT_NEAR(tracy_widom_quantile(0.99), 2.023449281380163, 1e-12);
}

TEST(TracyWidom, ExtremeTailsAreRejectedAndNeverNan) {
    for (const double tail : {1e-12, 1e-50, 1e-100})
        expect_relative(tracy_widom_survival(tracy_widom_upper_quantile(tail)), tail, 1e-11, "far tail");
    for (const double tail : {9e-101, 1e-200, 1e-300})
        expect_rejected([&] { (void)tracy_widom_upper_quantile(tail); }, "below 1e-100");
    EXPECT_TRUE(std::isfinite(tracy_widom_quantile(1e-200)));
}

TEST(TracyWidom, QuantilesInvertTheirTail) {
    for (const double p : {1e-12, 1e-6, 0.003, 0.4, 0.5}) {
        const double left_tolerance = p < 1e-9 ? 1e-10 : 1e-12;  // limited by the rounding of the determinant
        expect_relative(tracy_widom_cdf(tracy_widom_quantile(p)), p, left_tolerance, "left");
        expect_relative(tracy_widom_survival(tracy_widom_upper_quantile(p)), p, 1e-12, "right");
    }
    EXPECT_NEAR(tracy_widom_quantile(0.7), tracy_widom_upper_quantile(0.3), 1e-13);
    for (const double p : {0.0, 1.0, -0.1, std::nan("")}) {
        expect_rejected([&] { (void)tracy_widom_quantile(p); }, "strictly between 0 and 1");
        expect_rejected([&] { (void)tracy_widom_upper_quantile(p); }, "strictly between 0 and 1");
    }
}

TEST(TracyWidom, MeanAndVarianceAreTheConstants) {
    using Rule = boost::math::quadrature::gauss<double, 30>;
    const auto left = [](auto f) { return Rule::integrate(f, -10.0, -4.0) + Rule::integrate(f, -4.0, 0.0); };
    const auto right = [](auto f) { return Rule::integrate(f, 0.0, 4.0) + Rule::integrate(f, 4.0, 16.0); };
    const double mean =
        right([](double s) { return tracy_widom_survival(s); }) - left([](double s) { return tracy_widom_cdf(s); });
    const double square = right([](double s) { return 2.0 * s * tracy_widom_survival(s); }) -
                          left([](double s) { return 2.0 * s * tracy_widom_cdf(s); });
    EXPECT_NEAR(mean, tracy_widom_mean, 1e-11);
    EXPECT_NEAR(square - mean * mean, tracy_widom_variance, 1e-11);
}

TEST(ComplexTracyWidom, MatchesDeterminantsOfTheAiryKernel) {
    // det(1 - K) with K(x, y) = (Ai(x) Ai'(y) - Ai'(x) Ai(y)) / (x - y), which is not the kernel of the code, with
    // mpmath at 40 digits, 56 nodes on (s, s + 16) for s >= 0, else on (s, s + max(18, 2 (14 - s))).
    const double table[][3] = {{-7.0, 2.6396147671954449667e-13, 1e-9}, {-6.0, 1.0622546741245321251e-8, 1e-11},
                               {-5.0, 2.1359969847411156969e-5, 1e-12}, {-3.0, 0.080319552939334548081, 1e-13},
                               {-1.0, 0.80721424199928529248, 1e-14},   {0.0, 0.96937282835526266835, 1e-14}};
    for (const auto& [s, value, tolerance] : table)
        expect_relative(tracy_widom_cdf(s, Field::complex), value, tolerance, "cdf");
    const double right[][2] = {{2.0, 0.00011244630169082707497},
                               {4.0, 4.9579121533310470187e-8},
                               {6.0, 3.8172326590094589914e-12},
                               {10.0, 2.9384271336047179853e-22}};
    for (const auto& [s, value] : right)
        expect_relative(tracy_widom_survival(s, Field::complex), value, 1e-12, "right tail");
    expect_relative(tracy_widom_cdf(-8.0 - 1e-9, Field::complex), tracy_widom_cdf(-8.0, Field::complex), 0.02, "seam");
    // Quantiles by secant steps on the same determinant; Bejan 2005 prints -3.7245, -3.1942, -1.8049, -0.2325, 0.4776.
    const double quantiles[][2] = {{1e-12, -6.88970305318388005}, {1e-6, -5.44696877858374501},
                                   {0.01, -3.72444594640052527},  {0.05, -3.19416673215810108},
                                   {0.5, -1.8049124089365779},    {0.95, -0.232474469764004452},
                                   {0.99, 0.477636047390798868},  {0.999, 1.31441948008622488}};
    for (const auto& [p, s] : quantiles) EXPECT_NEAR(tracy_widom_quantile(p, Field::complex), s, 1e-11) << p;
}

TEST(ComplexTracyWidom, MeanAndVarianceAreTheConstants) {
    using Rule = boost::math::quadrature::gauss<double, 30>;
    const auto left = [](auto f) { return Rule::integrate(f, -9.0, -4.0) + Rule::integrate(f, -4.0, 0.0); };
    const auto right = [](auto f) { return Rule::integrate(f, 0.0, 4.0) + Rule::integrate(f, 4.0, 16.0); };
    const auto below = [](double s) { return tracy_widom_cdf(s, Field::complex); };
    const auto above = [](double s) { return tracy_widom_survival(s, Field::complex); };
    const double mean = right(above) - left(below);
    const double square =
        right([&](double s) { return 2.0 * s * above(s); }) - left([&](double s) { return 2.0 * s * below(s); });
    EXPECT_NEAR(mean, complex_tracy_widom_mean, 1e-11);
    EXPECT_NEAR(square - mean * mean, complex_tracy_widom_variance, 1e-11);
}

TEST(TracyWidom, ExpectedCountAboveALevelIntegratesTheEdgeDensity) {
    using boost::math::airy_ai;
    using boost::math::airy_ai_prime;
    using Rule = boost::math::quadrature::gauss<double, 60>;
    const auto density = [](double x) {
        const double tail = Rule::integrate([](double y) { return airy_ai(y); }, x, x + 20.0);
        return std::pow(airy_ai_prime(x), 2) - x * std::pow(airy_ai(x), 2) + 0.5 * airy_ai(x) * (1.0 - tail);
    };
    for (const double s : {-6.0, -2.0, 0.0, 3.0}) {
        const double h = 1e-3;
        const auto slope = [&](double step) {
            return (edge_points_above(s - step) - edge_points_above(s + step)) / (2.0 * step);
        };
        expect_relative((4.0 * slope(h) - slope(2.0 * h)) / 3.0, density(s), 1e-9, "density");
    }
    for (const double s : {-4.0, -1.0, 0.0, 2.0}) EXPECT_GT(edge_points_above(s), tracy_widom_survival(s));
    expect_relative(edge_points_above(8.0), tracy_widom_survival(8.0), 1e-8, "far out at most one point is there");
    EXPECT_EQ(edge_points_above(500.0), 0.0);
}

TEST(TracyWidom, PointsOfComplexNoiseAreTheIntegralOfTheirDensity) {
    // Independent computation: the density Ai'^2 - x Ai^2 by the trapezoidal rule.
    for (const double s : {-5.0, -1.0, 0.0, 2.0}) {
        double sum = 0.0;
        constexpr double step = 1e-3;
        for (double x = s; x < 14.0; x += step) {
            const double density =
                std::pow(boost::math::airy_ai_prime(x), 2) - x * std::pow(boost::math::airy_ai(x), 2);
            sum += step * density * (x == s ? 0.5 : 1.0);
        }
        EXPECT_NEAR(edge_points_above(s, Field::complex), sum, 1e-6) << s;
    }
    // Where two points are improbable, their number is the probability of one.
    const double survival = tracy_widom_survival(3.0, Field::complex);
    EXPECT_NEAR(edge_points_above(3.0, Field::complex) / survival, 1.0, 1e-3);
}

}  // namespace
}  // namespace spiked::theory

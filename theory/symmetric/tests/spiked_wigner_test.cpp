#include "theory/symmetric/spiked_wigner.hpp"

#include <array>
#include <boost/math/quadrature/gauss.hpp>
#include <cmath>
#include <numbers>

#include "theory/tests/reference.hpp"

namespace spiked::theory {
namespace {

using test::expect_rejected;
using test::expect_relative;

/// int f(x) rho(x) dx under the semicircle law on [-2, 2], x = 2 cos t.
template <class Function>
double semicircle_mean(Function f) {
    using Rule = boost::math::quadrature::gauss<double, 100>;
    return Rule::integrate(
        [&](double t) { return f(2.0 * std::cos(t)) * 2.0 / std::numbers::pi * std::pow(std::sin(t), 2); }, 0.0,
        std::numbers::pi);
}

TEST(SpikedWignerReference, OutlierAndOverlapSolveTheEquationsOfTheResolvent) {
    // 1/s = m(y) and overlap = -1 / (s^2 m'(y)) with m the transform of the density, by quadrature.
    for (const double level : {1.0, 0.3, 7.0}) {
        const SpikedWigner model(level);
        for (const double relative : {1.3, 2.0, 5.0, -1.3, -4.0}) {
            const double s = relative * level;
            const double y = model.outlier(s);
            const double m = semicircle_mean([&](double x) { return 1.0 / (y - level * x); });
            const double slope = -semicircle_mean([&](double x) { return std::pow(y - level * x, -2.0); });
            expect_relative(1.0 / m, s, 1e-12, "outlier");
            expect_relative(model.squared_overlap(s).value, -1.0 / (s * s * slope), 1e-11, "overlap");
            expect_relative(model.strength_of(y).value(), s, 1e-13, "inverse");
        }
    }
    const SpikedWigner model(2.0);
    EXPECT_EQ(model.outlier(2.0), 4.0);
    EXPECT_EQ(model.outlier(-1.0), -4.0);
    EXPECT_EQ(model.squared_overlap(-2.0).value, 0.0);
    EXPECT_FALSE(model.strength_of(-4.0).has_value());
    EXPECT_FALSE(model.detectable(-2.0));
    EXPECT_TRUE(model.detectable(-2.0000001));
}

TEST(SpikedWignerReference, MedianIsThatOfTheDensity) {
    using Rule = boost::math::quadrature::gauss<double, 60>;
    const double half = Rule::integrate([](double x) { return std::sqrt(4.0 - x * x) / std::numbers::pi; }, 0.0,
                                        semicircle_median_modulus);
    EXPECT_NEAR(half, 0.5, 1e-14);
}

/// The loss of estimating s e_1 e_1^T by x v v^T with v = (cos, sin), squared overlap a, from the 2 x 2 matrix.
double loss_of(double s, double x, double a, Loss loss) {
    const double c = std::sqrt(a), d = std::sqrt(1.0 - a);
    const double p = s - x * c * c, r = -x * d * d, off = -x * c * d;
    const double middle = 0.5 * (p + r), radius = std::hypot(0.5 * (p - r), off);
    const double one = std::abs(middle + radius), other = std::abs(middle - radius);
    if (loss == Loss::frobenius) return one * one + other * other;
    return loss == Loss::nuclear ? one + other : std::max(one, other);
}

TEST(SpikedWignerReference, ShrunkEigenvaluesMinimiseTheLoss) {
    const SpikedWigner model(1.5);
    for (const Loss loss : {Loss::frobenius, Loss::operator_norm, Loss::nuclear})
        for (const double s : {1.6, 2.0, 2.5, 4.0, 12.0}) {
            const double a = model.squared_overlap(s).value;
            const double found = model.shrunk(model.outlier(s), loss);
            const double least = loss_of(s, found, a, loss);
            for (int i = 0; i <= 3000; ++i) {
                const double x = 1.5 * s * i / 3000.0;
                EXPECT_GE(loss_of(s, x, a, loss), least * (1.0 - 1e-12)) << s << " " << x << " " << name_of(loss);
            }
            EXPECT_GT(loss_of(s, 0.98 * s + 0.01, a, loss) + loss_of(s, found + 0.05, a, loss), 2.0 * least);
            EXPECT_DOUBLE_EQ(model.shrunk(model.outlier(-s), loss), -found);
        }
    // sqrt(y^2 - 4 sigma^2) for the Frobenius norm.
    expect_relative(model.shrunk(-5.0), -4.0, 1e-14, "Frobenius");
    EXPECT_EQ(model.shrunk(3.0), 0.0);
}

/// The same variances as sums over the x_k, with m = 1/s: coefficients of x_k in the eigenvalue, in log overlap and in
/// log overlap minus that of its estimate, by differentiating sum_k m(z)^(k+1) x_k numerically.
struct SummedSpread {
    double outlier = 0.0, log_overlap = 0.0, log_error = 0.0;
};

SummedSpread summed(double s, double c, double of_first, double of_second) {
    const auto m = [](double z) { return 0.5 * (z - std::sqrt(z * z - 4.0)); };
    const double y = s + 1.0 / s;
    SummedSpread sum;
    for (int k = 1; k < 400; ++k) {
        // g(z) = m(z) + e m(z)^(k+1): the root of g = 1/s, and -1 / (s^2 g') there, for small e of both signs.
        const double e = 1e-5;
        const auto at = [&](double size) {
            const auto g = [&](double z) { return m(z) + size * std::pow(m(z), k + 1); };
            const auto slope = [&](double z) {
                const double derivative = -m(z) * m(z) / (1.0 - m(z) * m(z));
                return derivative * (1.0 + size * (k + 1) * std::pow(m(z), k));
            };
            double z = y;
            for (int step = 0; step < 50; ++step) z -= (g(z) - 1.0 / s) / slope(z);
            const double strength = 1.0 / m(z);
            return std::array{z, std::log(-1.0 / (s * s * slope(z))), std::log(1.0 - 1.0 / (strength * strength))};
        };
        const auto up = at(e), down = at(-e);
        const double variance = k == 1 ? c + of_first : k == 2 ? c + of_second : c;
        const auto add = [&](double& to, double rise) { to += variance * std::pow(rise / (2.0 * e), 2); };
        add(sum.outlier, up[0] - down[0]);
        add(sum.log_overlap, up[1] - down[1]);
        add(sum.log_error, (up[1] - down[1]) - (up[2] - down[2]));
    }
    return sum;
}

TEST(SpikedWignerReference, FluctuationsAreTheSumsOverThePolynomials) {
    for (const Field field : {Field::real, Field::complex})
        for (const double s : {1.3, 1.7, 3.0}) {
            const double c = field == Field::real ? 2.0 : 1.0;
            const double level = 0.4;
            const SpikedWigner model(level, field);
            const WignerEntries entries{.excess_kurtosis = 1.4, .diagonal_variance = 0.3, .fourth_powers = 0.25};
            for (const bool gaussian : {true, false}) {
                const auto expected = summed(s, c, gaussian ? 0.0 : 0.25 * (0.3 - c), gaussian ? 0.0 : 0.25 * 1.4);
                const auto found = model.spread(-s * level, gaussian ? WignerEntries{} : entries).value();
                const double overlap = model.squared_overlap(s * level).value;
                expect_relative(found.outlier, level * std::sqrt(expected.outlier), 1e-7, "eigenvalue");
                expect_relative(found.strength, found.outlier / overlap, 1e-14, "strength");
                expect_relative(found.squared_overlap, overlap * std::sqrt(expected.log_overlap), 1e-6, "overlap");
                expect_relative(found.estimated_overlap, overlap * std::sqrt(expected.log_error), 1e-6, "error");
            }
        }
    // Capitaine, Donati-Martin and Feral 2009, Theorem 2.2, v = e_1: the diagonal entry plus a normal variable of
    // variance (m4 - 3) / s^2 + 2 / (s^2 - 1), times 1 - 1/s^2.
    const double s = 2.2, rest = 1.0 - 1.0 / (s * s);
    const auto on_axis =
        SpikedWigner(1.0).spread(s, {.excess_kurtosis = -2.0, .diagonal_variance = 1.0, .fourth_powers = 1.0});
    expect_relative(std::pow(on_axis.value().outlier, 2), rest * rest * (1.0 - 2.0 / (s * s) + 2.0 / (s * s - 1.0)),
                    1e-14, "on an axis");
    EXPECT_FALSE(SpikedWigner(1.0).spread(0.99).has_value());
}

TEST(SpikedWigner, PValuesOfTheLargestModulusAreThoseOfTwoIndependentEnds) {
    for (const Field field : {Field::real, Field::complex}) {
        const SpikedWigner model(3.0, field);
        for (const double modulus : {5.9, 6.1, 6.5}) {
            const double below = tracy_widom_cdf((modulus - model.edge_at(80)) / model.edge_unit(80), field);
            EXPECT_NEAR(model.p_value(modulus, 80), 1.0 - below * below, 1e-13);
        }
        for (const double level : {0.2, 0.01, 1e-9})
            expect_relative(model.p_value(model.critical_modulus(level, 80), 80), level, 1e-10, "level");
    }
    EXPECT_NEAR(SpikedWigner(3.0).edge_at(80), 6.0 - 1.5 / 80.0, 1e-15);
    EXPECT_EQ(SpikedWigner(3.0, Field::complex).edge_at(80), 6.0);
    EXPECT_NEAR(SpikedWigner(1.0).edge_at(100, {.excess_kurtosis = -2.0, .diagonal_variance = 0.0}), 1.955, 1e-15);
}

TEST(SpikedWigner, RejectsWhatIsNoLevelOrStrength) {
    for (const double level : {0.0, -1.0, test::infinite, test::not_a_number})
        expect_rejected([&] { (void)SpikedWigner(level); }, "is not usable (sigma");
    expect_rejected([&] { (void)SpikedWigner(1.0).outlier(test::not_a_number); }, "is not usable (an eigenvalue");
}

}  // namespace
}  // namespace spiked::theory

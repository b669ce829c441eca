#include "theory/laws/bulk_distribution.hpp"

#include <gtest/gtest.h>

#include <boost/math/quadrature/gauss_kronrod.hpp>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>

#include "core/runtime/error.hpp"
#include "theory/laws/marchenko_pastur.hpp"

namespace spiked::theory {
namespace {

using Complex = std::complex<double>;

struct Setting {
    std::string name;
    Spectrum row;
    Spectrum column;
    double aspect;
};

/// Noise with smooth, gapped, nearly singular, singular and irregular spectra, in wide and tall shapes.
std::vector<Setting> settings() {
    std::vector<Setting> list;
    for (const double aspect : {0.05, 0.5, 1.0, 1.3, 20.0}) {
        list.push_back({"ar1/exponential", ar1_symbol_spectrum(0.5, 64), exponential_spectrum(2.0, 64), aspect});
        list.push_back({"two/two", two_atom_spectrum(0.1, 20.0, 0.3), two_atom_spectrum(1.0, 50.0, 0.2), aspect});
        list.push_back({"power", power_spectrum(2.0, 32), power_spectrum(1.0, 32), aspect});
        list.push_back({"nearly singular", two_atom_spectrum(1e-8, 1.0, 0.5), uniform_spectrum(0.0, 1.0, 32), aspect});
        list.push_back({"singular", two_atom_spectrum(0.0, 1.0, 0.4), two_atom_spectrum(0.0, 1.0, 0.7), aspect});
        list.push_back({"irregular", Spectrum({{1.0, 0.99}, {30.0, 0.01}}), identity_spectrum(), aspect});
    }
    std::mt19937_64 random(20261121);
    std::uniform_real_distribution<double> uniform(0.0, 1.0);
    for (int i = 0; i < 100; ++i) {
        const auto spectrum = [&] {
            std::vector<double> values(1 + random() % 12);
            for (double& value : values) value = std::exp(8.0 * uniform(random) - 4.0);
            return Spectrum::of_values(values);
        };
        const Spectrum row = spectrum();
        const Spectrum column = spectrum();
        list.push_back({"random " + std::to_string(i), row, column, std::pow(10.0, 4.0 * uniform(random) - 2.0)});
    }
    return list;
}

BulkDistribution distribution(const Setting& setting) {
    return BulkDistribution(SeparableLaw(setting.row, setting.column, AspectRatio(setting.aspect)));
}

/// An independent solution of the self-consistent equations (theory.md 1.1) by plain damped iteration.
StieltjesPair iterated(const Setting& setting, Complex z) {
    Complex m1 = -setting.aspect / z;
    Complex m2;
    Complex left;
    Complex right;
    for (int i = 0; i < 3000; ++i) {
        m2 = 0.0;
        right = 0.0;
        for (const auto& [y, v] : setting.column.atoms()) {
            m2 -= v * y / (z * (1.0 + y * m1));
            right -= v / (z * (1.0 + y * m1));
        }
        Complex next = 0.0;
        left = 0.0;
        for (const auto& [x, w] : setting.row.atoms()) {
            next -= setting.aspect * w * x / (z * (1.0 + x * m2));
            left -= w / (z * (1.0 + x * m2));
        }
        m1 = 0.5 * (m1 + next);
    }
    return {left, right};
}

TEST(BulkDistribution, WhiteNoiseIsTheMarchenkoPasturLaw) {
    for (const double beta : {0.01, 0.3, 0.9, 0.999, 1.0, 1.5, 10.0, 100.0}) {
        const MarchenkoPastur white{AspectRatio(beta)};
        const BulkDistribution bulk(SeparableLaw(identity_spectrum(), identity_spectrum(), AspectRatio(beta)));
        EXPECT_NEAR(bulk.lower_edge().value, white.lower_edge().value,
                    1e-14 * white.lower_edge().value / std::abs(1.0 - beta + (beta == 1.0)));
        EXPECT_NEAR(bulk.upper_edge().value, white.upper_edge().value, 1e-14 * white.upper_edge().value);
        EXPECT_DOUBLE_EQ(bulk.mass_at_zero(), white.mass_at_zero());
        for (int i = 0; i <= 50; ++i) {
            const double fraction = i / 50.0;
            const Eigenvalue x{white.lower_edge().value +
                               fraction * (white.upper_edge().value - white.lower_edge().value)};
            EXPECT_NEAR(bulk.cdf(x), white.cdf(x), 3e-15);
            EXPECT_NEAR(bulk.survival(x), white.survival(x), 3e-15);
            if (i > 0 && i < 50) {
                EXPECT_NEAR(bulk.density(x), white.density(x), 3e-13 * white.density(x)) << beta;
            }
            EXPECT_NEAR(bulk.quantile(fraction).value, white.quantile(fraction).value,
                        1e-13 * white.upper_edge().value);
        }
        EXPECT_NEAR(bulk.median().value, white.median().value, 1e-13 * white.upper_edge().value);
    }
}

// The cdf is a closed form in the solution; this test compares it with the integral of the density.
TEST(BulkDistribution, DensityIntegratesToTheCdfAndToTheMean) {
    using Rule = boost::math::quadrature::gauss_kronrod<double, 31>;
    for (const Setting& setting : settings()) {
        const BulkDistribution bulk = distribution(setting);
        // The panels lie between quantiles, and each is integrated in an angle that makes square roots at its ends
        // smooth. The edges of a gap inside a panel are not smooth; the error estimate of the rule shows this, and the
        // tolerance includes it.
        constexpr int panels = 40;
        const double fraction = (1.0 - bulk.mass_at_zero()) / panels;
        double mean = 0.0;
        double mean_error = 0.0;
        int sharp = 0;
        double from = bulk.lower_edge().value;
        for (int i = 1; i <= panels; ++i) {
            const double to =
                i == panels ? bulk.upper_edge().value : bulk.quantile(bulk.mass_at_zero() + fraction * i).value;
            const auto position = [&](double angle) { return from + (to - from) * std::pow(std::sin(angle / 2.0), 2); };
            const auto weighted = [&](double angle) {
                return bulk.density({position(angle)}) * (to - from) * std::sin(angle) / 2.0;
            };
            double error = 0.0;
            const double mass = Rule::integrate(weighted, 0.0, std::numbers::pi, 12, 1e-11, &error);
            EXPECT_NEAR(mass, fraction, 1e-11 + 10.0 * error)
                << setting.name << " " << setting.aspect << " panel " << i;
            sharp += error < 1e-10 ? 1 : 0;
            mean += Rule::integrate([&](double angle) { return weighted(angle) * position(angle); }, 0.0,
                                    std::numbers::pi, 12, 1e-11, &error);
            mean_error += error;
            from = to;
        }
        EXPECT_NEAR(mean, bulk.mean(), 1e-10 * bulk.mean() + 10.0 * mean_error)
            << setting.name << " " << setting.aspect;
        EXPECT_GE(sharp, panels / 2) << setting.name << " " << setting.aspect;
    }
}

TEST(BulkDistribution, TransformsOffTheAxisSolveTheDefiningEquations) {
    std::mt19937_64 random(7);
    std::uniform_real_distribution<double> uniform(0.0, 1.0);
    for (const Setting& setting : settings()) {
        const BulkDistribution bulk = distribution(setting);
        const double scale = bulk.upper_edge().value;
        for (int i = 0; i < 3; ++i) {
            const Complex z(scale * (3.0 * uniform(random) - 1.0), scale * std::pow(10.0, 2.0 * uniform(random) - 1.0));
            const StieltjesPair found = bulk.stieltjes(z);
            const StieltjesPair expected = iterated(setting, z);
            EXPECT_LT(std::abs(found.left - expected.left), 1e-12 * std::abs(expected.left)) << setting.name << z;
            EXPECT_LT(std::abs(found.right - expected.right), 1e-12 * std::abs(expected.right)) << setting.name << z;
        }
    }
}

TEST(BulkDistribution, TransformsMatchTheLimitsOnTheRealAxisOnBothSidesOfTheEdge) {
    for (const Setting& setting : settings()) {
        const SeparableLaw law(setting.row, setting.column, AspectRatio(setting.aspect));
        const BulkDistribution bulk(law);
        const double edge = law.bulk_edge().value;
        for (const double factor : {1.01, 1.5, 10.0}) {
            const StieltjesPair pair = bulk.stieltjes({factor * edge, 1e-12 * edge});
            EXPECT_NEAR(pair.left.real() / law.stieltjes_left({factor * edge}), 1.0, 1e-9) << setting.name;
            EXPECT_NEAR(pair.right.real() / law.stieltjes_right({factor * edge}), 1.0, 1e-9) << setting.name;
        }
        const Eigenvalue inside = bulk.quantile(1.0 - 0.4 * (1.0 - bulk.mass_at_zero()));
        const double density = bulk.density(inside);
        const double from_above = bulk.stieltjes({inside.value, 1e-9 * inside.value}).left.imag() / std::numbers::pi;
        // A quantile in a gap is the end of the gap, near which the density is a square root.
        if (density * inside.value > 1e-3) {
            EXPECT_NEAR(from_above / density, 1.0, 1e-4) << setting.name;
        }
    }
}

TEST(BulkDistribution, TheDensityIsZeroBelowTheLowerEdgeAndPositiveJustAboveIt) {
    for (const Setting& setting : settings()) {
        const BulkDistribution bulk = distribution(setting);
        const double lower = bulk.lower_edge().value;
        if (lower == 0.0) continue;
        // The density is computed from the transform in the upper half plane, independently of the edges: Im m is of
        // the order of the height outside the support, and of sqrt(distance) inside.
        const auto density_near = [&](double x) {
            return bulk.stieltjes({x, 1e-8 * lower}).left.imag() / std::numbers::pi;
        };
        const double below = density_near(lower * (1.0 - 1e-3));
        const double above = density_near(lower * (1.0 + 1e-3));
        EXPECT_GT(above, 1e3 * below) << setting.name << " " << setting.aspect << " edge " << lower;
        EXPECT_EQ(bulk.density({lower * (1.0 - 1e-3)}), 0.0);
        EXPECT_GT(bulk.density({lower * (1.0 + 1e-3)}), 0.0) << setting.name << " " << setting.aspect;
        EXPECT_NEAR(bulk.cdf({lower}), bulk.mass_at_zero(), 1e-15);
    }
}

TEST(BulkDistribution, CurveIsMonotoneAndQuantilesInvertTheCdf) {
    for (const Setting& setting : settings()) {
        const BulkDistribution bulk = distribution(setting);
        const auto curve = bulk.curve(257);
        for (std::size_t i = 1; i < curve.size(); ++i) {
            EXPECT_GE(curve[i].cdf, curve[i - 1].cdf - 2e-14) << setting.name << " " << setting.aspect;
            EXPECT_GE(curve[i].density, 0.0);
            // A single point is solved from a different starting point than along the curve.
            if (i % 16 == 0 && i + 1 < curve.size()) {
                EXPECT_NEAR(bulk.cdf(curve[i].x), curve[i].cdf, 1e-13) << setting.name << " " << setting.aspect;
            }
        }
        EXPECT_NEAR(curve.back().cdf, 1.0, 1e-15);
        for (const double fraction : {1e-3, 0.1, 0.25, 0.5, 0.77, 0.9, 0.999}) {
            const double probability = bulk.mass_at_zero() + fraction * (1.0 - bulk.mass_at_zero());
            const Eigenvalue x = bulk.quantile(probability);
            EXPECT_NEAR(bulk.cdf(x), probability, 1e-13) << setting.name << " " << setting.aspect << " " << fraction;
        }
    }
}

// Half of the eigenvalues are near 1e-8 and half near 1; the quantile at the level of the gap is the left end of the
// gap.
TEST(BulkDistribution, QuantileAtTheLevelOfAGapIsItsLeftEnd) {
    for (const double aspect : {0.05, 0.5, 1.0}) {
        const BulkDistribution bulk =
            distribution({"", two_atom_spectrum(1e-8, 1.0, 0.5), two_atom_spectrum(0.5, 1.0, 0.5), aspect});
        EXPECT_LT(bulk.quantile(0.5).value, 1e-6);
        EXPECT_GT(bulk.quantile(0.5 + 1e-9).value, 1e-3);
        EXPECT_NEAR(bulk.cdf({1e-5}), 0.5, 1e-14);
    }
}

TEST(BulkDistribution, TransposingAndScalingTransformEigenvaluesCorrectly) {
    for (const Setting& setting : settings()) {
        const BulkDistribution bulk = distribution(setting);
        const BulkDistribution transposed = distribution({"", setting.column, setting.row, 1.0 / setting.aspect});
        // Z^T Z has the same positive eigenvalues, d eigenvalues in all instead of n, and entries of variance 1/n
        // instead of 1/d.
        EXPECT_NEAR(transposed.lower_edge().value * setting.aspect, bulk.lower_edge().value,
                    1e-12 * bulk.lower_edge().value / std::min(1.0, std::abs(1.0 - setting.aspect) + 1e-9));
        for (const double fraction : {0.2, 0.6, 0.95}) {
            const Eigenvalue x = bulk.quantile(bulk.mass_at_zero() + fraction * (1.0 - bulk.mass_at_zero()));
            EXPECT_NEAR(transposed.survival({x.value / setting.aspect}), bulk.survival(x) * setting.aspect, 1e-12)
                << setting.name << " " << setting.aspect;
        }
        std::vector<Atom> scaled = setting.row.atoms();
        for (Atom& atom : scaled) atom.value *= 1e120;
        const BulkDistribution large = distribution({"", Spectrum(scaled), setting.column, setting.aspect});
        EXPECT_NEAR(large.quantile(0.99).value, bulk.quantile(0.99).value * 1e120, 1e-11 * large.upper_edge().value);
    }
}

// For n = d the density grows like 1/sqrt x towards zero, so quantiles decrease like the square of the probability. The
// spectra have many atoms with rounded weights, and the results must not depend on the rounding of their sum.
TEST(BulkDistribution, SupportsThatReachZeroAreAccurate) {
    const std::vector<Spectrum> rows = {toeplitz_ar1_spectrum(0.5, 128), toeplitz_ar1_spectrum(0.5, 1000),
                                        exponential_spectrum(3.0, 49), identity_spectrum()};
    for (const Spectrum& row : rows) {
        const BulkDistribution bulk = distribution({"", row, exponential_spectrum(2.0, 100), 1.0});
        EXPECT_EQ(bulk.lower_edge().value, 0.0);
        EXPECT_EQ(bulk.mass_at_zero(), 0.0);
        const double scale = bulk.quantile(1e-6).value / 1e-12;
        for (const double probability : {1e-5, 1e-7, 1e-8, 1e-9}) {
            // The next term of the law is of order p^2; for small p the accuracy is limited by the 1e-15 of the cdf.
            const double x = bulk.quantile(probability).value;
            EXPECT_NEAR(x / (scale * probability * probability), 1.0, 1e-4 + 1e-14 / probability) << probability;
            EXPECT_NEAR(bulk.cdf({x}), probability, 3e-15);
            EXPECT_NEAR(bulk.density({x}) * 2.0 * x / probability, 1.0, 1e-4 + 1e-14 / probability);
        }
        // Off the axis, the two transforms of square noise with A = B agree at any distance from zero.
        const BulkDistribution square = distribution({"", row, row, 1.0});
        for (const double height : {1e-3, 1e-12, 1e-100, 1e-200})
            for (const Complex z : {Complex(0.0, height), Complex(height, height), Complex(-height, height)}) {
                const StieltjesPair pair = square.stieltjes(z);
                EXPECT_LT(std::abs(pair.left / pair.right - 1.0), 1e-12) << z;
                EXPECT_GT(pair.left.imag(), 0.0) << z;
            }
        EXPECT_THROW((void)square.stieltjes({0.0, 5e-324}), Error);
    }
    for (const double beta : {1.0 + 1e-4, 1.0 - 1e-4, 1.0 + 1e-6, 1.0 - 1e-6}) {
        const BulkDistribution bulk =
            distribution({"", toeplitz_ar1_spectrum(0.5, 1000), exponential_spectrum(2.0, 1000), beta});
        const BulkDistribution transposed =
            distribution({"", exponential_spectrum(2.0, 1000), toeplitz_ar1_spectrum(0.5, 1000), 1.0 / beta});
        EXPECT_NEAR(transposed.lower_edge().value * beta / bulk.lower_edge().value, 1.0, 1e-8);
        EXPECT_NEAR(bulk.mass_at_zero(), std::max(0.0, 1.0 - 1.0 / beta), 1e-15);
        const Eigenvalue x = bulk.quantile(bulk.mass_at_zero() + 1e-5);
        EXPECT_NEAR(bulk.cdf(x), bulk.mass_at_zero() + 1e-5, 1e-14);
    }
}

// White square noise has the density 1 / (pi sqrt(x)) near 0, and the mass 2 sqrt(x) / pi below x.
TEST(BulkDistribution, NumbersBelowTheNormalOnesAreNearlyZero) {
    const BulkDistribution law = distribution({"", identity_spectrum(), identity_spectrum(), 1.0});
    for (const double x : {5e-324, 1e-310, std::numeric_limits<double>::min(), 1e-300}) {
        EXPECT_NEAR(law.cdf({x}), 0.0, 1e-149) << x;
        const double normal = std::max(x, std::numeric_limits<double>::min());
        EXPECT_NEAR(law.density({x}) * std::sqrt(normal) * std::numbers::pi, 1.0, 1e-9) << x;
    }
}

TEST(BulkDistribution, WorksWithTenThousandAtomsPerSide) {
    const BulkDistribution bulk(
        SeparableLaw(toeplitz_ar1_spectrum(0.9, 10000), exponential_spectrum(5.0, 10000), AspectRatio(0.7)));
    EXPECT_NEAR(bulk.cdf(bulk.quantile(0.3)), 0.3, 1e-13);
    EXPECT_GT(bulk.lower_edge().value, 0.0);
}

TEST(BulkDistribution, RejectsArgumentsOutsideItsDomain) {
    const BulkDistribution bulk(SeparableLaw(identity_spectrum(), identity_spectrum(), AspectRatio(1.0)));
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (const double bad : {-0.1, 1.1, nan}) EXPECT_THROW((void)bulk.quantile(bad), Error);
    for (const Complex z : {Complex(1.0, 0.0), Complex(1.0, -1.0), Complex(nan, 1.0), Complex(1.0, nan)})
        EXPECT_THROW((void)bulk.stieltjes(z), Error);
    EXPECT_THROW((void)bulk.curve(1), Error);
    EXPECT_EQ(bulk.density({-1.0}), 0.0);
    EXPECT_EQ(bulk.density({5.0}), 0.0);
    EXPECT_TRUE(std::isinf(bulk.density({0.0})));
    EXPECT_EQ(bulk.cdf({-1.0}), 0.0);
    EXPECT_EQ(bulk.survival({-1.0}), 1.0);
    EXPECT_EQ(bulk.cdf({nan}), 0.0);
}

}  // namespace
}  // namespace spiked::theory

#include "theory/laws/spiked_covariance.hpp"

#include <boost/math/quadrature/tanh_sinh.hpp>
#include <cmath>

#include "theory/laws/marchenko_pastur.hpp"
#include "theory/tests/reference.hpp"

namespace spiked::theory {
namespace {

SpikedCovariance law_of(double gamma, double noise_level = 1.0) {
    return SpikedCovariance(AspectRatio(1.0 / gamma), noise_level);
}

TEST(SpikedCovarianceReference, HasTheValuesWorkedByHand) {
    // gamma, spike, sample eigenvalue, squared cosine: fractions, worked from the formulas on paper.
    const double rows[][4] = {{0.5, 4.0, 14.0 / 3.0, 17.0 / 21.0},
                              {2.0, 5.0, 7.5, 7.0 / 12.0},
                              {0.25, 0.3, 27.0 / 140.0, 16.0 / 21.0},
                              {1.0, 3.0, 4.5, 0.5},
                              {0.25, 0.0, 0.0, 1.0}};
    for (const auto& [gamma, spike, sample, cosine] : rows) {
        EXPECT_TRUE(law_of(gamma).detectable({spike}));
        EXPECT_NEAR(law_of(gamma).sample_eigenvalue({spike}).value, sample, 1e-15 + 1e-15 * sample);
        EXPECT_NEAR(law_of(gamma).squared_cosine({spike}).value, cosine, 1e-15);
        // A variance of 2.5: eigenvalues scale, cosines do not.
        EXPECT_NEAR(law_of(gamma, 2.5).sample_eigenvalue({2.5 * spike}).value, 2.5 * sample, 1e-14 * (1.0 + sample));
        EXPECT_NEAR(law_of(gamma, 2.5).squared_cosine({2.5 * spike}).value, cosine, 1e-15);
    }
    EXPECT_NEAR(law_of(0.25, 4.0).upper_edge().value, 9.0, 1e-14);
    EXPECT_NEAR(law_of(0.25, 4.0).lower_edge().value, 1.0, 1e-14);
    EXPECT_NEAR(law_of(0.25, 4.0).detection_threshold().value, 6.0, 1e-14);
    EXPECT_EQ(law_of(4.0).lower_edge().value, 0.0);
}

TEST(SpikedCovariance, LeavesSpikesBelowTheThresholdAtTheEdge) {
    for (const double gamma : {0.1, 0.5, 1.0, 3.0}) {
        const SpikedCovariance law = law_of(gamma);
        const double root = std::sqrt(gamma);
        for (const double spike : {1.0, 1.0 + 0.5 * root, 1.0 + 0.999 * root, std::max(0.0, 1.0 - 0.9 * root)}) {
            EXPECT_FALSE(law.detectable({spike}));
            EXPECT_EQ(law.squared_cosine({spike}).value, 0.0);
            EXPECT_FALSE(law.spread({spike}));
            EXPECT_EQ(law.sample_eigenvalue({spike}), spike >= 1.0 ? law.upper_edge() : law.lower_edge());
        }
        EXPECT_TRUE(law.detectable({1.0 + 1.001 * root}));
        EXPECT_EQ(law.detectable({0.01}), gamma == 0.1 || gamma == 0.5) << "below the bulk, which takes gamma < 1";
    }
}

TEST(SpikedCovarianceIdentity, InvertsItsSampleEigenvalue) {
    for (const double gamma : {0.01, 0.5, 1.0, 1.7, 30.0})
        for (const double noise_level : {1.0, 3e-9}) {
            const SpikedCovariance law = law_of(gamma, noise_level);
            for (const double distance : {1.001, 1.3, 4.0, 1e4, 1e120}) {
                const double spike = noise_level * (1.0 + std::sqrt(gamma) * distance);
                const auto found = law.population_eigenvalue(law.sample_eigenvalue({spike}));
                ASSERT_TRUE(found);
                // Near the threshold the slope of the sample eigenvalue vanishes with the distance.
                test::expect_relative(found->value, spike, 1e-14 + 1e-15 / (distance - 1.0), "above the bulk");
            }
            for (const double share : {0.0, 0.3, 0.9}) {
                const double spike = noise_level * share * (1.0 - std::sqrt(gamma));
                if (spike < 0.0) continue;
                if (gamma >= 1.0) continue;
                const auto found = law.population_eigenvalue(law.sample_eigenvalue({spike}));
                ASSERT_TRUE(found);
                EXPECT_NEAR(found->value, spike, 1e-13 * noise_level);
            }
            EXPECT_FALSE(law.population_eigenvalue(law.upper_edge()));
            EXPECT_FALSE(law.population_eigenvalue({noise_level}));
            EXPECT_FALSE(law.population_eigenvalue({test::not_a_number}));
        }
}

/// Normalised traces of powers of the resolvent (z - Z Z^T / n)^-1 for an n x p matrix Z with entries of variance 1, by
/// quadrature of the Marchenko-Pastur density.
double resolvent_trace(double gamma, double z, int power) {
    const MarchenkoPastur law{AspectRatio(1.0 / gamma)};  // of Z Z^T / p
    const double atom = gamma < 1.0 ? 1.0 - gamma : 0.0;
    boost::math::quadrature::tanh_sinh<double> rule;
    const auto term = [&](double x) { return law.density({x}) * std::pow(z - gamma * x, -power); };
    return atom * std::pow(z, -power) + rule.integrate(term, law.lower_edge().value, law.upper_edge().value, 1e-12);
}

TEST(SpikedCovarianceReference, AgreesWithTheResolventByQuadrature) {
    // The sample eigenvalue z solves spike * trace(z) = 1, the squared cosine is -1 / (spike z trace'(z)), and the
    // spreads are those of a Gaussian form and its derivative, whose covariances are traces of powers.
    const double cases[][3] = {{0.5, 4.0, 0.0},  {0.5, 2.0, 0.0},  {2.0, 5.0, 0.0}, {0.25, 0.3, 0.0},
                               {0.9, 12.0, 3.0}, {0.5, 4.0, -2.0}, {5.0, 4.0, 1.0}};
    for (const auto& [gamma, spike, cumulant] : cases) {
        const SpikedCovariance law = law_of(gamma);
        const double z = law.sample_eigenvalue({spike}).value;
        double trace[5] = {};
        for (int power = 1; power <= 4; ++power) trace[power] = resolvent_trace(gamma, z, power);
        EXPECT_NEAR(spike * trace[1], 1.0, 1e-9);
        const double cosine = 1.0 / (spike * z * trace[2]);
        EXPECT_NEAR(law.squared_cosine({spike}).value, cosine, 1e-9);
        // Scores g: the forms g'Rg/n and -g'R^2g/n.
        const double form = 2.0 * trace[2] + cumulant * trace[1] * trace[1];
        const double both = -2.0 * trace[3] - cumulant * trace[1] * trace[2];
        const double slope_form = 2.0 * trace[4] + cumulant * trace[2] * trace[2];
        // The eigenvalue moves by form / trace[2]; the logarithm of z h'(z) by that move and by the form of the slope.
        const double per_form = (1.0 / z - 2.0 * trace[3] / trace[2]) / trace[2];
        const double per_slope = -1.0 / trace[2];
        const double variance =
            per_form * per_form * form + 2.0 * per_form * per_slope * both + per_slope * per_slope * slope_form;
        const auto spread = law.spread({spike}, cumulant);
        ASSERT_TRUE(spread);
        EXPECT_NEAR(spread->sample_eigenvalue, std::sqrt(form) / trace[2], 1e-8 * z);
        EXPECT_NEAR(spread->squared_cosine, cosine * std::sqrt(variance), 1e-7);
        const double step = 1e-5 * spike;
        const double slope =
            (law.sample_eigenvalue({spike + step}).value - law.sample_eigenvalue({spike - step}).value) / (2.0 * step);
        EXPECT_NEAR(spread->population_eigenvalue, spread->sample_eigenvalue / slope, 1e-5 * z);
        // The estimate moves with the eigenvalue alone, by form / trace[2] times its slope; the cumulant has to cancel.
        const double estimate =
            (std::log(law.squared_cosine({spike + step}).value) - std::log(law.squared_cosine({spike - step}).value)) /
            (2.0 * step) / slope / trace[2];
        const double per_error = estimate + per_form;
        const double error =
            per_error * per_error * form + 2.0 * per_error * per_slope * both + per_slope * per_slope * slope_form;
        EXPECT_NEAR(spread->estimated_squared_cosine, cosine * std::sqrt(error), 2e-5 * cosine);
    }
}

TEST(SpikedCovariance, HasNoSpreadForAFeatureWithoutVariance) {
    const auto spread = law_of(0.25).spread({0.0});
    ASSERT_TRUE(spread);
    EXPECT_EQ(spread->sample_eigenvalue, 0.0);
    EXPECT_NEAR(spread->squared_cosine, 0.0, 1e-7);
}

TEST(SpikedCovariance, RejectsWhatIsNoVariance) {
    for (const double bad : {0.0, -1.0, test::not_a_number, test::infinite})
        test::expect_rejected([&] { (void)law_of(0.5, bad); }, "noise level");
    for (const double bad : {-1e-9, test::not_a_number, test::infinite})
        test::expect_rejected([&] { (void)law_of(0.5).sample_eigenvalue({bad}); }, "population eigenvalue");
}

}  // namespace
}  // namespace spiked::theory

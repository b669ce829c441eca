// The rule of Kritchman and Nadler against a computation of its fixed point by bisection, and its level.
#include "estimators/ranks/kritchman_nadler.hpp"

#include <gtest/gtest.h>

#include <boost/math/distributions/binomial.hpp>
#include <cmath>
#include <iostream>

#include "estimators/spectral/spectral_estimator.hpp"
#include "estimators/tests/quantizer_samples.hpp"

namespace spiked::estimators {
namespace {

/// Noise and some components.
arma::mat components_in_noise(arma::uword rows, arma::uword columns, const std::vector<double>& strengths,
                              std::uint64_t replicate) {
    arma::mat block = gaussian(rows, columns, 100 * replicate);
    for (std::size_t i = 0; i < strengths.size(); ++i)
        block += strengths[i] * std::sqrt(static_cast<double>(columns)) *
                 arma::normalise(arma::vec(gaussian(rows, 1, 100 * replicate + 2 * i + 1))) *
                 arma::normalise(arma::vec(gaussian(columns, 1, 100 * replicate + 2 * i + 2))).t();
    return block;
}

TEST(KritchmanNadlerReference, ItsVarianceSolvesThePublishedEquations) {
    // v is the crossing of v (p - k) with sum l - sum r, where r solves r (1 + (p - k)/n v / (r - v)) = l, the
    // published form of the quadratic, here by bisection for r beyond its smallest real value and for v.
    for (const auto& [p, samples, strengths] :
         {std::tuple{40U, 90U, std::vector<double>{4.0}}, std::tuple{60U, 60U, std::vector<double>{5.0, 3.0}}}) {
        const auto n = samples;  // a lambda captures no structured binding in clang 14
        const arma::vec values = arma::svd(components_in_noise(p, n, strengths, p));
        const arma::vec l = arma::square(values) / static_cast<double>(n);
        const std::size_t k = strengths.size();
        const double m = static_cast<double>(p - k);
        const auto population = [&](double sample, double v) {
            const double gamma = m / static_cast<double>(n);
            double low = v * (1.0 + std::sqrt(gamma));
            double high = sample;
            for (int i = 0; i < 200; ++i) {
                const double r = 0.5 * (low + high);
                (r * (1.0 + gamma * v / (r - v)) < sample ? low : high) = r;
            }
            return low;
        };
        double low = 0.5;
        double high = 1.5;
        for (int i = 0; i < 100; ++i) {
            const double v = 0.5 * (low + high);
            double noise = arma::accu(l);
            for (std::size_t j = 0; j < k; ++j) noise -= population(l[j], v);
            (noise / m > v ? low : high) = v;
        }
        const std::vector<double> eigenvalues(l.begin(), l.end());
        EXPECT_NEAR(kritchman_nadler_variance(eigenvalues, n, k), low, 3e-5);
        // Control: without the noise in the components the variance is smaller.
        EXPECT_GT(low - arma::accu(l.tail(p - k)) / m, 3e-3);
    }
}

/// The published test of the first component: variance and dimension are those of one component.
bool published_rule_counts(const std::vector<double>& singular_values, Shape shape, double quantile) {
    const double n = static_cast<double>(shape.long_side());
    std::vector<double> eigenvalues;
    for (const double s : singular_values) eigenvalues.push_back(s * s / n);
    const double side = std::sqrt(n - 0.5), other = std::sqrt(static_cast<double>(shape.short_side()) - 1.5);
    const double mu = (side + other) * (side + other) / n;
    const double sigma = std::sqrt(mu / n) * std::cbrt(1.0 / side + 1.0 / other);
    return eigenvalues.front() > kritchman_nadler_variance(eigenvalues, shape.long_side(), 1) * (mu + quantile * sigma);
}

TEST(KritchmanNadlerLaw, KeepsItsLevelAndFindsComponents) {
    constexpr int blocks = 1500;
    constexpr double quantile = 0.97931605;  // of Tracy-Widom 1 at .95, published tables
    const SpectralEstimator rule = spectral_estimator("svd:kn:alpha=0.05");
    const SpectralEstimator strict = spectral_estimator("svd:kn:alpha=1e-6");
    const boost::math::binomial law(blocks, 0.05);
    const double most = boost::math::quantile(boost::math::complement(law, 0.5e-6));
    for (const Shape shape : {Shape{50, 80}, Shape{100, 20}, Shape{12, 12}}) {
        int alarms = 0, behind_one = 0, control = 0, strict_alarms = 0;
        for (std::uint64_t r = 0; r < blocks; ++r) {
            AnalysedBlock block(gaussian(shape.rows, shape.columns, 7000 + 200000 * shape.rows + r));
            const bool alarm = rule.of(block).rank > 0;
            alarms += alarm ? 1 : 0;
            control += published_rule_counts(block.singular_values(), shape, quantile) ? 1 : 0;
            strict_alarms += strict.of(block).rank > 0 ? 1 : 0;
            AnalysedBlock one(components_in_noise(shape.rows, shape.columns, {8.0}, 10000 + r));
            const std::size_t found = rule.of(one).rank;
            EXPECT_GE(found, 1U);
            behind_one += found > 1 ? 1 : 0;
        }
        std::cout << shape.rows << " x " << shape.columns << ": " << alarms << ", behind a component " << behind_one
                  << ", published rule " << control << " of " << blocks << ", at most " << most << '\n';
        EXPECT_LE(alarms, most);
        EXPECT_LE(behind_one, most);
        EXPECT_EQ(strict_alarms, 0);
        EXPECT_GT(control, most) << "the control passes";
        // Small sides are tested too strictly.
        const double least = boost::math::quantile(law, 0.5e-6);
        if (shape.short_side() >= 20) {
            EXPECT_GE(alarms, least);
        }
    }
    for (std::uint64_t r = 0; r < 20; ++r) {
        AnalysedBlock two(components_in_noise(60, 90, {4.0, 2.5}, 500 + r));
        EXPECT_EQ(strict.of(two).rank, 2U);
    }
}

TEST(KritchmanNadler, TakesCentredDataForNoiseOfLowerDimension) {
    for (std::uint64_t replicate = 1; replicate <= 20; ++replicate) {
        arma::mat noise = gaussian(30, 60, 100 * replicate);
        noise.each_row() -= arma::rowvec(arma::mean(noise, 0));
        const arma::vec values = arma::svd(noise);
        EXPECT_LE(kritchman_nadler_rank(RelativeSpectrum({values.begin(), values.end()}, {30, 60}), 0.005), 2U);
        arma::mat twice = gaussian(100, 20, 100 * replicate + 50);
        twice.col(19) = twice.col(3);
        const arma::vec others = arma::svd(twice);
        EXPECT_LE(kritchman_nadler_rank(RelativeSpectrum({others.begin(), others.end()}, {100, 20}), 0.005), 2U);
    }
}

TEST(KritchmanNadler, HandlesExactAndZeroBlocks) {
    const std::vector<double> zero(8, 0.0);
    EXPECT_EQ(kritchman_nadler_rank(RelativeSpectrum(zero, {8, 8}), 0.05), 0U);
    std::vector<double> exact(8, 0.0);
    exact[0] = 3.0, exact[1] = 1.0;
    EXPECT_EQ(kritchman_nadler_rank(RelativeSpectrum(exact, {8, 12}), 0.05), 2U);
    for (const double scale : {1e-150, 1.0, 1e150}) {
        std::vector<double> values(40);
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = scale * (2.0 - 0.04 * static_cast<double>(i));
        values[0] = scale * 30.0;
        EXPECT_EQ(kritchman_nadler_rank(RelativeSpectrum(values, {40, 40}), 0.05), 1U) << scale;
    }
    for (const char* name :
         {"svd:kn:alpha=0", "svd:kn:alpha=1", "svd:kn:level=0.1", "svd:kn:draws=3", "svd:3:alpha=0.1"})
        message_of([&] { (void)spectral_estimator(name); }, ErrorKind::usage);
}

}  // namespace
}  // namespace spiked::estimators

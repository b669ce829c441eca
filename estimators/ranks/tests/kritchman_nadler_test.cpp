// The rule of Kritchman and Nadler against a computation of its fixed point by bisection, and its level.
#include "estimators/ranks/kritchman_nadler.hpp"

#include <gtest/gtest.h>

#include <boost/math/distributions/binomial.hpp>
#include <cmath>

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
    for (const auto& [p, n, strengths] :
         {std::tuple{40U, 90U, std::vector<double>{4.0}}, std::tuple{60U, 60U, std::vector<double>{5.0, 3.0}}}) {
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

TEST(KritchmanNadlerLaw, KeepsItsLevelAndFindsComponents) {
    constexpr int blocks = 400;
    const SpectralEstimator rule = spectral_estimator("svd:kn:alpha=0.05");
    const SpectralEstimator strict = spectral_estimator("svd:kn:alpha=1e-6");
    int alarms = 0;
    int strict_alarms = 0;
    for (int r = 0; r < blocks; ++r) {
        // Wide and tall blocks in turn: the rule does not know the sides apart.
        AnalysedBlock block(r % 2 == 0 ? gaussian(50, 80, 7000 + r) : gaussian(80, 50, 7000 + r));
        alarms += rule.of(block).rank > 0 ? 1 : 0;
        strict_alarms += strict.of(block).rank > 0 ? 1 : 0;
        if (r >= 20) continue;
        AnalysedBlock two(components_in_noise(60, 90, {4.0, 2.5}, 500 + r));
        EXPECT_EQ(strict.of(two).rank, 2U);
    }
    // The variance without the largest value is a little too small, so that the level is a little above alpha.
    EXPECT_LE(alarms, boost::math::quantile(boost::math::complement(boost::math::binomial(blocks, 0.07), 1e-6)));
    EXPECT_GE(alarms, boost::math::quantile(boost::math::binomial(blocks, 0.04), 1e-6));
    EXPECT_EQ(strict_alarms, 0) << "the control passes";
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

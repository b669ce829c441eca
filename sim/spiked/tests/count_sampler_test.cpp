#include "sim/spiked/count_sampler.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/runtime/error.hpp"
#include "sim/random/tests/statistics.hpp"

namespace spiked::sim {
namespace {

using stream::Role;
using stream::Stream;

TEST(CountSamplerLaw, CountsHaveTheMeanAndTheVarianceOfTheirLaw) {
    // With k the fourth central moment, the variance of a sample variance is about (k - v^2) / count. For a Poisson
    // variable k = m + 3 m^2. The negative binomial of variance v = m + c m^2 has fourth cumulant
    // m (1 + c m) (1 + 6 c m (1 + c m)), and k = that + 3 v^2.
    constexpr std::size_t count = 40000;
    const double z = stream::two_sided_z(12);
    std::uint64_t replicate = 0;
    for (const double c : {0.0, 0.5})
        for (const double m : {0.05, 3.0, 200.0}) {
            const arma::mat counts = draw_counts(arma::mat(200, 200, arma::fill::value(m)), c,
                                                 Stream(stream::test_seed, "counts", Role::noise, replicate++));
            ASSERT_EQ(counts.n_elem, count);
            const arma::vec values = arma::vectorise(counts);
            const double v = m + c * m * m;
            const double fourth = m * (1.0 + c * m) * (1.0 + 6.0 * c * m * (1.0 + c * m)) + 3.0 * v * v;
            const double n = static_cast<double>(count);
            EXPECT_NEAR(arma::mean(values), m, z * std::sqrt(v / n)) << m << ", dispersion " << c;
            EXPECT_NEAR(arma::var(values), v, z * std::sqrt((fourth - v * v) / n)) << m << ", dispersion " << c;
            EXPECT_EQ(arma::accu(values != arma::round(values)), 0U);
            // The other law is told apart where it differs by more than chance (control).
            if (m >= 3.0) {
                const double other = c > 0.0 ? m : m + 0.5 * m * m;
                EXPECT_GT(std::abs(arma::var(values) - other), z * std::sqrt((fourth - v * v) / n));
            }
        }
}

TEST(CountSampler, MeansArePositiveOfTheirRankAndAverage) {
    const CountModel model{
        .rows = 30, .columns = 20, .components = 3, .mean = 2.5, .row_spread = 0.5, .column_spread = 1.0};
    const CountSample found = sample_counts(model, stream::test_seed, "means", 1);
    EXPECT_GT(found.means.min(), 0.0);
    EXPECT_NEAR(arma::mean(arma::vectorise(found.means)), 2.5, 1e-12);
    const arma::vec values = arma::svd(found.means);
    EXPECT_GT(values(2), 1e-3 * values(0));
    EXPECT_LT(values(3), 1e-12 * values(0));
    // The same address gives the same numbers, another replicate others.
    EXPECT_EQ(arma::abs(sample_counts(model, stream::test_seed, "means", 1).observed - found.observed).max(), 0.0);
    EXPECT_GT(arma::abs(sample_counts(model, stream::test_seed, "means", 2).observed - found.observed).max(), 0.0);
    // A part of the block is drawn as in the whole.
    const Stream noise(stream::test_seed, "means", Role::noise, 1);
    EXPECT_EQ(arma::abs(draw_counts(found.means.head_cols(5), 0.0, noise) - found.observed.head_cols(5)).max(), 0.0);
}

TEST(CountSampler, UnusableModelsAreRejected) {
    const auto drawn = [](CountModel model) { (void)sample_counts(model, stream::test_seed, "bad", 0); };
    EXPECT_NO_THROW(drawn({.rows = 3, .columns = 2, .components = 2}));
    EXPECT_THROW(drawn({.rows = 3, .columns = 2, .components = 3}), Error);
    EXPECT_THROW(drawn({.rows = 3, .columns = 2, .components = 0}), Error);
    EXPECT_THROW(drawn({.rows = 3, .columns = 2, .mean = 0.0}), Error);
    EXPECT_THROW(drawn({.rows = 3, .columns = 2, .mean = std::nan("")}), Error);
    EXPECT_THROW(drawn({.rows = 3, .columns = 2, .row_spread = 4.0}), Error);
    EXPECT_THROW(drawn({.rows = 3, .columns = 2, .dispersion = -0.1}), Error);
    EXPECT_THROW((void)draw_counts({{1.0, -1.0}}, 0.0, Stream(stream::test_seed, "bad", Role::noise, 0)), Error);
}

}  // namespace
}  // namespace spiked::sim

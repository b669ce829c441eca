#include "estimators/pca/seen_components.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <iostream>

#include "estimators/svd/analysed_block.hpp"
#include "estimators/tests/spiked_covariance_samples.hpp"

namespace spiked::estimators {
namespace {

// Worked by hand: s'^2 = 3, l' = 23 and 13, 40 features, half of the entries seen. The components explain
// (20 + 10) / 40 = .75 a feature, so that s^2 = .5 * 3 - .5 * .75 = 1.125, l = 23 - 3 + 1.125 and 13 - 3 + 1.125.
TEST(SeenComponentsReference, AreThoseWorkedByHand) {
    const auto found = [](const PcaOptions& options) {
        SpikedPca weighted{.noise_level = 3.0, .eigenvalues = {25.0, 15.0}, .components = 2, .debiased = {23.0, 13.0}};
        weighted.cosines = {0.9, 0.8};
        weighted.shrunk = {22.0, 12.0};
        correct_for_missing(weighted, {100, 40}, options, 0.5);
        return weighted;
    };
    const SpikedPca optimal = found({});
    EXPECT_NEAR(optimal.noise_level, 1.125, 1e-15);
    EXPECT_EQ(optimal.weighted_noise_level, 3.0);
    EXPECT_NEAR(optimal.debiased[0], 21.125, 1e-14);
    EXPECT_NEAR(optimal.debiased[1], 11.125, 1e-14);
    EXPECT_EQ(optimal.eigenvalues[0], 25.0);
    // For the Frobenius loss the eigenvalue is s^2 + (l - s^2) c^2.
    EXPECT_NEAR(optimal.shrunk[0], 1.125 + 20.0 * 0.81, 1e-13);
    EXPECT_NEAR(optimal.shrunk[1], 1.125 + 10.0 * 0.64, 1e-13);
    EXPECT_NEAR(found({.shrinker = EigenvalueShrinker::debiased}).shrunk[1], 11.125, 1e-14);
    EXPECT_NEAR(found({.shrinker = EigenvalueShrinker::sample}).shrunk[1], 12.0 - 1.875, 1e-14);
    EXPECT_NEAR(found({.noise_level = 1.0}).debiased[0], 21.0, 1e-14) << "a known noise level stays";
    // Components that explain all noise: low rank.
    SpikedPca low{.noise_level = 3.0, .eigenvalues = {250.0}, .components = 1, .debiased = {243.0}, .cosines = {0.9}};
    low.shrunk = {240.0};
    correct_for_missing(low, {100, 40}, {}, 0.5);
    EXPECT_EQ(low.noise_level, 0.0);
    EXPECT_EQ(low.shrunk[0], low.debiased[0]);
    EXPECT_NE(low.note.find("low rank"), std::string::npos);
}

TEST(SeenComponents, ChangeNothingWhereAllIsSeen) {
    const CovarianceSamples drawn = covariance_samples(60, 20, {8.0}, 1.0, "all seen", 0);
    AnalysedBlock block(drawn.data);
    const std::vector<double> values = block.singular_values();
    SpikedPca found = weighted_components(values, block, {60, 20}, {}, 1.0);
    correct_for_missing(found, {60, 20}, {}, 1.0);
    const SpikedPca plain = spiked_pca(values, {60, 20});
    EXPECT_EQ(found.noise_level, plain.noise_level);
    EXPECT_EQ(found.debiased, plain.debiased);
    EXPECT_FALSE(found.weighted_noise_level);
}

/// Samples of which entries are set to 0 with probability 1 - share, and the others divided by share.
arma::mat with_missing(arma::mat data, double share, std::uint64_t replicate) {
    const stream::StudySeed seed = stream::StudySeed::parse("0x5eed0000000000000000000000000049");
    const stream::Stream stream(seed, "mask", stream::Role::missing, replicate);
    for (arma::uword e = 0; e < data.n_elem; ++e)
        data[e] = stream.words(static_cast<std::uint32_t>(e))[0] < share * 0x1p32 ? data[e] / share : 0.0;
    return data;
}

// Means over samples, with standard errors of these; the model is of first order, its error O(1/n).
TEST(SeenComponentsLaw, EstimateThePopulationOfTheWholeData) {
    constexpr std::uint64_t replicates = 60;
    constexpr std::size_t samples = 240, features = 80;
    constexpr double share = 0.5, level = 2.0, false_alarm = 1e-6, margin = 6.0;
    const std::vector<double> spikes = {16.0, 8.0};
    const PcaOptions test{.level = 0.05};
    constexpr std::array names = {"noise level", "first eigenvalue", "second eigenvalue", "cosine of the first"};
    arma::mat found(replicates, 4), plain(replicates, 4);
    for (std::uint64_t r = 0; r < replicates; ++r) {
        const CovarianceSamples drawn = covariance_samples(samples, features, spikes, level, "missing", r);
        arma::mat left, right;
        arma::vec values;
        AnalysedBlock block(with_missing(drawn.data, share, r));
        ASSERT_TRUE(arma::svd_econ(left, values, right, block.block()));
        const Shape shape{samples, features};
        SpikedPca pca = weighted_components({values.memptr(), values.n_elem}, block, shape, test, share);
        ASSERT_GE(pca.components, 2U) << "far above the threshold";
        plain.row(r) = {pca.noise_level, pca.debiased[0], pca.debiased[1], 1.0};
        correct_for_missing(pca, shape, {}, share);
        const double cosine = std::abs(arma::dot(right.col(0), drawn.vectors.col(0)));
        found.row(r) = {pca.noise_level, pca.debiased[0], pca.debiased[1], 1.0 + pca.cosines[0] - cosine};
        plain(r, 3) = 2.0 - cosine;  // the control takes the sample's vector for the population's
    }
    const double truth[] = {level, level * spikes[0], level * spikes[1], 1.0};
    const double z =
        boost::math::quantile(boost::math::complement(boost::math::normal(), false_alarm / (2.0 * names.size())));
    for (std::size_t k = 0; k < names.size(); ++k) {
        const double mean = arma::mean(found.col(k));
        const double error = arma::stddev(found.col(k)) / std::sqrt(static_cast<double>(replicates));
        const double allowed = truth[k] * margin / static_cast<double>(samples) + z * error;
        std::cout << fmt::format("{}: mean {:.4f}, true {:.4f}, not corrected {:.4f}, allowed {:.4f}\n", names[k], mean,
                                 truth[k], arma::mean(plain.col(k)), allowed);
        EXPECT_LT(std::abs(mean - truth[k]), allowed) << names[k];
        EXPECT_GT(std::abs(arma::mean(plain.col(k)) - truth[k]), allowed) << "the control passes: " << names[k];
    }
    // A known noise level gives the same eigenvalues within their errors.
    const CovarianceSamples drawn = covariance_samples(samples, features, spikes, level, "missing", 0);
    AnalysedBlock block(with_missing(drawn.data, share, 0));
    const PcaOptions known{.noise_level = level};
    SpikedPca pca = weighted_components(block.singular_values(), block, {samples, features}, known, share);
    correct_for_missing(pca, {samples, features}, known, share);
    EXPECT_EQ(pca.noise_level, level);
    EXPECT_NEAR(pca.debiased[0], found(0, 1), 0.5 * pca.debiased_errors[0]);
}

}  // namespace
}  // namespace spiked::estimators

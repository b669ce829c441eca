#include "sim/covariance.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "sim/spiked_sampler.hpp"

namespace spiked::sim {
namespace {

// Root times root is the covariance, entry by entry, on either side, and its eigenvalues are the spectrum theory sees.
TEST(Covariance, RootsSquareToTheMatrixTheSpectrumBelongsTo) {
    for (const std::size_t size : {1, 5, 30}) {
        arma::mat toeplitz(size, size);
        arma::mat diagonal(size, size);
        for (arma::uword i = 0; i < size; ++i) {
            diagonal(i, i) = std::exp(-2.0 * (static_cast<double>(i) + 0.5) / static_cast<double>(size));
            for (arma::uword j = 0; j < size; ++j)
                toeplitz(i, j) = std::pow(-0.6, std::abs(static_cast<double>(i) - static_cast<double>(j)));
        }
        const std::pair<Covariance, arma::mat> cases[] = {{Covariance::identity(size), arma::eye(size, size)},
                                                          {Covariance::ar1(-0.6, size), toeplitz},
                                                          {Covariance::exponential(2.0, size), diagonal}};
        for (const auto& [covariance, matrix] : cases) {
            const arma::mat one = arma::eye(size, size);
            EXPECT_LT(arma::abs(covariance.root_times(covariance.root_times(one)) - matrix).max(), 1e-13);
            EXPECT_LT(arma::abs(covariance.times_root(covariance.times_root(one)) - matrix).max(), 1e-13);
            double mean = 0.0;
            double mean_square = 0.0;
            for (const double value : arma::eig_sym(matrix)) {
                mean += value / static_cast<double>(size);
                mean_square += value * value / static_cast<double>(size);
            }
            EXPECT_NEAR(covariance.spectrum().mean(), mean, 1e-12);
            EXPECT_NEAR(covariance.spectrum().mean_square(), mean_square, 1e-12);
            EXPECT_NEAR(covariance.spectrum().largest(), arma::eig_sym(matrix).max(), 1e-12);
        }
    }
}

TEST(SpikedSampler, PartsAddUpAndDependOnTheAddressOnly) {
    const SpikedModel model{Covariance::ar1(0.5, 20), Covariance::exponential(1.0, 12), {{3.0}, {2.0}}};
    const auto seed = stream::StudySeed::parse("0x7");
    const SpikedSample first = sample(model, seed, "cell", 4);
    const SpikedSample again = sample(model, seed, "cell", 4);
    EXPECT_TRUE(arma::approx_equal(first.observed, again.observed, "absdiff", 0.0));
    EXPECT_LT(arma::abs(first.signal + first.noise - first.observed).max(), 1e-15);
    EXPECT_LT(arma::abs(arma::svd(first.signal).head(3) - arma::vec{3.0, 2.0, 0.0}).max(), 1e-13);
    EXPECT_LT(arma::abs(first.left.t() * first.left - arma::eye(2, 2)).max(), 1e-14);
    EXPECT_GT(arma::abs(sample(model, seed, "cell", 5).noise - first.noise).max(), 0.1);
    EXPECT_GT(arma::abs(sample(model, seed, "other", 4).noise - first.noise).max(), 0.1);
    SpikedModel stronger = model;
    stronger.strengths[0] = {9.0};
    EXPECT_TRUE(arma::approx_equal(sample(stronger, seed, "cell", 4).noise, first.noise, "absdiff", 0.0));
}

}  // namespace
}  // namespace spiked::sim

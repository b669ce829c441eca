#include "estimators/ranks/rate_distortion_rank.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "estimators/compressors/compressor.hpp"
#include "estimators/tests/quantizer_samples.hpp"

namespace spiked::estimators {
namespace {

/// Noise and some components of strengths `first` decay^i, relative to the noise's largest singular value.
arma::mat block_of(std::size_t n, std::size_t d, std::size_t components, double first, double decay,
                   std::uint64_t replicate) {
    arma::mat block = gaussian(n, d, 10 * replicate) / std::sqrt(static_cast<double>(d));
    const double edge = 1.0 + std::sqrt(static_cast<double>(n) / static_cast<double>(d));
    for (std::size_t i = 0; i < components; ++i) {
        const arma::vec left = arma::normalise(arma::vec(gaussian(n, 1, 10 * replicate + 1 + 1000 * i)));
        const arma::vec right = arma::normalise(arma::vec(gaussian(d, 1, 10 * replicate + 2 + 1000 * i)));
        block += edge * first * std::pow(decay, static_cast<double>(i)) * left * right.t();
    }
    return block;
}

/// The sum of bits per entry and log2 of the error: the actual cost of rank r, after coding and decoding. At high rate
/// it changes by 1/2 log2(4) per bit.
double cost_of(AnalysedBlock& block, const std::string& spectral, unsigned factor_bits, unsigned bits) {
    const QuantizerOptions options{.norm = NumberFormat::fp32, .factor_bits = factor_bits, .seed = test_seed};
    const Compressor codec(parse_method(spectral + "+tq-mse"), block.block().n_cols, bits, options);
    const Encoded encoded = codec.encode(block).encoded;
    const double entries = static_cast<double>(block.block().n_elem);
    return static_cast<double>(encoded.ledger.total()) / entries +
           std::log2(relative_error(codec.decode(encoded.bytes, block.block().n_rows), block.block()));
}

TEST(RateDistortionRankReference, NoOtherRankCostsLessWhenCoded) {
    struct Case {
        std::size_t n, d, components;
        double first, decay;
        unsigned factor_bits;
    };
    const Case cases[] = {{128, 128, 8, 6.0, 0.7, 4}, {128, 128, 4, 2.0, 0.9, 4},  {256, 64, 10, 4.0, 0.85, 3},
                          {64, 192, 5, 8.0, 0.5, 2},  {128, 128, 6, 10.0, 0.8, 8}, {128, 128, 0, 1.0, 1.0, 4}};
    std::uint64_t replicate = 1;
    for (const Case& c : cases) {
        AnalysedBlock block(block_of(c.n, c.d, c.components, c.first, c.decay, replicate++));
        const RelativeSpectrum spectrum(block.singular_values(), block.shape());
        const std::size_t chosen = rate_distortion_rank(spectrum, c.factor_bits);
        std::vector<double> costs;
        for (std::size_t r = 0; r <= 16; ++r)
            costs.push_back(cost_of(block, "svd:" + std::to_string(r), c.factor_bits, 3));
        const double least = *std::min_element(costs.begin(), costs.end());
        ASSERT_LE(chosen, 16U);
        // The formula for the coding error holds on average; for single vectors the error varies by a few per cent.
        EXPECT_LE(costs[chosen], least + 0.01) << c.n << " x " << c.d << ", " << chosen;
        EXPECT_NEAR(cost_of(block, "svd:rd:bits=" + std::to_string(c.factor_bits), c.factor_bits, 3), costs[chosen],
                    1e-12);
        // Negative controls: three more ranks cost more, and so does rank 0 where some components are worth their bits.
        EXPECT_GT(costs[std::min<std::size_t>(chosen + 3, 16)], least + 0.01);
        if (chosen > 0) {
            EXPECT_GT(costs[0], least + 0.01);
        }
    }
}

TEST(RateDistortionRank, BreaksEvenAtTheFractionOfTheFormula) {
    // One component on a flat spectrum has E_1 / E_0 = 1 - (1 - D)^2 e; it is worth its bits from 2 c = -log2(E_1 /
    // E_0) on. The distortions D are those of Max 1960, and METHODS.md prints the last fraction.
    struct Case {
        unsigned bits;
        double distortion;
        double printed;  ///< in percent
    };
    for (const Case& c :
         {Case{16, 0.0, 29.385}, Case{1, 1.0 - 2.0 / std::numbers::pi, 5.61}, Case{4, 0.009497, 8.59}}) {
        const double cost = (256.0 * c.bits + 16.0) / 16384.0;
        const double even = (1.0 - std::exp2(-2.0 * cost)) / std::pow(1.0 - c.distortion, 2);
        EXPECT_NEAR(100.0 * even, c.printed, 0.005) << c.bits;
        for (const double factor : {0.999, 1.001}) {
            const double fraction = factor * even;
            std::vector<double> values(128, std::sqrt((1.0 - fraction) / 127.0));
            values[0] = std::sqrt(fraction);
            EXPECT_EQ(rate_distortion_rank(RelativeSpectrum(values, {128, 128}), c.bits), factor > 1.0 ? 1U : 0U)
                << c.bits;
        }
    }
}

TEST(RateDistortionRank, HandlesBlocksWithoutNoiseAndSteepSpectra) {
    std::vector<double> exact(20, 0.0);
    exact[0] = 3.0, exact[1] = 2.0;
    EXPECT_EQ(rate_distortion_rank(RelativeSpectrum(exact, {20, 30}), 16), 2U);
    const SpectralEstimator shrinking = spectral_estimator("eoptshrink:rank=rd");
    std::vector<double> steep(16);
    for (std::size_t i = 0; i < 16; ++i) steep[i] = std::pow(0.5, static_cast<double>(i));
    const Shrinkage found = shrinking.estimate(steep, {4096, 16});
    EXPECT_GT(found.rank, 0U);
    EXPECT_LT(found.rank, 16U);
    EXPECT_EQ(spectral_estimator("svd:rd").estimate(std::vector<double>(4, 0.0), {4, 4}).rank, 0U);
}

}  // namespace
}  // namespace spiked::estimators

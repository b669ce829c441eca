#include <gtest/gtest.h>

#include <armadillo>
#include <cmath>
#include <vector>

#include "core/device/emulated_block.hpp"
#include "estimators/spectral/cuda/shrinkage.hpp"
#include "estimators/spectral/eoptshrink.hpp"
#include "estimators/spectral/gavish_donoho.hpp"

/// Compares the shrinkage kernel with the functions that users call: they share one source, so on one machine every
/// number is the same.
namespace spiked::estimators::cuda {
namespace {

struct Answers {
    std::vector<ShrinkageStatus> status;
    std::vector<std::uint32_t> ranks;
    std::vector<double> edges, strengths, left, right, shrunk;
};

Answers run_kernel(const std::vector<std::vector<double>>& spectra, const std::vector<BlockStatus>& status, Shape shape,
                   const SpectralRule& rule, std::uint32_t room) {
    const std::size_t count = spectra.size();
    std::vector<double> values;
    for (const auto& spectrum : spectra) values.insert(values.end(), spectrum.begin(), spectrum.end());
    const std::vector<double> weights = intercept_weights(rule.eoptshrink.pilot);
    std::vector<double> work(3 * values.size(), NAN);
    Answers found{std::vector<ShrinkageStatus>(count), std::vector<std::uint32_t>(count), std::vector<double>(count)};
    for (auto* array : {&found.strengths, &found.left, &found.right, &found.shrunk}) array->assign(count * room, NAN);
    const ShrinkBlocks kernel{static_cast<std::uint32_t>(count),
                              shape,
                              rule,
                              weights.data(),
                              status.data(),
                              values.data(),
                              room,
                              work.data(),
                              found.status.data(),
                              found.ranks.data(),
                              found.edges.data(),
                              found.strengths.data(),
                              found.left.data(),
                              found.right.data(),
                              found.shrunk.data()};
    spiked::cuda::EmulatedExecutor().launch(kernel, kernel.blocks());
    return found;
}

/// Spectra of noise, noise with spikes, a low-rank block, a single value and zero, at three scales.
std::vector<std::vector<double>> spectra_of(Shape shape) {
    arma::arma_rng::set_seed(3);
    const std::size_t p = shape.short_side();
    std::vector<std::vector<double>> all;
    for (const double scale : {1.0, 1e-140, 1e140}) {
        arma::vec noise = arma::svd(arma::mat(shape.rows, shape.columns, arma::fill::randn));
        arma::vec spiked = noise;
        spiked(0) *= 3.0;
        if (p > 1) spiked(1) *= 2.5;
        arma::vec low = arma::zeros(p);
        low.head(std::min<std::size_t>(p, 2)).fill(5.0);
        for (const arma::vec& one :
             {noise, spiked, low, arma::vec(p, arma::fill::ones), arma::vec(p, arma::fill::zeros)})
            all.push_back(arma::conv_to<std::vector<double>>::from(scale * one));
    }
    return all;
}

void expect_same(const Answers& found, std::size_t b, std::uint32_t room, const Shrinkage& expected) {
    ASSERT_EQ(found.ranks[b], expected.rank);
    EXPECT_EQ(std::isnan(found.edges[b]), !expected.bulk_edge.has_value());
    if (expected.bulk_edge) {
        EXPECT_EQ(found.edges[b], expected.bulk_edge->value);
    }
    for (std::size_t i = 0; i < room; ++i) {
        const bool there = i < expected.rank;
        EXPECT_EQ(found.strengths[b * room + i], there ? expected.strengths[i] : 0.0);
        EXPECT_EQ(found.left[b * room + i], there ? expected.overlap_left[i] : 0.0);
        EXPECT_EQ(found.right[b * room + i], there ? expected.overlap_right[i] : 0.0);
        EXPECT_EQ(found.shrunk[b * room + i], there ? expected.shrunk[i] : 0.0);
    }
}

TEST(CudaShrinkageIdentity, TheKernelEqualsTheFunctionBitForBit) {
    for (const Shape shape : {Shape{2, 5}, Shape{12, 24}, Shape{64, 64}, Shape{128, 96}}) {
        std::vector<EOptShrinkOptions> readings = {
            {}, EOptShrinkOptions::paper(), EOptShrinkOptions::author(), EOptShrinkOptions::edge_fit()};
        EOptShrinkOptions known;
        known.rank = 3;
        readings.push_back(known);
        known.rank = 60;
        readings.push_back(known);
        EOptShrinkOptions no_imputation = EOptShrinkOptions::edge_fit();
        no_imputation.imputation = Imputation::none;
        no_imputation.loss = theory::Loss::nuclear;
        readings.push_back(no_imputation);
        EOptShrinkOptions nuclear = EOptShrinkOptions::author();
        nuclear.loss = theory::Loss::nuclear;
        readings.push_back(nuclear);
        const auto spectra = spectra_of(shape);
        constexpr std::uint32_t room = 70;
        for (std::size_t reading = 0; reading < readings.size(); ++reading) {
            const Answers found = run_kernel(spectra, std::vector<BlockStatus>(spectra.size(), BlockStatus::fine),
                                             shape, eoptshrink_rule(shape, readings[reading]), room);
            for (std::size_t b = 0; b < spectra.size(); ++b) {
                SCOPED_TRACE(testing::Message()
                             << shape.rows << " x " << shape.columns << " reading " << reading << " spectrum " << b);
                expect_same(found, b, room, eoptshrink(spectra[b], shape, readings[reading]));
            }
        }
    }
}

TEST(CudaShrinkageIdentity, AlsoUnderWhiteNoise) {
    std::size_t kept = 0;
    for (const Shape shape : {Shape{2, 5}, Shape{12, 24}, Shape{64, 64}, Shape{128, 96}})
        for (const bool hard : {true, false})
            for (const auto loss : {theory::Loss::frobenius, theory::Loss::operator_norm, theory::Loss::nuclear})
                for (const auto level : {std::optional<double>(), std::optional<double>(0.7)}) {
                    const GavishDonohoOptions options{.loss = loss, .noise_level = level};
                    const auto spectra = spectra_of(shape);
                    const Answers found = run_kernel(spectra, std::vector<BlockStatus>(spectra.size()), shape,
                                                     white_rule(shape, options, hard), 70);
                    for (std::size_t b = 0; b < spectra.size(); ++b) {
                        SCOPED_TRACE(testing::Message() << shape.rows << " x " << shape.columns << " spectrum " << b);
                        const Shrinkage expected = hard ? gavish_donoho_hard(spectra[b], shape, options)
                                                        : gavish_donoho_shrink(spectra[b], shape, options);
                        expect_same(found, b, 70, expected);
                        kept += expected.rank;
                    }
                }
    EXPECT_GT(kept, 100U);
}

TEST(CudaShrinkage, ABlockWithoutValuesHasAStatusAndZeros) {
    const auto spectra = spectra_of({12, 24});
    std::vector<BlockStatus> status(spectra.size(), BlockStatus::fine);
    status[1] = BlockStatus::not_finite;
    const Answers found = run_kernel(spectra, status, {12, 24}, eoptshrink_rule({12, 24}), 1);
    EXPECT_EQ(found.status[0], ShrinkageStatus::estimated);
    EXPECT_EQ(found.status[1], ShrinkageStatus::failed);
    EXPECT_EQ(found.ranks[1], 0U);
    EXPECT_EQ(found.shrunk[1], 0.0);
    EXPECT_EQ(found.status[2], ShrinkageStatus::exactly_low_rank);
    EXPECT_EQ(found.ranks[2], 2U) << "the rank is given even if its components do not fit";
    EXPECT_EQ(found.status[4], ShrinkageStatus::nothing);
}

}  // namespace
}  // namespace spiked::estimators::cuda

#include "estimators/svd/analysed_block.hpp"

#include <gtest/gtest.h>

#include "core/runtime/error.hpp"
#include "estimators/spectral/spectral_estimator.hpp"
#include "estimators/svd/batch_decomposition.hpp"
#include "sim/random/normal.hpp"

namespace spiked::estimators {
namespace {

using EmptyLines = AnalysedBlock::EmptyLines;

arma::mat gaussian_block(std::size_t rows, std::size_t columns, std::uint64_t replicate) {
    arma::mat block(rows, columns);
    stream::fill_normal(stream::Stream(stream::StudySeed::parse("0x5eed"), "analysed", stream::Role::noise, replicate),
                        {block.memptr(), block.n_elem});
    return block;
}

/// Blocks of two shapes: one has zero rows and columns, one is zero, and one has a NaN.
std::vector<arma::mat> mixed_blocks() {
    std::vector<arma::mat> blocks;
    for (std::uint64_t i = 0; i < 5; ++i) blocks.push_back(gaussian_block(20, 12, i));
    blocks.push_back(gaussian_block(12, 20, 5));
    blocks[2].row(3).zeros();
    blocks[2].col(7).zeros();
    blocks.push_back(arma::mat(20, 12));
    blocks.push_back(gaussian_block(20, 12, 7));
    blocks.back()(4, 4) = arma::datum::nan;
    return blocks;
}

TEST(AnalysedBlock, BlocksOfABatchHaveTheResultsOfSingleBlocks) {
    for (const Precision precision : {Precision::float64, Precision::float32}) {
        auto batch = AnalysedBlock::as_batch(mixed_blocks(), EmptyLines::strip, precision);
        const auto blocks = mixed_blocks();
        for (std::size_t i = 0; i + 1 < blocks.size(); ++i) {
            AnalysedBlock alone(blocks[i], EmptyLines::strip, precision);
            EXPECT_EQ(batch[i].singular_values(), alone.singular_values()) << i;
            const std::size_t count = std::min<std::size_t>(3, alone.singular_values().size());
            const SingularVectors a = batch[i].vectors(count);
            const SingularVectors b = alone.vectors(count);
            EXPECT_TRUE(arma::approx_equal(a.left, b.left, "absdiff", 0.0)) << i;
            EXPECT_TRUE(arma::approx_equal(a.right, b.right, "absdiff", 0.0)) << i;
        }
        EXPECT_TRUE(batch[6].singular_values().empty());
        EXPECT_THROW((void)batch.back().singular_values(), Error);
    }
}

/// Studies and dumps are decomposed by the code that `bench decompose` times.
template <class Real>
void expect_batch_decomposition(Precision precision) {
    const arma::mat block = gaussian_block(40, 32, 0);
    AnalysedBlock analysed(block, EmptyLines::strip, precision);
    const auto entries = arma::conv_to<arma::Mat<Real>>::from(block);
    BatchDecomposition<Real> batch({40, 32});
    batch.decompose({entries.memptr(), entries.n_elem});
    const auto values = batch.singular_values(0);
    EXPECT_EQ(analysed.singular_values(), std::vector<double>(values.begin(), values.end()));
    arma::Mat<Real> left;
    batch.leading_vectors(0, 4, &left, nullptr);
    EXPECT_TRUE(arma::approx_equal(analysed.vectors(4).left, arma::conv_to<arma::mat>::from(left), "absdiff", 0.0));
    // Negative control: the last bits of LAPACK's values differ.
    EXPECT_NE(analysed.singular_values(), singular_values(block));
}

TEST(AnalysedBlock, IsDecomposedByTheBatchDecomposition) {
    expect_batch_decomposition<double>(Precision::float64);
    expect_batch_decomposition<float>(Precision::float32);
}

TEST(AnalysedBlock, AnExactlyLowRankBlockHasItsRankInBothPrecisions) {
    const arma::mat u = arma::orth(gaussian_block(128, 15, 1));
    const arma::mat v = arma::orth(gaussian_block(96, 15, 2));
    const arma::mat fifteen = u * arma::diagmat(arma::linspace(8.0, 3.0, 15)) * v.t();
    for (const Precision precision : {Precision::float64, Precision::float32}) {
        AnalysedBlock constant(arma::mat(40, 30, arma::fill::value(3.7)), EmptyLines::strip, precision);
        AnalysedBlock low(fifteen, EmptyLines::strip, precision);
        for (const char* name : {"eoptshrink", "eoptshrink:edgefit", "gd-hard", "gd-shrink", "screenot:5", "tw-test"})
            EXPECT_EQ(spectral_estimator(name).estimate(constant.singular_values(), constant.shape()).rank, 1U)
                << name << " in " << enum_name(precision);
        for (const char* name : {"eoptshrink:edgefit", "gd-hard", "screenot:20", "tw-test"})
            EXPECT_EQ(spectral_estimator(name).estimate(low.singular_values(), low.shape()).rank, 15U)
                << name << " in " << enum_name(precision);
    }
}

TEST(AnalysedBlock, OnlyTheBlockThatDoesNotFitFloatIsRejected) {
    std::vector<arma::mat> blocks;
    for (std::uint64_t i = 0; i < 4; ++i) blocks.push_back(gaussian_block(20, 12, i));
    blocks[1](3, 3) = 1e39;
    auto batch = AnalysedBlock::as_batch(blocks, EmptyLines::strip, Precision::float32);
    for (int twice = 0; twice < 2; ++twice) {
        EXPECT_THROW((void)batch[1].singular_values(), Error);
        for (const std::size_t i : {0U, 2U, 3U})
            EXPECT_EQ(batch[i].singular_values(),
                      AnalysedBlock(blocks[i], EmptyLines::strip, Precision::float32).singular_values());
    }
}

TEST(AnalysedBlockReference, LargeBlocksAreDecomposedInDoubleAndAgreeWithLapack) {
    const arma::mat block = gaussian_block(1030, 1026, 0);
    AnalysedBlock analysed(block, EmptyLines::strip, Precision::float32);
    const std::vector<double> expected = singular_values(block);
    const std::vector<double>& found = analysed.singular_values();
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-12 * expected[0]) << i;
    const SingularVectors vectors = analysed.vectors(2);
    for (arma::uword k = 0; k < 2; ++k)
        EXPECT_LT(arma::norm(block * vectors.right.col(k) - found[k] * vectors.left.col(k)), 1e-12 * found[0]);
}

}  // namespace
}  // namespace spiked::estimators

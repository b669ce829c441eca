#include <gtest/gtest.h>

#include <vector>

#include "core/device/emulated_block.hpp"
#include "estimators/svd/cuda/low_rank.hpp"
#include "estimators/tests/quantizer_samples.hpp"

/// The kernel for estimate and residual of a batch, on emulated blocks, against a product in double.
namespace spiked::estimators::cuda {
namespace {

constexpr std::uint32_t low_rank_count = 4;
constexpr std::uint32_t vectors = 20;
constexpr std::uint32_t room = 22;

template <class Real>
struct Batch {
    std::uint32_t rows;
    std::uint32_t columns;
    std::vector<BlockStatus> status{BlockStatus::fine, BlockStatus::for_the_host, BlockStatus::not_finite,
                                    BlockStatus::fine};
    std::vector<std::uint32_t> ranks{3, 19, 2, 0};
    std::vector<double> shrunk;
    arma::Cube<Real> left, right, blocks, estimate, residual;

    Batch(std::uint32_t n, std::uint32_t d)
        : rows(n),
          columns(d),
          shrunk(low_rank_count * room, NAN),
          left(n, vectors, low_rank_count),
          right(d, vectors, low_rank_count),
          blocks(n, d, low_rank_count),
          estimate(n, d, low_rank_count),
          residual(n, d, low_rank_count) {
        estimate.fill(static_cast<Real>(NAN));
        residual.fill(static_cast<Real>(NAN));
        for (std::uint32_t b = 0; b < low_rank_count; ++b) {
            left.slice(b) = gaussian<Real>(n, vectors, b);
            right.slice(b) = gaussian<Real>(d, vectors, b + low_rank_count);
            blocks.slice(b) = gaussian<Real>(n, d, b + 2 * low_rank_count);
            for (std::uint32_t i = 0; i < ranks[b]; ++i) shrunk[b * room + i] = 3.0 / (1.0 + i);
        }
        blocks(0, 0, 2) = static_cast<Real>(NAN);
    }
    [[nodiscard]] LowRankBlocks<Real> components() const {
        return {rows,         columns,       vectors,       room,          status.data(),
                ranks.data(), shrunk.data(), left.memptr(), right.memptr()};
    }
    void run() {
        const SplitLowRank<Real> kernel{low_rank_count, components(), blocks.memptr(), estimate.memptr(),
                                        residual.memptr()};
        spiked::cuda::EmulatedExecutor().launch(kernel, kernel.blocks());
    }
    [[nodiscard]] arma::mat expected(std::uint32_t b) const {
        arma::mat sum(rows, columns, arma::fill::zeros);
        for (std::uint32_t k = 0; k < ranks[b]; ++k)
            sum += shrunk[b * room + k] * arma::conv_to<arma::vec>::from(left.slice(b).col(k)) *
                   arma::conv_to<arma::rowvec>::from(right.slice(b).col(k));
        return sum;
    }
};

template <class Real>
arma::mat in_double(const arma::Mat<Real>& matrix) {
    return arma::conv_to<arma::mat>::from(matrix);
}

template <class Real>
void expect_the_products(std::uint32_t rows, std::uint32_t columns) {
    SCOPED_TRACE(testing::Message() << rows << " x " << columns << " of " << sizeof(Real) << " bytes");
    Batch<Real> batch(rows, columns);
    batch.run();
    // Entries of blocks and vectors are at most 5 in magnitude, so the magnitudes of the terms of a sum add up to less
    // than 300.
    const double limit = 300.0 * 22.0 * static_cast<double>(std::numeric_limits<Real>::epsilon());
    for (const std::uint32_t b : {0U, 1U, 3U}) {
        const arma::mat estimate = batch.expected(b);
        EXPECT_LT(arma::abs(in_double<Real>(batch.estimate.slice(b)) - estimate).max(), limit);
        const arma::mat residual = in_double<Real>(batch.blocks.slice(b)) - estimate;
        EXPECT_LT(arma::abs(in_double<Real>(batch.residual.slice(b)) - residual).max(), limit);
    }
    EXPECT_EQ(arma::abs(batch.estimate.slice(3)).max(), Real{0}) << "rank 0";
    EXPECT_EQ(arma::abs(batch.estimate.slice(2)).max(), Real{0}) << "not finite";
    EXPECT_EQ(arma::abs(batch.residual.slice(2)).max(), Real{0}) << "not finite";
    batch.ranks[1] = 18;
    EXPECT_GT(arma::abs(in_double<Real>(batch.estimate.slice(1)) - batch.expected(1)).max(), 4.0 * limit)
        << "negative control: a missing component is detected";
}

TEST(CudaLowRankReference, EstimateAndResidualAreThoseOfAProductInDouble) {
    for (const auto& [rows, columns] : {std::pair{1U, 7U}, {64U, 64U}, {128U, 96U}, {30U, 129U}}) {
        expect_the_products<float>(rows, columns);
        expect_the_products<double>(rows, columns);
    }
}

TEST(CudaLowRank, TheResidualMayOverwriteTheBlocks) {
    Batch<double> batch(70, 40);
    batch.run();
    const arma::cube apart = batch.residual;
    batch.residual = batch.blocks;
    const SplitLowRank<double> kernel{low_rank_count, batch.components(), batch.residual.memptr(), nullptr,
                                      batch.residual.memptr()};
    spiked::cuda::EmulatedExecutor().launch(kernel, kernel.blocks());
    EXPECT_TRUE(std::equal(apart.begin(), apart.end(), batch.residual.begin()));
}

}  // namespace
}  // namespace spiked::estimators::cuda

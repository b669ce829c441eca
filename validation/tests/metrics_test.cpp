#include <gtest/gtest.h>

#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <stdexcept>

#include "sim/stream/normal.hpp"
#include "validation/block_metrics.hpp"
#include "validation/tests/clustered_mean.hpp"
#include "validation/parallel.hpp"

namespace spiked::validation {
namespace {

arma::mat gaussian(std::size_t rows, std::size_t columns, std::uint64_t replicate) {
    arma::mat matrix(rows, columns);
    stream::fill_normal(stream::Stream({}, "metrics", stream::Role::noise, replicate),
                        {matrix.memptr(), matrix.n_elem});
    return matrix;
}

double dot(const arma::mat& a, arma::uword i, const arma::mat& b, arma::uword j) {
    double sum = 0.0;
    for (arma::uword c = 0; c < a.n_cols; ++c) sum += a(i, c) * b(j, c);
    return sum;
}

TEST(BlockMetricsReference, AgreesWithPlainLoopsOverPairs) {
    const arma::mat block = gaussian(9, 6, 0);
    const arma::mat decoded = block * 0.9 + 0.1 * gaussian(9, 6, 1);
    double bias[2] = {};
    double squares[2] = {};
    for (arma::uword j = 0; j < 9; ++j)
        for (arma::uword t = 0; t < 9; ++t) {
            if (j == t) continue;
            const double nj = std::sqrt(dot(block, j, block, j));
            const double nt = std::sqrt(dot(block, t, block, t));
            const double nh = std::sqrt(dot(decoded, t, decoded, t));
            const double cosine = dot(block, j, block, t) / (nj * nt);
            const double errors[2] = {dot(block, j, decoded, t) / (nj * nh) - cosine,
                                      dot(block, j, decoded, t) / (nj * nt) - cosine};
            for (int k = 0; k < 2; ++k) bias[k] += errors[k] / 72.0, squares[k] += errors[k] * errors[k] / 72.0;
        }
    const BlockMetrics found = measure_block(block, decoded);
    EXPECT_NEAR(found.ip_bias, bias[0], 1e-14);
    EXPECT_NEAR(found.ip_bias_plain, bias[1], 1e-14);
    EXPECT_NEAR(found.ip_std, std::sqrt(squares[0] - bias[0] * bias[0]), 1e-14);
    EXPECT_NEAR(found.ip_std_plain, std::sqrt(squares[1] - bias[1] * bias[1]), 1e-14);
    EXPECT_NEAR(found.relative_l2, arma::norm(decoded - block, "fro") / arma::norm(block, "fro"), 1e-15);
}

TEST(BlockMetrics, AUniformShrinkageIsSeenOnlyByThePlainBias) {
    const arma::mat block = gaussian(20, 8, 2) + 1.0;
    const BlockMetrics found = measure_block(block, 0.8 * block);
    EXPECT_NEAR(found.relative_l2, 0.2, 1e-14);
    EXPECT_NEAR(found.ip_bias, 0.0, 1e-15);
    EXPECT_NEAR(found.ip_std, 0.0, 1e-15);
    EXPECT_LT(found.ip_bias_plain, -0.01);
}

TEST(BlockMetrics, ZeroRowsAreLeftOutOfThePairs) {
    arma::mat block = gaussian(6, 4, 3);
    arma::mat decoded = gaussian(6, 4, 4);
    const BlockMetrics whole = measure_block(block.rows(1, 5), decoded.rows(1, 5));
    block.row(0).zeros();
    const BlockMetrics found = measure_block(block, decoded);
    EXPECT_DOUBLE_EQ(found.ip_bias, whole.ip_bias);
    EXPECT_DOUBLE_EQ(found.ip_std_plain, whole.ip_std_plain);
}

TEST(BlockMetrics, ABlockWithoutPairsHasNoInnerProductError) {
    const BlockMetrics single = measure_block(gaussian(1, 4, 5), gaussian(1, 4, 6));
    EXPECT_TRUE(std::isnan(single.ip_bias));
    const BlockMetrics zero = measure_block(arma::mat(3, 4), arma::mat(3, 4));
    EXPECT_EQ(zero.relative_l2, 0.0);
    EXPECT_TRUE(std::isnan(zero.ip_bias_plain));
}

TEST(ClusteredMean, EqualClustersGiveTheErrorOfTheirMeans) {
    // Means 1, 2, 6 of clusters of 4: mean 3, sd of means sqrt(7), error sqrt(7/3).
    const ClusteredMean found = clustered_mean({{"a", {4, 4.0}}, {"b", {4, 8.0}}, {"c", {4, 24.0}}});
    EXPECT_DOUBLE_EQ(found.mean, 3.0);
    EXPECT_NEAR(found.standard_error, std::sqrt(7.0 / 3.0), 1e-14);
    EXPECT_EQ(found.count, 12U);
}

TEST(ClusteredMean, SplittingTheWorkDifferentlyChangesNothingAndEmptyClustersDoNotCount) {
    const ClusteredMean found = clustered_mean({{"a", {3, 4.5}}, {"b", {1, 8.0}}});
    const ClusteredMean with_empty = clustered_mean({{"a", {3, 4.5}}, {"b", {1, 8.0}}, {"c", {0, 0.0}}});
    EXPECT_DOUBLE_EQ(found.standard_error, with_empty.standard_error);
    EXPECT_TRUE(std::isnan(clustered_mean({{"a", {3, 4.5}}}).standard_error));
    EXPECT_TRUE(std::isnan(clustered_mean({}).mean));
}

// Blocks of one cluster share a draw, so an error computed as if blocks were independent would be too small by
// sqrt(10): the coverage of mean +- 2.576 se over 2000 draws tells.
TEST(ClusteredMeanLaw, ErrorBarsCoverAtTheirNominalRate) {
    constexpr int draws = 2000;
    constexpr int groups = 60;
    constexpr int blocks = 10;
    int clustered_misses = 0;
    int naive_misses = 0;
    for (std::uint64_t r = 0; r < draws; ++r) {
        std::vector<double> x(groups);
        stream::fill_normal(stream::Stream({}, "coverage", stream::Role::noise, r), x);
        std::map<std::string, ClusterSum> clustered;
        std::map<std::string, ClusterSum> naive;
        for (int g = 0; g < groups; ++g) {
            clustered[std::to_string(g)] = {blocks, blocks * x[static_cast<std::size_t>(g)]};
            for (int b = 0; b < blocks; ++b) naive[fmt::format("{}/{}", g, b)] = {1, x[static_cast<std::size_t>(g)]};
        }
        const auto misses = [](const ClusteredMean& m) { return std::abs(m.mean) > 2.576 * m.standard_error ? 1 : 0; };
        clustered_misses += misses(clustered_mean(clustered));
        naive_misses += misses(clustered_mean(naive));
    }
    // 1 % nominal, 1.25 % with Student's t at 59 degrees of freedom: 25 expected, binomial sd 5; limit at 1e-6.
    EXPECT_LT(clustered_misses, 25 + 5 * 5.0);
    EXPECT_GT(clustered_misses, 4);
    EXPECT_GT(naive_misses, 500) << "control: errors that ignore clusters must fail";
}

TEST(Parallel, EveryIndexRunsOnceAndTheFirstFailureIsReported) {
    for (const std::size_t threads : {1, 2, 5}) {
        std::vector<std::atomic<int>> seen(100);
        for_each_parallel(100, threads, [&](std::size_t i) { ++seen[i]; });
        for (const auto& count : seen) EXPECT_EQ(count, 1);
        try {
            for_each_parallel(100, threads, [](std::size_t i) {
                if (i == 3) throw std::runtime_error("three");
            });
            ADD_FAILURE() << "nothing was thrown";
        } catch (const std::runtime_error& error) {
            EXPECT_STREQ(error.what(), "three");
        }
    }
    EXPECT_NO_THROW(for_each_parallel(0, 3, [](std::size_t) { throw std::runtime_error("no work"); }));
}

}  // namespace
}  // namespace spiked::validation

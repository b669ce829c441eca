#include <gtest/gtest.h>

#include <algorithm>
#include <armadillo>
#include <cmath>
#include <limits>
#include <vector>

#include "core/device/emulated_block.hpp"
#include "estimators/svd/cuda/decomposition_pipeline.hpp"

/// The kernels of a batched decomposition, emulated thread by thread on the host, against LAPACK in double.
namespace spiked::estimators::cuda {
namespace {

template <class Real>
struct Found {
    std::vector<BlockStatus> status;
    std::vector<double> values;
    std::vector<Real> long_vectors, short_vectors;
};

template <class Real>
struct Blocks {
    std::vector<arma::Mat<Real>> all;
    std::vector<Real> entries;

    void add(const arma::mat& block) {
        all.push_back(arma::conv_to<arma::Mat<Real>>::from(block));
        entries.insert(entries.end(), all.back().begin(), all.back().end());
    }
};

BatchSize size_of(std::size_t count, std::size_t rows, std::size_t columns, std::uint32_t vectors) {
    const auto shape = std::minmax(rows, columns);
    return {static_cast<std::uint32_t>(count), static_cast<std::uint32_t>(shape.second),
            static_cast<std::uint32_t>(shape.first), rows < columns, vectors};
}

/// Runs the kernels in memory that is all NaN at first and returns their results.
template <class Real>
Found<Real> run_kernels(const Blocks<Real>& blocks, const BatchSize& size, std::uint32_t part) {
    DecompositionBatch<Real> batch;
    std::vector<unsigned char> memory(lay_out<Real>(nullptr, nullptr, size, part, batch), 0xFF);
    lay_out(memory.data(), blocks.entries.data(), size, part, batch);
    spiked::cuda::EmulatedExecutor executor;
    decompose(executor, batch, part);
    const std::size_t values = std::size_t{size.count} * size.short_side;
    const std::size_t vectors = std::size_t{size.count} * size.vectors;
    return {{batch.status, batch.status + size.count},
            {batch.values, batch.values + values},
            {batch.left_vectors, batch.left_vectors + vectors * size.long_side},
            {batch.right_vectors, batch.right_vectors + vectors * size.short_side}};
}

/// Checks the bounds of batch_decomposition.hpp. Of a block whose vectors are left to the host, it checks the values
/// and that the vectors are zero.
template <class Real>
void expect_as_lapack(const Blocks<Real>& blocks, const BatchSize& size, const Found<Real>& found,
                      bool all_fine = true) {
    constexpr bool in_double = sizeof(Real) == 8;
    const std::size_t p = size.short_side;
    for (std::size_t b = 0; b < blocks.all.size(); ++b) {
        if (all_fine) {
            ASSERT_EQ(found.status[b], BlockStatus::fine) << "block " << b;
        }
        ASSERT_NE(found.status[b], BlockStatus::not_finite) << "block " << b;
        const arma::mat block = arma::conv_to<arma::mat>::from(blocks.all[b]);
        // The block is scaled so that LAPACK neither overflows nor loses digits.
        const double scale = std::ldexp(1.0, block.is_zero() ? 0 : -std::ilogb(arma::abs(block).max()));
        const arma::vec expected = arma::svd(arma::mat(block * scale));
        const arma::vec values = arma::vec(found.values.data() + b * p, p) * scale;
        const double largest = expected(0);
        const double limit = in_double ? 1e-12 * static_cast<double>(p) : 1e-6 + 4e-9 * size.long_side;
        EXPECT_LE(arma::abs(values - expected).max(), limit * largest) << "block " << b;
        for (std::size_t i = 0; !in_double && i < std::min<std::size_t>(p, 16) && expected(i) > largest / 4.0; ++i)
            EXPECT_LE(std::abs(values(i) - expected(i)), 1e-6 * expected(i)) << "block " << b << " value " << i;
        const std::size_t wanted = size.vectors;
        if (wanted == 0) continue;
        arma::mat left = arma::conv_to<arma::mat>::from(
            arma::Mat<Real>(found.long_vectors.data() + b * wanted * size.long_side, size.long_side, wanted));
        arma::mat right =
            arma::conv_to<arma::mat>::from(arma::Mat<Real>(found.short_vectors.data() + b * wanted * p, p, wanted));
        if (found.status[b] != BlockStatus::fine) {
            EXPECT_TRUE(left.is_zero() && right.is_zero()) << "block " << b;
            continue;
        }
        if (size.wide) left.swap(right);
        const double precise = in_double ? 1e-12 : 5e-6;
        const arma::mat identity = arma::eye(wanted, wanted);
        const arma::mat weights = arma::diagmat(values.head(wanted));
        EXPECT_LE(arma::abs(left.t() * left - identity).max(), precise) << "block " << b;
        EXPECT_LE(arma::abs(right.t() * right - identity).max(), precise) << "block " << b;
        EXPECT_LE(arma::abs(block * scale * right - left * weights).max(), precise * largest) << "block " << b;
        EXPECT_LE(arma::abs(scale * block.t() * left - right * weights).max(), precise * largest) << "block " << b;
    }
}

arma::mat spiked_block(std::size_t rows, std::size_t columns) {
    arma::mat block(rows, columns, arma::fill::randn);
    const arma::vec left = arma::normalise(arma::vec(rows, arma::fill::randn));
    const arma::vec right = arma::normalise(arma::vec(columns, arma::fill::randn));
    return block + 4.0 * std::sqrt(static_cast<double>(rows + columns)) * left * right.t();
}

template <class Real>
class CudaDecompositionReference : public testing::Test {
protected:
    void SetUp() override { arma::arma_rng::set_seed(11); }
};
using Reals = testing::Types<double, float>;
TYPED_TEST_SUITE(CudaDecompositionReference, Reals);

/// Covers every tiling, full and padded, tall and wide, and parts that do not divide the batch.
TYPED_TEST(CudaDecompositionReference, SpikedBlocksOfAnyShapeThatFits) {
    struct Case {
        std::size_t rows, columns;
        std::uint32_t vectors;
    };
    for (const auto& [rows, columns, vectors] :
         {Case{1, 1, 1}, Case{2, 5, 2}, Case{32, 32, 4}, Case{31, 64, 8}, Case{64, 50, 0}, Case{96, 96, 20},
          Case{128, 64, 8}, Case{65, 128, 32}, Case{128, 128, 16}, Case{256, 128, 3}, Case{130, 140, 4},
          Case{256, 256, 16}, Case{200, 180, 20}}) {
        SCOPED_TRACE(testing::Message() << rows << " x " << columns);
        const BatchSize size = size_of(3, rows, columns, vectors);
        ASSERT_TRUE(fits(size.long_side, size.short_side));
        Blocks<TypeParam> blocks;
        for (int b = 0; b < 3; ++b) blocks.add(spiked_block(rows, columns));
        const auto found = run_kernels(blocks, size, 2);
        expect_as_lapack(blocks, size, found);
    }
    EXPECT_FALSE(fits(257, 128));
    EXPECT_FALSE(fits(8, 0));
}

/// Blocks that are rank deficient, have equal singular values, are zero, have one entry, are graded or diagonal, or
/// have repeated rows. Vectors come from the kernels or, where the status says so, are left to the host.
TYPED_TEST(CudaDecompositionReference, DegenerateBlocks) {
    constexpr std::size_t n = 48;
    Blocks<TypeParam> blocks;
    blocks.add(arma::mat(n, 3, arma::fill::randn) * arma::mat(3, n, arma::fill::randn));
    blocks.add(arma::eye(n, n));
    blocks.add(arma::zeros(n, n));
    arma::mat one = arma::zeros(n, n);
    one(n / 2, 7) = -3.0;
    blocks.add(one);
    blocks.add(arma::orth(arma::mat(n, n, arma::fill::randn)));
    blocks.add(arma::diagmat(arma::exp2(-arma::linspace(0.0, 40.0, n))));
    blocks.add(arma::ones(n, n));
    arma::mat twice(n, n, arma::fill::randn);
    twice.tail_rows(n / 2) = twice.head_rows(n / 2);
    blocks.add(twice);
    const BatchSize size = size_of(blocks.all.size(), n, n, 4);
    const auto found = run_kernels(blocks, size, 8);
    const std::vector<TypeParam>& vectors = found.long_vectors;
    EXPECT_TRUE(std::ranges::none_of(vectors, [](TypeParam x) { return std::isnan(x); }));
    const auto left_over = std::ranges::count(found.status, BlockStatus::for_the_host);
    EXPECT_GE(left_over, 1) << "a zero block has no twisted factorisation";
    EXPECT_LE(left_over, 6);
    expect_as_lapack(blocks, size, found, false);
}

TYPED_TEST(CudaDecompositionReference, HugeAndTinyBlocks) {
    Blocks<TypeParam> blocks;
    for (const double scale : {1.0, sizeof(TypeParam) == 8 ? 1e300 : 1e36, sizeof(TypeParam) == 8 ? 1e-300 : 1e-36})
        blocks.add(scale * spiked_block(40, 30));
    const BatchSize size = size_of(3, 40, 30, 4);
    const auto found = run_kernels(blocks, size, 3);
    expect_as_lapack(blocks, size, found);
}

/// A block with NaN or infinity is marked by its status, holds zeros and does not change its neighbours.
TYPED_TEST(CudaDecompositionReference, NanAndInfinityAreRejected) {
    Blocks<TypeParam> blocks;
    for (int b = 0; b < 4; ++b) blocks.add(spiked_block(33, 20));
    const auto alone = run_kernels(blocks, size_of(4, 33, 20, 2), 4);
    const std::size_t entries = 33 * 20;
    blocks.entries[entries + 5] = std::numeric_limits<TypeParam>::quiet_NaN();
    blocks.entries[2 * entries + 600] = -std::numeric_limits<TypeParam>::infinity();
    const auto found = run_kernels(blocks, size_of(4, 33, 20, 2), 4);
    for (std::size_t b = 0; b < 4; ++b) {
        const bool bad = b == 1 || b == 2;
        EXPECT_EQ(found.status[b], bad ? BlockStatus::not_finite : BlockStatus::fine);
        for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(found.values[20 * b + i], bad ? 0.0 : alone.values[20 * b + i]);
        for (std::size_t i = 0; i < 66; ++i)
            EXPECT_EQ(found.long_vectors[66 * b + i], bad ? TypeParam(0) : alone.long_vectors[66 * b + i]);
    }
}

/// The results for a block do not depend on its batch.
TYPED_TEST(CudaDecompositionReference, ResultsDoNotDependOnTheBatch) {
    Blocks<TypeParam> blocks;
    for (int b = 0; b < 18; ++b) blocks.add(spiked_block(20, 24));
    const auto in_batch = run_kernels(blocks, size_of(18, 20, 24, 2), 7);
    Blocks<TypeParam> last;
    last.add(arma::conv_to<arma::mat>::from(blocks.all[17]));
    const auto alone = run_kernels(last, size_of(1, 20, 24, 2), 1);
    for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(alone.values[i], in_batch.values[17 * 20 + i]);
    for (std::size_t i = 0; i < 48; ++i) EXPECT_EQ(alone.long_vectors[i], in_batch.long_vectors[17 * 48 + i]);
}

/// All values of a matrix are bisected when QL is reported not to have converged.
TYPED_TEST(CudaDecompositionReference, ValuesByBisectionWhereQlDidNotConverge) {
    Blocks<TypeParam> blocks;
    blocks.add(spiked_block(32, 32));
    const BatchSize size = size_of(1, 32, 32, 0);
    DecompositionBatch<TypeParam> batch;
    std::vector<unsigned char> memory(lay_out<TypeParam>(nullptr, nullptr, size, 1, batch), 0xFF);
    lay_out(memory.data(), blocks.entries.data(), size, 1, batch);
    spiked::cuda::EmulatedExecutor executor;
    decompose(executor, batch, 1);
    const std::vector<double> by_ql(batch.values, batch.values + 32);
    batch.eigenvalues[0] = std::numeric_limits<double>::quiet_NaN();
    executor.launch(SingularValues<TypeParam>{batch}, 1);
    for (std::size_t i = 0; i < 32; ++i) {
        EXPECT_NEAR(batch.values[i], by_ql[i], sizeof(TypeParam) == 8 ? 1e-13 * by_ql[0] : 1e-8 * by_ql[0]);
        EXPECT_GT(batch.values[i], 0.0);
    }
}

}  // namespace
}  // namespace spiked::estimators::cuda

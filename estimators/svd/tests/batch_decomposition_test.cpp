// The fast decomposition against LAPACK in double: values, orthogonality and residuals for spectra of every kind, in
// both precisions and with every instruction set that this processor has.
#include "estimators/svd/batch_decomposition.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "core/runtime/error.hpp"
#include "estimators/svd/tests/random_blocks.hpp"

namespace spiked::estimators {
namespace {

using namespace random_blocks;

std::vector<Instructions> instruction_sets() {
    std::vector<Instructions> found;
    for (const Instructions wanted : {Instructions::generic, Instructions::avx2, Instructions::avx512}) try {
            const BatchDecomposition<float> decomposition({2, 2}, wanted);
            found.push_back(wanted);
        } catch (const Error&) {
        }
    return found;
}

template <class Real>
void judge(const Batch& batch, Instructions instructions, Found& found) {
    const Shape shape{batch.blocks[0].n_rows, batch.blocks[0].n_cols};
    BatchDecomposition<Real> decomposition(shape, instructions);
    decomposition.decompose(side_by_side<Real>(batch.blocks));
    ASSERT_EQ(decomposition.count(), batch.blocks.size());
    for (std::size_t i = 0; i < batch.blocks.size(); ++i) {
        arma::Mat<Real> left;
        arma::Mat<Real> right;
        decomposition.leading_vectors(i, batch.wanted, &left, &right);
        const auto values = decomposition.singular_values(i);
        Errors errors = value_errors(values, batch.expected[i]);
        errors.widen(vector_errors(batch.blocks[i], values, arma::conv_to<arma::mat>::from(left),
                                   arma::conv_to<arma::mat>::from(right)));
        found[batch.kinds[i]].widen(errors);
        EXPECT_TRUE(within(errors, bounds<Real>(shape)))
            << batch.kinds[i] << ", " << shape.rows << " x " << shape.columns << ", " << batch.wanted << " vectors, "
            << decomposition.instructions() << ", " << sizeof(Real) << " bytes: " << text(errors);
    }
}

TEST(BatchDecompositionReference, TenThousandBlocksOfAnyShapeAndSpectrumAgreeWithLapack) {
    Random random(20);
    Found in_double;
    Found in_float;
    const auto paths = instruction_sets();
    std::size_t blocks = 0;
    for (int round = 0; blocks < 10'000; ++round) {
        const std::size_t most = round % 100 == 0 ? 200 : round % 10 == 0 ? 64 : 24;
        const Shape shape{any_of(random, 1, most), any_of(random, 1, most)};
        const std::size_t p = shape.short_side();
        const std::size_t wanted = round % 5 == 0 ? p : any_of(random, 0, std::min<std::size_t>(p, 16));
        const Batch batch = random_batch(random, shape, any_of(random, 1, 18), wanted);
        blocks += batch.blocks.size();
        for (const Instructions path : paths) {
            judge<double>(batch, path, in_double);
            judge<float>(batch, path, in_float);
        }
        if (HasFailure()) break;
    }
    report<double>("double", in_double);
    report<float>("float", in_float);
}

TEST(BatchDecompositionReference, LargeBlocksAgreeWithLapack) {
    Random random(21);
    Found in_double;
    Found in_float;
    for (const Shape shape : {Shape{128, 128}, Shape{256, 256}, Shape{500, 130}, Shape{96, 1024}, Shape{512, 512}}) {
        const Batch batch = random_batch(random, shape, 3, 16);
        judge<double>(batch, Instructions::best, in_double);
        judge<float>(batch, Instructions::best, in_float);
    }
    Batch batch = random_batch(random, {1024, 1024}, 0, 16);
    batch.kinds.push_back("gaussian");
    batch.blocks.push_back(
        arma::conv_to<arma::mat>::from(arma::conv_to<arma::fmat>::from(random_gaussian(random, 1024, 1024))));
    batch.expected.push_back(singular_values(batch.blocks[0]));
    judge<double>(batch, Instructions::best, in_double);
    judge<float>(batch, Instructions::best, in_float);
    report<double>("double", in_double);
    report<float>("float", in_float);
}

TEST(BatchDecompositionReference, FloatKeepsSixDigitsOfTheFirstSixteenValuesBesideStrongSpikes) {
    Random random(26);
    for (const Shape shape : {Shape{128, 128}, Shape{256, 128}, Shape{64, 64}, Shape{128, 32}})
        for (const double strength : {3.0, 20.0, 100.0}) {
            const auto [n, d] = shape;
            const arma::mat noise = random_gaussian(random, n, d) / std::sqrt(static_cast<double>(d));
            const arma::vec strengths{strength, 0.8 * strength, 0.5 * strength};
            const auto block = arma::conv_to<arma::fmat>::from(noise + with_spectrum(random, n, d, strengths));
            const auto expected = singular_values(arma::conv_to<arma::mat>::from(block));
            for (const Instructions path : instruction_sets()) {
                BatchDecomposition<float> decomposition(shape, path);
                decomposition.decompose({block.memptr(), block.n_elem});
                for (std::size_t i = 0; i < 16; ++i)
                    EXPECT_NEAR(decomposition.singular_values(0)[i], expected[i], 1e-6 * expected[i])
                        << n << " x " << d << ", strength " << strength << ", value " << i;
            }
        }
}

template <class Real>
void judge_scale(double scale) {
    Random random(22);
    Batch batch = random_batch(random, {31, 20}, 12, 8);
    for (arma::mat& block : batch.blocks)
        for (double& x : block) x = static_cast<double>(static_cast<Real>(x * scale));
    for (std::size_t i = 0; i < batch.blocks.size(); ++i) {
        // LAPACK gets the block scaled back, which is exact for powers of two.
        arma::mat& block = batch.blocks[i];
        block /= scale;
        batch.expected[i] = singular_values(block);
        block *= scale;
        for (double& s : batch.expected[i]) s *= scale;
    }
    Found found;
    for (const Instructions path : instruction_sets()) judge<Real>(batch, path, found);
}

TEST(BatchDecompositionReference, HugeAndTinyBlocksAgreeWithLapack) {
    judge_scale<double>(0x1p500);  // 3e150
    judge_scale<double>(0x1p-500);
    judge_scale<double>(0x1p1015);
    judge_scale<double>(0x1p-1030);  // denormal
    judge_scale<float>(0x1p100F);    // 1e30
    judge_scale<float>(0x1p-100F);
    judge_scale<float>(0x1p-135F);  // denormal
}

template <class Real>
void expect_same(const arma::Mat<Real>& a, const arma::Mat<Real>& b) {
    ASSERT_EQ(arma::size(a), arma::size(b));
    EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin()));
}

template <class Real>
void judge_independence(Instructions path) {
    Random random(23);
    for (const Shape shape : {Shape{40, 33}, Shape{20, 50}, Shape{128, 128}, Shape{3, 3}}) {
        const Batch batch = random_batch(random, shape, 37, std::min<std::size_t>(8, shape.short_side()));
        const auto entries = side_by_side<Real>(batch.blocks);
        const std::size_t one = shape.rows * shape.columns;
        BatchDecomposition<Real> in_batch(shape, path);
        BatchDecomposition<Real> alone(shape, path);
        in_batch.decompose(entries);
        for (std::size_t i = 0; i < batch.blocks.size(); ++i) {
            alone.decompose(std::span(entries).subspan(i * one, one));
            const auto a = in_batch.singular_values(i);
            const auto b = alone.singular_values(0);
            EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end())) << batch.kinds[i];
            arma::Mat<Real> left[2];
            arma::Mat<Real> right[2];
            in_batch.leading_vectors(i, batch.wanted, &left[0], &right[0]);
            alone.leading_vectors(0, batch.wanted, &left[1], &right[1]);
            expect_same(left[0], left[1]);
            expect_same(right[0], right[1]);
        }
    }
}

TEST(BatchDecompositionIdentity, TheResultsOfABlockAreBitIdenticalInAnyBatch) {
    for (const Instructions path : instruction_sets()) {
        judge_independence<double>(path);
        judge_independence<float>(path);
    }
}

TEST(BatchDecompositionIdentity, VectorsOfOneSideEqualThoseOfBothSides) {
    Random random(24);
    for (const Shape shape : {Shape{30, 40}, Shape{60, 30}}) {  // the second shape goes through its Gram matrix
        const arma::mat block = random_gaussian(random, shape.rows, shape.columns);
        BatchDecomposition<double> decomposition(shape);
        decomposition.decompose({block.memptr(), block.n_elem});
        arma::mat left;
        arma::mat right;
        arma::mat left_alone;
        arma::mat right_alone;
        decomposition.leading_vectors(0, 5, &left, &right);
        decomposition.leading_vectors(0, 5, &left_alone, nullptr);
        decomposition.leading_vectors(0, 5, nullptr, &right_alone);
        expect_same(left, left_alone);
        expect_same(right, right_alone);
    }
}

TEST(BatchDecompositionIdentity, EarlierRequestsDoNotChangeVectors) {
    Random random(25);
    // The values are so close that vectors are made orthogonal, and so far apart that LAPACK is not needed.
    const arma::mat block = arma::eye(80, 80) + 1e-4 * random_gaussian(random, 80, 80);
    BatchDecomposition<double> reused({80, 80});
    reused.decompose({block.memptr(), block.n_elem});
    for (const std::size_t wanted : {1, 12, 20, 3}) {
        BatchDecomposition<double> fresh({80, 80});
        fresh.decompose({block.memptr(), block.n_elem});
        arma::mat left[2];
        arma::mat right[2];
        reused.leading_vectors(0, wanted, &left[0], &right[0]);
        fresh.leading_vectors(0, wanted, &left[1], &right[1]);
        expect_same(left[0], left[1]);
        expect_same(right[0], right[1]);
    }
}

TEST(BatchDecomposition, BestIsTheWidestInstructionSetOfTheProcessor) {
    std::string widest;
    for (const Instructions path : instruction_sets()) widest = BatchDecomposition<float>({2, 2}, path).instructions();
    EXPECT_EQ(BatchDecomposition<float>({2, 2}).instructions(), widest);
    EXPECT_EQ(BatchDecomposition<double>({2, 2}).instructions(), widest);
    EXPECT_STREQ(BatchDecomposition<float>({2, 2}, Instructions::generic).instructions(), "generic");
}

template <class Real>
void expect_rejected(Real wrong, std::size_t rows, std::size_t columns) {
    for (const Instructions path : instruction_sets())
        for (std::size_t at = 0; at < rows * columns; ++at) {
            std::vector<Real> entries(3 * rows * columns, Real(1));
            entries[2 * rows * columns + at] = wrong;
            BatchDecomposition<Real> decomposition({rows, columns}, path);
            try {
                decomposition.decompose(entries);
                FAIL() << "accepted at " << at;
            } catch (const Error& error) {
                EXPECT_NE(std::string(error.what()).find("block 2 "), std::string::npos) << error.what();
            }
            EXPECT_EQ(decomposition.count(), 0U);
        }
}

TEST(BatchDecomposition, NanAndInfinityAreRejectedAndTheirBlockIsNamed) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    for (const double wrong : {std::nan(""), infinity, -infinity}) {
        expect_rejected<double>(wrong, 7, 9);
        expect_rejected<float>(static_cast<float>(wrong), 7, 9);
    }
}

TEST(BatchDecomposition, ZeroVectorsAndEmptyBatchesAreAllowed) {
    BatchDecomposition<double> decomposition({4, 3});
    decomposition.decompose({});
    EXPECT_EQ(decomposition.count(), 0U);
    const std::vector<double> entries(12, 1.0);
    decomposition.decompose(entries);
    arma::mat left;
    arma::mat right;
    decomposition.leading_vectors(0, 0, &left, &right);
    EXPECT_EQ(arma::size(left), arma::size(4, 0));
    EXPECT_EQ(arma::size(right), arma::size(3, 0));
    EXPECT_THROW(decomposition.leading_vectors(0, 4, &left, &right), Error);
    EXPECT_THROW((void)decomposition.singular_values(1), Error);
    EXPECT_THROW(BatchDecomposition<double>({0, 3}), Error);
}

TEST(BatchDecomposition, ValuesDescendWhereEqualOnesAreComputedInTwoWays) {
    // At a thousandth of the largest value, bisection replaces QL on squares.
    Random random(26);
    arma::vec spectrum(64, arma::fill::ones);
    spectrum(0) = 1000.0;
    BatchDecomposition<double> decomposition({64, 64});
    for (int t = 0; t < 30; ++t) {
        const arma::mat block = with_spectrum(random, 64, 64, spectrum);
        decomposition.decompose({block.memptr(), block.n_elem});
        const auto found = decomposition.singular_values(0);
        EXPECT_TRUE(std::is_sorted(found.begin(), found.end(), std::greater<>()));
        EXPECT_TRUE(within(value_errors(found, singular_values(block)), bounds<double>({64, 64})));
    }
}

TEST(BatchDecomposition, AllVectorsOfTwoClustersAreOrthonormal) {
    // LAPACK's divide and conquer leaves errors of 1e-11 in some of these blocks, and fails for others.
    Random random(27);
    arma::vec spectrum(35);
    for (arma::uword i = 0; i < 35; ++i) spectrum(i) = i < 18 ? 1.0 : 1e-8;
    BatchDecomposition<double> decomposition({35, 58});
    for (int t = 0; t < 60; ++t) {
        const arma::mat block = arma::round(with_spectrum(random, 35, 58, spectrum) / 5e-13) * 5e-13;
        decomposition.decompose({block.memptr(), block.n_elem});
        arma::mat left;
        arma::mat right;
        decomposition.leading_vectors(0, 35, &left, &right);
        const Errors errors = vector_errors(block, decomposition.singular_values(0), left, right);
        EXPECT_TRUE(within(errors, bounds<double>({35, 58}))) << text(errors);
    }
}

TEST(BatchDecompositionControl, TheErrorMeasuresDetectAWrongValueAndAWrongVector) {
    Random random(25);
    const arma::mat block = random_gaussian(random, 30, 20);
    BatchDecomposition<double> decomposition({30, 20});
    decomposition.decompose({block.memptr(), block.n_elem});
    arma::mat left;
    arma::mat right;
    decomposition.leading_vectors(0, 6, &left, &right);
    const auto found = decomposition.singular_values(0);
    const auto expected = singular_values(block);
    const Errors limits = bounds<double>({30, 20});
    EXPECT_TRUE(within(value_errors(found, expected), limits));
    EXPECT_TRUE(within(vector_errors(block, found, left, right), limits));

    std::vector<double> values(found.begin(), found.end());
    values[19] += 3e-11 * values[0];
    EXPECT_FALSE(within(value_errors(values, expected), limits));
    arma::mat perturbed = right;
    perturbed.col(3) += 1e-11 * right.col(2);
    EXPECT_FALSE(within(vector_errors(block, found, left, perturbed), limits));
    perturbed = right;
    perturbed.col(0) *= -1.0;
    EXPECT_FALSE(within(vector_errors(block, found, left, perturbed), limits));
}

}  // namespace
}  // namespace spiked::estimators

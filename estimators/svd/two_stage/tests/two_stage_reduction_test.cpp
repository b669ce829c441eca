// The two-stage reduction with narrow bands, so that small blocks pass through all of it, against LAPACK in double.
#include "estimators/svd/two_stage/two_stage_reduction.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

#include "estimators/svd/batch_decomposition.hpp"
#include "estimators/svd/bidiagonal_svd.hpp"
#include "estimators/svd/scaling_exponent.hpp"
#include "estimators/svd/tests/random_blocks.hpp"
#include "estimators/svd/transposition.hpp"

namespace spiked::estimators {
namespace {

using namespace random_blocks;

template <class Real>
std::vector<const kernels::Kernels<Real>*> all_kernels() {
    std::vector<const kernels::Kernels<Real>*> found{kernels::generic<Real>()};
    for (const auto* more : {kernels::avx2<Real>(), kernels::avx512<Real>()})
        if (more != nullptr) found.push_back(more);
    return found;
}

template <class Real>
struct Decomposed {
    std::vector<double> values;
    arma::mat left, right;
};

/// Reads vectors, which lie side by side, in groups.
template <class Real, class Take>
arma::mat gathered(std::size_t size, std::size_t length, std::size_t wanted, Take take) {
    constexpr std::size_t lanes = kernels::applied_lanes;
    arma::mat vectors(length, wanted);
    for (std::size_t first = 0; first < wanted; first += lanes) {
        AlignedArray<Real> side_by_side(lanes * std::max(size, length));
        const std::size_t some = std::min(lanes, wanted - first);
        take(first, side_by_side.data(), some);
        copy_transposed(side_by_side.data(), lanes, some, length, vectors.colptr(first), length);
    }
    return vectors;
}

/// Values and leading vectors of a block by the reduction alone. The block is scaled as in BatchDecomposition.
template <class Real>
Decomposed<Real> decomposed(const kernels::Kernels<Real>& kernels, std::size_t width, const arma::mat& given,
                            std::size_t wanted, bool by_columns = false, std::size_t threads = 1) {
    const bool wide = given.n_rows < given.n_cols;
    const arma::mat block = wide ? arma::mat(given.t()) : given;
    const std::size_t m = block.n_rows;
    const std::size_t n = block.n_cols;
    const double scale = std::ldexp(1.0, scaling_exponent<Real>(arma::abs(block).max()));
    const std::size_t stride = kernels::padded<Real>(m);
    AlignedArray<Real> entries(stride * n);
    for (std::size_t j = 0; j < n; ++j)
        for (std::size_t i = 0; i < m; ++i) entries[j * stride + i] = static_cast<Real>(block(i, j) * scale);
    TwoStageReduction<Real> reduction(kernels, m, n, width, by_columns);
    AlignedArray<Real> rest(reduction.rest_size());
    const typename TwoStageReduction<Real>::Reduced reduced{entries.data(), stride, rest.data()};
    std::vector<double> diagonal(n);
    std::vector<double> off_diagonal(n);
    ThreadTeam team(threads);
    reduction.reduce(reduced, diagonal.data(), off_diagonal.data(), team);
    const Bidiagonal bidiagonal{diagonal, std::span<const double>(off_diagonal).first(n - 1)};
    BidiagonalSvd<Real> svd(kernels, n);
    Decomposed<Real> found;
    found.values.resize(n);
    svd.values(std::vector<Bidiagonal>{bidiagonal}, sizeof(Real) == 8, found.values.data());
    svd.vectors(bidiagonal, found.values, wanted);
    reduction.prepare_vectors(reduced, team);
    using Side = typename TwoStageReduction<Real>::Side;
    const auto transformed = [&](Side side, std::size_t length) {
        return gathered<Real>(n, length, wanted, [&](std::size_t first, Real* vectors, std::size_t some) {
            if (side == Side::left)
                svd.left(first, vectors);
            else
                svd.right(first, vectors);
            if (!by_columns) return reduction.transform(side, reduced, vectors, some);
            constexpr std::size_t lanes = kernels::applied_lanes;
            reduction.transform_to_band(side, reduced, vectors, some);
            std::vector<Real> columns(lanes * length);
            copy_transposed(vectors, lanes, lanes, length, columns.data(), length);
            reduction.transform_from_band(side, reduced, columns.data(), length, some, team);
            copy_transposed(columns.data(), length, length, lanes, vectors, lanes);
        });
    };
    found.left = transformed(Side::left, m);
    found.right = transformed(Side::right, n);
    if (wide) std::swap(found.left, found.right);
    for (double& value : found.values) value /= scale;
    return found;
}

template <class Real>
void judge_two_stages(const Batch& batch, const kernels::Kernels<Real>& kernels, std::size_t width, Found& found) {
    for (std::size_t i = 0; i < batch.blocks.size(); ++i) {
        const arma::mat& block = batch.blocks[i];
        const bool by_columns = sizeof(Real) == 8 && i % 2 == 1;
        const Decomposed<Real> ours = decomposed<Real>(kernels, width, block, batch.wanted, by_columns);
        Errors errors = value_errors(ours.values, batch.expected[i]);
        errors.widen(vector_errors(block, ours.values, ours.left, ours.right));
        found[batch.kinds[i]].widen(errors);
        EXPECT_TRUE(within(errors, bounds<Real>({block.n_rows, block.n_cols})))
            << batch.kinds[i] << ", " << block.n_rows << " x " << block.n_cols << ", " << batch.wanted
            << " vectors, band of " << width << ", " << sizeof(Real) << " bytes: " << text(errors);
    }
}

template <class Real>
std::vector<std::size_t> widths() {
    return sizeof(Real) == 8 ? std::vector<std::size_t>{8, 16, 32} : std::vector<std::size_t>{16, 32};
}

TEST(TwoStageReductionReference, ThousandsOfBlocksOfAnyShapeAndSpectrumAgreeWithLapack) {
    Random random(49);
    Found in_double;
    Found in_float;
    std::size_t blocks = 0;
    for (int round = 0; blocks < 4'000; ++round) {
        const std::size_t most = round % 50 == 0 ? 200 : round % 3 == 0 ? 80 : 40;
        const Shape shape{any_of(random, 1, most), any_of(random, 1, most)};
        const std::size_t p = shape.short_side();
        const std::size_t wanted = round % 5 == 0 ? p : any_of(random, 0, std::min<std::size_t>(p, 16));
        const Batch batch = random_batch(random, shape, any_of(random, 1, 18), wanted);
        blocks += batch.blocks.size();
        const auto pick = [&](const auto& list) { return list[static_cast<std::size_t>(round) % list.size()]; };
        for (const std::size_t width : widths<double>())
            judge_two_stages<double>(batch, *pick(all_kernels<double>()), width, in_double);
        for (const std::size_t width : widths<float>())
            judge_two_stages<float>(batch, *pick(all_kernels<float>()), width, in_float);
        if (HasFailure()) break;
    }
    report<double>("double", in_double);
    report<float>("float", in_float);
}

template <class Real>
void judge_scaled(double scale) {
    Random random(50);
    Batch batch = random_batch(random, {61, 45}, 12, 8);
    for (std::size_t i = 0; i < batch.blocks.size(); ++i) {
        // Powers of two: LAPACK gets what is left of the block in the precision, scaled back exactly.
        for (double& x : batch.blocks[i]) x = static_cast<double>(static_cast<Real>(x * scale)) / scale;
        batch.expected[i] = singular_values(batch.blocks[i]);
        for (double& s : batch.expected[i]) s *= scale;
        batch.blocks[i] *= scale;
    }
    Found found;
    for (const auto* kernels : all_kernels<Real>()) judge_two_stages<Real>(batch, *kernels, 16, found);
}

TEST(TwoStageReductionReference, HugeAndTinyBlocksAgreeWithLapack) {
    judge_scaled<double>(0x1p500);
    judge_scaled<double>(0x1p-500);
    judge_scaled<float>(0x1p100);
    judge_scaled<float>(0x1p-100);
}

TEST(TwoStageReductionReference, TheWidthsInUseAgreeWithLapack) {
    Random random(51);
    Found found;
    const Batch batch = random_batch(random, {300, 280}, 4, 16);
    for (const std::size_t width : {32, 64}) {
        judge_two_stages<double>(batch, *all_kernels<double>().back(), width, found);
        judge_two_stages<float>(batch, *all_kernels<float>().back(), width, found);
    }
}

TEST(TwoStageReductionIdentity, ResultsAreBitIdenticalInEveryThread) {
    Random random(52);
    const arma::mat block = random_gaussian(random, 150, 130);
    const auto once = [&] { return decomposed<double>(*all_kernels<double>().back(), 16, block, 8); };
    const auto expected = once();
    std::vector<Decomposed<double>> found(3);
    std::vector<std::thread> threads;
    for (auto& result : found) threads.emplace_back([&] { result = once(); });
    for (auto& thread : threads) thread.join();
    for (const auto& result : found) {
        EXPECT_EQ(result.values, expected.values);
        EXPECT_TRUE(std::equal(result.left.begin(), result.left.end(), expected.left.begin()));
        EXPECT_TRUE(std::equal(result.right.begin(), result.right.end(), expected.right.begin()));
    }
}

/// Results of blocks that are cut into several parts, where the chase is kept and where it is made again.
template <class Real>
void judge_threads() {
    Random random(56);
    const arma::mat square = random_gaussian(random, 290, 290);
    for (const arma::mat& block : {square, arma::mat(square.cols(0, 239)), arma::mat(square.cols(0, 2))})
        for (const bool by_columns : {false, true}) {
            const auto with = [&](std::size_t threads) {
                return decomposed<Real>(*all_kernels<Real>().back(), 16, block, std::min<std::size_t>(block.n_cols, 40),
                                        by_columns, threads);
            };
            const auto expected = with(1);
            for (const std::size_t threads : {2, 3, 4}) {
                const auto found = with(threads);
                EXPECT_EQ(found.values, expected.values) << threads;
                EXPECT_TRUE(std::equal(found.left.begin(), found.left.end(), expected.left.begin())) << threads;
                EXPECT_TRUE(std::equal(found.right.begin(), found.right.end(), expected.right.begin())) << threads;
            }
        }
}

TEST(TwoStageReductionIdentity, ResultsAreBitIdenticalForAnyNumberOfThreads) {
    judge_threads<double>();
    judge_threads<float>();
}

TEST(TwoStageReduction, AFailureInOneThreadEndsTheOthers) {
    Random random(57);
    const arma::mat block = random_gaussian(random, 200, 200);
    kernels::Kernels<double> failing = *all_kernels<double>().back();
    failing.chase_bulges = [](const kernels::BandReduction<double>&, std::size_t bundle, std::size_t tick) {
        if (bundle == 5 && tick == 3) throw std::runtime_error("simulated");
    };
    for (const std::size_t threads : {1, 2, 4})
        EXPECT_THROW((void)decomposed<double>(failing, 16, block, 4, false, threads), std::runtime_error);
}

/// Sides from which on BatchDecomposition reduces in two stages, in batches and alone.
template <class Real>
void judge_batches() {
    Random random(53);
    std::size_t side = 1;
    while (!TwoStageReduction<Real>::serves(side)) ++side;
    const Shape shape{side, side + 10};
    std::vector<Real> entries;
    for (int i = 0; i < 2; ++i)
        for (const double x : random_gaussian(random, shape.rows, shape.columns))
            entries.push_back(static_cast<Real>(x));
    const std::span<const Real> second = std::span<const Real>(entries).last(entries.size() / 2);
    BatchDecomposition<Real> both(shape);
    BatchDecomposition<Real> alone(shape, Instructions::best, 3);
    both.decompose(entries);
    alone.decompose(second);
    const arma::mat block = arma::conv_to<arma::mat>::from(arma::Mat<Real>(second.data(), shape.rows, shape.columns));
    const auto values = both.singular_values(1);
    arma::Mat<Real> left[2];
    arma::Mat<Real> right[2];
    // As many vectors as double transforms column by column.
    const std::size_t wanted = sizeof(Real) == 8 ? 70 : 5;
    both.leading_vectors(1, wanted, &left[0], &right[0]);
    alone.leading_vectors(0, wanted, &left[1], &right[1]);
    EXPECT_TRUE(std::equal(values.begin(), values.end(), alone.singular_values(0).begin()));
    EXPECT_TRUE(std::equal(left[0].begin(), left[0].end(), left[1].begin()));
    EXPECT_TRUE(std::equal(right[0].begin(), right[0].end(), right[1].begin()));
    Errors errors = value_errors(values, singular_values(block));
    errors.widen(vector_errors(block, values, arma::conv_to<arma::mat>::from(left[0]),
                               arma::conv_to<arma::mat>::from(right[0])));
    EXPECT_TRUE(within(errors, bounds<Real>(shape))) << text(errors);
}

TEST(TwoStageReductionReference, LargeTallBlocksWithSmallValuesAgreeWithLapack) {
    // Their values are too small for the Gram matrix, which tall blocks try first.
    Random random(54);
    const Shape shape{1080, 720};
    const arma::mat block = random_gaussian(random, shape.rows, 5) * random_gaussian(random, 5, shape.columns);
    BatchDecomposition<double> decomposition(shape);
    decomposition.decompose({block.memptr(), block.n_elem});
    const auto values = decomposition.singular_values(0);
    for (const std::size_t wanted : {4, 6}) {
        arma::mat left;
        arma::mat right;
        decomposition.leading_vectors(0, wanted, &left, &right);
        Errors errors = value_errors(values, singular_values(block));
        errors.widen(vector_errors(block, values, left, right));
        EXPECT_TRUE(within(errors, bounds<double>(shape))) << wanted << " vectors: " << text(errors);
    }
}

TEST(TwoStageReductionReference, LargeTallBlocksAgreeWithLapack) {
    Random random(55);
    const Shape shape{1100, 710};
    const arma::mat block = random_gaussian(random, shape.rows, shape.columns);
    BatchDecomposition<double> decomposition(shape);
    decomposition.decompose({block.memptr(), block.n_elem});
    arma::mat left;
    arma::mat right;
    decomposition.leading_vectors(0, 6, &left, &right);
    const auto values = decomposition.singular_values(0);
    Errors errors = value_errors(values, singular_values(block));
    errors.widen(vector_errors(block, values, left, right));
    EXPECT_TRUE(within(errors, bounds<double>(shape))) << text(errors);
}

TEST(TwoStageReductionIdentity, LargeBlocksAreTheSameInAnyBatchAndAgreeWithLapack) {
    judge_batches<double>();
    judge_batches<float>();
}

}  // namespace
}  // namespace spiked::estimators

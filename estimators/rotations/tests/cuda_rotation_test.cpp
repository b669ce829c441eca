#include <gtest/gtest.h>

#include <vector>

#include "core/device/emulated_block.hpp"
#include "estimators/rotations/cuda/hadamard.hpp"
#include "estimators/rotations/cuda/matrix_rotation.hpp"
#include "estimators/rotations/row_rotation.hpp"
#include "estimators/tests/quantizer_samples.hpp"

/// The rotation kernels, on emulated blocks, against RowRotation.
namespace spiked::estimators::cuda {
namespace {

stream::Stream address(std::uint64_t index) { return {test_seed, "cuda rotation test", stream::Role::rotation, index}; }

template <class Real>
std::vector<arma::Mat<Real>> blocks_of(std::size_t count, std::size_t rows, std::size_t dimension) {
    std::vector<arma::Mat<Real>> blocks;
    for (std::size_t b = 0; b < count; ++b) blocks.push_back(gaussian<Real>(rows, dimension, b));
    return blocks;
}

template <class Real>
std::vector<Real> side_by_side(const std::vector<arma::Mat<Real>>& blocks) {
    std::vector<Real> all;
    for (const auto& block : blocks) all.insert(all.end(), block.begin(), block.end());
    return all;
}

template <class Real>
arma::Mat<Real> rotated(const RowRotation& rotation, bool back, const arma::Mat<Real>& block) {
    return back ? rotation.rotate_back(block) : rotation.rotate(block);
}

struct HadamardCase {
    RotationKind kind;
    unsigned rounds;
    std::uint32_t dimension;
    std::uint32_t rows;
};

template <class Real>
void expect_the_same_bits(const HadamardCase& one) {
    constexpr std::uint32_t count = 2;
    const auto blocks = blocks_of<Real>(count, one.rows, one.dimension);
    const std::vector<Real> from = side_by_side(blocks);
    for (const bool back : {false, true})
        for (const bool each_its_own : {false, true}) {
            SCOPED_TRACE(testing::Message() << "rounds " << one.rounds << " dimension " << one.dimension << " rows "
                                            << one.rows << " back " << back << " own " << each_its_own);
            std::vector<Real> to(from.size(), static_cast<Real>(NAN));
            const std::uint64_t index = (std::uint64_t{1} << 32) - 1;  // the high word of the next index differs
            const TurnByHadamard<Real> kernel{HadamardPlan(address(index), one.dimension, one.rounds),
                                              back,
                                              each_its_own,
                                              count,
                                              one.rows,
                                              from.data(),
                                              to.data()};
            spiked::cuda::EmulatedExecutor().launch(kernel, kernel.blocks());
            std::vector<arma::Mat<Real>> expected;
            for (std::size_t b = 0; b < count; ++b)
                expected.push_back(rotated(
                    RowRotation(one.kind, address(index + (each_its_own ? b : 0)), one.dimension), back, blocks[b]));
            EXPECT_EQ(to, side_by_side(expected));
        }
}

TEST(CudaRotationIdentity, HadamardKernelsAreBitIdenticalToTheCpu) {
    for (const std::uint32_t dimension : {1U, 2U, 4U, 8U, 32U, 64U, 128U, 256U})
        for (const unsigned rounds : {1U, 2U}) {
            const RotationKind kind = rounds == 1 ? RotationKind::rht1 : RotationKind::rht2;
            expect_the_same_bits<float>({kind, rounds, dimension, 33});
            expect_the_same_bits<double>({kind, rounds, dimension, 7});
        }
    for (const std::uint32_t dimension : {3U, 5U, 12U, 80U, 96U, 128U, 200U}) {
        expect_the_same_bits<float>({RotationKind::fht_kac, 4, dimension, 5});
        expect_the_same_bits<double>({RotationKind::fht_kac, 4, dimension, 64});
    }
}

template <class Real>
arma::Mat<Real> by_matrix(const arma::Mat<Real>& matrix, const std::vector<arma::Mat<Real>>& blocks) {
    const std::vector<Real> from = side_by_side(blocks);
    const auto rows = static_cast<std::uint32_t>(blocks.front().n_rows);
    const auto dimension = static_cast<std::uint32_t>(blocks.front().n_cols);
    arma::Mat<Real> to(from.size(), 1);
    to.fill(static_cast<Real>(NAN));
    const TurnByMatrix<Real> kernel{
        static_cast<std::uint32_t>(blocks.size()), rows, dimension, matrix.memptr(), from.data(), to.memptr()};
    spiked::cuda::EmulatedExecutor().launch(kernel, kernel.blocks());
    return to;
}

/// The sums have up to 200 products of entries of size 1 and 1/sqrt(d), so rounding errors add like a random walk of as
/// many steps.
template <class Real>
void expect_the_haar_rotation(std::size_t rows, std::size_t dimension) {
    const RowRotation rotation(RotationKind::haar, address(5), dimension);
    const arma::mat R = rotation.rotate(arma::mat(dimension, dimension, arma::fill::eye)).t();
    const auto matrix = arma::conv_to<arma::Mat<Real>>::from(R);
    const auto blocks = blocks_of<Real>(2, rows, dimension);
    for (const bool back : {false, true}) {
        const arma::Mat<Real> applied = back ? arma::Mat<Real>(matrix.t()) : matrix;
        const arma::Mat<Real> to = by_matrix(applied, blocks);
        const double limit =
            8.0 * static_cast<double>(std::numeric_limits<Real>::epsilon()) * std::sqrt(static_cast<double>(dimension));
        for (std::size_t b = 0; b < blocks.size(); ++b) {
            const arma::Mat<Real> found =
                arma::reshape(to.rows(b * rows * dimension, (b + 1) * rows * dimension - 1), rows, dimension);
            const arma::Mat<Real> expected = rotated(rotation, back, blocks[b]);
            EXPECT_LT(arma::abs(found - expected).max(), limit) << rows << " x " << dimension << " back " << back;
        }
        EXPECT_GT(arma::abs(by_matrix(arma::Mat<Real>(applied.t()), blocks) - to).max(), 0.01 * (dimension > 1))
            << "negative control: the transpose is another rotation";
    }
}

TEST(CudaRotationReference, AHaarRotationByItsMatrixAgreesWithTheCpu) {
    for (const auto& [rows, dimension] : {std::pair{3, 5}, {64, 64}, {65, 80}, {130, 128}, {16, 200}}) {
        expect_the_haar_rotation<float>(rows, dimension);
        expect_the_haar_rotation<double>(rows, dimension);
    }
}

}  // namespace
}  // namespace spiked::estimators::cuda

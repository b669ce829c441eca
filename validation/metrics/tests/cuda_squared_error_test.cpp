#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/device/emulated_block.hpp"
#include "estimators/tests/quantizer_samples.hpp"
#include "validation/metrics/cuda/squared_error.hpp"

/// Compares the errors of a batch that the kernel computes in emulated thread blocks with sums in extended precision.
namespace spiked::estimators::cuda {
namespace {

struct Errors {
    std::vector<BlockStatus> status;
    std::vector<double> errors, energies, relative;
};

template <class Real>
Errors run(const arma::Cube<Real>& truth, const arma::Cube<Real>& found) {
    const auto count = static_cast<std::uint32_t>(truth.n_slices);
    const std::vector<double> nothing(count, NAN);
    Errors result{std::vector<BlockStatus>(count, BlockStatus::for_the_host), nothing, nothing, nothing};
    const SquaredErrors<Real> kernel{
        {count, static_cast<std::uint32_t>(truth.n_elem_slice), truth.memptr(), result.status.data(),
         result.errors.data(), result.energies.data(), result.relative.data()},
        found.memptr()};
    spiked::cuda::EmulatedExecutor().launch(kernel, kernel.blocks());
    return result;
}

template <class Real>
arma::Cube<Real> cube(std::size_t rows, std::size_t columns, std::size_t count, std::uint64_t first) {
    arma::Cube<Real> blocks(rows, columns, count);
    for (std::size_t b = 0; b < count; ++b) blocks.slice(b) = gaussian<Real>(rows, columns, first + b);
    return blocks;
}

template <class Real>
void expect_the_sums(std::size_t rows, std::size_t columns) {
    SCOPED_TRACE(testing::Message() << rows << " x " << columns << " of " << sizeof(Real) << " bytes");
    const auto truth = cube<Real>(rows, columns, 2, 0);
    const auto found = cube<Real>(rows, columns, 2, 2);
    const Errors all = run(truth, found);
    for (arma::uword b = 0; b < 2; ++b) {
        long double error = 0.0L;
        long double energy = 0.0L;
        for (arma::uword i = 0; i < truth.n_elem_slice; ++i) {
            const long double x = truth.slice(b)(i);
            const long double off = found.slice(b)(i) - x;
            error += off * off;
            energy += x * x;
        }
        const double limit = (static_cast<double>(rows * columns) / 256.0 + 16.0) * 0x1p-52;
        EXPECT_EQ(all.status[b], BlockStatus::fine);
        EXPECT_NEAR(all.errors[b] / static_cast<double>(error), 1.0, limit);
        EXPECT_NEAR(all.energies[b] / static_cast<double>(energy), 1.0, limit);
        EXPECT_EQ(all.relative[b], all.errors[b] / all.energies[b]);
    }
    const arma::Cube<Real> last_truth = truth.slices(1, 1);
    const arma::Cube<Real> last_found = found.slices(1, 1);
    EXPECT_EQ(run(last_truth, last_found).relative[0], all.relative[1]) << "the result depends on the batch";
}

TEST(CudaSquaredErrorReference, SumsAreThoseOfExtendedPrecision) {
    for (const auto& [rows, columns] : {std::pair{1, 1}, {5, 3}, {16, 16}, {128, 80}, {257, 33}}) {
        expect_the_sums<float>(rows, columns);
        expect_the_sums<double>(rows, columns);
    }
}

TEST(CudaSquaredError, ReportsZeroBlocksAndBlocksThatAreNotFinite) {
    auto truth = cube<double>(9, 7, 6, 0);
    auto found = truth;
    truth.slice(1).zeros();
    found.slice(1).zeros();
    truth.slice(2).zeros();
    found(8, 6, 3) = NAN;
    truth(0, 0, 4) = INFINITY;
    found(3, 3, 5) += 1e200;
    const Errors all = run(truth, found);
    const std::vector<BlockStatus> status = {BlockStatus::fine,       BlockStatus::fine,       BlockStatus::fine,
                                             BlockStatus::not_finite, BlockStatus::not_finite, BlockStatus::not_finite};
    EXPECT_EQ(all.status, status);
    EXPECT_EQ(all.relative, (std::vector<double>{0.0, 0.0, INFINITY, 0.0, 0.0, 0.0}));
    EXPECT_GT(all.energies[0], 0.0);
    EXPECT_GT(all.errors[2], 0.0);
}

/// Estimates of rank 3, 19, 0 and 2 of which the third belongs to a block with NaN: its rank is ignored.
template <class Real>
void expect_the_low_rank_errors(std::uint32_t rows, std::uint32_t columns) {
    SCOPED_TRACE(testing::Message() << rows << " x " << columns << " of " << sizeof(Real) << " bytes");
    constexpr std::uint32_t count = 4;
    constexpr std::uint32_t vectors = 20;
    const auto truth = cube<Real>(rows, columns, count, 0);
    const auto left = cube<Real>(rows, vectors, count, 10);
    const auto right = cube<Real>(columns, vectors, count, 20);
    const std::vector<BlockStatus> decomposed{BlockStatus::fine, BlockStatus::for_the_host, BlockStatus::not_finite,
                                              BlockStatus::fine};
    const std::vector<std::uint32_t> ranks{3, 19, 1, 2};
    std::vector<double> shrunk(count * vectors, NAN);
    arma::cube expected(rows, columns, count, arma::fill::zeros);
    for (std::uint32_t b = 0; b < count; ++b)
        for (std::uint32_t k = 0; k < ranks[b]; ++k) {
            const double weight = shrunk[b * vectors + k] = 3.0 / (1.0 + k);
            if (decomposed[b] == BlockStatus::not_finite) continue;
            const arma::vec u = arma::conv_to<arma::vec>::from(left.slice(b).col(k));
            const arma::vec v = arma::conv_to<arma::vec>::from(right.slice(b).col(k));
            expected.slice(b) += weight * u * v.t();
        }
    for (const bool written : {false, true}) {
        const std::vector<double> nothing(count, NAN);
        Errors all{std::vector<BlockStatus>(count, BlockStatus::for_the_host), nothing, nothing, nothing};
        arma::Cube<Real> estimate(rows, columns, count);
        estimate.fill(Real(-100));
        const LowRankErrors<Real> kernel{{count, rows * columns, truth.memptr(), all.status.data(), all.errors.data(),
                                          all.energies.data(), all.relative.data()},
                                         {rows, columns, vectors, vectors, decomposed.data(), ranks.data(),
                                          shrunk.data(), left.memptr(), right.memptr()},
                                         written ? estimate.memptr() : nullptr};
        spiked::cuda::EmulatedExecutor().launch(kernel, kernel.blocks());
        for (std::uint32_t b = 0; b < count; ++b) {
            SCOPED_TRACE(testing::Message() << "block " << b << (written ? ", written" : ""));
            const arma::mat x = arma::conv_to<arma::mat>::from(truth.slice(b));
            const double energy = arma::accu(arma::square(x));
            const double error = arma::accu(arma::square(expected.slice(b) - x));
            // Rounding moves an entry by at most (rank + 2) epsilon times its terms, which stay below 300.
            const double entry_limit = 22.0 * 300.0 * static_cast<double>(std::numeric_limits<Real>::epsilon());
            const double limit = 2.0 * entry_limit * std::sqrt(error * rows * columns) + 1e-12 * error;
            EXPECT_EQ(all.status[b], BlockStatus::fine);
            EXPECT_NEAR(all.errors[b], error, limit);
            EXPECT_NEAR(all.energies[b], energy, 1e-12 * energy);
            EXPECT_EQ(all.relative[b], all.errors[b] / all.energies[b]);
            const arma::mat found = arma::conv_to<arma::mat>::from(estimate.slice(b));
            if (written) {
                EXPECT_LT(arma::abs(found - expected.slice(b)).max(), entry_limit);
            } else {
                EXPECT_TRUE(arma::all(arma::vectorise(found == -100.0)));
            }
            const double without_first =
                arma::accu(arma::square(expected.slice(b) -
                                        shrunk[b * vectors] * arma::conv_to<arma::vec>::from(left.slice(b).col(0)) *
                                            arma::conv_to<arma::rowvec>::from(right.slice(b).col(0).t()) -
                                        x));
            EXPECT_GT(std::abs(without_first - error), limit) << "negative control: a missing component is detected";
        }
    }
}

TEST(CudaLowRankErrorsReference, AreThoseOfTheProductInDouble) {
    for (const auto& [rows, columns] : {std::pair{1U, 7U}, {64U, 64U}, {100U, 30U}, {128U, 83U}, {256U, 20U}}) {
        expect_the_low_rank_errors<float>(rows, columns);
        expect_the_low_rank_errors<double>(rows, columns);
    }
}

}  // namespace
}  // namespace spiked::estimators::cuda

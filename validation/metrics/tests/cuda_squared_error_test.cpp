#include <gtest/gtest.h>

#include <algorithm>
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

}  // namespace
}  // namespace spiked::estimators::cuda

// What needs nvcc; compiled to nothing without it.
#ifdef SPIKED_HAS_CUDA
#include <gtest/gtest.h>

#include <armadillo>
#include <cmath>
#include <vector>

#include "estimators/batch_decomposition.hpp"
#include "estimators/cuda/finish_on_host.hpp"
#include "theory/base/cuda/device_count.hpp"
#include "theory/base/cuda/device_failure.hpp"

namespace spiked::estimators::cuda {
namespace {

template <class Real>
class CudaDevice : public testing::Test {};
using Reals = testing::Types<double, float>;
TYPED_TEST_SUITE(CudaDevice, Reals);

/// Many pieces over both streams, against the CPU.
TYPED_TEST(CudaDevice, DecomposesAsTheCpuDoesOrSaysThatThereIsNone) {
    using Real = TypeParam;
    constexpr std::size_t count = 37;
    const Shape shape{60, 48};
    BatchSize size{8, 60, 48, false, 3};
    if (spiked::cuda::device_count().count == 0) {
        EXPECT_THROW(DeviceDecomposition<Real>(0, size, std::size_t{1} << 28), spiked::cuda::DeviceFailure);
        return;
    }
    arma::arma_rng::set_seed(2);
    arma::Mat<Real> blocks(shape.rows, shape.columns * count, arma::fill::randn);
    blocks.cols(2 * shape.columns, 3 * shape.columns - 1).zeros();
    const std::span<const Real> entries(blocks.memptr(), blocks.n_elem);
    std::vector<BlockStatus> status(count);
    std::vector<double> values(count * 48);
    std::vector<Real> left(count * 3 * 60);
    std::vector<Real> right(count * 3 * 48);
    const DecomposedBlocks<Real> results{status, values, left, right};
    DeviceDecomposition<Real> device(0, size, std::size_t{1} << 28);
    ASSERT_EQ(device.piece(), 8U);
    device.decompose(entries, results);
    size.count = count;
    EXPECT_EQ(finish_on_host<Real>(size, entries, results), 1U) << "the zero block";
    BatchDecomposition<Real> cpu(shape);
    cpu.decompose(entries);
    const double limit = sizeof(Real) == 8 ? 1e-12 : 2e-6;
    for (std::size_t b = 0; b < count; ++b) {
        const auto expected = cpu.singular_values(b);
        for (std::size_t i = 0; i < 48; ++i) EXPECT_NEAR(values[b * 48 + i], expected[i], limit * expected[0]);
        const arma::Mat<Real> u(left.data() + b * 180, 60, 3);
        const arma::Mat<Real> v(right.data() + b * 144, 48, 3);
        const arma::Mat<Real> block = blocks.cols(b * 48, b * 48 + 47);
        for (std::size_t i = 0; i < 3; ++i)
            EXPECT_LE(arma::norm(block * v.col(i) - static_cast<Real>(expected[i]) * u.col(i)),
                      static_cast<Real>(10.0 * limit * expected[0]));
    }
}

}  // namespace
}  // namespace spiked::estimators::cuda
#endif

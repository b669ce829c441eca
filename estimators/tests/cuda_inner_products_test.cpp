#include "estimators/cuda/inner_products.hpp"

#include <gtest/gtest.h>

#include <armadillo>
#include <cmath>
#include <vector>

#include "estimators/cuda/precision.hpp"
#include "estimators/cuda/vector_products.hpp"
#include "sim/cuda/colour_side.hpp"
#include "theory/base/cuda/emulated_block.hpp"

/// Small kernels of a trial against the same in Armadillo's words.
namespace spiked::estimators::cuda {
namespace {

constexpr std::uint32_t product_count = 3;

template <class Kernel>
void launch(const Kernel& kernel) {
    spiked::cuda::EmulatedExecutor().launch(kernel, kernel.blocks());
}

arma::cube normals(arma::uword rows, arma::uword columns, int seed) {
    arma::arma_rng::set_seed(seed);
    return arma::cube(rows, columns, product_count, arma::fill::randn);
}

double mean_of(const arma::mat& x) { return arma::accu(x) / static_cast<double>(x.n_elem); }
double deviation_of(const arma::mat& x) { return std::sqrt(mean_of(arma::square(x - mean_of(x)))); }

TEST(CudaUnitLinesReference, RowsHaveLengthOneAndZerosStay) {
    const arma::cube before = normals(70, 9, 1);
    arma::cube lines = before;
    lines.slice(1).row(4).zeros();
    launch(UnitLines{product_count, 70, 9, lines.memptr()});
    for (arma::uword b = 0; b < product_count; ++b)
        for (arma::uword i = 0; i < 70; ++i) {
            const arma::rowvec row = before.slice(b).row(i);
            const arma::rowvec expected = b == 1 && i == 4 ? arma::rowvec(9, arma::fill::zeros) : row / arma::norm(row);
            EXPECT_LT(arma::abs(lines.slice(b).row(i) - expected).max(), 1e-15);
        }
}

TEST(CudaRowErrorsReference, AreThoseOfTheRowsAndTheStrongestDirection) {
    constexpr std::uint32_t rows = 133;  // more than the threads of a block
    constexpr std::uint32_t dimension = 11;
    const arma::cube original = normals(rows, dimension, 2);
    arma::Cube<float> decoded = arma::conv_to<arma::Cube<float>>::from(original + 0.1 * normals(rows, dimension, 3));
    const arma::cube right = normals(dimension, 2, 4);
    arma::cube units(rows, dimension, product_count);
    arma::cube renormalised = units;
    arma::cube plain = units;
    decoded.slice(2).row(5).zeros();
    std::vector<BlockStatus> status(product_count, BlockStatus::not_finite);
    std::vector<RowErrorSums> sums(product_count);
    launch(RowErrors<double>{product_count, rows, dimension, 2, original.memptr(), decoded.memptr(), right.memptr(),
                             units.memptr(), renormalised.memptr(), plain.memptr(), status.data(), sums.data()});
    EXPECT_EQ(status[2], BlockStatus::for_the_host) << "a row came back as zero";
    for (arma::uword b = 0; b < 2; ++b) {
        EXPECT_EQ(status[b], BlockStatus::fine);
        const arma::mat& x = original.slice(b);
        const arma::mat y = arma::conv_to<arma::mat>::from(decoded.slice(b));
        const arma::vec norms = arma::sqrt(arma::sum(arma::square(x), 1));
        arma::mat unit = x;
        unit.each_col() /= norms;
        arma::mat turned = y;
        turned.each_col() /= arma::vec(arma::sqrt(arma::sum(arma::square(y), 1)));
        turned -= unit;
        arma::mat error = y - x;
        error.each_col() /= norms;
        EXPECT_LT(arma::abs(units.slice(b) - unit).max(), 1e-14);
        EXPECT_LT(arma::abs(renormalised.slice(b) - turned).max(), 1e-14);
        EXPECT_LT(arma::abs(plain.slice(b) - error).max(), 1e-14);
        arma::vec direction = arma::normalise(right.slice(b).col(0));
        if (arma::accu(x * direction) < 0.0) direction *= -1.0;
        const RowErrorSums& found = sums[b];
        EXPECT_NEAR(found.across, arma::accu(x % y), 1e-10);
        EXPECT_NEAR(found.own_bias, mean_of(arma::sum(unit % turned, 1)), 1e-14);
        EXPECT_NEAR(found.own_deviation, deviation_of(arma::sum(unit % turned, 1)), 1e-14);
        EXPECT_NEAR(found.own_bias_plain, mean_of(arma::sum(unit % error, 1)), 1e-14);
        EXPECT_NEAR(found.own_deviation_plain, deviation_of(arma::sum(unit % error, 1)), 1e-14);
        EXPECT_NEAR(found.aligned_bias, mean_of(turned * direction), 1e-14);
        EXPECT_NEAR(found.aligned_deviation, deviation_of(turned * direction), 1e-14);
        EXPECT_NEAR(found.aligned_bias_plain, mean_of(error * direction), 1e-14);
        EXPECT_NEAR(found.aligned_deviation_plain, deviation_of(error * direction), 1e-14);
    }
}

TEST(CudaPairSumsReference, AreSumsOverAllPairsOrAllButTheRowItself) {
    constexpr std::uint32_t dimension = 7;
    const arma::cube errors = normals(70, dimension, 5);
    for (const bool different : {true, false}) {
        const std::uint32_t queries = different ? 70 : 33;
        const arma::cube asked = normals(queries, dimension, 6);
        PairSums kernel{product_count, queries, 70, dimension, different, asked.memptr(), errors.memptr(), nullptr};
        std::vector<double> sums(2 * std::size_t{kernel.blocks()}, NAN);
        kernel.sums = sums.data();
        launch(kernel);
        for (arma::uword b = 0; b < product_count; ++b) {
            arma::mat products = asked.slice(b) * errors.slice(b).t();
            if (different) products.diag().zeros();
            double sum = 0.0;
            double squares = 0.0;
            for (std::size_t part = b * kernel.parts(); part < (b + 1) * kernel.parts(); ++part) {
                sum += sums[2 * part];
                squares += sums[2 * part + 1];
            }
            EXPECT_NEAR(sum, arma::accu(products), 1e-9);
            EXPECT_NEAR(squares, arma::accu(arma::square(products)), 1e-9);
        }
    }
}

TEST(CudaVectorProductsReference, AreThoseOfFoundVectorsWithTrueOnes) {
    const arma::cube left = normals(40, 5, 7);
    const arma::cube right = normals(21, 5, 8);
    const arma::cube true_left = normals(40, 3, 9);
    const arma::cube true_right = normals(21, 3, 10);
    arma::cube left_products(3, 3, product_count);
    arma::cube right_products(3, 3, product_count);
    launch(VectorProducts<double>{product_count, 40, 21, 3, 5, left.memptr(), right.memptr(), true_left.memptr(),
                                  true_right.memptr(), left_products.memptr(), right_products.memptr()});
    for (arma::uword b = 0; b < product_count; ++b) {  // column i: found vector i with every true one
        EXPECT_LT(arma::abs(left_products.slice(b) - true_left.slice(b).t() * left.slice(b).head_cols(3)).max(), 1e-13);
        EXPECT_LT(arma::abs(right_products.slice(b) - true_right.slice(b).t() * right.slice(b).head_cols(3)).max(),
                  1e-13);
    }
}

TEST(CudaDropRoundingReference, OnlyValuesWithinFloatsRoundingOfZeroBecomeZero) {
    constexpr double floor = 100.0 * 1.1920928955078125e-07;  // long side, float's epsilon
    std::vector<double> values = {2.0,
                                  1.0,
                                  2.0 * floor * 1.001,
                                  2.0 * floor * 0.999,  //
                                  1e-30,
                                  1e-31,
                                  1e-36,
                                  0.0};
    launch(DropRounding{2, 4, 100, values.data()});
    EXPECT_EQ(values, (std::vector<double>{2.0, 1.0, 2.0 * floor * 1.001, 0.0, 1e-30, 1e-31, 0.0, 0.0}));
}

TEST(CudaColourSideReference, IsTheProductWithTheTransposedBlock) {
    arma::arma_rng::set_seed(11);
    const arma::mat root(80, 80, arma::fill::randn);  // of a basis: not symmetric
    const arma::cube from = normals(9, 80, 12);
    arma::cube to(80, 9, product_count);
    launch(sim::ColourSide<double>{product_count, 9, 80, root.memptr(), from.memptr(), to.memptr()});
    for (arma::uword b = 0; b < product_count; ++b)
        EXPECT_LT(arma::abs(to.slice(b) - root * from.slice(b).t()).max(), 1e-12);
}

}  // namespace
}  // namespace spiked::estimators::cuda

#include "validation/metrics/cuda/inner_products.hpp"

#include <gtest/gtest.h>

#include <armadillo>
#include <cmath>
#include <vector>

#include "core/device/emulated_block.hpp"
#include "estimators/svd/cuda/precision.hpp"
#include "sim/spiked/cuda/colour_side.hpp"
#include "validation/metrics/cuda/vector_products.hpp"

/// Compares small kernels of a trial with the same computations in Armadillo.
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

TEST(CudaQueryScalesReference, AreOneOverTheNormsAndZeroOfZeros) {
    arma::cube queries = normals(70, 9, 1);
    queries.slice(1).row(4).zeros();
    arma::mat scales(70, product_count);
    launch(QueryScales<double>{product_count, 70, 9, queries.memptr(), scales.memptr()});
    for (arma::uword b = 0; b < product_count; ++b)
        for (arma::uword i = 0; i < 70; ++i)
            EXPECT_NEAR(scales(i, b) * arma::norm(queries.slice(b).row(i)), b == 1 && i == 4 ? 0.0 : 1.0, 1e-15);
}

TEST(CudaRowErrorsReference, AgreeForTheRowItselfAndTheLeadingVector) {
    constexpr std::uint32_t rows = 133;  // more than the threads of a block
    constexpr std::uint32_t dimension = 11;
    const arma::cube original = normals(rows, dimension, 2);
    arma::Cube<float> decoded = arma::conv_to<arma::Cube<float>>::from(original + 0.1 * normals(rows, dimension, 3));
    const arma::cube right = normals(dimension, 2, 4);
    arma::cube scales(rows, 2, product_count);
    decoded.slice(2).row(5).zeros();
    std::vector<BlockStatus> status(product_count, BlockStatus::not_finite);
    std::vector<RowErrorSums> sums(product_count);
    launch(RowErrors<double, double>{product_count, rows, dimension, 2, original.memptr(), decoded.memptr(),
                                     right.memptr(), scales.memptr(), status.data(), sums.data()});
    EXPECT_EQ(status[2], BlockStatus::for_the_host) << "a decoded row is zero";
    for (arma::uword b = 0; b < 2; ++b) {
        EXPECT_EQ(status[b], BlockStatus::fine);
        const arma::mat& x = original.slice(b);
        const arma::mat y = arma::conv_to<arma::mat>::from(decoded.slice(b));
        const arma::vec norms = arma::sqrt(arma::sum(arma::square(x), 1));
        arma::mat unit = x;
        unit.each_col() /= norms;
        arma::mat renormalised = y;
        renormalised.each_col() /= arma::vec(arma::sqrt(arma::sum(arma::square(y), 1)));
        renormalised -= unit;
        arma::mat error = y - x;
        error.each_col() /= norms;
        EXPECT_LT(arma::abs(scales.slice(b).col(0) % norms - 1.0).max(), 1e-14);
        EXPECT_LT(arma::abs(scales.slice(b).col(1) % arma::sqrt(arma::sum(arma::square(y), 1)) - 1.0).max(), 1e-14);
        arma::vec direction = arma::normalise(right.slice(b).col(0));
        if (arma::accu(x * direction) < 0.0) direction *= -1.0;
        const RowErrorSums& found = sums[b];
        EXPECT_NEAR(found.across, arma::accu(x % y), 1e-10);
        EXPECT_NEAR(found.own_bias, mean_of(arma::sum(unit % renormalised, 1)), 1e-14);
        EXPECT_NEAR(found.own_deviation, deviation_of(arma::sum(unit % renormalised, 1)), 1e-14);
        EXPECT_NEAR(found.own_bias_plain, mean_of(arma::sum(unit % error, 1)), 1e-14);
        EXPECT_NEAR(found.own_deviation_plain, deviation_of(arma::sum(unit % error, 1)), 1e-14);
        EXPECT_NEAR(found.aligned_bias, mean_of(renormalised * direction), 1e-14);
        EXPECT_NEAR(found.aligned_deviation, deviation_of(renormalised * direction), 1e-14);
        EXPECT_NEAR(found.aligned_bias_plain, mean_of(error * direction), 1e-14);
        EXPECT_NEAR(found.aligned_deviation_plain, deviation_of(error * direction), 1e-14);
    }
}

/// Checks the sums over all pairs of a query and a row, and over the pairs of different rows, in one precision.
template <class Entry>
void expect_pair_sums(double allowed) {
    constexpr std::uint32_t rows = 70;
    constexpr std::uint32_t dimension = 21;  // not a multiple of the slice
    const arma::Cube<Entry> original = arma::conv_to<arma::Cube<Entry>>::from(normals(rows, dimension, 5));
    const arma::Cube<float> decoded = arma::conv_to<arma::Cube<float>>::from(arma::conv_to<arma::cube>::from(original) +
                                                                             0.1 * normals(rows, dimension, 6));
    arma::Cube<Entry> scales(rows, 2, product_count);
    for (arma::uword b = 0; b < product_count; ++b) {
        const arma::mat x = arma::conv_to<arma::mat>::from(original.slice(b));
        const arma::mat y = arma::conv_to<arma::mat>::from(decoded.slice(b));
        scales.slice(b).col(0) = arma::conv_to<arma::Col<Entry>>::from(1.0 / arma::sqrt(arma::sum(x % x, 1)));
        scales.slice(b).col(1) = arma::conv_to<arma::Col<Entry>>::from(1.0 / arma::sqrt(arma::sum(y % y, 1)));
    }
    for (const bool different : {true, false}) {
        const std::uint32_t queries = different ? rows : 33;
        const arma::Cube<Entry> random = arma::conv_to<arma::Cube<Entry>>::from(normals(queries, dimension, 7));
        arma::Mat<Entry> random_scales(queries, product_count);
        for (arma::uword b = 0; b < product_count; ++b) {
            const arma::mat q = arma::conv_to<arma::mat>::from(random.slice(b));
            random_scales.col(b) = arma::conv_to<arma::Col<Entry>>::from(1.0 / arma::sqrt(arma::sum(q % q, 1)));
        }
        PairSums<Entry> kernel{product_count,
                               queries,
                               rows,
                               dimension,
                               different,
                               different ? original.memptr() : random.memptr(),
                               different ? scales.memptr() : random_scales.memptr(),
                               different ? 2 * rows : queries,
                               original.memptr(),
                               decoded.memptr(),
                               scales.memptr(),
                               nullptr};
        std::vector<PairErrorSums> sums(kernel.blocks(), {NAN, NAN, NAN, NAN});
        kernel.sums = sums.data();
        launch(kernel);
        for (arma::uword b = 0; b < product_count; ++b) {
            const arma::mat x = arma::normalise(arma::conv_to<arma::mat>::from(original.slice(b)), 2, 1);
            const arma::mat y = arma::conv_to<arma::mat>::from(decoded.slice(b));
            const arma::mat q =
                different ? x : arma::mat(arma::normalise(arma::conv_to<arma::mat>::from(random.slice(b)), 2, 1));
            arma::mat plain = y;
            plain.each_col() /=
                arma::vec(arma::sqrt(arma::sum(arma::square(arma::conv_to<arma::mat>::from(original.slice(b))), 1)));
            plain -= x;
            arma::mat renormalised = q * (arma::normalise(y, 2, 1) - x).t();
            plain = q * plain.t();
            if (different) {
                renormalised.diag().zeros();
                plain.diag().zeros();
            }
            PairErrorSums found{};
            for (std::size_t part = b * kernel.parts(); part < (b + 1) * kernel.parts(); ++part) {
                found.renormalised += sums[part].renormalised;
                found.renormalised_squares += sums[part].renormalised_squares;
                found.plain += sums[part].plain;
                found.plain_squares += sums[part].plain_squares;
            }
            EXPECT_NEAR(found.renormalised, arma::accu(renormalised), allowed);
            EXPECT_NEAR(found.renormalised_squares, arma::accu(arma::square(renormalised)), allowed);
            EXPECT_NEAR(found.plain, arma::accu(plain), allowed);
            EXPECT_NEAR(found.plain_squares, arma::accu(arma::square(plain)), allowed);
        }
    }
}

TEST(CudaPairSumsReference, AreSumsOverAllPairsOrAllButTheRowItself) {
    expect_pair_sums<double>(1e-10);
    expect_pair_sums<float>(2e-3);  // for sums over thousands of pairs
}

TEST(CudaVectorProductsReference, AreProductsOfObservedAndTrueVectors) {
    const arma::cube left = normals(40, 5, 7);
    const arma::cube right = normals(21, 5, 8);
    const arma::cube true_left = normals(40, 3, 9);
    const arma::cube true_right = normals(21, 3, 10);
    arma::cube left_products(3, 3, product_count);
    arma::cube right_products(3, 3, product_count);
    launch(VectorProducts<double>{product_count, 40, 21, 3, 5, left.memptr(), right.memptr(), true_left.memptr(),
                                  true_right.memptr(), left_products.memptr(), right_products.memptr()});
    for (arma::uword b = 0; b < product_count; ++b) {  // column i: observed vector i with every true vector
        EXPECT_LT(arma::abs(left_products.slice(b) - true_left.slice(b).t() * left.slice(b).head_cols(3)).max(), 1e-13);
        EXPECT_LT(arma::abs(right_products.slice(b) - true_right.slice(b).t() * right.slice(b).head_cols(3)).max(),
                  1e-13);
    }
}

TEST(CudaDropRoundingReference, OnlyValuesWithinFloatsRoundingOfZeroBecomeZero) {
    constexpr double floor = 100.0 * 1.1920928955078125e-07;  // long side times the epsilon of float
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
    const arma::mat root(80, 80, arma::fill::randn);  // not symmetric
    const arma::cube from = normals(9, 80, 12);
    arma::cube to(80, 9, product_count);
    launch(sim::ColourSide{product_count, 9, 80, root.memptr(), from.memptr(), to.memptr()});
    for (arma::uword b = 0; b < product_count; ++b)
        EXPECT_LT(arma::abs(to.slice(b) - root * from.slice(b).t()).max(), 1e-12);
}

TEST(CudaTurnVectorsReference, IsTheProductWithEachVector) {
    arma::arma_rng::set_seed(12);
    for (const auto& [length, count] : {std::pair{80U, 1U}, {80U, 70U}, {1U, 3U}, {33U, 64U}, {256U, 5U}}) {
        const arma::mat matrix(length, length, arma::fill::randn);  // not symmetric
        const arma::mat from(length, count, arma::fill::randn);
        arma::mat to(length, count);
        launch(sim::TurnVectors{count, length, matrix.memptr(), from.memptr(), to.memptr()});
        EXPECT_LT(arma::abs(to - matrix * from).max(), 1e-12);
    }
}

}  // namespace
}  // namespace spiked::estimators::cuda

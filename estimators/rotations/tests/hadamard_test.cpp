#include "estimators/rotations/hadamard.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "core/runtime/error.hpp"
#include "sim/random/normal.hpp"

namespace spiked::estimators {
namespace {

const stream::Stream signs(stream::StudySeed::parse("0x5eed"), "hadamard test", stream::Role::rotation, 3);

template <class Real>
arma::Mat<Real> gaussian_rows(std::size_t rows, std::size_t columns) {
    arma::Mat<Real> matrix(rows, columns);
    stream::fill_normal(stream::Stream({}, "hadamard test", stream::Role::noise, 0),
                        std::span<Real>(matrix.memptr(), matrix.n_elem));
    return matrix;
}

/// R by its definition: H(i, j) = (-1)^(ones of i & j), with signs read from the words of the stream one by one.
arma::mat explicit_rotation(std::size_t dimension, unsigned rounds) {
    arma::mat hadamard(dimension, dimension);
    for (arma::uword j = 0; j < dimension; ++j)
        for (arma::uword i = 0; i < dimension; ++i) hadamard(i, j) = std::popcount(i & j) % 2 == 0 ? 1.0 : -1.0;
    hadamard /= std::sqrt(static_cast<double>(dimension));
    arma::mat rotation(dimension, dimension, arma::fill::eye);
    for (unsigned round = 0; round < rounds; ++round) {
        arma::vec diagonal(dimension);
        for (std::uint32_t j = 0; j < dimension; ++j) {
            const auto words = signs.words(j / 128, static_cast<std::uint16_t>(round));
            diagonal(j) = (words[j % 128 / 32] & std::uint32_t{1} << (j % 32)) != 0 ? -1.0 : 1.0;
        }
        rotation = hadamard * arma::diagmat(diagonal) * rotation;
    }
    return rotation;
}

class HadamardReference : public testing::TestWithParam<std::size_t> {};

TEST_P(HadamardReference, AgreesWithTheExplicitMatrix) {
    const std::size_t d = GetParam();
    for (const unsigned rounds : {1U, 2U, 3U})
        for (const std::size_t rows : {std::size_t{1}, std::size_t{16}, std::size_t{37}}) {
            const HadamardRotation rotation(signs, d, rounds);
            const arma::mat R = explicit_rotation(d, rounds);
            const arma::mat block = gaussian_rows<double>(rows, d);
            const double scale = arma::abs(block).max() * std::sqrt(static_cast<double>(d));
            arma::mat rotated = block;
            rotation.rotate(rotated);
            EXPECT_LT(arma::abs(rotated - block * R.t()).max(), 1e-15 * scale) << rounds << " rounds";
            arma::mat back = block;
            rotation.rotate_back(back);
            EXPECT_LT(arma::abs(back - block * R).max(), 1e-15 * scale) << rounds << " rounds";
            auto in_float = arma::conv_to<arma::fmat>::from(block);
            rotation.rotate(in_float);
            EXPECT_LT(arma::abs(arma::conv_to<arma::mat>::from(in_float) - rotated).max(), 1e-6 * scale);
        }
}

INSTANTIATE_TEST_SUITE_P(Dimensions, HadamardReference, testing::Values(1, 2, 4, 8, 64, 128, 256));

TEST(HadamardIdentity, TheRotationIsOrthogonal) {
    const HadamardRotation rotation(signs, 128);
    arma::mat R(128, 128, arma::fill::eye);
    rotation.rotate(R);  // R^T
    EXPECT_LT(arma::abs(R * R.t() - arma::eye(128, 128)).max(), 1e-14);
    const arma::fmat block = gaussian_rows<float>(20, 128);
    arma::fmat there_and_back = block;
    rotation.rotate(there_and_back);
    EXPECT_GT(arma::abs(there_and_back - block).max(), 1.0F);
    rotation.rotate_back(there_and_back);
    EXPECT_LT(arma::abs(there_and_back - block).max(), 3e-6F);
}

TEST(HadamardIdentity, StripsAndBlocksHaveTheSameNumbers) {
    for (const std::size_t rows : {0, 1, 31, 32, 33, 100})
        for (const std::size_t d : {8, 80, 128}) {
            const HadamardRotation rotation = d == 80 ? HadamardRotation::kac(signs, d) : HadamardRotation(signs, d, 2);
            const arma::fmat block = gaussian_rows<float>(rows, d);
            arma::fmat in_place = block;
            rotation.rotate(in_place);
            EXPECT_TRUE(arma::approx_equal(rotation.rotated(block), in_place, "absdiff", 0.0F));
            std::size_t seen = 0;
            rotation.rotate_strips(block, [&](std::size_t first, std::size_t count, std::span<const float> strip) {
                EXPECT_EQ(first, seen);
                seen += count;
                for (std::size_t t = 0; t < count; ++t)
                    for (std::size_t j = 0; j < d; ++j)
                        ASSERT_EQ(strip[j * HadamardRotation::strip_rows + t], in_place(first + t, j));
            });
            EXPECT_EQ(seen, rows);
        }
}

TEST(HadamardIdentity, EachAddressHasItsOwnSigns) {
    const arma::mat block = gaussian_rows<double>(1, 128);
    arma::mat once = block;
    arma::mat again = block;
    arma::mat other = block;
    HadamardRotation(signs, 128).rotate(once);
    HadamardRotation(signs, 128).rotate(again);
    HadamardRotation(stream::Stream({}, "hadamard test", stream::Role::rotation, 4), 128).rotate(other);
    EXPECT_EQ(arma::abs(once - again).max(), 0.0);
    EXPECT_GT(arma::abs(once - other).max(), 0.1);
}

TEST(HadamardLaw, SignsAreFairAndRoundsDiffer) {
    // 4096 signs per round, each of them fair: a limit of 6 standard deviations has one false alarm in 5e8 comparisons.
    const HadamardRotation one(signs, 4096, 1);
    const arma::mat R = [&] {
        arma::mat first(1, 4096, arma::fill::zeros);
        first(0, 0) = 1.0;
        return first;
    }();
    arma::mat row(1, 4096, arma::fill::ones);
    one.rotate(row);  // entry 0 is the sum of the signs over sqrt(d)
    EXPECT_LT(std::abs(row(0, 0)), 6.0);
    arma::mat basis = R;
    HadamardRotation(signs, 4096, 2).rotate(basis);
    // Two rounds spread one entry like a Gaussian; one round gives 4096 entries of one size.
    EXPECT_GT(arma::abs(basis).max(), 2.0 / 64.0);
    arma::mat flat = R;
    one.rotate(flat);
    EXPECT_NEAR(arma::abs(flat).max(), 1.0 / 64.0, 1e-12);
    EXPECT_NEAR(arma::abs(flat).min(), 1.0 / 64.0, 1e-12);
}

TEST(Hadamard, OtherDimensionsAreRejected) {
    EXPECT_THROW(HadamardRotation(signs, 96), Error);
    EXPECT_THROW(HadamardRotation(signs, 0), Error);
    arma::mat narrow(4, 64, arma::fill::zeros);
    EXPECT_THROW(HadamardRotation(signs, 128).rotate(narrow), Error);
}

}  // namespace
}  // namespace spiked::estimators

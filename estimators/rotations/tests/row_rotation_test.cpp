#include "estimators/rotations/row_rotation.hpp"

#include <gtest/gtest.h>

#include <numbers>

#include "estimators/rotations/hadamard.hpp"
#include "estimators/tests/quantizer_samples.hpp"
#include "theory/quantization/lloyd_max.hpp"

namespace spiked::estimators {
namespace {

stream::Stream address(std::uint64_t index) { return {test_seed, "rotation test", stream::Role::rotation, index}; }

arma::mat explicit_matrix(RotationKind kind, std::size_t d) {
    return RowRotation(kind, address(1), d).rotate(arma::mat(d, d, arma::fill::eye)).t();
}

TEST(RowRotationIdentity, EveryKindIsOrthogonalAndRotateBackIsItsInverse) {
    for (const auto kind :
         {RotationKind::haar, RotationKind::rht1, RotationKind::rht2, RotationKind::fht_kac, RotationKind::identity})
        for (const std::size_t d : {1, 2, 3, 5, 7, 12, 33, 64, 80, 96, 128, 200}) {
            if ((kind == RotationKind::rht1 || kind == RotationKind::rht2) && (d & (d - 1)) != 0) continue;
            const arma::mat R = explicit_matrix(kind, d);
            EXPECT_LT(arma::abs(R * R.t() - arma::eye(d, d)).max(), 1e-13) << d;
            const RowRotation rotation(kind, address(1), d);
            const arma::mat rows = gaussian(19, d, 1);
            EXPECT_LT(arma::abs(rotation.rotate(rows) - rows * R.t()).max(), 1e-13);
            EXPECT_LT(arma::abs(rotation.rotate_back(rows) - rows * R).max(), 1e-13);
            const auto in_float = arma::conv_to<arma::fmat>::from(rows);
            const arma::mat there = arma::conv_to<arma::mat>::from(rotation.rotate(in_float));
            const arma::mat back = arma::conv_to<arma::mat>::from(rotation.rotate_back(in_float));
            EXPECT_LT(arma::abs(there - rows * R.t()).max(), 1e-5);
            EXPECT_LT(arma::abs(back - rows * R).max(), 1e-5);
        }
}

/// FHT-Kac by its definition, with signs read from the stream word by word.
arma::mat explicit_kac(std::size_t d) {
    const std::size_t width = std::bit_floor(d);
    arma::mat hadamard(width, width);
    for (arma::uword j = 0; j < width; ++j)
        for (arma::uword i = 0; i < width; ++i)
            hadamard(i, j) = (std::popcount(i & j) % 2 == 0 ? 1.0 : -1.0) / std::sqrt(static_cast<double>(width));
    arma::mat walk(d, d, arma::fill::eye);
    for (std::size_t i = 0; width < d && i < d / 2; ++i) {
        const std::size_t other = d - d / 2 + i;
        walk(i, i) = walk(i, other) = walk(other, i) = 1.0 / std::numbers::sqrt2;
        walk(other, other) = -walk(i, i);
    }
    arma::mat rotation(d, d, arma::fill::eye);
    for (unsigned round = 0; round < 4; ++round) {
        arma::vec diagonal(d);
        for (std::uint32_t j = 0; j < d; ++j) {
            const auto words = address(1).words(j / 128, static_cast<std::uint16_t>(round));
            diagonal(j) = (words[j % 128 / 32] & std::uint32_t{1} << (j % 32)) != 0 ? -1.0 : 1.0;
        }
        arma::mat mix(d, d, arma::fill::eye);
        const std::size_t first = round % 2 == 0 ? 0 : d - width;
        mix.submat(first, first, first + width - 1, first + width - 1) = hadamard;
        rotation = walk * mix * arma::diagmat(diagonal) * rotation;
    }
    return rotation;
}

TEST(RowRotationReference, FhtKacIsTheProductOfItsDefinition) {
    for (const std::size_t d : {1, 3, 12, 33, 64, 80, 96, 200})
        EXPECT_LT(arma::abs(explicit_matrix(RotationKind::fht_kac, d) - explicit_kac(d)).max(), 1e-13) << d;
}

/// Mean relative squared error of tq-mse on one-hot rows, one sample for each of many rotations.
arma::vec one_hot_errors(RotationKind kind, std::size_t d, unsigned bits, std::size_t rotations) {
    // One row is enough: under rht2 all others have the same coordinates in another order.
    arma::mat rows(1, d);
    rows(0, d / 3) = 2.0;
    arma::vec samples(rotations);
    for (std::size_t r = 0; r < rotations; ++r) {
        const RowQuantizer quantizer = row_quantizer(
            "tq-mse", d, bits, {.rotation = kind, .norm = NumberFormat::fp64, .seed = test_seed, .rotation_index = r});
        samples(r) = std::pow(relative_error(through(quantizer, rows), rows), 2);
    }
    return samples;
}

TEST(RowRotationLaw, OneHotRowsNeedTwoRoundsOfSigns) {
    constexpr std::size_t d = 128;
    constexpr double tests = 8;
    for (unsigned bits = 1; bits <= 4; ++bits) {
        const theory::Codebook codebook = theory::lloyd_max_sphere(d, static_cast<int>(bits));
        // One round: every coordinate is +-1, so the error is exactly that of the level next to 1.
        double nearest = 1.0;
        for (const double level : codebook.levels) nearest = std::min(nearest, std::abs(level - 1.0));
        const arma::vec once = one_hot_errors(RotationKind::rht1, d, bits, 4);
        EXPECT_LT(arma::abs(once - nearest * nearest).max(), 1e-12) << bits;
        // Two rounds: the error is near that of the law of the sphere, from which the coordinates of a twice
        // transformed basis vector differ slightly.
        const MeanTest twice(one_hot_errors(RotationKind::rht2, d, bits, 500), codebook.distortion, tests);
        std::cout << "rht2 at " << bits << " bits: " << twice << " of " << codebook.distortion << "\n";
        EXPECT_LT(std::abs(twice.deviation), 0.05 * codebook.distortion + twice.limit);
        // Negative control: the same limit separates one round from the law.
        EXPECT_GT(std::abs(nearest * nearest - codebook.distortion), 0.05 * codebook.distortion + twice.limit);
    }
}

TEST(RowRotationLaw, FhtKacIsAccurateForOneHotRowsOfOtherLengths) {
    for (const std::size_t d : {80, 96, 128}) {
        const double expected = theory::lloyd_max_sphere(static_cast<int>(d), 2).distortion;
        const MeanTest found(one_hot_errors(RotationKind::fht_kac, d, 2, 500), expected, 2);
        std::cout << "fht-kac d=" << d << ": " << found << " of " << expected << "\n";
        EXPECT_LT(std::abs(found.deviation), 0.08 * expected + found.limit);
    }
}

TEST(RowRotation, HadamardOfOtherLengthsIsRejectedWithAnAlternative) {
    for (const auto kind : {RotationKind::rht1, RotationKind::rht2}) {
        const std::string message =
            message_of([&] { (void)row_quantizer("tq-mse", 96, 2, {.rotation = kind}); }, ErrorKind::usage);
        EXPECT_NE(message.find("96"), std::string::npos) << message;
        EXPECT_NE(message.find("fht-kac"), std::string::npos) << message;
    }
    EXPECT_NE(message_of([] { (void)rotation_kind("rht3"); }, ErrorKind::usage).find("rht"), std::string::npos);
}

}  // namespace
}  // namespace spiked::estimators

#include <gtest/gtest.h>

#include <set>

#include "estimators/compressors/compressor.hpp"
#include "estimators/tests/quantizer_samples.hpp"
#include "theory/quantization/lloyd_max.hpp"
#include "theory/quantization/quantizer_errors.hpp"

// Defects of public packages (research note peers.md, Q1 to Q7), each with a test that our code does not have it.
namespace spiked::estimators {
namespace {

/// Slope of <q, x^> on <q, x> over independent rows and queries, one sample per rotation.
arma::vec slopes(const char* method, std::size_t d, unsigned bits, std::size_t rotations) {
    arma::vec found(rotations);
    const arma::mat rows = gaussian(64, d, 1);
    const arma::mat queries = 0.9 * rows + 0.44 * gaussian(64, d, 2);
    const arma::vec exact = arma::sum(queries % rows, 1);
    for (std::size_t r = 0; r < rotations; ++r) {
        const arma::mat decoded = through(
            row_quantizer(method, d, bits, {.norm = NumberFormat::fp64, .seed = test_seed, .rotation_index = r}), rows);
        found(r) = arma::dot(arma::vec(arma::sum(queries % decoded, 1)), exact) / arma::dot(exact, exact);
    }
    return found;
}

TEST(QuantizerPeerFaults, Q1TheSketchConstantFitsTheProjection) {
    // Orthonormal rows with the constant of N(0, 1) rows would give a slope of 1/sqrt(d) here: .088.
    for (const char* method :
         {"qjl", "qjl:projection=orthogonal", "tq-prod", "tq-prod:projection=orthogonal", "eden"}) {
        const MeanTest slope(slopes(method, 64, 2, 60), 1.0, 6);
        if (std::string_view(method) == "eden")
            EXPECT_NEAR(slope.mean, 1.0, 0.01);
        else
            EXPECT_TRUE(slope.agrees()) << method << ": " << slope;
    }
    const MeanTest control(slopes("tq-mse", 64, 2, 60), 1.0, 6);
    EXPECT_FALSE(control.agrees()) << control;
}

TEST(QuantizerPeerFaults, Q2ConstantAndOneHotRowsAreAsGoodAsAnyOther) {
    // Hadamard without signs turns a constant row into one entry: relative error .846 at 3 bits instead of .18.
    const double expected = std::sqrt(theory::lloyd_max_sphere(128, 3).distortion);
    arma::mat rows(2, 128, arma::fill::ones);
    rows.row(1).zeros();
    rows(1, 17) = 1.0;
    for (const auto kind : {RotationKind::haar, RotationKind::rht2, RotationKind::fht_kac}) {
        arma::vec constant(40);
        arma::vec one_hot(40);
        for (std::size_t r = 0; r < 40; ++r) {
            const arma::mat decoded = through(
                row_quantizer("tq-mse", 128, 3, {.rotation = kind, .seed = test_seed, .rotation_index = r}), rows);
            constant(r) = relative_error(decoded.row(0), rows.row(0));
            one_hot(r) = relative_error(decoded.row(1), rows.row(1));
        }
        EXPECT_NEAR(arma::mean(constant), expected, 0.01);
        EXPECT_NEAR(arma::mean(one_hot), expected, 0.01);
    }
    // Negative control: no rotation.
    const RowQuantizer unrotated = row_quantizer("tq-mse", 128, 3, {.rotation = RotationKind::identity});
    EXPECT_GT(relative_error(through(unrotated, rows).row(1), rows.row(1)), 0.5);
}

TEST(QuantizerPeerFaults, Q3AndQ4LevelsAreOptimalAtEveryLength) {
    // Tables for d = 512 used at d = 64, or bins of equal probability, give 1.1 to 7 times the distortion.
    for (const std::size_t d : {64, 512, 768}) {
        const arma::mat rows = gaussian(1000, d, 3);
        for (unsigned bits = 2; bits <= 4; ++bits) {
            const double expected = theory::lloyd_max_sphere(static_cast<int>(d), static_cast<int>(bits)).distortion;
            const double found =
                std::pow(relative_error(through(row_quantizer("tq-mse", d, bits, {.seed = test_seed}), rows), rows), 2);
            EXPECT_NEAR(found / expected, 1.0, 0.03) << d << " " << bits;
        }
    }
}

TEST(QuantizerPeerFaults, Q3SizesAreThoseOfTheBytes) {
    for (const auto& entry : row_quantizers()) {
        const Encoded encoded =
            row_quantizer(entry.name, 64, entry.widths.front(), {.seed = test_seed}).encode(gaussian(1, 64, 4));
        EXPECT_EQ(encoded.ledger.total(), 8 * encoded.bytes.size()) << entry.name;
    }
    // 64 indices of 3 bits and an fp16 norm: 26 bytes (a package reports 52 and stores 132).
    EXPECT_EQ(row_quantizer("tq-mse", 64, 3, {.seed = test_seed}).encode(gaussian(1, 64, 4)).bytes.size(), 26U);
}

TEST(QuantizerPeerFaults, Q5AndQ6DecodingAtOneToEightBitsIsNeverWorseThanTheLaw) {
    const arma::mat rows = gaussian(400, 96, 5);
    for (unsigned bits = 1; bits <= 8; ++bits) {
        const double expected = theory::lloyd_max_sphere(96, static_cast<int>(bits)).distortion;
        const RowQuantizer quantizer =
            row_quantizer("tq-mse", 96, bits, {.norm = NumberFormat::fp32, .seed = test_seed});
        EXPECT_NEAR(std::pow(relative_error(through(quantizer, rows), rows), 2) / expected, 1.0, 0.03) << bits;
    }
}

TEST(QuantizerPeerFaults, Q7TheRotationIsInvertedAndTheNumberOfLevelsMatchesTheBits) {
    for (const auto kind : {RotationKind::haar, RotationKind::rht1, RotationKind::rht2, RotationKind::fht_kac}) {
        const arma::mat rows = gaussian(50, 64, 6);
        const RowRotation rotation(kind, stream::Stream(test_seed, "peer", stream::Role::rotation, 0), 64);
        EXPECT_LT(relative_error(rotation.rotate_back(rotation.rotate(rows)), rows), 1e-14);
        EXPECT_GT(relative_error(rotation.rotate(rotation.rotate(rows)), rows), 0.1);
        const arma::mat decoded = through(row_quantizer("tq-mse", 64, 4, {.rotation = kind, .seed = test_seed}), rows);
        EXPECT_GT(arma::as_scalar(arma::cor(arma::vectorise(decoded), arma::vectorise(rows))), 0.99);
    }
    for (unsigned bits = 5; bits <= 8; ++bits) {
        const arma::mat many = gaussian(10000, 16, 7);
        const arma::mat decoded =
            through(row_quantizer("tq-mse", 16, bits,
                                  {.rotation = RotationKind::identity, .norm = NumberFormat::fp64, .seed = test_seed}),
                    many);
        std::set<long> levels;
        for (std::size_t t = 0; t < many.n_rows; ++t)
            for (std::size_t j = 0; j < 16; ++j)
                levels.insert(std::lround(1e9 * decoded(t, j) / arma::norm(many.row(t))));
        EXPECT_EQ(levels.size(), std::size_t{1} << bits);
    }
}

TEST(QuantizerPeerFaults, DataAndRotationOfOneSeedAreDifferentStreams) {
    // A package rotates by the same random numbers that made the data when both have the same seed: error .40 instead
    // of .34.
    const stream::StudySeed one = stream::StudySeed::parse("0x1");
    arma::mat rows(200, 96);
    stream::fill_normal(stream::Stream(one, "quantizer", stream::Role::noise, 0), {rows.memptr(), rows.n_elem});
    const double expected = std::sqrt(theory::lloyd_max_sphere(96, 2).distortion);
    EXPECT_NEAR(relative_error(through(row_quantizer("tq-mse", 96, 2, {.seed = one}), rows), rows), expected, 0.005);
    // Data equal to the rows of the rotation is the worst case: every row becomes an axis.
    const arma::mat rotation =
        RowRotation(RotationKind::haar, stream::Stream(one, "quantizer", stream::Role::rotation, 0), 96)
            .rotate_back(arma::mat(96, 96, arma::fill::eye));
    EXPECT_GT(relative_error(through(row_quantizer("tq-mse", 96, 2, {.seed = one}), rotation), rotation),
              expected + 0.05);
}

TEST(QuantizerPeerFaults, ABadRowIsRejectedByNumber) {
    arma::mat rows = gaussian(8, 16, 8);
    rows(3, 2) = std::nan("");
    for (const auto& entry : row_quantizers())
        EXPECT_NE(
            message_of(
                [&] { (void)row_quantizer(entry.name, 16, entry.widths.front(), {.seed = test_seed}).encode(rows); },
                ErrorKind::input)
                .find("NaN"),
            std::string::npos);
}

}  // namespace
}  // namespace spiked::estimators

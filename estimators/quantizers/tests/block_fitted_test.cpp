// Quantizers that fit levels, centroids or vectors to the block: pq, kvquant, gear, svdq; and rht-uniform.
#include <gtest/gtest.h>

#include "estimators/tests/quantizer_samples.hpp"
#include "theory/quantization/lloyd_max.hpp"
#include "theory/quantization/quantizer_errors.hpp"

namespace spiked::estimators {
namespace {

TEST(ProductQuantizerLaw, SubVectorsOfOneEntryConvergeToTheLloydMaxLevels) {
    const arma::mat rows = gaussian(256, 128, 1);
    for (const unsigned bits : {1U, 2U, 3U}) {
        const double expected = theory::lloyd_max_sphere(128, static_cast<int>(bits)).distortion;
        const arma::mat decoded = through(row_quantizer("pq:length=1", 128, bits, {.norm = NumberFormat::fp32}), rows);
        EXPECT_NEAR(std::pow(relative_error(decoded, rows), 2) / expected, 1.0, 0.03) << bits;
        // Negative control: levels of one bit less have a very different error.
        EXPECT_LT(std::pow(relative_error(decoded, rows), 2),
                  0.5 * theory::lloyd_max_sphere(128, static_cast<int>(bits) - (bits > 1 ? 1 : 0)).distortion *
                      (bits > 1 ? 1.0 : 2.1));
    }
}

TEST(ProductQuantizer, FewSubVectorsAreExact) {
    // 3 kinds of sub-vectors: no more centroids are needed, and each equals one of them up to fp16.
    const arma::mat kinds = {{1.0, -1.0, 1.0, 1.0}, {2.0, 0.0, 0.0, 0.0}, {0.0, 0.0, -2.0, 0.0}};
    arma::mat rows(30, 12);
    for (std::size_t t = 0; t < 30; ++t)
        for (std::size_t p = 0; p < 3; ++p) rows(t, arma::span(4 * p, 4 * p + 3)) = kinds.row((t + t * p + p) % 3);
    const RowQuantizer quantizer = row_quantizer("pq", 12, 2, {.norm = NumberFormat::fp64});
    EXPECT_LT(relative_error(through(quantizer, rows), rows), 5e-4);
    // Padding beyond the last sub-vector is not counted: 12 = 8 + 4 at one bit.
    EXPECT_EQ(through(row_quantizer("pq", 12, 1, {}), rows).n_cols, 12U);
    const Encoded encoded = row_quantizer("pq", 12, 1, {}).encode(gaussian(200, 12, 1));
    EXPECT_EQ(encoded.ledger.bits(Item::indices), 200U * 2 * 8);
    EXPECT_EQ(encoded.ledger.bits(Item::codebooks), 256U * 8 * 16);
    message_of([] { (void)row_quantizer("pq:length=6", 12, 2, {}); }, ErrorKind::usage);
}

TEST(ProductQuantizer, EveryStoredIndexIsThatOfTheNearestCentroid) {
    const arma::mat rows = std::sqrt(16.0) * arma::normalise(gaussian(40, 16, 3), 2, 1);
    const RowQuantizer quantizer = row_quantizer("pq:length=2", 16, 2, {.norm = NumberFormat::fp64});
    const Encoded encoded = quantizer.encode(rows);
    BitReader reader(encoded.bytes);
    for (std::size_t t = 0; t < 40; ++t) (void)reader.read(64);
    arma::mat centroids(2, 16);
    for (double& entry : centroids) entry = decode_number(reader.read(16), NumberFormat::fp16);
    for (std::size_t p = 0; p < 8; ++p)
        for (std::size_t t = 0; t < 40; ++t) {
            const arma::vec vector = rows(t, arma::span(2 * p, 2 * p + 1)).t();
            arma::vec distances(16);
            for (std::size_t c = 0; c < 16; ++c) distances(c) = arma::norm(vector - centroids.col(c));
            EXPECT_NEAR(distances(reader.read(4)), distances.min(), 1e-12);
        }
}

TEST(Kvquant, AVectorByHand) {
    // The smallest and the largest are stored separately; the others are 0, 1, 1, 2, 2, 3, which four levels represent.
    const arma::mat row = {{1.0, 0.0, 100.0, 2.0, 1.0, 3.0, -50.0, 2.0}};
    const RowQuantizer quantizer = row_quantizer("kvquant:outliers=0.25", 8, 2, {.norm = NumberFormat::fp64});
    const Encoded encoded = quantizer.encode(row);
    BitReader reader(encoded.bytes);
    EXPECT_EQ(decode_number(reader.read(64), NumberFormat::fp64), 1.5);  // centre
    EXPECT_EQ(decode_number(reader.read(64), NumberFormat::fp64), 1.5);  // half range
    for (const double level : {-1.0, -1.0 / 3.0, 1.0 / 3.0, 1.0})
        EXPECT_NEAR(decode_number(reader.read(16), NumberFormat::fp16), level, 2e-4);
    for (const std::uint64_t code : {1U, 0U, 0U, 2U, 1U, 3U, 0U, 2U}) EXPECT_EQ(reader.read(2), code);
    EXPECT_EQ(reader.read(3), 6U);
    EXPECT_EQ(decode_number(reader.read(16), NumberFormat::fp16), -50.0);
    EXPECT_EQ(reader.read(3), 2U);
    EXPECT_EQ(decode_number(reader.read(16), NumberFormat::fp16), 100.0);
    EXPECT_LT(arma::abs(quantizer.decode(encoded.bytes, 1) - row).max(), 1e-3);
}

TEST(Outliers, BeyondFp16AreRejectedWithAdvice) {
    const arma::mat rows = 1e6 * gaussian(16, 16, 3);
    for (const char* name : {"kvquant", "gear"}) {
        const auto coded = [&](const std::string& end) {
            return through(row_quantizer(name + end, 16, 4, {.norm = NumberFormat::fp32}), rows);
        };
        const std::string message = message_of([&] { (void)coded(":outliers=0.2"); }, ErrorKind::input);
        EXPECT_NE(message.find("outliers=0"), std::string::npos) << message;
        EXPECT_EQ(message.find("--norm"), std::string::npos) << message;
        EXPECT_LT(relative_error(coded(":outliers=0"), rows), 0.2) << name;
    }
}

TEST(Kvquant, OutliersOfChannelsAndTokensAreStoredInFp16AndReduceTheError) {
    arma::mat rows = gaussian(64, 32, 4);
    for (std::size_t t = 0; t < 64; t += 9) rows(t, t % 32) = 30.0 + static_cast<double>(t);
    for (const char* axis : {"key", "value"}) {
        const std::string name = std::string("kvquant:axis=") + axis;
        const arma::mat kept = through(row_quantizer(name + ":outliers=0.1", 32, 3, {}), rows);
        for (std::size_t t = 0; t < 64; t += 9) EXPECT_EQ(kept(t, t % 32), 30.0 + static_cast<double>(t)) << axis;
        // Negative control: without it, their vectors lose their levels.
        EXPECT_GT(relative_error(through(row_quantizer(name + ":outliers=0", 32, 3, {}), rows), rows),
                  2.0 * relative_error(kept, rows));
    }
}

TEST(KvquantReference, EveryLevelIsTheMeanOfItsValues) {
    constexpr std::size_t entries = 400;
    const arma::mat row = gaussian(1, entries, 11);
    const Encoded encoded = row_quantizer("kvquant:outliers=0", entries, 2, {.norm = NumberFormat::fp64}).encode(row);
    BitReader reader(encoded.bytes);
    const double centre = decode_number(reader.read(64), NumberFormat::fp64);
    const double half = decode_number(reader.read(64), NumberFormat::fp64);
    std::array<double, 4> levels{}, sums{}, counts{};
    for (double& level : levels) level = decode_number(reader.read(16), NumberFormat::fp16);
    for (std::size_t i = 0; i < entries; ++i) {
        const std::uint64_t code = reader.read(2);
        sums[code] += (row(0, i) - centre) / half;
        counts[code] += 1.0;
    }
    for (std::size_t c = 0; c < 4; ++c) EXPECT_NEAR(levels[c], sums[c] / counts[c], 2e-3) << c;
}

TEST(Outliers, HaveTheGivenFractionHalfAtEitherEnd) {
    // 5 at either end of 100 entries, a place in 7 bits and a value in 16; of 128 by default one (kvquant: 1 %, gear: 2
    // %).
    for (const char* name : {"kvquant", "gear"}) {
        const auto stored = [&](const std::string& end, std::size_t entries) {
            return row_quantizer(name + end, entries, 4, {})
                .encode(gaussian(1, entries, 12))
                .ledger.bits(Item::outliers);
        };
        EXPECT_EQ(stored(":outliers=0.1", 100), 2U * 5 * (7 + 16)) << name;
        EXPECT_EQ(stored("", 128), 2U * 1 * (7 + 16)) << name;
    }
}

TEST(KvquantLaw, FittedLevelsAreNoWorseThanEqualOnes) {
    const arma::mat rows = gaussian(128, 128, 5);
    for (const unsigned bits : {2U, 3U, 4U}) {
        const double fitted = std::pow(
            relative_error(through(row_quantizer("kvquant:outliers=0", 128, bits, {.norm = NumberFormat::fp32}), rows),
                           rows),
            2);
        EXPECT_LT(fitted, theory::min_max_relative_mse(128, static_cast<int>(bits)));
        EXPECT_GT(fitted, std::pow(4.0, -static_cast<double>(bits))) << "Shannon's bound";
    }
}

TEST(GearReference, TheRemainderIsTheTailOfTheErrorsSingularValues) {
    const arma::mat rows = gaussian(48, 32, 6);
    for (const char* axis : {"key", "value"}) {
        const std::string end = std::string(":axis=") + axis;
        const QuantizerOptions options = {.norm = NumberFormat::fp64, .group = 16};
        const arma::mat error = rows - through(row_quantizer("kivi" + end, 32, 2, options), rows);
        const arma::vec values = arma::svd(error);
        for (const std::size_t rank : {std::size_t{0}, std::size_t{1}, std::size_t{4}, std::size_t{32}}) {
            const arma::mat decoded =
                through(row_quantizer("gear:outliers=0:rank=" + std::to_string(rank) + end, 32, 2, options), rows);
            const double expected = rank < 32 ? arma::norm(values.tail(32 - rank)) : 0.0;
            // Vectors in fp16 have a relative error of 2^-12.
            EXPECT_NEAR(arma::norm(decoded - rows, "fro"), expected, 1e-3 * arma::norm(values)) << axis << rank;
        }
    }
}

TEST(Gear, OutliersAreExcludedFromTheGroups) {
    arma::mat rows = gaussian(40, 64, 7);
    rows(3, 5) = 400.0;
    rows(17, 40) = -300.0;
    const double with = relative_error(through(row_quantizer("gear:rank=0:outliers=0.1", 64, 2, {}), rows), rows);
    const double without = relative_error(through(row_quantizer("gear:rank=0:outliers=0", 64, 2, {}), rows), rows);
    EXPECT_LT(with, 0.5 * without);
}

TEST(Gear, AnOutlierIsReplacedByTheMeanOfItsVector) {
    const RowQuantizer quantizer =
        row_quantizer("gear:rank=0:outliers=0.2", 10, 2, {.norm = NumberFormat::fp64, .group = 10});
    // 0 to 3 are exact in 2 bits where the mean, 1.5 here, is in their range.
    const arma::mat row = {{0.0, 1.0, 2.0, 3.0, 900.0, 3.0, 2.0, 1.0, 0.0, -897.0}};
    EXPECT_LT(arma::abs(through(quantizer, row) - row).max(), 1e-12);
    // A mean of 81 leaves it: levels are 27 apart.
    const arma::mat shifted = {{0.0, 1.0, 2.0, 3.0, 900.0, 3.0, 2.0, 1.0, 0.0, -102.0}};
    const arma::mat expected = {{0.0, 0.0, 0.0, 0.0, 900.0, 0.0, 0.0, 0.0, 0.0, -102.0}};
    EXPECT_LT(arma::abs(through(quantizer, shifted) - expected).max(), 1e-12);
}

TEST(SvdqReference, AgreesWithItsDefinition) {
    // Latent channels by an independent decomposition; groups of 8 channels of 64, B = 2: 8, 4, 4 bits.
    const arma::mat rows = gaussian(80, 64, 8) * arma::diagmat(arma::linspace(3.0, 0.1, 64)) + 2.0;
    const arma::rowvec means = arma::mean(rows, 0);
    const arma::mat centred = rows.each_row() - means;
    arma::mat u, v;
    arma::vec s;
    ASSERT_TRUE(arma::svd_econ(u, s, v, centred));
    arma::mat expected = arma::repmat(means, 80, 1);
    for (std::size_t c = 0; c < 24; ++c) {
        const double top = c < 8 ? 255.0 : 15.0;
        const arma::vec latent = centred * v.col(c);
        const double scale = (latent.max() - latent.min()) / top;
        expected += (arma::round((latent - latent.min()) / scale) * scale + latent.min()) * v.col(c).t();
    }
    const Encoded encoded = row_quantizer("svdq", 64, 2, {.norm = NumberFormat::fp64}).encode(rows);
    const arma::mat decoded = row_quantizer("svdq", 64, 2, {.norm = NumberFormat::fp64}).decode(encoded.bytes, 80);
    EXPECT_LT(relative_error(decoded, expected), 5e-3);
    EXPECT_LT(std::abs(relative_error(decoded, rows) / relative_error(expected, rows) - 1.0), 0.01);
    EXPECT_EQ(encoded.ledger.bits(Item::indices), 80U * 8 * (8 + 4 + 4));
    EXPECT_EQ(encoded.ledger.bits(Item::factor_indices), 64U * 24 * 16);
}

TEST(RhtUniformLaw, ErrorIsThatOfMinMaxGroupsForAnyRow) {
    const double expected = theory::min_max_relative_mse(64, 2);
    const arma::mat rows = gaussian(2000, 128, 9);
    const arma::vec errors = arma::mean(
        arma::square(through(row_quantizer("rht-uniform", 128, 2, {.norm = NumberFormat::fp64}), rows) - rows), 1);
    const MeanTest found(errors, expected, 1);
    EXPECT_TRUE(found.agrees()) << found;
    EXPECT_NEAR(std::sqrt(found.mean), 0.45, 0.006);
    EXPECT_FALSE(MeanTest(errors, theory::min_max_relative_mse(32, 2), 1).agrees());
    // Rows with 16 equal entries, far from normal, become normal enough; without the rotation half of their energy
    // would be lost to the levels of the zeros.
    arma::mat sparse(400, 128);
    for (std::size_t t = 0; t < 400; ++t)
        for (std::size_t i = 0; i < 16; ++i)
            sparse(t, (7 * i + 13 * t + i * i * t) % 128) = rows(t, i) > 0.0 ? 1.0 : -1.0;
    const double spread = std::pow(
        relative_error(through(row_quantizer("rht-uniform", 128, 2, {.norm = NumberFormat::fp64}), sparse), sparse), 2);
    EXPECT_NEAR(spread / expected, 1.0, 0.1);
    // The rotation of a row with a single entry has entries of one size and two codes, so it is exact.
    arma::mat one_hot(2, 128);
    one_hot(0, 7) = 3.0;
    one_hot(1, 90) = -1.0;
    EXPECT_LT(
        relative_error(through(row_quantizer("rht-uniform", 128, 2, {.norm = NumberFormat::fp64}), one_hot), one_hot),
        1e-12);
}

}  // namespace
}  // namespace spiked::estimators

#include <gtest/gtest.h>

#include <cmath>

#include "core/files/tests/scratch.hpp"
#include "core/runtime/error.hpp"
#include "estimators/compressors/compressor.hpp"
#include "sim/random/normal.hpp"

namespace spiked::estimators {
namespace {

using sim::expect_error;

/// Rows that differ by standard normal entries around means of 0 but for four channels, as the keys of a layer with a
/// key bias.
arma::mat biased_block(std::size_t rows, std::size_t columns) {
    arma::mat block(rows, columns);
    stream::fill_normal(stream::Stream(QuantizerOptions{}.seed, "column means", stream::Role::noise, 0),
                        {block.memptr(), block.n_elem});
    for (const std::size_t channel : {3U, 20U, 41U, 60U})
        block.col(channel % columns) += channel % 2 == 0 ? 400.0 : -300.0;
    return block;
}

struct Coded {
    arma::mat decoded;
    double bits = 0.0, error = 0.0;  ///< per entry
};

Coded coded(const std::string& method, double bits, const arma::mat& block, const QuantizerOptions& options = {.axis = GroupAxis::key}) {
    const Compressor codec(parse_method(method), block.n_cols, bits, options);
    AnalysedBlock analysed(block);
    const auto encoded = codec.encode(analysed).encoded;
    const arma::mat decoded = codec.decode(encoded.bytes, block.n_rows);
    const auto entries = static_cast<double>(block.n_elem);
    return {decoded, 8.0 * static_cast<double>(encoded.bytes.size()) / entries,
            arma::accu(arma::square(block - decoded)) / entries};
}

TEST(ColumnMeansReference, AreStoredInHalfPrecisionBeforeTheMethodCodesTheRest) {
    const arma::mat block = biased_block(64, 64);
    for (const char* method : {"tq-mse", "svd:1+tq-mse", "svd:rd+tcq"}) {
        const Coded with = coded(std::string("mean+") + method, 2, block);
        arma::rowvec means = arma::sum(block, 0) / 64.0;
        for (double& mean : means) {  // 11 significant bits
            int exponent = 0;
            const double fraction = std::frexp(mean, &exponent);
            mean = std::ldexp(std::nearbyint(std::ldexp(fraction, 11)), exponent - 11);
        }
        const arma::mat rest = block.each_row() - means;
        const Coded plain = coded(method, 2, rest);
        const arma::mat expected = plain.decoded.each_row() + means;
        EXPECT_TRUE(arma::approx_equal(with.decoded, expected, "absdiff", 1e-9)) << method;
        EXPECT_NEAR(with.bits, plain.bits + 16.0 / 64.0, 1e-12) << method;
    }
}

/// The levels of a singular vector are those of normal entries, beyond which its few large entries lie; what is lost is
/// many times the spread of the rows.
TEST(ColumnMeansLaw, KeepTheErrorThatOfTheSpreadWhateverTheMeans) {
    const arma::mat block = biased_block(128, 64);
    for (const char* method : {"tq-mse", "svd:rd+tcq", "tcq"}) {
        const Coded without = coded(method, 2, block);
        const Coded with = coded(std::string("mean+") + method, 2, block);
        EXPECT_LT(with.error, 0.13) << method;  // 2 bits leave .117 of variance 1
        EXPECT_GT(without.error, 10.0 * with.error) << method;
        EXPECT_LT(with.bits, without.bits + 0.13) << method;
    }
}

TEST(ColumnMeans, AreThoseOfKeysOnly) {
    const arma::mat block = biased_block(64, 64);
    const Coded with = coded("mean+tq-mse", 2, block, {.axis = GroupAxis::value});
    const Coded without = coded("tq-mse", 2, block, {.axis = GroupAxis::value});
    EXPECT_TRUE(arma::approx_equal(with.decoded, without.decoded, "absdiff", 0.0));
    EXPECT_EQ(with.bits, without.bits);
}

TEST(ColumnMeans, OfEdgeCases) {
    const arma::mat constant(16, 8, arma::fill::value(2.5));
    EXPECT_LT(coded("mean+svd:rd+tcq", 2, constant).error, 1e-20);
    EXPECT_LT(coded("mean+tq-mse", 2, constant).error, 1e-20);
    const arma::mat one_row = biased_block(1, 64);
    EXPECT_LT(coded("mean+tq-mse", 2, one_row).error, 0.1);
    arma::mat broken = biased_block(8, 8);
    broken(3, 3) = std::nan("");
    expect_error(ErrorKind::input, [&] { (void)coded("mean+tq-mse", 2, broken); }, {"NaN or infinity"});
    broken(3, 3) = 1e7;
    expect_error(ErrorKind::input, [&] { (void)coded("mean+tq-mse", 2, broken); }, {"mean of a column"});
}

TEST(ColumnMeans, AreNamedAfterUnropeAndBeforeAMethod) {
    const MethodSpec method = parse_method("unrope+mean+svd:rd+tcq");
    EXPECT_TRUE(method.unrope && method.centred && method.spectral);
    EXPECT_TRUE(parse_method("mean+eoptshrinkq-mse").spectral);
    EXPECT_FALSE(parse_method("svd:rd+tcq").centred);
    expect_error(ErrorKind::usage, [] { (void)parse_method("mean+unrope+tcq"); }, {"write unrope+mean+tcq"});
    expect_error(ErrorKind::usage, [] { (void)parse_method("mean+"); }, {"write mean+tq-mse"});
    expect_error(ErrorKind::usage, [] { (void)parse_method("mean+svd:1"); }, {"mean+svd:1"});
    expect_error(ErrorKind::usage, [] { (void)parse_estimator("mean+svd:1"); }, {"mean"});
}

}  // namespace
}  // namespace spiked::estimators

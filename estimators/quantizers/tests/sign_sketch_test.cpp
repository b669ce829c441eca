#include "estimators/quantizers/sign_sketch.hpp"

#include <gtest/gtest.h>

#include <numbers>

#include "estimators/tests/quantizer_samples.hpp"
#include "theory/quantization/quantizer_errors.hpp"

namespace spiked::estimators {
namespace {

using std::numbers::pi;

/// <y, r^> / (|y| |r|) over many sketches, with y and r at this cosine; r lies along an axis and its length is not 1.
arma::vec estimates(const char* method, std::size_t d, unsigned bits, double cosine, std::size_t sketches) {
    arma::mat r(1, d);
    r(0, 2) = 5.0;
    arma::rowvec y(d);
    y(2) = cosine;
    y(0) = std::sqrt(1.0 - cosine * cosine);
    arma::vec samples(sketches);
    for (std::size_t s = 0; s < sketches; ++s)
        samples(s) =
            arma::dot(y, through(row_quantizer(method, d, bits,
                                               {.norm = NumberFormat::fp64, .seed = test_seed, .rotation_index = s}),
                                 r)) /
            5.0;
    return samples;
}

arma::vec squares_around(const arma::vec& samples, double centre) { return arma::square(samples - centre); }

TEST(SignSketchLaw, MeanAndVarianceOfTheGaussianSketch) {
    constexpr std::size_t d = 32;
    constexpr double tests = 4 * 2;
    for (const double cosine : {0.0, 0.3, 0.9, 1.0}) {
        const arma::vec found = estimates("qjl", d, 1, cosine, 6000);
        const MeanTest mean(found, cosine, tests);
        EXPECT_TRUE(mean.agrees()) << cosine << ": " << mean;
        // For the sketch's own scale, (1/d) <S y, sign(S r)>, the mean is sqrt(2/pi), not 2/pi.
        const MeanTest raw(found / std::sqrt(pi / 2.0), std::sqrt(2.0 / pi) * cosine, tests);
        EXPECT_TRUE(raw.agrees()) << raw;
        const MeanTest variance(static_cast<double>(d) * squares_around(found, cosine), pi / 2.0 - cosine * cosine,
                                tests);
        EXPECT_TRUE(variance.agrees()) << cosine << ": " << variance;
        std::cout << "cosine " << cosine << ": mean detectable " << mean.detectable() << ", variance " << variance
                  << "\n";
    }
}

TEST(SignSketchControl, TheConstantOfThePaperIsDetectedAsWrong) {
    const arma::vec found = estimates("qjl", 32, 1, 0.9, 6000) / std::sqrt(pi / 2.0);
    EXPECT_FALSE(MeanTest(found, 2.0 / pi * 0.9, 8).agrees());
}

TEST(SignSketchLaw, OrthogonalRowsStayUnbiasedWithASmallerError) {
    constexpr int d = 32;
    for (const double cosine : {0.0, 0.9}) {
        const arma::vec found = estimates("qjl:projection=orthogonal", d, 1, cosine, 4000);
        const MeanTest mean(found, cosine, 4);
        EXPECT_TRUE(mean.agrees()) << mean;
        const theory::SketchError law = theory::qjl_error(theory::SketchRows::orthogonal, d, d, cosine);
        const MeanTest variance(squares_around(found, cosine) * d, d * law.variance / std::pow(law.mean_factor, 2), 4);
        EXPECT_TRUE(variance.agrees()) << variance;
        // Not the variance of independent rows.
        EXPECT_FALSE(MeanTest(squares_around(found, cosine) * d, pi / 2.0 - cosine * cosine, 4).agrees());
    }
    // At cosine 0 and in the limit pi/2 becomes pi/2 - 1: 2.75 times smaller.
    const theory::SketchError law = theory::qjl_error(theory::SketchRows::orthogonal, 4096, 4096, 0.0);
    EXPECT_NEAR(4096 * law.variance, pi / 2.0 - 1.0, 1e-3);
}

TEST(SignSketchLaw, MoreBitsAreMoreRows) {
    for (const char* method : {"qjl", "qjl:projection=orthogonal"}) {
        const arma::vec found = estimates(method, 16, 3, 0.5, 4000);
        EXPECT_TRUE(MeanTest(found, 0.5, 4).agrees()) << method;
        const bool gaussian = std::string_view(method) == "qjl";
        const theory::SketchError law =
            theory::qjl_error(gaussian ? theory::SketchRows::gaussian : theory::SketchRows::orthogonal, 16, 48, 0.5);
        const MeanTest variance(squares_around(found, 0.5), law.variance / std::pow(law.mean_factor, 2), 4);
        EXPECT_TRUE(variance.agrees()) << method << ": " << variance;
    }
}

TEST(SignSketch, ZeroIsNotPositiveAndZeroRowsStayZero) {
    const SignSketch sketch({.seed = test_seed}, 5, 10);
    BitWriter writer;
    sketch.write_signs(writer, arma::mat(3, 5));
    sketch.write_signs(writer, arma::fmat(3, 5));
    EXPECT_EQ(writer.ledger().bits(Item::signs), 60U);
    for (const std::uint8_t byte : writer.bytes()) EXPECT_EQ(byte, 0U);
    EXPECT_EQ(arma::abs(through(row_quantizer("qjl", 5, 2, {.seed = test_seed}), arma::mat(3, 5))).max(), 0.0);
}

}  // namespace
}  // namespace spiked::estimators

// Transforms around an estimator, and the estimates of blocks that methods compute.
#include "estimators/transforms/spectral_method.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/runtime/error.hpp"
#include "estimators/compressors/compressor.hpp"
#include "estimators/tests/spectra.hpp"
#include "estimators/transforms/whitening.hpp"
#include "sim/random/haar.hpp"

namespace spiked::estimators {
namespace {

const stream::StudySeed method_seed = stream::StudySeed::parse("0x5eed0000000000000000000000000032");

arma::mat haar(std::size_t size, std::size_t columns, std::uint64_t replicate) {
    return stream::haar_frame({method_seed, "methods", stream::Role::rotation, replicate}, size, columns);
}

/// The estimate from both sides' vectors, by its formula.
arma::mat by_both_sides(const arma::mat& block, const Shrinkage& shrinkage) {
    const auto vectors = leading_vectors(block, shrinkage.rank);
    return vectors.left * arma::diagmat(arma::vec(shrinkage.shrunk)) * vectors.right.t();
}

TEST(AnalysedBlockIdentity, OneSidesVectorsGiveTheSameEstimate) {
    for (const Shape shape : {Shape{60, 40}, Shape{40, 60}, Shape{50, 50}})
        for (const double scale : {1e-160, 1e-150, 1.0, 1e150}) {
            const arma::mat data = spiked_block(shape.rows, shape.columns, {4.0, 3.0}, 1);
            AnalysedBlock block(data * scale);
            const Shrinkage found = spectral_estimator("eoptshrink").estimate(block.singular_values(), block.shape());
            ASSERT_EQ(found.rank, 2U);
            const arma::mat expected =
                by_both_sides(data, spectral_estimator("eoptshrink").estimate(singular_values(data), block.shape()));
            EXPECT_LE(arma::abs(block.denoised(found.shrunk) / scale - expected).max(), 1e-13);
            EXPECT_LE(arma::abs(block.residual(found.shrunk) / scale - (data - expected)).max(), 1e-13);
        }
}

TEST(AnalysedBlockIdentity, TinyComponentsAreAccurateRelativeToTheData) {
    // Values 1 and 1e-13: the small component is kept up to the rounding error of the block, not amplified by its
    // inverse.
    const arma::mat u = haar(30, 2, 1);
    const arma::mat v = haar(20, 2, 2);
    AnalysedBlock block(u * arma::diagmat(arma::vec{1.0, 1e-13}) * v.t());
    const std::vector<double> both = {0.5, block.singular_values()[1]};
    const arma::mat expected = 0.5 * u.col(0) * v.col(0).t();
    EXPECT_LE(arma::abs(block.denoised(both) - expected).max(), 1e-12);
    EXPECT_LE(arma::abs(block.denoised(std::vector<double>{1.0, 0.0}) - u.col(0) * v.col(0).t()).max(), 1e-12);
}

TEST(AnalysedBlock, ZeroRowsAndColumnsStayZeroInTheEstimate) {
    arma::mat padded(70, 60);
    const arma::mat data = spiked_block(50, 40, {5.0, 4.0}, 3);
    padded.submat(10, 5, 59, 44) = data;
    AnalysedBlock block(padded);
    AnalysedBlock bare(data);
    EXPECT_EQ(block.shape().rows, 50U);
    EXPECT_EQ(block.shape().columns, 40U);
    for (const char* name : {"eoptshrink", "whiten+gd-shrink", "dyson+gd-shrink", "whiten:full+optshrink:2"}) {
        const SpectralMethod method = spectral_method(name);
        const arma::mat whole = method.apply(block).signal;
        EXPECT_LE(arma::abs(whole.submat(10, 5, 59, 44) - method.apply(bare).signal).max(), 1e-12) << name;
        EXPECT_EQ(arma::accu(whole != 0.0), arma::accu(whole.submat(10, 5, 59, 44) != 0.0)) << name;
    }
}

TEST(AnalysedBlock, NanAndInfinityAreRejected) {
    for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
        arma::mat data = white_block(10, 12, 1);
        data(3, 4) = bad;
        for (const char* name : {"eoptshrink", "whiten+gd-shrink", "dyson+gd-shrink"}) {
            AnalysedBlock block(data);
            EXPECT_THROW((void)spectral_method(name).apply(block), Error) << name;
        }
    }
}

// For any pair of singular vectors s_i - u^T S v = u^T Z v: the remainder of a component is projected noise.
TEST(SpectralMethodIdentity, TheRemainderOfAComponentIsNoise) {
    arma::mat signal(40, 60);
    signal(0, 0) = 4.0;
    signal(1, 1) = 3.0;
    const arma::mat noise = white_block(40, 60, 9);
    const arma::mat data = signal + noise;
    const auto s = singular_values(data);
    const auto vectors = leading_vectors(data, 5);
    for (arma::uword i = 0; i < 5; ++i) {
        const double kept = arma::as_scalar(vectors.left.col(i).t() * signal * vectors.right.col(i));
        const double through = arma::as_scalar(vectors.left.col(i).t() * noise * vectors.right.col(i));
        EXPECT_NEAR(s[i] - kept, through, 1e-13);
    }
}

class EveryMethod : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Names, EveryMethod,
                         testing::Values("eoptshrink", "eoptshrink:paper", "eoptshrink:author", "eoptshrink:edgefit",
                                         "optshrink:2", "svd:2", "gd-hard", "gd-shrink:quantile", "screenot:4",
                                         "tw-test", "whiten+gd-shrink", "whiten:full+eoptshrink", "dyson+gd-hard",
                                         "whiten+dyson+optshrink:2"),
                         [](const testing::TestParamInfo<const char*>& method) {
                             std::string name = method.param;
                             for (char& letter : name)
                                 if (!std::isalnum(static_cast<unsigned char>(letter))) letter = '_';
                             return name;
                         });

TEST_P(EveryMethod, FactorsAreOrthonormalAndMakeTheSameEstimate) {
    for (const Shape shape : {Shape{60, 40}, Shape{40, 60}}) {
        AnalysedBlock block(spiked_block(shape.rows, shape.columns, {5.0, 4.0}, 4));
        const SpectralMethod method = spectral_method(GetParam());
        const auto [shrinkage, signal] = method.factors(block);
        ASSERT_EQ(shrinkage.rank, 2U);
        ASSERT_EQ(shrinkage.shrunk.size(), 2U);
        EXPECT_LE(arma::norm(signal.left.t() * signal.left - arma::eye(2, 2), "inf"), 1e-12);
        EXPECT_LE(arma::norm(signal.right.t() * signal.right - arma::eye(2, 2), "inf"), 1e-12);
        EXPECT_GE(signal.values(0), signal.values(1));
        EXPECT_LE(arma::abs(signal.matrix() - method.apply(block).signal).max(), 1e-12);
        EXPECT_EQ(method.estimate(block).shrunk, shrinkage.shrunk);
    }
}

TEST_P(EveryMethod, TranspositionTransposesTheEstimate) {
    if (std::string_view(GetParam()) == "eoptshrink:paper") GTEST_SKIP() << "k and margin from the columns";
    const arma::mat data = spiked_block(40, 60, {5.0, 4.0}, 5);
    AnalysedBlock wide(data);
    AnalysedBlock tall(data.t());
    const SpectralMethod method = spectral_method(GetParam());
    // The full covariance estimate starts with the rows.
    const double tolerance = std::string_view(GetParam()).starts_with("whiten:full") ? 0.05 : 1e-9;
    EXPECT_LE(arma::abs(method.apply(wide).signal - method.apply(tall).signal.t()).max(), tolerance);
}

// Reference from NumPy by the formula of the article: a weight of 0.537 on the mean variance.
TEST(Whitening, CovariancesAreShrunkAsTheOracleApproximatingShrinkageDoes) {
    const arma::mat samples = {{3, -3, 6, 0, 1}, {0, 1, -1, 1, 0}, {1, 2, 1, -1, 0}};
    const arma::mat expected = {
        {7.41939252, -0.83323598, 0.27774533}, {-0.83323598, 2.60514019, 0.0}, {0.27774533, 0.0, 2.97546729}};
    const NoiseCovariance found = shrunk_covariance(samples);
    EXPECT_LE(arma::abs(found.root_times(found.root_times(arma::eye(3, 3))) - expected).max(), 1e-8);
}

TEST_P(EveryMethod, RotationRotatesTheEstimate) {
    // Variances belong to coordinates, so methods that estimate them are not rotation equivariant.
    const std::string_view name = GetParam();
    if (name.starts_with("whiten") || name.find("dyson") != std::string_view::npos) GTEST_SKIP();
    const arma::mat data = spiked_block(40, 60, {5.0, 4.0}, 6);
    const arma::mat left = haar(40, 40, 3);
    const arma::mat right = haar(60, 60, 4);
    AnalysedBlock plain(data);
    AnalysedBlock rotated(left * data * right.t());
    const SpectralMethod method = spectral_method(name);
    EXPECT_LE(arma::abs(method.apply(rotated).signal - left * method.apply(plain).signal * right.t()).max(), 1e-10);
}

TEST_P(EveryMethod, ScalesWithTheData) {
    const arma::mat data = spiked_block(40, 60, {5.0, 4.0}, 7);
    AnalysedBlock plain(data);
    const SpectralMethod method = spectral_method(GetParam());
    const arma::mat expected = method.apply(plain).signal;
    for (const double c : {1e-150, 1e-6, 1e8, 1e150}) {
        AnalysedBlock scaled(c * data);
        EXPECT_LE(arma::abs(method.apply(scaled).signal / c - expected).max(), 1e-9) << c;
    }
}

TEST_P(EveryMethod, ZeroAndExactlyLowRankBlocksHaveDefinedResults) {
    AnalysedBlock zero(arma::mat(20, 30, arma::fill::zeros));
    const auto nothing = spectral_method(GetParam()).apply(zero);
    EXPECT_EQ(nothing.shrinkage.rank, 0U);
    EXPECT_EQ(arma::accu(arma::abs(nothing.signal)), 0.0);
    EXPECT_EQ(nothing.signal.n_cols, 30U);
    const arma::mat exact = 3.0 * haar(20, 1, 5) * haar(30, 1, 6).t();
    AnalysedBlock one(exact);
    EXPECT_LE(arma::abs(spectral_method(GetParam()).apply(one).signal - exact).max(), 1e-12);
}

TEST(Whitening, KnownCovariancesWhitenTheNoiseAndRecolourTheEstimate) {
    arma::vec rows = arma::linspace(0.5, 4.0, 40);
    arma::mat columns = arma::toeplitz(arma::pow(arma::vec(60, arma::fill::value(0.6)), arma::regspace(0, 59)));
    const KnownNoise known{NoiseCovariance::diagonal(rows), NoiseCovariance::full(columns)};
    const arma::mat root = arma::sqrtmat_sympd(columns);
    const arma::mat white = spiked_block(40, 60, {5.0, 4.0}, 8);
    const arma::mat data = arma::diagmat(arma::sqrt(rows)) * white * root;
    const double sigma = 1.0 / std::sqrt(60.0);
    AnalysedBlock block(data);
    AnalysedBlock plain(white);
    const arma::mat expected = arma::diagmat(arma::sqrt(rows)) *
                               spectral_method("gd-shrink:sigma=" + std::to_string(sigma)).apply(plain).signal * root;
    const SpectralMethod method = spectral_method("whiten+gd-shrink:sigma=" + std::to_string(sigma)).knowing(known);
    EXPECT_LE(arma::abs(method.apply(block).signal - expected).max(), 1e-9);
    // After whitening by known covariances the test knows that its noise is white.
    EXPECT_EQ(spectral_method("whiten+tw-test").knowing(known).estimate(block).rank, 2U);
    // With the same known covariances it is an oracle without a transform.
    EXPECT_GE(spectral_method("tw-test").knowing(known).estimate(block).rank, 1U);
}

TEST(Whitening, KnownCovariancesImplyAKnownLevel) {
    // Noise of twice the known standard deviation is all signal if the level is known, and none if it is estimated.
    AnalysedBlock block(2.0 * white_block(40, 60, 2));
    const KnownNoise known{NoiseCovariance::identity(40), std::nullopt};
    EXPECT_GE(spectral_method("whiten+tw-test").knowing(known).estimate(block).rank, 5U);
    EXPECT_LE(spectral_method("whiten+tw-test").estimate(block).rank, 1U);
}

TEST(Whitening, AMethodThatKnowsTheNoiseKeepsTheOptionsOfItsName) {
    const KnownNoise known{NoiseCovariance::identity(40), std::nullopt};
    const SpectralMethod method = spectral_method("whiten+dyson+gd-shrink:sigma=1", theory::Loss::nuclear);
    const SpectralMethod knowing = method.knowing(known);
    EXPECT_EQ(knowing.name, method.name);
    EXPECT_EQ(knowing.loss, theory::Loss::nuclear);
    EXPECT_EQ(knowing.transforms.size(), 2U);
    EXPECT_TRUE(knowing.transforms.front().exact);
    EXPECT_FALSE(knowing.transforms.back().exact);
    EXPECT_FALSE(method.transforms.front().exact);
    EXPECT_THROW((void)spectral_method("whiten:full+gd-shrink").knowing(known), Error);

    for (const char* name : {"tw-test", "whiten+gd-shrink", "whiten+dyson+gd-shrink"})
        EXPECT_TRUE(spectral_method(name).takes_noise_law()) << name;
    for (const char* name : {"gd-shrink", "dyson+gd-shrink", "dyson+whiten+tw-test"})
        EXPECT_FALSE(spectral_method(name).takes_noise_law()) << name;
}

TEST(NoiseCovarianceIdentity, RestrictionIsTheSubmatrix) {
    const arma::mat matrix =
        arma::toeplitz(arma::exp(-0.3 * arma::regspace(0, 7))) + arma::diagmat(arma::regspace(0, 7));
    const arma::uvec kept = {1, 2, 5, 7};
    const arma::mat root = NoiseCovariance::full(matrix).restricted(kept).root_times(arma::eye(4, 4));
    EXPECT_LE(arma::abs(root * root - matrix.submat(kept, kept)).max(), 1e-12);
    const arma::vec variances = arma::regspace(1, 8);
    const arma::mat diagonal = NoiseCovariance::diagonal(variances).restricted(kept).root_times(arma::eye(4, 4));
    EXPECT_LE(arma::abs(diagonal * diagonal - arma::diagmat(variances.elem(kept))).max(), 1e-12);
}

TEST(Whitening, WrongSizesAndSingularCovariancesAreRejected) {
    AnalysedBlock block(white_block(10, 12, 1));
    const KnownNoise wrong{NoiseCovariance::identity(9), std::nullopt};
    EXPECT_THROW((void)spectral_method("whiten+gd-shrink").knowing(wrong).apply(block), Error);
    arma::vec variances(10, arma::fill::ones);
    variances(3) = 0.0;
    const KnownNoise singular{NoiseCovariance::diagonal(variances), std::nullopt};
    EXPECT_THROW((void)spectral_method("whiten+gd-shrink").knowing(singular).apply(block), Error);
    EXPECT_THROW((void)NoiseCovariance::full(arma::mat{{1.0, 0.5}, {0.2, 1.0}}), Error);
    EXPECT_THROW((void)NoiseCovariance::full(arma::mat{{1.0, 2.0}, {2.0, 1.0}}), Error);
    EXPECT_THROW((void)NoiseCovariance::diagonal(arma::vec{1.0, -1.0}), Error);
}

/// Noise variances x_i y_j over two orders of magnitude on each side.
arma::mat uneven_noise(std::size_t rows, std::size_t columns, std::uint64_t replicate, const arma::mat& signal) {
    const arma::vec x = arma::exp10(arma::linspace(-1.0, 1.0, rows));
    const arma::vec y = arma::exp10(arma::linspace(1.0, -1.0, columns));
    return arma::diagmat(arma::sqrt(x)) * white_block(rows, columns, replicate, "uneven") *
               arma::diagmat(arma::sqrt(y)) +
           signal;
}

TEST(Transforms, UnevenVariancesAreEqualized) {
    // Without a transform the white-noise threshold takes a dozen components of such noise for signals (negative
    // control).
    for (const char* name : {"dyson+gd-hard", "whiten+gd-hard"}) {
        std::size_t with = 0;
        std::size_t without = 0;
        for (std::uint64_t replicate = 0; replicate < 5; ++replicate) {
            AnalysedBlock block(uneven_noise(120, 100, replicate, arma::mat(120, 100)));
            with += spectral_method(name).estimate(block).rank;
            without += spectral_method("gd-hard").estimate(block).rank;
        }
        EXPECT_LE(with, 1U) << name;
        EXPECT_GE(without, 25U);
    }
}

TEST(Transforms, SignalsInUnevenNoiseAreFoundAndEstimatedBetter) {
    const arma::mat signal =
        12.0 * haar(120, 1, 7) * haar(100, 1, 8).t() + 9.0 * haar(120, 1, 9) * haar(100, 1, 10).t();
    const auto error = [&](const char* name, std::size_t& rank) {
        double sum = 0.0;
        rank = 0;
        for (std::uint64_t replicate = 0; replicate < 5; ++replicate) {
            AnalysedBlock block(uneven_noise(120, 100, replicate, signal));
            const auto applied = spectral_method(name).apply(block);
            sum += arma::accu(arma::square(applied.signal - signal)) / arma::accu(arma::square(signal)) / 5.0;
            rank += applied.shrinkage.rank;
        }
        return sum;
    };
    std::size_t rank = 0;
    const double plain = error("eoptshrink:rank=2", rank);
    for (const char* name :
         {"whiten+gd-hard", "dyson+gd-hard", "whiten+eoptshrink:edgefit", "dyson+eoptshrink:edgefit"}) {
        EXPECT_LT(error(name, rank), 0.8 * plain) << name << ", plain " << plain;
        EXPECT_EQ(rank, 10U) << name;
    }
}

TEST(Transforms, TheVarianceProfileIsRecovered) {
    const arma::vec x = arma::exp10(arma::linspace(-1.0, 1.0, 120));
    const arma::vec y = arma::exp10(arma::linspace(1.0, -1.0, 300));
    AnalysedBlock block(uneven_noise(120, 300, 1, arma::mat(120, 300)));
    for (const char* name : {"dyson", "whiten"}) {
        const WhiteCoordinates white = transform_spec(name).make().enter(block);
        const arma::vec left = arma::square(white.left.root_times(arma::mat(120, 1, arma::fill::ones))) / x;
        const arma::vec right = arma::square(white.right.root_times(arma::mat(300, 1, arma::fill::ones))) / y;
        // A row's variance is estimated from 300 entries, a column's from 120.
        EXPECT_LE(arma::stddev(arma::log(left)), 0.3) << name;
        EXPECT_LE(arma::stddev(arma::log(right)), 0.3) << name;
        EXPECT_NEAR(arma::mean(left) * arma::mean(right) * white.unit * white.unit, 1.0, 0.15) << name;
        EXPECT_NEAR(arma::accu(arma::square(white.block)), 120.0, 8.0) << name;
    }
}

TEST(Transforms, FailedWhiteningGivesANote) {
    const auto note = [](const char* name, const arma::mat& data) {
        AnalysedBlock block(data);
        return spectral_method(name).estimate(block).note;
    };
    const arma::mat exact = 3.0 * haar(20, 1, 5) * haar(30, 1, 6).t();
    EXPECT_NE(note("whiten+gd-shrink", exact).find("no noise to estimate variances from"), std::string::npos);
    EXPECT_NE(note("dyson+gd-shrink", exact).find("no noise to estimate variances from"), std::string::npos);
    // More signals than the edge fit searches are treated as noise and enter the variances.
    const std::vector<double> thirty(30, 6.0);
    for (const char* name : {"whiten+svd:30", "whiten:full+svd:30"}) {
        EXPECT_NE(note(name, spiked_block(128, 128, thirty, 1)).find("while whitening"), std::string::npos) << name;
        EXPECT_EQ(note(name, spiked_block(128, 128, {6.0, 5.0}, 1)).find("while whitening"), std::string::npos) << name;
    }
}

TEST(Transforms, NamesCompose) {
    EXPECT_EQ(spectral_method("whiten+dyson+gd-shrink:sigma=1").transforms.size(), 2U);
    const MethodSpec method = parse_method("whiten+gd-shrink+tq-mse");
    ASSERT_TRUE(method.spectral.has_value());
    EXPECT_EQ(method.spectral->transforms.size(), 1U);
    for (const char* name : {"whitn+gd-shrink", "whiten", "whiten+dyson", "gd-shrink+whiten", "whiten:x+gd-shrink",
                             "dyson:full+gd-shrink", "whiten:full:diagonal+gd-shrink", "whiten++gd-shrink", "+", ""})
        EXPECT_THROW((void)spectral_method(name), Error) << name;
    EXPECT_THROW((void)parse_method("whiten+gd-shrink"), Error);
}

TEST(Transforms, ACompressorStoresRecolouredFactors) {
    const arma::mat data = uneven_noise(64, 64, 3, spiked_block(64, 64, {60.0}, 1) - white_block(64, 64, 1));
    AnalysedBlock block(data);
    const Compressor compressor(parse_method("whiten+gd-shrink+tq-mse"), 64, 4, {});
    const auto result = compressor.encode(block);
    EXPECT_GE(result.rank, 1U);
    const arma::mat decoded = compressor.decode(result.encoded.bytes, 64);
    EXPECT_LE(arma::norm(decoded - data, "fro") / arma::norm(data, "fro"), 0.1);
}

TEST(SpectralMethod, ChainsOfTransformsAreLimited) {
    const auto chain = [](std::size_t transforms) {
        std::string name;
        for (std::size_t i = 0; i < transforms; ++i) name += "whiten+";
        return name + "gd-shrink";
    };
    EXPECT_EQ(spectral_method(chain(16), theory::Loss::frobenius).transforms.size(), 16U);
    for (const std::size_t transforms : {17, 100000})
        EXPECT_THROW((void)spectral_method(chain(transforms), theory::Loss::frobenius), Error) << transforms;
}

}  // namespace
}  // namespace spiked::estimators

// Clipping of outlying entries: its first round by hand, the level of a test and the error under heavy tails, and what
// it costs under Gaussian noise.
#include "estimators/transforms/clipping.hpp"

#include <gtest/gtest.h>

#include <boost/math/distributions/binomial.hpp>
#include <cmath>

#include "core/runtime/error.hpp"
#include "estimators/tests/spectra.hpp"
#include "estimators/transforms/spectral_method.hpp"
#include "sim/spiked/spiked_sampler.hpp"

namespace spiked::estimators {
namespace {

const stream::StudySeed clip_seed = stream::StudySeed::parse("0x5eed0000000000000000000000004805");

sim::SpikedSample heavy_block(const char* law, std::vector<SignalStrength> strengths, std::uint64_t replicate) {
    sim::SpikedModel model{sim::Covariance::identity(64), sim::Covariance::identity(96), std::move(strengths)};
    model.entries = sim::EntryLaw::parse(law);
    return sim::sample(model, clip_seed, law, replicate);
}

TEST(ClippingReference, WithoutSignalsTheBlockIsTheClippedAndScaledOne) {
    // Absolute values 1 to 12: their median is 6.5, a limit of half the deviation is 4.818, which 4 of 12 do not reach.
    const arma::mat data = {{1, -8, 3, 12}, {-5, 6, -10, 4}, {7, 2, -9, -11}};
    AnalysedBlock block(data);
    const WhiteCoordinates found = clip_outliers(block, 0.5);
    const double most = 0.5 * 1.4826 * 6.5;
    arma::mat expected = arma::clamp(data, -most, most);
    expected *= 12.0 / 4.0;
    EXPECT_EQ(found.note, "");
    EXPECT_LE(arma::abs(found.block * found.unit - expected).max(), 1e-12);
    EXPECT_EQ(arma::abs(found.left.root_times(arma::eye(3, 3)) - arma::eye(3, 3)).max(), 0.0);
}

TEST(ClippingIdentity, ScaleAndSignAndTranspositionCarryOver) {
    const arma::mat data = heavy_block("student:3", {{4.0}, {3.0}}, 0).observed;
    AnalysedBlock block(data);
    const SpectralMethod method = spectral_method("clip+gd-shrink");
    const arma::mat expected = method.apply(block).signal;
    for (const double scale : {-1.0, 1e-150, 1e150}) {
        AnalysedBlock scaled(data * scale);
        EXPECT_LE(arma::abs(method.apply(scaled).signal / scale - expected).max(), 1e-9) << scale;
    }
    AnalysedBlock transposed(data.t());
    EXPECT_LE(arma::abs(method.apply(transposed).signal.t() - expected).max(), 1e-9);
}

TEST(ClippingLaw, TheNoiseHasTheVarianceOfHubersEstimate) {
    // E psi(Z)^2 / P(|Z| < c)^2 over E Z^2 by quadrature (SciPy). Of 184 320 entries the mean of such squares has a
    // relative standard error below .004.
    const auto variance = [](const char* law) {
        double sum = 0.0;
        for (std::uint64_t replicate = 0; replicate < 30; ++replicate) {
            AnalysedBlock block(heavy_block(law, {}, replicate).observed);
            const WhiteCoordinates found = clip_outliers(block, 2.0);
            sum += 96.0 * arma::mean(arma::square(arma::vectorise(found.block * found.unit))) / 30.0;
        }
        return sum;
    };
    EXPECT_NEAR(variance("gaussian"), 1.0104, 0.02);
    EXPECT_NEAR(variance("student:3"), 0.5822, 0.012);
}

/// E psi_c(Z)^2 / P(|Z| < c)^2 of a Laplace variable of scale 1.
double huber_variance_of_laplace(double c) {
    const double beyond = std::exp(-c);
    return (2.0 - beyond * (2.0 * c + 2.0)) / ((1.0 - beyond) * (1.0 - beyond));
}

TEST(ClippingFit, TakesTheLimitOfLeastVarianceAndSaysIt) {
    // Of a Laplace law, whose median of |Z| is log 2, the variance falls with c: the least limit, .5, is best. For
    // normal entries it falls until nothing is clipped.
    const auto fitted = [](const char* law) {
        AnalysedBlock block(heavy_block(law, {}, 0).observed);
        return clip_outliers(block, {});
    };
    EXPECT_NE(fitted("laplace").note.find("clipped at 0.5 robust deviations"), std::string::npos);
    const WhiteCoordinates light = fitted("uniform");
    AnalysedBlock whole(heavy_block("uniform", {}, 0).observed);
    EXPECT_LE(arma::abs(light.block * light.unit - whole.core()).max(), 1e-12);
    const double deviation = 1.4826 * std::log(2.0);
    EXPECT_LT(huber_variance_of_laplace(0.5 * deviation), huber_variance_of_laplace(std::sqrt(0.5) * deviation));
    double sum = 0.0;
    for (std::uint64_t replicate = 0; replicate < 30; ++replicate) {
        AnalysedBlock block(heavy_block("laplace", {}, replicate).observed);
        const WhiteCoordinates found = clip_outliers(block, {});
        sum += 96.0 * arma::mean(arma::square(arma::vectorise(found.block * found.unit))) / 30.0;
    }
    // The variance of Z is 2. The mean of 184 320 squares has a relative standard error below .003, and that of the
    // fraction of 30 % that is kept, squared, is .007; the median's is .004.
    EXPECT_NEAR(sum, huber_variance_of_laplace(0.5 * deviation) / 2.0, 0.03);
    EXPECT_GT(huber_variance_of_laplace(2.0 * deviation) / 2.0, 0.75);  // at=2, the control
}

TEST(ClippingFit, LosesNothingUnderGaussianNoiseAndGainsUnderHeavyTails) {
    const auto error = [](const char* name, const char* law) {
        double sum = 0.0;
        for (std::uint64_t replicate = 0; replicate < 20; ++replicate) {
            const sim::SpikedSample drawn = heavy_block(law, {{3.0}, {2.0}}, replicate);
            AnalysedBlock block(drawn.observed);
            sum += arma::accu(arma::square(spectral_method(name).apply(block).signal - drawn.signal));
        }
        return sum;
    };
    EXPECT_LT(error("clip:fit+gd-shrink", "gaussian"), 1.01 * error("gd-shrink", "gaussian"));
    for (const char* law : {"laplace", "student:3"})
        EXPECT_LT(error("clip:fit+gd-shrink", law), 0.95 * error("clip+gd-shrink", law)) << law;
}

TEST(ClippingLaw, StrongSignalsAreKept) {
    // The error beside an estimate whose noise is not clipped; with limits of one size alone, 2 deviations in a round,
    // it was 200 times that at strength 100.
    for (const double strength : {10.0, 40.0, 100.0}) {
        double clipping = 0.0;
        double none = 0.0;
        for (std::uint64_t replicate = 0; replicate < 5; ++replicate) {
            const sim::SpikedSample drawn = heavy_block("gaussian", {{strength}, {2.0}}, replicate);
            AnalysedBlock block(drawn.observed);
            const auto off = [&](const char* name) {
                return arma::accu(arma::square(spectral_method(name).apply(block).signal - drawn.signal));
            };
            clipping += off("clip+gd-shrink");
            none += off("gd-shrink");
        }
        EXPECT_LT(clipping, 1.1 * none) << strength;
    }
}

TEST(ClippingLaw, TheTracyWidomTestKeepsItsLevelUnderHeavyTails) {
    constexpr std::uint64_t blocks = 100;
    const auto alarms = [](const char* name, const char* law) {
        std::uint64_t count = 0;
        for (std::uint64_t replicate = 0; replicate < blocks; ++replicate) {
            AnalysedBlock block(heavy_block(law, {}, replicate).observed);
            count += spectral_method(name).estimate(block).rank > 0 ? 1 : 0;
        }
        return count;
    };
    // At a level of .01: the number that .03 exceeds one time in 10^6, which leaves room for the test's own excess.
    const boost::math::binomial law(static_cast<double>(blocks), 0.03);
    const auto most = static_cast<std::uint64_t>(boost::math::quantile(boost::math::complement(law, 1e-6)));
    EXPECT_LE(alarms("clip+tw-test", "student:3"), most);
    EXPECT_LE(alarms("clip+tw-test", "gaussian"), most);
    EXPECT_GE(alarms("tw-test", "student:3"), blocks / 2);  // control
}

TEST(ClippingLaw, ErrorsFallUnderHeavyTailsAndHardlyRiseUnderGaussianNoise) {
    const auto error = [](const char* name, const char* law, double strength) {
        double sum = 0.0;
        for (std::uint64_t replicate = 0; replicate < 10; ++replicate) {
            const sim::SpikedSample drawn = heavy_block(law, {{1.5 * strength}, {strength}}, replicate);
            AnalysedBlock block(drawn.observed);
            const arma::mat found = spectral_method(name).apply(block).signal;
            sum += arma::accu(arma::square(found - drawn.signal)) / arma::accu(arma::square(drawn.signal)) / 10.0;
        }
        return sum;
    };
    for (const double strength : {2.0, 10.0}) {
        // The variance of Student's t with 3 degrees of freedom is twice the inverse of its Fisher information.
        EXPECT_LT(error("clip+gd-shrink", "student:3", strength), 0.5 * error("gd-shrink", "student:3", strength));
        EXPECT_LT(error("clip+gd-shrink", "gaussian", strength), 1.05 * error("gd-shrink", "gaussian", strength));
    }
    // Clipping a strong signal itself, without a pilot, is what the rounds avoid (control).
    const sim::SpikedSample drawn = heavy_block("gaussian", {{15.0}, {10.0}}, 0);
    const double deviation = 1.4826 * arma::median(arma::vec(arma::abs(arma::vectorise(drawn.observed))));
    AnalysedBlock bare(arma::clamp(drawn.observed, -2.0 * deviation, 2.0 * deviation));
    AnalysedBlock whole(drawn.observed);
    const auto off = [&](const arma::mat& signal) { return arma::norm(signal - drawn.signal, "fro"); };
    EXPECT_GT(off(spectral_method("gd-shrink").apply(bare).signal),
              1.5 * off(spectral_method("clip+gd-shrink").apply(whole).signal));
}

TEST(Clipping, BlocksWithoutNoiseAreLeftAsTheyAre) {
    const arma::mat exact = 3.0 * arma::regspace(1, 20) * arma::regspace(1, 30).t();
    AnalysedBlock one(exact);
    EXPECT_EQ(clip_outliers(one, 2.0).note, "no noise to clip");
    EXPECT_LE(arma::abs(spectral_method("clip+gd-shrink").apply(one).signal - exact).max(), 1e-9);
    AnalysedBlock zero(arma::mat(5, 6, arma::fill::zeros));
    EXPECT_EQ(clip_outliers(zero, 2.0).note, "the block is zero or empty");
    EXPECT_EQ(spectral_method("clip+tw-test").estimate(zero).rank, 0U);
    arma::mat sparse(6, 6, arma::fill::zeros);
    sparse.diag() = arma::regspace(1, 6);
    AnalysedBlock signs(heavy_block("rademacher", {}, 0).observed);
    EXPECT_EQ(clip_outliers(signs, 0.5).note, "no entry is within 0.5 robust deviations");
    EXPECT_EQ(clip_outliers(signs, {}).note.substr(0, 19), "entries are clipped");
    AnalysedBlock few(sparse);
    EXPECT_EQ(clip_outliers(few, 2.0).note, "more than half of the block has no noise");
    EXPECT_EQ(arma::abs(clip_outliers(few, 2.0).block - sparse).max(), 0.0);
}

TEST(Clipping, WrongOptionsAndEntriesAreRejected) {
    for (const char* name :
         {"clip:at=0+gd-shrink", "clip:at=x+gd-shrink", "clip:2+gd-shrink", "clip:fit:at=2+gd-shrink", "clip"})
        EXPECT_THROW((void)spectral_method(name), Error) << name;
    arma::mat data = white_block(10, 12, 1);
    data(3, 4) = std::nan("");
    AnalysedBlock block(data);
    EXPECT_THROW((void)spectral_method("clip+gd-shrink").apply(block), Error);
    EXPECT_FALSE(spectral_method("clip+tw-test").takes_noise_law());
}

}  // namespace
}  // namespace spiked::estimators

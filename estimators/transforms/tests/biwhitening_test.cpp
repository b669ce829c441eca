// Biwhitening of counts: the scaling against a solver of equations (SciPy), the law of the scaled noise, ranks with a
// computed limit, and the controls that fail.
#include "estimators/transforms/biwhitening.hpp"

#include <gtest/gtest.h>

#include <boost/math/distributions/binomial.hpp>
#include <cmath>

#include "core/runtime/error.hpp"
#include "estimators/spectral/noise_level.hpp"
#include "estimators/transforms/spectral_method.hpp"
#include "sim/spiked/count_sampler.hpp"
#include "theory/laws/profile_law.hpp"

namespace spiked::estimators {
namespace {

const stream::StudySeed count_seed = stream::StudySeed::parse("0x5eed0000000000000000000000004848");

arma::mat recoloured(const WhiteCoordinates& white) {
    const arma::mat half = white.left.root_times(white.block * white.unit);
    return white.right.root_times(half.t()).t();
}

TEST(BiwhiteningReference, TheScalingSolvesItsEquations) {
    // SciPy's fsolve for the logarithms of the factors, without the iteration of Sinkhorn and Knopp.
    const arma::mat counts = {{3, 0, 1, 7}, {0, 2, 5, 1}, {4, 1, 0, 12}};
    const arma::mat poisson = {{1.11644211, 0.0, 0.43993324, 1.57140807},
                               {0.0, 0.97419334, 1.65340849, 0.16873855},
                               {1.16649684, 0.50780902, 0.0, 2.11096391}};
    const arma::mat general = {{0.89578567, 0.0, 0.32125274, 0.99177418},
                               {0.0, 0.79404709, 1.24300864, 0.10964076},
                               {0.8727143, 0.37487649, 0.0, 1.24229647}};
    AnalysedBlock block(counts);
    const WhiteCoordinates first = biwhiten(block, {});
    EXPECT_LE(arma::abs(first.block - poisson).max(), 1e-8);
    EXPECT_LE(arma::abs(recoloured(first) - counts).max(), 1e-12);
    const WhiteCoordinates second = biwhiten(block, {.constant = 0.5, .linear = 1.0, .square = 0.25});
    EXPECT_LE(arma::abs(second.block - general).max(), 1e-8);
    EXPECT_LE(arma::abs(recoloured(second) - counts).max(), 1e-12);
}

TEST(BiwhiteningIdentity, ScaledCountsWithScaledVarianceAreTheSame) {
    const sim::CountSample drawn =
        sim::sample_counts({.rows = 40, .columns = 60, .components = 2, .mean = 3.0}, count_seed, "scale", 0);
    AnalysedBlock block(drawn.observed);
    for (const double scale : {1e-150, 1e-3, 1e150}) {
        AnalysedBlock scaled(drawn.observed * scale);
        // Poisson counts times a number have the variance number * mean.
        EXPECT_LE(arma::abs(biwhiten(scaled, {.linear = scale}).block - biwhiten(block, {}).block).max(), 1e-10);
        EXPECT_LE(arma::abs(biwhiten_fitted(scaled).block - biwhiten_fitted(block).block).max(), 1e-10);
        const double relative = arma::abs(spectral_method("biwhiten+gd-shrink").apply(scaled).signal / scale -
                                          spectral_method("biwhiten+gd-shrink").apply(block).signal)
                                    .max();
        EXPECT_LE(relative, 1e-9);
    }
    AnalysedBlock transposed(drawn.observed.t());
    const arma::mat signal = spectral_method("biwhiten+gd-shrink").apply(transposed).signal;
    EXPECT_LE(arma::abs(signal.t() - spectral_method("biwhiten+gd-shrink").apply(block).signal).max(), 1e-8);
}

/// In how many of these blocks a method finds the rank of the means.
std::uint64_t right_ranks(const std::string& name, const sim::CountModel& model, const char* cell,
                          std::uint64_t blocks) {
    const SpectralMethod method = spectral_method(name);
    std::uint64_t right = 0;
    for (std::uint64_t replicate = 0; replicate < blocks; ++replicate) {
        AnalysedBlock block(sim::sample_counts(model, count_seed, cell, replicate).observed);
        right += method.estimate(block).rank == model.components ? 1 : 0;
    }
    return right;
}

/// The smallest number of blocks that a probability of at least .95 gives, but for one time in 10^6.
std::uint64_t least_of(std::uint64_t blocks) {
    const boost::math::binomial law(static_cast<double>(blocks), 0.95);
    std::uint64_t least = blocks;
    while (boost::math::cdf(law, static_cast<double>(least - 1)) > 1e-6) --least;
    return least;
}

TEST(BiwhiteningLaw, RanksOfCountsAreRight) {
    // Means of two components, with rows and columns of very different depth.
    const sim::CountModel poisson{
        .rows = 60, .columns = 100, .components = 2, .mean = 3.0, .row_spread = 0.6, .column_spread = 0.6};
    sim::CountModel dispersed = poisson;
    dispersed.mean = 6.0;
    dispersed.dispersion = 0.4;
    EXPECT_GE(right_ranks("biwhiten+tw-test", poisson, "poisson", 30), least_of(30));
    EXPECT_GE(right_ranks("biwhiten:c=0.4+tw-test", dispersed, "dispersed", 30), least_of(30));
    EXPECT_GE(right_ranks("biwhiten:fit+tw-test", dispersed, "dispersed", 12), least_of(12));
    // Controls: no scaling, and the variance of Poisson counts for negative binomial ones.
    EXPECT_LE(right_ranks("tw-test", poisson, "poisson", 30), 3U);
    EXPECT_LE(right_ranks("biwhiten+tw-test", dispersed, "dispersed", 30), 3U);
}

TEST(BiwhiteningLaw, ScaledNoiseHasTheLevelOfItsVariance) {
    // The noise level of white coordinates is 1/sqrt(d) without being estimated, for the right function only.
    const auto level = [](const sim::CountModel& model, const VarianceFunction& variance) {
        double sum = 0.0;
        for (std::uint64_t replicate = 0; replicate < 10; ++replicate) {
            AnalysedBlock block(sim::sample_counts(model, count_seed, "level", replicate).observed);
            const WhiteCoordinates white = biwhiten(block, variance);
            sum += white_noise_level(singular_values(white.block), block.shape(), NoiseLevelRule::median) *
                   std::sqrt(static_cast<double>(block.shape().columns)) / 10.0;
        }
        return sum;
    };
    const sim::CountModel model{
        .rows = 100, .columns = 150, .components = 3, .mean = 5.0, .row_spread = 0.4, .column_spread = 0.4};
    EXPECT_NEAR(level(model, {}), 1.0, 0.03);
    sim::CountModel dispersed = model;
    dispersed.dispersion = 0.3;
    EXPECT_NEAR(level(dispersed, {.square = 0.3}), 1.0, 0.05);
    EXPECT_GT(level(dispersed, {}), 1.3);  // control
}

TEST(BiwhiteningLaw, TheMeansOfRowsAndColumnsMakeAnyProfileWhite) {
    // Means of two blocks of rows and columns, whose variances no rank one describes. After the scaling by expected
    // variances, the limiting law of the noise is that of white noise, before it is not.
    arma::mat means(40, 60, arma::fill::value(1.0));
    means.submat(0, 0, 9, 19) *= 20.0;
    means.submat(10, 20, 39, 59) *= 3.0;
    AnalysedBlock block(means);  // V equals its expectation, up to the tenth of rank one
    const WhiteCoordinates white = biwhiten(block, {});
    const auto edge_of = [](const arma::mat& variances) {
        theory::VarianceProfile profile{variances.n_rows, variances.n_cols, {}, {}, {}};
        for (arma::uword i = 0; i < variances.n_rows; ++i)
            for (arma::uword j = 0; j < variances.n_cols; ++j) profile.variances.push_back(variances(i, j));
        return theory::ProfileLaw(profile, AspectRatio::of(variances.n_rows, variances.n_cols)).bulk_edge().value;
    };
    const double white_edge = std::pow(1.0 + std::sqrt(40.0 / 60.0), 2);
    // The variance of an entry in white coordinates is that of the count times the square of its factor.
    const arma::mat scaled = 60.0 * arma::square(white.block) / means;
    EXPECT_NEAR(edge_of(scaled) / white_edge, 1.0, 0.02);
    EXPECT_GT(edge_of(means / arma::mean(arma::vectorise(means))) / white_edge, 1.5);  // control
}

TEST(Biwhitening, TheFittedFunctionIsToldAndNearTheTruth) {
    const auto note = [](double dispersion) {
        const sim::CountModel model{
            .rows = 150, .columns = 200, .components = 2, .mean = 8.0, .row_spread = 0.5, .dispersion = dispersion};
        AnalysedBlock block(sim::sample_counts(model, count_seed, "fit", 1).observed);
        return biwhiten_fitted(block).note;
    };
    const auto numbers = [](const std::string& text) {
        double linear = -1.0;
        double square = -1.0;
        EXPECT_EQ(std::sscanf(text.c_str(), "entries of mean m have the variance %lf m + %lf m^2", &linear, &square), 2)
            << text;
        return std::pair{linear, square};
    };
    const auto [linear, square] = numbers(note(0.5));
    EXPECT_NEAR(square, 0.5, 0.1);
    EXPECT_NEAR(linear, 1.0, 0.7);  // of a mean of 8, the square makes four fifths of the variance
    const auto [poisson, none] = numbers(note(0.0));
    EXPECT_NEAR(poisson, 1.0, 0.1);
    EXPECT_NEAR(none, 0.0, 0.02);
}

TEST(Biwhitening, SparseCountsWithoutAnExactScalingAreScaled) {
    // A column whose only count lies in a row with other counts: no factors give all rows and columns of V the mean 1.
    arma::mat counts(20, 30, arma::fill::zeros);
    for (arma::uword i = 0; i < 20; ++i) counts(i, i) = 1.0 + static_cast<double>(i % 3);
    for (arma::uword j = 20; j < 30; ++j) counts(0, j) = 1.0;
    AnalysedBlock block(counts);
    const WhiteCoordinates white = biwhiten(block, {});
    EXPECT_EQ(white.note, "");
    EXPECT_TRUE(white.block.is_finite());
    EXPECT_LE(arma::abs(recoloured(white) - counts).max(), 1e-12);
}

TEST(Biwhitening, BlocksWithoutNoiseAreLeftAsTheyAre) {
    AnalysedBlock zero(arma::mat(5, 6, arma::fill::zeros));
    EXPECT_EQ(biwhiten(zero, {}).note, "the block is zero or empty");
    EXPECT_EQ(spectral_method("biwhiten+gd-shrink").estimate(zero).rank, 0U);
    EXPECT_EQ(spectral_method("biwhiten:fit+gd-shrink").estimate(zero).rank, 0U);
    // Ten of ten trials succeed in the first row, whose binomial variance is therefore zero.
    arma::mat trials(4, 5, arma::fill::value(5.0));
    trials.row(0).fill(10.0);
    AnalysedBlock certain(trials);
    const WhiteCoordinates white = biwhiten(certain, {.square = -0.1});
    EXPECT_EQ(white.note, "a row or column has no noise variance");
    EXPECT_EQ(arma::abs(white.block - trials).max(), 0.0);
}

TEST(Biwhitening, EntriesAndOptionsThatHaveNoVarianceAreRejected) {
    const auto message = [](const char* name, const arma::mat& data) -> std::string {
        try {
            AnalysedBlock block(data);
            (void)spectral_method(name).estimate(block);
        } catch (const Error& error) {
            return error.what();
        }
        return "accepted";
    };
    const arma::mat signs = {{1.0, 2.0, -3.0}, {2.0, 1.0, 1.0}};
    EXPECT_NE(message("biwhiten+gd-shrink", signs).find("an entry is -3, where the variance"), std::string::npos);
    EXPECT_NE(message("biwhiten:fit+gd-shrink", signs).find("an entry is -3"), std::string::npos);
    EXPECT_NE(message("biwhiten:c=-0.5+gd-shrink", {{1.0, 3.0}, {1.0, 1.0}}).find("an entry is 3"), std::string::npos);
    EXPECT_EQ(message("biwhiten:a=4+gd-shrink", signs), "accepted");
    EXPECT_NE(message("biwhiten+gd-shrink", {{1.0, std::nan("")}}), "accepted");
    for (const char* name : {"biwhiten:c=-1+gd-shrink", "biwhiten:b=-1+gd-shrink", "biwhiten:fit:c=1+gd-shrink",
                             "biwhiten:b=0+gd-shrink", "biwhiten:d=1+gd-shrink", "biwhiten"})
        EXPECT_THROW((void)spectral_method(name), Error) << name;
    EXPECT_FALSE(spectral_method("biwhiten+tw-test").takes_noise_law());
}

}  // namespace
}  // namespace spiked::estimators

// The law of noise with a variance profile that is far from rank one, and of spikes in it, against plain simulation.
#include <gtest/gtest.h>

#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <iostream>

#include "sim/spiked/spiked_sampler.hpp"
#include "theory/laws/tracy_widom.hpp"
#include "theory/profiles/profile_gaps.hpp"

namespace spiked::sim {
namespace {

constexpr std::size_t profile_rows = 120;
constexpr std::size_t profile_columns = 200;
constexpr std::uint64_t profile_blocks = 120;
constexpr double profile_false_alarm = 1e-6;  // of the whole file, over 10 comparisons
/// The predictions are limits, with errors of order 1/d; this over the shorter side is the relative margin.
constexpr double profile_margin = 2.0;

const stream::StudySeed profile_seed = stream::StudySeed::parse("0x5eed0000000000000000000000004804");

theory::VarianceProfile profile_classes() {
    return {2, 3, {1.0, 4.0, 0.5, 9.0, 0.3, 2.0}, {0.3, 0.7}, {0.2, 0.5, 0.3}};
}

/// The variance of every entry: 36 and 84 rows, 40, 100 and 60 columns.
arma::mat variances_of_entries() {
    const theory::VarianceProfile profile = profile_classes();
    arma::mat variances(profile_rows, profile_columns);
    for (arma::uword i = 0; i < profile_rows; ++i)
        for (arma::uword j = 0; j < profile_columns; ++j) {
            const std::size_t b = j < 40 ? 0 : (j < 140 ? 1 : 2);
            variances(i, j) = profile.variances[(i < 36 ? 0 : 3) + b];
        }
    return variances;
}

/// The profile a_i b_j with the same means of rows and columns: what methods for rank one assume.
theory::ProfileLaw rank_one_law() {
    theory::VarianceProfile profile = profile_classes();
    double mean = 0.0;
    double of_row[2] = {};
    double of_column[3] = {};
    for (std::size_t a = 0; a < 2; ++a)
        for (std::size_t b = 0; b < 3; ++b) {
            const double variance = profile.variances[3 * a + b];
            of_row[a] += profile.column_weights[b] * variance;
            of_column[b] += profile.row_weights[a] * variance;
            mean += profile.row_weights[a] * profile.column_weights[b] * variance;
        }
    for (std::size_t a = 0; a < 2; ++a)
        for (std::size_t b = 0; b < 3; ++b) profile.variances[3 * a + b] = of_row[a] * of_column[b] / mean;
    return {profile, AspectRatio::of(profile_rows, profile_columns)};
}

struct MeasuredSpike {
    arma::vec outlier = arma::vec(profile_blocks, arma::fill::zeros);
    arma::vec overlap_left = arma::vec(profile_blocks, arma::fill::zeros);
    arma::vec overlap_right = arma::vec(profile_blocks, arma::fill::zeros);
};

MeasuredSpike measured_spike(std::vector<SignalStrength> strengths, VectorLaw right, const char* cell) {
    SpikedModel model{Covariance::identity(profile_rows), Covariance::identity(profile_columns), std::move(strengths)};
    model.right_vectors = std::move(right);
    model.variances = variances_of_entries();
    MeasuredSpike result;
    for (std::uint64_t r = 0; r < profile_blocks; ++r) {
        const SpikedSample drawn = sample(model, profile_seed, cell, r);
        arma::vec eigenvalues;
        arma::mat vectors;
        if (!arma::eig_sym(eigenvalues, vectors, drawn.observed * drawn.observed.t())) return {};
        result.outlier(r) = eigenvalues.back();
        if (drawn.left.n_cols == 0) continue;
        const arma::vec u = vectors.tail_cols(1);
        result.overlap_left(r) = std::pow(arma::dot(u, drawn.left.col(0)), 2);
        result.overlap_right(r) =
            std::pow(arma::dot(arma::normalise(arma::vec(drawn.observed.t() * u)), drawn.right.col(0)), 2);
    }
    return result;
}

/// Whether the mean agrees with the prediction up to chance and the margin.
bool mean_agrees(const arma::vec& values, double predicted, const char* what,
                 double relative_margin = profile_margin / profile_rows) {
    const double z =
        boost::math::quantile(boost::math::complement(boost::math::normal(), profile_false_alarm / 10 / 2));
    const double error = arma::stddev(values) / std::sqrt(static_cast<double>(values.n_elem));
    const double limit = z * error + relative_margin * predicted;
    std::cout << what << ": mean " << arma::mean(values) << ", predicted " << predicted << ", limit " << limit << '\n';
    return std::abs(arma::mean(values) - predicted) <= limit;
}

TEST(ProfileSimulationLaw, TheLargestNoiseEigenvalueIsAtTheEdge) {
    const MeasuredSpike noise = measured_spike({}, {}, "noise");
    const auto predicted = [](const theory::ProfileLaw& law) {
        constexpr double tracy_widom_mean = -1.2065335745820;
        return law.bulk_edge().value +
               tracy_widom_mean / law.tracy_widom_scale() / std::pow(static_cast<double>(profile_columns), 2.0 / 3.0);
    };
    const theory::ProfileLaw law(profile_classes(), AspectRatio::of(profile_rows, profile_columns));
    EXPECT_TRUE(mean_agrees(noise.outlier, predicted(law), "largest eigenvalue"));
    EXPECT_FALSE(mean_agrees(noise.outlier, predicted(rank_one_law()), "by rank one (control)"));
}

TEST(ProfileSimulationLaw, OutliersAndOverlapsDependOnWhereTheSpikeLies) {
    const theory::ProfileLaw law(profile_classes(), AspectRatio::of(profile_rows, profile_columns));
    const MeasuredSpike even = measured_spike({{3.3}}, {}, "even");
    const theory::SpikePrediction spread = law.spike({3.3});
    EXPECT_TRUE(mean_agrees(even.outlier, spread.outlier.value, "outlier"));
    EXPECT_TRUE(mean_agrees(even.overlap_left, spread.overlap_left.value, "left overlap"));
    EXPECT_TRUE(mean_agrees(even.overlap_right, spread.overlap_right.value, "right overlap"));

    const MeasuredSpike local = measured_spike({{3.3}}, VectorLaw::parse("localised:40", MatrixSide::column), "local");
    const theory::SpikePrediction there = law.spike({3.3}, {{}, {1.0, 0.0, 0.0}});
    EXPECT_TRUE(mean_agrees(local.outlier, there.outlier.value, "outlier"));
    EXPECT_TRUE(mean_agrees(local.overlap_left, there.overlap_left.value, "left overlap"));
    EXPECT_TRUE(mean_agrees(local.overlap_right, there.overlap_right.value, "right overlap"));

    // The prediction for the other spike (control).
    EXPECT_FALSE(mean_agrees(local.outlier, spread.outlier.value, "outlier elsewhere (control)"));
    EXPECT_FALSE(mean_agrees(local.overlap_right, spread.overlap_right.value, "right overlap elsewhere (control)"));
}

TEST(SpikedSampler, VariancesOfEntriesThatDoNotFitAreRejected) {
    SpikedModel model{Covariance::identity(4), Covariance::identity(5), {}};
    model.variances = arma::mat(5, 4, arma::fill::ones);
    EXPECT_THROW((void)sample(model, profile_seed, "bad", 0), Error);
    model.variances = arma::mat(4, 5, arma::fill::ones);
    EXPECT_NO_THROW((void)sample(model, profile_seed, "good", 0));
    model.colouring = Colouring::eigenbasis;
    EXPECT_THROW((void)sample(model, profile_seed, "bad", 0), Error);
    model.colouring = Colouring::dense;
    model.variances(1, 1) = -1.0;
    EXPECT_THROW((void)sample(model, profile_seed, "bad", 0), Error);
}

TEST(ProfileGapSimulation, EigenvaluesStayOutOfTheGapAndASpikeHasItsOutlierThere) {
    // 2 x 2 classes far from rank one, whose noise has a gap from 1.44 to 3.06, below 40 of 100 eigenvalues.
    const theory::VarianceProfile classes{2, 2, {1.0, 0.2, 0.3, 40.0}, {0.6, 0.4}, {0.7, 0.3}};
    const theory::ProfileLaw law(classes, AspectRatio(0.2));
    const theory::ProfileGaps outside(law);
    const theory::SupportGap& gap = outside.gaps().front();
    constexpr double strength = 1.5;  // the threshold of the top edge is 3.65
    const auto predicted = outside.spike(0, {strength});
    ASSERT_TRUE(predicted);
    ASSERT_FALSE(law.spike({strength}).detectable);
    arma::mat variances(100, 500);
    for (arma::uword i = 0; i < 100; ++i)
        for (arma::uword j = 0; j < 500; ++j) variances(i, j) = classes.variances[(i < 60 ? 0 : 2) + (j < 350 ? 0 : 1)];
    SpikedModel model{Covariance::identity(100), Covariance::identity(500), {{strength}}};
    model.variances = variances;
    constexpr arma::uword blocks = 60;
    arma::vec outlier(blocks), left(blocks), right(blocks);
    for (arma::uword k = 0; k < blocks; ++k) {
        const SpikedSample drawn = sample(model, profile_seed, "gap", k);
        const arma::vec noise = arma::square(arma::svd(drawn.noise));
        // Edges fluctuate by less than .1 here.
        EXPECT_GT(noise(39), gap.upper.value - 0.4);
        EXPECT_LT(noise(40), gap.lower.value + 0.2);
        arma::mat u, v;
        arma::vec s;
        ASSERT_TRUE(arma::svd_econ(u, s, v, drawn.observed));
        outlier(k) = s(40) * s(40);
        left(k) = std::pow(arma::dot(u.col(40), drawn.left.col(0)), 2);
        right(k) = std::pow(arma::dot(v.col(40), drawn.right.col(0)), 2);
    }
    // Six standard errors (one time in 10^9 for each), and .02 for what the limit leaves out, of order 1/n.
    const auto agrees = [](const arma::vec& values, double limit) {
        const double error = arma::stddev(values) / std::sqrt(static_cast<double>(values.n_elem));
        return std::abs(arma::mean(values) - limit) < 6.0 * error + 0.02 * limit;
    };
    EXPECT_TRUE(agrees(outlier, predicted->outlier.value)) << arma::mean(outlier) << " " << predicted->outlier.value;
    EXPECT_TRUE(agrees(left, predicted->overlap_left.value))
        << arma::mean(left) << " " << predicted->overlap_left.value;
    EXPECT_TRUE(agrees(right, predicted->overlap_right.value))
        << arma::mean(right) << " " << predicted->overlap_right.value;
    // Control: a spike that lies in the first classes has another outlier.
    const theory::ProfileGaps elsewhere(law, {{1.0, 0.0}, {0.9, 0.1}});
    EXPECT_FALSE(agrees(outlier, elsewhere.spike(0, {strength})->outlier.value));
}

}  // namespace
}  // namespace spiked::sim

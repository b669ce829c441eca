// What the samples add to their spectrum: errors for scores of any law, and notes on unequal variances.
#include "estimators/pca/sample_checks.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/math/distributions/binomial.hpp>
#include <cmath>
#include <functional>
#include <iostream>
#include <limits>

#include "core/runtime/error.hpp"
#include "estimators/pca/decomposed_samples.hpp"
#include "estimators/svd/decomposition.hpp"
#include "estimators/tests/spiked_covariance_samples.hpp"

namespace spiked::estimators {
namespace {

constexpr double checks_false_alarm = 1e-6;  // of each comparison

using ScoreLaw = std::function<double(double normal)>;  // from a normal to a score of mean 0 and variance 1

double probability_below(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }
double exponential_score(double x) { return -std::log(probability_below(-x)) - 1.0; }
double uniform_score(double x) { return std::sqrt(12.0) * (probability_below(x) - 0.5); }
double sign_score(double x) { return x < 0.0 ? -1.0 : 1.0; }

/// n samples with noise of variance 1 and one component of the population eigenvalue `spike`, whose factor has the law.
arma::mat samples_with(std::size_t samples, std::size_t features, double spike, const ScoreLaw& law,
                       std::uint64_t replicate) {
    arma::mat data = covariance_samples(samples, features + 1, {}, 1.0, "scores", replicate).data;
    arma::vec factor = data.col(features);
    factor.transform(law);
    data.shed_col(features);
    const arma::vec loadings =
        arma::normalise(covariance_samples(1, features, {}, 1.0, "loadings", replicate).data.row(0).t());
    data += std::sqrt(spike - 1.0) * factor * loadings.t();
    data.each_row() -= arma::mean(data, 0);
    return data;
}

SpikedPca checked_samples(const arma::mat& centred) {
    const Shape shape{centred.n_rows - 1, centred.n_cols};
    std::vector<double> values = singular_values(centred);
    values.resize(shape.short_side());
    SpikedPca found = spiked_pca(values, shape, {.level = 1e-4});
    AnalysedBlock block(centred);
    check_samples(found, block, shape);
    return found;
}

TEST(SampleChecksLaw, CoverThePopulationEigenvalueForScoresOfAnyLaw) {
    // At 95 % nominal. With Fisher's G2 of 200 exponential scores, whose kurtosis is underestimated, 88 % is claimed,
    // for the others 92 % (docs/METHODS.md has the table).
    constexpr int blocks = 150;
    constexpr double spike = 15.0;
    const auto run = [&](const ScoreLaw& law) {
        struct Counted {
            int with = 0, gaussian = 0;
            double cumulant = 0.0, squared = 0.0;
        } counted;
        for (int r = 0; r < blocks; ++r) {
            const arma::mat data = samples_with(200, 50, spike, law, static_cast<std::uint64_t>(r));
            SpikedPca found = spiked_pca(singular_values(data), {199, 50}, {.level = 1e-4});
            const double gaussian = found.debiased_errors.at(0);
            AnalysedBlock block(data);
            check_samples(found, block, {199, 50});
            const double miss = std::abs(found.debiased[0] - spike);
            counted.with += miss <= 1.96 * found.debiased_errors[0];
            counted.gaussian += miss <= 1.96 * gaussian;
            counted.cumulant += found.score_cumulants.at(0) / blocks;
            counted.squared += std::pow(found.score_cumulants[0], 2) / blocks;
        }
        const double error = std::sqrt((counted.squared - std::pow(counted.cumulant, 2)) / blocks);
        std::cout << fmt::format("covered {} of {}, by Gaussian errors {}; cumulant {:.3f} +- {:.3f}\n", counted.with,
                                 blocks, counted.gaussian, counted.cumulant, error);
        return std::tuple(counted.with, counted.gaussian, counted.cumulant, error);
    };
    const auto least = [](double rate) {
        return boost::math::quantile(boost::math::binomial(blocks, rate), checks_false_alarm);
    };
    // A score is the factor plus noise, so that its fourth cumulant is that of the factor times (1 - 1/spike)^2.
    const double share = std::pow(1.0 - 1.0 / spike, 2);
    const auto [exponential, too_narrow, long_tail, long_error] = run(exponential_score);
    EXPECT_GE(exponential, least(0.88));
    EXPECT_LT(too_narrow, least(0.88)) << "control: errors of Gaussian scores";
    EXPECT_GT(long_tail, 0.5 * 6.0 * share);
    EXPECT_LT(long_tail, 6.0 * share + 5.0 * long_error);
    for (const auto& [law, cumulant] : {std::pair<ScoreLaw, double>{uniform_score, -1.2}, {sign_score, -2.0}}) {
        const auto [covered, too_wide, found, error] = run(law);
        EXPECT_GE(covered, least(0.92));
        EXPECT_GT(too_wide, 0.97 * blocks) << "Gaussian errors are too wide here";
        EXPECT_NEAR(found, cumulant * share, 5.0 * error + 0.02);
    }
    const auto [covered, same, found, error] = run([](double x) { return x; });
    EXPECT_GE(covered, least(0.92));
    EXPECT_NEAR(found, 0.0, 5.0 * error + 0.02);
    EXPECT_NEAR(covered, same, 0.05 * blocks);
}

TEST(SampleChecks, HaveTheErrorOfTheFormulaOfTheFourthCumulant) {
    const arma::mat data = samples_with(60, 24, 12.0, exponential_score, 3);
    const SpikedPca found = checked_samples(data);
    ASSERT_EQ(found.components, 1U);
    arma::mat left, right;
    arma::vec values;
    ASSERT_TRUE(arma::svd_econ(left, values, right, data));
    const double gamma = 24.0 / 59.0;
    const double spike = found.debiased[0] / found.noise_level;
    const double f = 1.0 - gamma / std::pow(spike - 1.0, 2);
    // Fisher's k-statistics from sums of powers, as in tables.
    const double n = 60.0;
    const arma::vec u = left.col(0);
    const double s1 = arma::accu(u), s2 = arma::accu(arma::pow(u, 2)), s3 = arma::accu(arma::pow(u, 3)),
                 s4 = arma::accu(arma::pow(u, 4));
    const double k2 = (n * s2 - s1 * s1) / (n * (n - 1.0));
    const double k4 = (-6.0 * std::pow(s1, 4) + 12.0 * n * s1 * s1 * s2 - 3.0 * n * (n - 1.0) * s2 * s2 -
                       4.0 * n * (n + 1.0) * s1 * s3 + n * n * (n + 1.0) * s4) /
                      (n * (n - 1.0) * (n - 2.0) * (n - 3.0));
    const double cumulant = k4 / (k2 * k2) / (f * f);
    EXPECT_NEAR(found.score_cumulants[0], cumulant, 1e-9);
    EXPECT_NEAR(found.debiased_errors[0], found.debiased[0] * std::sqrt((2.0 / f + cumulant) / 59.0), 1e-9);
}

TEST(SampleChecksLaw, NoteUnequalVariancesAndNoOthers) {
    constexpr int blocks = 60;
    const auto noted = [&](std::size_t samples, std::size_t features, const ScoreLaw& law,
                           const std::function<void(arma::mat&)>& change) {
        int count = 0;
        for (int r = 0; r < blocks; ++r) {
            arma::mat data = samples_with(samples, features, 9.0, law, static_cast<std::uint64_t>(r));
            change(data);
            data.each_row() -= arma::mean(data, 0);
            count += !checked_samples(data).note.empty();
        }
        return count;
    };
    const auto nothing = [](arma::mat&) {};
    const double most = boost::math::quantile(boost::math::complement(boost::math::binomial(blocks, 0.01), 1e-6));
    // Many samples of few features with large loadings, and the reverse with scores of long tails: what the component
    // takes away from them differs, and is no difference of the noise.
    const int tall = noted(600, 20, uniform_score, nothing);
    const int wide = noted(50, 150, exponential_score, nothing);
    std::cout << fmt::format("notes without a reason: {} and {} of {}, at most {}\n", tall, wide, blocks, most);
    EXPECT_LE(tall, most);
    EXPECT_LE(wide, most);
    EXPECT_EQ(noted(200, 40, uniform_score, [](arma::mat& x) { x.head_cols(10) *= 1.5; }), blocks);
    EXPECT_EQ(noted(60, 150, uniform_score, [](arma::mat& x) { x.head_rows(20) *= 1.5; }), blocks);
    arma::mat absorbed = samples_with(80, 30, 1.0, uniform_score, 0);
    absorbed.head_cols(8) *= 2.0;
    const SpikedPca found = checked_samples(absorbed);
    EXPECT_GE(found.components, 5U);
    EXPECT_NE(found.note.find("vectors lie in as many features"), std::string::npos) << found.note;
    arma::mat features = samples_with(200, 40, 9.0, uniform_score, 0);
    features.head_cols(10) *= 1.5;
    EXPECT_NE(checked_samples(features).note.find("variances of features differ"), std::string::npos);
    EXPECT_EQ(checked_samples(features).note.find("of samples"), std::string::npos) << checked_samples(features).note;
}

TEST(DecomposedSamples, LeaveOutConstantFeaturesAndTheValueThatCentringTakes) {
    const arma::mat tall = {{1, 0, 2}, {-1, 0, 2}, {0, 0, -4}};  // orthogonal columns of squared length 2 and 24
    auto found = decomposed_samples(tall, 2);
    const auto expect_shape = [&](std::size_t rows, std::size_t columns) {
        EXPECT_EQ(found.shape.rows, rows);
        EXPECT_EQ(found.shape.columns, columns);
    };
    expect_shape(2, 2);
    ASSERT_EQ(found.singular_values.size(), 2U);
    EXPECT_NEAR(found.singular_values[0], std::sqrt(24.0), 1e-14);
    EXPECT_NEAR(found.singular_values[1], std::sqrt(2.0), 1e-14);
    EXPECT_EQ(found.block.block().n_cols, 2U);

    const arma::mat wide = {{1, 2, 2}, {-1, -2, -2}};  // rank 1
    found = decomposed_samples(wide, 1);
    expect_shape(1, 3);
    ASSERT_EQ(found.singular_values.size(), 1U);
    EXPECT_NEAR(found.singular_values[0], 3.0 * std::sqrt(2.0), 1e-14);

    // A sample of zeros is a sample.
    const arma::mat with_zeros = {{3, 0}, {0, 0}, {0, 4}};
    found = decomposed_samples(with_zeros, 3);
    expect_shape(3, 2);
    EXPECT_EQ(found.singular_values.size(), 2U);

    found = decomposed_samples(arma::mat(4, 3, arma::fill::zeros), 3);
    expect_shape(3, 0);
    EXPECT_TRUE(found.singular_values.empty());

    arma::mat wrong = tall;
    wrong(1, 1) = std::numeric_limits<double>::quiet_NaN();
    EXPECT_THROW((void)decomposed_samples(wrong, 2), Error);
}

TEST(SampleChecks, DoNothingWithoutNoise) {
    arma::mat low(9, 6, arma::fill::zeros);
    low.col(0) = arma::regspace(-4.0, 4.0);
    low.col(1) = 2.0 * low.col(0);
    const SpikedPca plain = spiked_pca(singular_values(low), {8, 6});
    SpikedPca found = plain;
    AnalysedBlock block(low, AnalysedBlock::EmptyLines::keep);
    check_samples(found, block, {8, 6});
    EXPECT_EQ(found.note, plain.note);
    EXPECT_TRUE(found.score_cumulants.empty());
    EXPECT_EQ(found.debiased_errors, plain.debiased_errors);
}

}  // namespace
}  // namespace spiked::estimators

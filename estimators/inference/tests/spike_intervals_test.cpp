// Intervals of strengths and overlaps from one block: coverage, the curve of an estimated noise law, the draws of the
// bootstrap against decompositions.
#include "estimators/inference/spike_intervals.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/math/distributions/binomial.hpp>
#include <cmath>
#include <iostream>

#include "core/runtime/error.hpp"
#include "estimators/inference/spike_bootstrap.hpp"
#include "estimators/spectral/spectral_estimator.hpp"
#include "estimators/svd/analysed_block.hpp"
#include "sim/random/normal.hpp"
#include "sim/spiked/spiked_sampler.hpp"
#include "theory/laws/finite_size.hpp"

namespace spiked::estimators {
namespace {

const stream::StudySeed interval_seed = stream::StudySeed::parse("0x5eed0000000000000000000000000048");

/// Noise eigenvalues at quantiles of the law, without an error of estimation.
EstimatedNoise quantiles_of(const theory::SeparableLaw& law, std::size_t rows, std::size_t columns) {
    const theory::BulkDistribution bulk(law);
    EstimatedNoise noise{.edge = law.bulk_edge(), .width = 1.0};
    const std::size_t p = std::min(rows, columns);
    const double mass = static_cast<double>(p) / static_cast<double>(rows);
    for (std::size_t j = 0; j < p; ++j) {
        const double above = mass * (static_cast<double>(j) + 0.5) / static_cast<double>(p);
        noise.eigenvalues.push_back(bulk.quantile(1.0 - above).value);
    }
    return noise;
}

TEST(EstimatedNoiseReference, ItsCurveIsThatOfTheLaw) {
    // Of a fine list of quantiles, in both orientations, the curve and what follows from it are those of the law
    // itself.
    for (const auto& [rows, columns] : {std::pair<std::size_t, std::size_t>{400, 800}, {800, 400}}) {
        const theory::SeparableLaw law(theory::two_atom_spectrum(0.5, 2.0, 0.3), theory::identity_spectrum(),
                                       AspectRatio::of(rows, columns));
        const EstimatedNoise noise = quantiles_of(law, rows, columns);
        const SignalStrength strength{2.0 * law.detection_threshold().value};
        const theory::SpikePrediction spike = law.spike(strength);
        const theory::SpikeCurve expected = law.spike_curve(strength);
        const theory::SpikeCurve found = curve_at(noise, {rows, columns}, spike.outlier);
        const auto near = [](double value, double truth) { EXPECT_NEAR(value, truth, 2e-3 * std::abs(truth)); };
        near(found.t, expected.t);
        near(found.fall, expected.fall);
        near(found.one_minus_fall, expected.one_minus_fall);
        near(found.slope, expected.slope);
        near(found.slope_derivative, expected.slope_derivative);
        const CurveEstimate estimate = estimate_on(found, {rows, columns});
        near(estimate.strength, strength.value);
        near(estimate.overlap_left, spike.overlap_left.value);
        near(estimate.overlap_right, spike.overlap_right.value);
    }
}

TEST(SpikeVariancesReference, ResponsesAreTheSlopesOfTheCurve) {
    const std::size_t rows = 300;
    const std::size_t columns = 500;
    const theory::SeparableLaw law(theory::two_atom_spectrum(0.5, 2.0, 0.3), theory::identity_spectrum(),
                                   AspectRatio::of(rows, columns));
    for (const double ratio : {1.3, 2.0, 6.0}) {
        const double strength = ratio * law.detection_threshold().value;
        const theory::SpikeVariances at =
            theory::spike_variances(law.spike_curve({strength}), law.bulk_edge(), law.aspect(), rows, columns);
        const theory::SpikePrediction low = law.spike({strength * (1.0 - 1e-5)});
        const theory::SpikePrediction high = law.spike({strength * (1.0 + 1e-5)});
        const double step = std::log(high.outlier.value / low.outlier.value);
        EXPECT_NEAR(at.strength_response, std::log(high.strength.value / low.strength.value) / step, 1e-4);
        EXPECT_NEAR(at.left_response, std::log(high.overlap_left.value / low.overlap_left.value) / step,
                    1e-4 * at.left_response);
        EXPECT_NEAR(at.right_response, std::log(high.overlap_right.value / low.overlap_right.value) / step,
                    1e-4 * at.right_response);
    }
}

TEST(SpikeBootstrapReference, ItsDrawsAreThoseOfDecompositions) {
    // The same normals as the draw takes, as a matrix that LAPACK decomposes.
    for (const Shape shape : {Shape{12, 20}, Shape{20, 12}, Shape{9, 9}}) {
        const std::size_t p = shape.short_side();
        const std::size_t q = shape.long_side();
        EstimatedNoise noise{.edge = {1.0}, .width = 0.1};
        for (std::size_t i = 0; i < p; ++i) noise.eigenvalues.push_back(1.0 / (1.0 + static_cast<double>(i)));
        const stream::Stream stream(interval_seed, "bootstrap", stream::Role::resampling, p);
        const auto draws = bootstrap_spike(noise, shape, 1.6, 3, stream);
        ASSERT_EQ(draws.size(), 3U);
        for (std::size_t k = 0; k < 3; ++k) {
            arma::vec normals(p + q);
            stream::fill_normal(stream, k * (p + q), {normals.memptr(), normals.n_elem});
            const arma::vec u = arma::normalise(normals.head(p));
            const arma::vec v = arma::normalise(normals.tail(q));
            arma::mat block = 1.6 * u * v.t();
            block.diag() += arma::sqrt(arma::vec(noise.eigenvalues));
            arma::mat left, right;
            arma::vec values;
            ASSERT_TRUE(arma::svd_econ(left, values, right, block));
            const double of_u = std::pow(arma::dot(u, left.col(0)), 2);
            const double of_v = std::pow(arma::dot(v, right.col(0)), 2);
            const bool wide = shape.rows <= shape.columns;
            EXPECT_NEAR(draws[k].outlier.value, values[0] * values[0], 1e-9);
            EXPECT_NEAR(draws[k].overlap_left, wide ? of_u : of_v, 1e-8);
            EXPECT_NEAR(draws[k].overlap_right, wide ? of_v : of_u, 1e-8);
        }
    }
}

/// How many of the intervals hold the truth, and how many there are; `shrunk` is the control with half the width.
struct Coverage {
    int blocks = 0;
    int strength = 0;
    int left = 0;
    int right = 0;
    int shrunk = 0;
};

std::optional<NoiseTails> tails_behind(AnalysedBlock& block, std::size_t rank) {
    return noise_tails(block.block(), std::span(block.singular_values()).first(rank), block.vectors(rank));
}

Coverage coverage_of(const char* estimator, const sim::SpikedModel& model, const char* cell, IntervalMethod method,
                     int blocks, bool with_tails = true) {
    Coverage counted;
    const SpectralEstimator estimate = spectral_estimator(estimator);
    for (int r = 0; r < blocks; ++r) {
        const auto sample = sim::sample(model, interval_seed, cell, static_cast<std::uint64_t>(r));
        AnalysedBlock block(sample.observed);
        const Shrinkage found = estimate.of(block);
        const auto tails = with_tails ? tails_behind(block, found.rank) : std::nullopt;
        const auto intervals = spike_intervals(found, block.singular_values(), block.shape(), method, 0.95, tails);
        if (!intervals || intervals->empty() || !intervals->front().overlap_left) continue;
        const SpikeIntervals& of = intervals->front();
        const SingularVectors vectors = block.vectors(1);
        const auto holds = [](const Interval& interval, double truth) {
            return interval.low <= truth && truth <= interval.high ? 1 : 0;
        };
        const double truth = model.strengths.front().value;
        const double centre = 0.5 * (of.strength->low + of.strength->high);
        const double quarter = 0.25 * (of.strength->high - of.strength->low);
        ++counted.blocks;
        counted.strength += holds(*of.strength, truth);
        counted.shrunk += holds({centre - quarter, centre + quarter}, truth);
        counted.left += holds(*of.overlap_left, std::pow(arma::dot(vectors.left.col(0), sample.left.col(0)), 2));
        counted.right += holds(*of.overlap_right, std::pow(arma::dot(vectors.right.col(0), sample.right.col(0)), 2));
    }
    return counted;
}

TEST(SpikeIntervalsLaw, HoldTheTruthAtTheirConfidence) {
    // An interval that holds the truth in 90 % of blocks, which is what is claimed at 95 % nominal, falls below `least`
    // with probability 1e-6. The control, an interval half as wide, holds it in about 67 %.
    constexpr int blocks = 160;
    constexpr std::size_t side = 64;
    sim::SpikedModel white{sim::Covariance::identity(side), sim::Covariance::identity(side), {{3.0}}};
    sim::SpikedModel coloured{sim::Covariance::ar1(0.5, side), sim::Covariance::exponential(2.0, side), {}};
    const theory::SeparableLaw law(coloured.row.spectrum(), coloured.column.spectrum(), AspectRatio(1.0));
    coloured.strengths = {{3.0 * law.detection_threshold().value}};
    for (const IntervalMethod method : {IntervalMethod::theory, IntervalMethod::bootstrap})
        for (const auto& [estimator, model, cell] :
             {std::tuple{"gd-shrink", &white, "white"}, std::tuple{"eoptshrink", &white, "white"},
              std::tuple{"eoptshrink", &coloured, "coloured"}}) {
            if (method == IntervalMethod::bootstrap && model == &white) continue;
            const Coverage of = coverage_of(estimator, *model, cell, method, blocks);
            ASSERT_GE(of.blocks, blocks - 8) << estimator;
            const double least = boost::math::quantile(boost::math::binomial(of.blocks, 0.9), 1e-6);
            std::cout << fmt::format("{} {} {}: strength {}, left {}, right {}, half as wide {} of {}; at least {}\n",
                                     enum_name(method), estimator, cell, of.strength, of.left, of.right, of.shrunk,
                                     of.blocks, least);
            EXPECT_GE(of.strength, least) << estimator << " " << cell;
            EXPECT_GE(of.left, least) << estimator << " " << cell;
            EXPECT_GE(of.right, least) << estimator << " " << cell;
            EXPECT_LT(of.shrunk, least) << "the control passes: " << estimator << " " << cell;
        }
}

TEST(SpikeIntervalsLaw, AllowForTheKurtosisWhereAVectorLiesOnOneColumn) {
    // Sparse entries have an excess kurtosis of 7, so that the noise of that column varies by twice as much as that of
    // normal entries. The bound is that of the test above; the control leaves the kurtosis out.
    constexpr int blocks = 200;
    constexpr std::size_t side = 64;
    const sim::SpikedModel model{sim::Covariance::identity(side),
                                 sim::Covariance::identity(side),
                                 {{4.0}},
                                 sim::EntryLaw::parse("sparse:0.1"),
                                 sim::parse_signal_vectors("haar").left,
                                 sim::parse_signal_vectors("localised:1").right};
    for (const char* estimator : {"gd-shrink", "eoptshrink"}) {
        const Coverage with = coverage_of(estimator, model, "one column", IntervalMethod::theory, blocks);
        const Coverage without = coverage_of(estimator, model, "one column", IntervalMethod::theory, blocks, false);
        ASSERT_GE(with.blocks, blocks - 8) << estimator;
        const double least = boost::math::quantile(boost::math::binomial(with.blocks, 0.9), 1e-6);
        std::cout << fmt::format("{}: strength {}, left {}, right {} of {}; without kurtosis {}, {}, {}; at least {}\n",
                                 estimator, with.strength, with.left, with.right, with.blocks, without.strength,
                                 without.left, without.right, least);
        EXPECT_GE(with.strength, least) << estimator;
        EXPECT_GE(with.left, least) << estimator;
        EXPECT_GE(with.right, least) << estimator;
        EXPECT_LT(without.left, least) << "the control passes: " << estimator;
    }
}

TEST(NoiseTailsReference, SolveTheirEquationsForADenseResidual) {
    sim::SpikedModel model{sim::Covariance::identity(30), sim::Covariance::identity(50), {{5.0}, {3.0}}};
    arma::mat matrix = sim::sample(model, interval_seed, "dense", 0).observed;
    matrix.row(7).zeros();
    matrix.col(3).zeros();
    AnalysedBlock block(matrix);
    const auto found = tails_behind(block, 2);
    ASSERT_TRUE(found);
    arma::mat left, right;
    arma::vec values;
    ASSERT_TRUE(arma::svd_econ(left, values, right, matrix));
    arma::mat rest = matrix - left.head_cols(2) * arma::diagmat(values.head(2)) * right.head_cols(2).t();
    rest.shed_row(7);
    rest.shed_col(3);
    rest /= std::sqrt(arma::accu(arma::square(rest)) / static_cast<double>(rest.n_elem));
    // (3 + k) A B is the mean fourth power; A (1 + (2 + k) B / 49) and B (1 + (2 + k) A / 29) are the mean squares of
    // the mean squares. Bisection in B for a given k, and in k.
    const double fourth = arma::accu(arma::pow(rest, 4)) / static_cast<double>(rest.n_elem);
    const double of_rows = arma::mean(arma::square(arma::vec(arma::mean(arma::square(rest), 1))));
    const double of_columns = arma::mean(arma::square(arma::rowvec(arma::mean(arma::square(rest), 0))));
    const auto excess = [&](double k) {
        double low = 0.5, high = 2.0;
        for (int i = 0; i < 60; ++i) {
            const double b = 0.5 * (low + high);
            const double a = of_rows / (1.0 + (2.0 + k) * b / 49.0);
            (b * (1.0 + (2.0 + k) * a / 29.0) < of_columns ? low : high) = b;
        }
        return fourth - (3.0 + k) * low * of_rows / (1.0 + (2.0 + k) * low / 49.0);
    };
    double low = -1.5, high = 3.0;
    for (int i = 0; i < 60; ++i) (excess(0.5 * (low + high)) > 0.0 ? low : high) = 0.5 * (low + high);
    EXPECT_NEAR(found->excess_kurtosis, low, 1e-9);
    ASSERT_EQ(found->left_fourth_powers.size(), 2U);
    EXPECT_NEAR(found->left_fourth_powers[1], arma::accu(arma::pow(left.col(1), 4)), 1e-9);
    EXPECT_NEAR(found->right_fourth_powers[0], arma::accu(arma::pow(right.col(0), 4)), 1e-9);
    // A block of rank two has no noise.
    AnalysedBlock low_rank(arma::mat(left.head_cols(2) * right.head_cols(2).t()));
    EXPECT_FALSE(tails_behind(low_rank, 2));
    AnalysedBlock few(arma::mat(matrix.head_rows(7)));
    EXPECT_FALSE(tails_behind(few, 0));
}

TEST(NoiseTailsLaw, AreZeroForNormalEntriesOfUnequalVariances) {
    // Mean and standard error over blocks; a false alarm of 1e-6 by the normal law. The control is Laplace noise, whose
    // excess kurtosis is 3.
    constexpr int blocks = 60;
    for (const char* entries : {"gaussian", "laplace"}) {
        sim::SpikedModel model{sim::Covariance::diagonal(arma::linspace(0.2, 3.0, 40)),
                               sim::Covariance::exponential(2.0, 60),
                               {{12.0}},
                               sim::EntryLaw::parse(entries)};
        arma::vec kurtosis(blocks), errors(blocks);
        int heavy = 0;
        for (int r = 0; r < blocks; ++r) {
            AnalysedBlock block(sim::sample(model, interval_seed, entries, static_cast<std::uint64_t>(r)).observed);
            const auto found = tails_behind(block, 1);
            ASSERT_TRUE(found);
            kurtosis(r) = found->excess_kurtosis;
            errors(r) = found->error;
            Shrinkage estimate;
            add_note_on_tails(estimate, *found);
            heavy += estimate.note.empty() ? 0 : 1;
        }
        const double error = arma::stddev(kurtosis) / std::sqrt(static_cast<double>(blocks));
        std::cout << fmt::format("{}: excess kurtosis {:.3f} +- {:.3f}, spread {:.3f}, its errors {:.3f}, notes {}\n",
                                 entries, arma::mean(kurtosis), error, arma::stddev(kurtosis), arma::mean(errors),
                                 heavy);
        const bool normal = std::string(entries) == "gaussian";
        EXPECT_EQ(std::abs(arma::mean(kurtosis)) < 0.03 + 4.9 * error, normal);
        if (normal) {
            EXPECT_NEAR(arma::mean(errors) / arma::stddev(kurtosis), 1.0, 0.4);
        }
        EXPECT_EQ(heavy > blocks / 2, !normal);
        EXPECT_TRUE(heavy == 0 || !normal);
    }
}

TEST(SpikeIntervals, SayWhereTheyFail) {
    const Shape shape{128, 128};
    std::vector<double> values(128);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = 2.0 * (1.0 - static_cast<double>(i) / 128.0);
    values[0] = 2.02;
    Shrinkage near_edge;
    near_edge.rank = 1;
    near_edge.strengths = {1.1}, near_edge.overlap_left = {0.2}, near_edge.overlap_right = {0.2};
    near_edge.noise_level = 1.0 / std::sqrt(128.0);
    const auto method = IntervalMethod::theory;
    const auto found = spike_intervals(near_edge, values, shape, method, 0.95);
    ASSERT_TRUE(found && found->size() == 1);
    EXPECT_FALSE(found->front().strength || found->front().overlap_left);
    EXPECT_NE(found->front().reason.find("scales above the edge"), std::string::npos) << found->front().reason;

    Shrinkage close = near_edge;
    close.rank = 2;
    close.strengths = {3.01, 3.0}, close.overlap_left = close.overlap_right = {0.88, 0.88};
    values[0] = 3.34, values[1] = 3.33;
    const auto crowded = spike_intervals(close, values, shape, method, 0.95);
    ASSERT_TRUE(crowded && crowded->size() == 2);
    EXPECT_NE(crowded->front().reason.find("component 2"), std::string::npos) << crowded->front().reason;
    EXPECT_NE(crowded->back().reason.find("component 1"), std::string::npos) << crowded->back().reason;

    Shrinkage no_law = near_edge;
    no_law.noise_level.reset();
    const auto reason = [&](const Shrinkage& of, const std::vector<double>& all, Shape block) {
        const auto none = spike_intervals(of, all, block, method, 0.95);
        EXPECT_TRUE(none && none->size() == 1 && !none->front().strength && !none->front().overlap_right);
        return none && !none->empty() ? none->front().reason : "";
    };
    EXPECT_NE(reason(no_law, values, shape).find("no noise law"), std::string::npos);
    no_law.noise_eigenvalues = {3.0, 2.0, 1.5, 1.0, 0.5};
    EXPECT_NE(reason(no_law, values, shape).find("only 5 singular values (8 are needed)"), std::string::npos);
    EXPECT_NE(reason(near_edge, {2.02, 1, 1, 1, 1, 1, 1}, {7, 128}).find("only 7 singular values"), std::string::npos);
    no_law.noise_eigenvalues.assign(8, 0.0);
    EXPECT_EQ(reason(no_law, values, shape), "the noise is zero");
    no_law.noise_eigenvalues.assign(20, 1.0);
    EXPECT_NE(reason(no_law, values, shape).find("are alike"), std::string::npos);
    // Next to 1, 0.5 + confidence / 2 is 1, where the normal quantile is infinite.
    Shrinkage clear = near_edge;
    clear.strengths = {3.0}, clear.overlap_left = clear.overlap_right = {0.88};
    values[0] = 3.34, values[1] = 1.98;
    const auto surest = spike_intervals(clear, values, shape, method, std::nextafter(1.0, 0.0));
    ASSERT_TRUE(surest && surest->front().strength);
    EXPECT_LT(surest->front().strength->low, 2.9);
    EXPECT_GT(surest->front().strength->high, 3.1);
    EXPECT_TRUE(std::isfinite(surest->front().strength->high));
    EXPECT_FALSE(spike_intervals(near_edge, values, shape, IntervalMethod::none, 0.95));
    for (const double confidence : {0.0, 1.0, -1.0, std::nan("")})
        EXPECT_THROW((void)spike_intervals(near_edge, values, shape, method, confidence), Error);
}

TEST(NextComponent, HasAUniformPValueUnderWhiteNoise) {
    // Known level: the p-value of pure noise is at most .05 in 5 % of blocks, and that of a spike is tiny.
    constexpr int blocks = 400;
    constexpr std::size_t side = 64;
    const SpectralEstimator estimator = spectral_estimator(fmt::format("tw-test:level=1e-9:sigma={}", 1.0 / 8.0));
    sim::SpikedModel model{sim::Covariance::identity(side), sim::Covariance::identity(side), {}};
    int small = 0;
    for (int r = 0; r < blocks; ++r) {
        AnalysedBlock block(sim::sample(model, interval_seed, "null", static_cast<std::uint64_t>(r)).observed);
        const auto p = next_component_p_value(estimator.of(block), block.singular_values(), block.shape());
        ASSERT_TRUE(p);
        small += *p <= 0.05 ? 1 : 0;
    }
    const boost::math::binomial law(blocks, 0.05);
    EXPECT_LE(small, boost::math::quantile(boost::math::complement(law, 1e-6)));
    EXPECT_GE(small, boost::math::quantile(boost::math::binomial(blocks, 0.03), 1e-6));
    model.strengths = {{2.5}};
    AnalysedBlock block(sim::sample(model, interval_seed, "spike", 0).observed);
    Shrinkage none;
    none.noise_level = 1.0 / 8.0;
    EXPECT_LT(next_component_p_value(none, block.singular_values(), block.shape()).value(), 1e-6);
    none.noise_level.reset();
    EXPECT_FALSE(next_component_p_value(none, block.singular_values(), block.shape()));
    // Tests with a law of their own.
    for (const char* name : {"tw-test:null=signflip", "tw-test:null=kurtosis"})
        EXPECT_FALSE(next_component_p_value(spectral_estimator(name).of(block), block.singular_values(), block.shape()))
            << name;
}

}  // namespace
}  // namespace spiked::estimators

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "sim/random/normal.hpp"
#include "theory/quantization/lloyd_max.hpp"
#include "validation/metrics/block_metrics.hpp"
#include "validation/metrics/codec_measurement.hpp"
#include "validation/metrics/estimate_measurement.hpp"
#include "validation/statistics/tests/clustered_mean.hpp"

namespace spiked::validation {
namespace {

arma::mat gaussian_block(std::size_t rows, std::size_t columns, std::uint64_t replicate) {
    arma::mat matrix(rows, columns);
    stream::fill_normal(stream::Stream({}, "metrics", stream::Role::noise, replicate),
                        {matrix.memptr(), matrix.n_elem});
    return matrix;
}

double dot(const arma::mat& a, arma::uword i, const arma::mat& b, arma::uword j) {
    double sum = 0.0;
    for (arma::uword c = 0; c < a.n_cols; ++c) sum += a(i, c) * b(j, c);
    return sum;
}

TEST(BlockMetricsReference, AgreesWithPlainLoopsOverPairs) {
    const arma::mat block = gaussian_block(9, 6, 0);
    const arma::mat decoded = block * 0.9 + 0.1 * gaussian_block(9, 6, 1);
    double bias[2] = {};
    double squares[2] = {};
    for (arma::uword j = 0; j < 9; ++j)
        for (arma::uword t = 0; t < 9; ++t) {
            if (j == t) continue;
            const double nj = std::sqrt(dot(block, j, block, j));
            const double nt = std::sqrt(dot(block, t, block, t));
            const double nh = std::sqrt(dot(decoded, t, decoded, t));
            const double cosine = dot(block, j, block, t) / (nj * nt);
            const double errors[2] = {dot(block, j, decoded, t) / (nj * nh) - cosine,
                                      dot(block, j, decoded, t) / (nj * nt) - cosine};
            for (int k = 0; k < 2; ++k) bias[k] += errors[k] / 72.0, squares[k] += errors[k] * errors[k] / 72.0;
        }
    const BlockMetrics found = measure_block(block, decoded);
    EXPECT_NEAR(found.other.bias, bias[0], 1e-14);
    EXPECT_NEAR(found.other.bias_plain, bias[1], 1e-14);
    EXPECT_NEAR(found.other.deviation, std::sqrt(squares[0] - bias[0] * bias[0]), 1e-14);
    EXPECT_NEAR(found.other.deviation_plain, std::sqrt(squares[1] - bias[1] * bias[1]), 1e-14);
    EXPECT_NEAR(found.relative_l2, arma::norm(decoded - block, "fro") / arma::norm(block, "fro"), 1e-15);
}

TEST(BlockMetricsReference, EveryQueryModelAgreesWithPlainLoops) {
    arma::mat block = gaussian_block(9, 6, 7);
    block.row(4).zeros();
    const arma::mat decoded = block * 0.8 + 0.2 * gaussian_block(9, 6, 8) % arma::sign(arma::abs(block));
    BlockQueries queries{gaussian_block(5, 6, 9), gaussian_block(1, 6, 10), 30.0 * gaussian_block(7, 6, 11)};
    queries.dumped.row(2).zeros();
    const BlockMetrics found = measure_block(block, decoded, queries);
    const auto expected = [&](const arma::mat& query_rows, bool own) {
        std::vector<double> errors[2];
        for (arma::uword t = 0; t < 9; ++t) {
            const double nt = std::sqrt(dot(block, t, block, t));
            const double nh = std::sqrt(dot(decoded, t, decoded, t));
            for (arma::uword q = own ? t : 0; q < (own ? t + 1 : query_rows.n_rows); ++q) {
                const double nq = std::sqrt(dot(query_rows, q, query_rows, q));
                if (nt == 0.0 || nq == 0.0) continue;
                const double decoded_product = dot(query_rows, q, decoded, t);
                const double product = dot(query_rows, q, block, t);
                errors[0].push_back(decoded_product / (nq * nh) - product / (nq * nt));
                errors[1].push_back((decoded_product - product) / (nq * nt));
            }
        }
        InnerProductErrors of;
        double InnerProductErrors::*means[] = {&InnerProductErrors::bias, &InnerProductErrors::bias_plain};
        double InnerProductErrors::*deviations[] = {&InnerProductErrors::deviation,
                                                    &InnerProductErrors::deviation_plain};
        for (int k = 0; k < 2; ++k) {
            const double count = static_cast<double>(errors[k].size());
            double sum = 0.0;
            double squares = 0.0;
            for (const double e : errors[k]) sum += e, squares += e * e;
            of.*means[k] = sum / count;
            of.*deviations[k] = std::sqrt(squares / count - sum / count * (sum / count));
        }
        return of;
    };
    const std::pair<InnerProductErrors, InnerProductErrors> both[] = {{found.random, expected(queries.random, false)},
                                                                      {found.aligned, expected(queries.aligned, false)},
                                                                      {found.own, expected(block, true)},
                                                                      {found.dumped, expected(queries.dumped, false)}};
    for (const auto& [measured, reference] : both) {
        EXPECT_NEAR(measured.bias, reference.bias, 1e-14);
        EXPECT_NEAR(measured.deviation, reference.deviation, 1e-13);
        EXPECT_NEAR(measured.bias_plain, reference.bias_plain, 1e-14);
        EXPECT_NEAR(measured.deviation_plain, reference.deviation_plain, 1e-13);
    }
    EXPECT_TRUE(std::isnan(measure_block(block, decoded).dumped.bias));
}

// After a Haar rotation the quantizer shrinks every direction alike: <q, x^> = kappa <q, x> on average. The plain bias
// is therefore -(1 - kappa) times the cosine of query and row, which is 1 if the query is the row itself. At d = 128
// and 2 bits 1 - kappa = .116.
TEST(BlockMetricsLaw, BiasOfTurboQuantIsProportionalToTheCosineOfQueryAndRow) {
    constexpr int rotations = 400;
    const arma::mat block = gaussian_block(16, 128, 12) + 0.5;
    estimators::AnalysedBlock analysed{block};
    const auto method = estimators::parse_method("tq-mse");
    const double loss = theory::lloyd_max_sphere(128, 2).distortion;
    double sums[3] = {};
    double squares[3] = {};
    double cosines[3] = {};
    for (std::uint64_t r = 0; r < rotations; ++r) {
        const BlockQueries queries = queries_for(analysed, stream::Stream({}, "query law", stream::Role::query, r));
        const estimators::Compressor codec(method, 128, 2,
                                           {.norm = estimators::NumberFormat::fp64, .rotation_index = r});
        const BlockMetrics found =
            measure_block(block, codec.decode(codec.encode(analysed).encoded.bytes, 16), queries);
        const double biases[3] = {found.own.bias_plain, found.aligned.bias_plain, found.random.bias_plain};
        const arma::mat units = arma::normalise(block, 2, 1);
        const double products[3] = {1.0, arma::mean(arma::vec(units * queries.aligned.t())),
                                    arma::mean(arma::vectorise(units * arma::normalise(queries.random, 2, 1).t()))};
        for (int k = 0; k < 3; ++k) {
            const double surplus = biases[k] + loss * products[k];
            sums[k] += surplus, squares[k] += surplus * surplus, cosines[k] += products[k] / rotations;
        }
    }
    const double z = 5.2;  // two-sided false-alarm rate 2e-7 for each of the three
    for (int k = 0; k < 3; ++k) {
        const double mean = sums[k] / rotations;
        const double error = std::sqrt((squares[k] / rotations - mean * mean) / (rotations - 1.0));
        EXPECT_LT(std::abs(mean), z * error) << k << ": smallest detectable " << 2.0 * z * error;
        // Negative control: without the loss term the two query models with a nonzero cosine would fail.
        if (k < 2) {
            EXPECT_GT(loss * cosines[k], 2.0 * z * error);
        }
    }
}

TEST(MetricTable, EveryMetricHasANameOfItsOwnAndAMeasure) {
    std::set<std::string> names;
    for (const auto& [name, unit, better, definition, of, text, measure] : metrics()) {
        EXPECT_TRUE(names.insert(name).second) << name;
        EXPECT_EQ(find_metric(name), names.size() - 1);
        EXPECT_TRUE(better == "lower" || better == "higher" || better == "target" || better == "none") << name;
        EXPECT_FALSE(unit.empty() || definition.empty()) << name;
        EXPECT_EQ(of.find("sample") != of.npos, bool(measure.sample)) << name;
        EXPECT_EQ(of.find("estimator") != of.npos, measure.estimate || measure.component) << name;
        EXPECT_EQ(of.find("codec") != of.npos,
                  measure.size || measure.errors || measure.attention || text.group == MetricGroup::of_models)
            << name;
        if (text.group != MetricGroup::none || text.frontier) {
            EXPECT_NE(text.heading, "") << name;
        }
    }
    EXPECT_FALSE(find_metric("no_metric"));
}

TEST(EstimateMetrics, AreThoseOfTheNumbersAndUndefinedForSpikesThatAreNotSeen) {
    const SampleResult sample{.detectable = 1,
                              .spikes = 2,
                              .truth = true,
                              .values = {3.0},
                              .left = {0.5},
                              .right = {-0.6},
                              .energy = 8.0,
                              .oracle = 4.0};
    std::vector<Observation> found;
    observe_sample(sample, found);
    observe_estimate({sample, 1, 1.5, {2.5}, {2.0}, 6.0}, 1, found);
    std::string text;
    for (const auto& one : found)
        text += fmt::format("{} {} {} {:g}\n", one.method, metrics()[one.metric].name, one.k, one.value);
    EXPECT_EQ(text,
              "0 outlier 1 9\n0 overlap.left 1 0.25\n0 overlap.right 1 0.36\n0 outlier 2 nan\n0 overlap.left 2 nan\n"
              "0 overlap.right 2 nan\n1 rank 0 1\n1 rank_over 0 0\n1 rank_right 0 1\n1 rank_missed 0 0\n"
              "1 rank_false 0 0\n1 bulk_edge 0 1.5\n"
              "1 strength 1 2.5\n1 shrunk 1 2\n1 strength 2 nan\n1 shrunk 2 nan\n1 relative_error 0 0.75\n"
              "1 loss_ratio 0 1.5\n");
    SampleResult unknown = sample;
    unknown.truth = false;
    unknown.detectable = {};
    found.clear();
    observe_estimate({unknown, 1, 1.5, {2.5}, {2.0}, 0.0}, 1, found);
    EXPECT_EQ(found.size(), 4U) << "rank, edge, and strength and shrunk of the component";
}

TEST(GapMetrics, AreObservedOfSpikesThatAreSeenInAGapOnly) {
    SampleResult sample{.spikes = 2, .truth = true, .values = {3.0, 2.0}, .left = {0.5, 0.1}, .right = {-0.6, 0.1}};
    sample.in_gaps = {{.spike = 1, .outlier = 1.5, .overlap_left = 0.4, .overlap_right = 0.3}};
    std::vector<Observation> found;
    observe_sample(sample, found);
    std::string text;
    for (const auto& one : found)
        if (metrics()[one.metric].name.starts_with("gap_"))
            text += fmt::format("{} {} {:g}\n", metrics()[one.metric].name, one.k, one.value);
    EXPECT_EQ(text, "gap_outlier 2 1.5\ngap_overlap.left 2 0.4\ngap_overlap.right 2 0.3\n");
}

TEST(SubspaceMetrics, AreThoseOfThePrincipalAnglesHoweverVectorsMix) {
    const auto turn = [](double degrees) {
        const double angle = degrees * arma::datum::pi / 180.0;
        return arma::mat{{std::cos(angle), -std::sin(angle)}, {std::sin(angle), std::cos(angle)}};
    };
    // The true vectors are rotated by 25 and 40 degrees out of a plane and mixed in it; the first spike stands alone.
    arma::mat left(3, 3, arma::fill::zeros);
    left(0, 0) = 0.9;
    left.submat(1, 1, 2, 2) =
        turn(33.0) * arma::diagmat(arma::cos(arma::vec{25.0, 40.0} * arma::datum::pi / 180.0)) * turn(-70.0);
    arma::mat right = left;
    right.submat(1, 1, 2, 2) = turn(80.0);
    const std::vector<double> values = {5.0, 3.0, 2.0};
    const SubspaceResult found = subspace_result({1, 2, true}, values, left, right);
    EXPECT_EQ(found.first, 1U);
    EXPECT_DOUBLE_EQ(found.outlier, 6.5);
    EXPECT_NEAR(found.overlap_left,
                (std::pow(std::cos(25.0 * arma::datum::pi / 180.0), 2) +
                 std::pow(std::cos(40.0 * arma::datum::pi / 180.0), 2)) /
                    2.0,
                1e-14);
    EXPECT_NEAR(found.angle_left, 40.0, 1e-12);
    EXPECT_NEAR(found.overlap_right, 1.0, 1e-14);
    EXPECT_NEAR(found.angle_right, 0.0, 1e-5);

    SampleResult sample{.detectable = 3, .spikes = 3, .truth = true, .values = values, .left = {}, .right = {}};
    sample.subspaces = {found};
    std::vector<Observation> observed;
    observe_sample(sample, observed);
    std::string text;
    for (const auto& one : observed)
        if (metrics()[one.metric].name.starts_with("subspace_"))
            text += fmt::format("{} {} {:.1f}, ", metrics()[one.metric].name, one.k, one.value);
    EXPECT_EQ(text,
              "subspace_outlier 2 6.5, subspace_overlap.left 2 0.7, subspace_overlap.right 2 1.0, "
              "subspace_angle.left 2 40.0, subspace_angle.right 2 0.0, ");

    const SubspaceResult unseen = subspace_result({1, 2, true}, {5.0, 3.0}, left.submat(0, 0, 1, 1), right);
    EXPECT_TRUE(std::isnan(unseen.overlap_left) && std::isnan(unseen.angle_right) && std::isnan(unseen.outlier))
        << "the block has two singular values";
}

TEST(EstimateMetrics, CompareTheRankWithTheNumberOfDetectableSpikes) {
    // Two spikes, of which one is below the threshold: rank 1 is right, and rank 2 is a false alarm.
    const auto measured = [](std::optional<std::size_t> detectable, std::size_t rank) {
        const SampleResult sample{
            .detectable = detectable, .spikes = 2, .truth = true, .values = {}, .left = {}, .right = {}};
        std::vector<Observation> found;
        observe_estimate({sample, rank, 1.5, std::vector<double>(rank, 1.0), std::vector<double>(rank, 1.0), 0.0}, 1,
                         found);
        std::string text;
        for (const auto& one : found)
            if (metrics()[one.metric].name.starts_with("rank_"))
                text += fmt::format("{} {:g} ", metrics()[one.metric].name.substr(5), one.value);
        return text;
    };
    EXPECT_EQ(measured(1, 0), "over 0 right 0 missed 1 false 0 ");
    EXPECT_EQ(measured(1, 1), "over 0 right 1 missed 0 false 0 ");
    EXPECT_EQ(measured(1, 2), "over 1 right 0 missed 0 false 1 ");
    EXPECT_EQ(measured(0, 2), "over 1 right 0 missed 0 false 2 ");
    EXPECT_EQ(measured(3, 1), "over 0 right 0 missed 2 false 0 ");
    EXPECT_EQ(measured(std::nullopt, 1), "") << "without a law there is no threshold";
}

TEST(BlockMetrics, GainAndDistortionOfAHalvedBlockAreAHalfAndAQuarter) {
    const arma::mat block = gaussian_block(9, 6, 21);
    std::vector<Observation> found;
    observe_errors(block, 0.5 * block, {}, 3, found);
    const auto value = [&](const char* metric) {
        for (const Observation& one : found)
            if (one.metric == metric_index(metric)) return one.value;
        return std::nan("");
    };
    EXPECT_NEAR(value("linear_gain"), 0.5, 1e-15);
    EXPECT_NEAR(value("relative_l2"), 0.5, 1e-15);
    EXPECT_NEAR(value("distortion"), 0.25, 1e-15);
}

TEST(BlockMetrics, PaperBitsUseTheShapeOfTheBlock) {
    estimators::AnalysedBlock block(gaussian_block(40, 24, 22));
    const estimators::Compressor codec(estimators::parse_method("svd:3+tq-mse"), 24, 2, {});
    std::vector<Observation> found;
    observe_codec(codec, block, {}, 1, found);
    for (const Observation& one : found)
        if (one.metric == metric_index("paper_bits")) {
            EXPECT_NEAR(one.value, 2.0 + 3.0 * (40 + 24) * 4 / (40.0 * 24.0), 1e-12);
        }
    EXPECT_TRUE(std::any_of(found.begin(), found.end(),
                            [](const Observation& one) { return one.metric == metric_index("paper_bits"); }));
}

TEST(BlockMetrics, OnlyThePlainBiasDetectsUniformShrinkage) {
    const arma::mat block = gaussian_block(20, 8, 2) + 1.0;
    const BlockMetrics found = measure_block(block, 0.8 * block);
    EXPECT_NEAR(found.relative_l2, 0.2, 1e-14);
    EXPECT_NEAR(found.other.bias, 0.0, 1e-15);
    EXPECT_NEAR(found.other.deviation, 0.0, 1e-15);
    EXPECT_LT(found.other.bias_plain, -0.01);
}

TEST(BlockMetrics, ZeroRowsAreLeftOutOfThePairs) {
    arma::mat block = gaussian_block(6, 4, 3);
    arma::mat decoded = gaussian_block(6, 4, 4);
    const BlockMetrics whole = measure_block(block.rows(1, 5), decoded.rows(1, 5));
    block.row(0).zeros();
    const BlockMetrics found = measure_block(block, decoded);
    EXPECT_DOUBLE_EQ(found.other.bias, whole.other.bias);
    EXPECT_DOUBLE_EQ(found.other.deviation_plain, whole.other.deviation_plain);
}

TEST(BlockMetrics, ABlockWithoutPairsHasNoInnerProductError) {
    const BlockMetrics single = measure_block(gaussian_block(1, 4, 5), gaussian_block(1, 4, 6));
    EXPECT_TRUE(std::isnan(single.other.bias));
    const BlockMetrics zero = measure_block(arma::mat(3, 4), arma::mat(3, 4));
    EXPECT_EQ(zero.relative_l2, 0.0);
    EXPECT_TRUE(std::isnan(zero.other.bias_plain));
}

TEST(ClusteredMean, EqualClustersGiveTheErrorOfTheirMeans) {
    // Clusters of size 4 with means 1, 2, 6: mean 3, standard deviation of the means sqrt(7), standard error sqrt(7/3).
    const ClusteredMean found = clustered_mean({{"a", {4, 4.0}}, {"b", {4, 8.0}}, {"c", {4, 24.0}}});
    EXPECT_DOUBLE_EQ(found.mean, 3.0);
    EXPECT_NEAR(found.standard_error, std::sqrt(7.0 / 3.0), 1e-14);
    EXPECT_EQ(found.count, 12U);
}

TEST(ClusteredMean, EmptyClustersDoNotCountAndOneClusterHasNoError) {
    const ClusteredMean found = clustered_mean({{"a", {3, 4.5}}, {"b", {1, 8.0}}});
    const ClusteredMean with_empty = clustered_mean({{"a", {3, 4.5}}, {"b", {1, 8.0}}, {"c", {0, 0.0}}});
    EXPECT_DOUBLE_EQ(found.standard_error, with_empty.standard_error);
    EXPECT_TRUE(std::isnan(clustered_mean({{"a", {3, 4.5}}}).standard_error));
    EXPECT_TRUE(std::isnan(clustered_mean({}).mean));
}

// Blocks of one cluster have the same value, so a standard error that treats blocks as independent is too small by a
// factor sqrt(10). The test measures the coverage of mean +- 2.576 standard errors over 2000 draws.
TEST(ClusteredMeanLaw, ErrorBarsCoverAtTheirNominalRate) {
    constexpr int draws = 2000;
    constexpr int groups = 60;
    constexpr int blocks = 10;
    int clustered_misses = 0;
    int naive_misses = 0;
    for (std::uint64_t r = 0; r < draws; ++r) {
        std::vector<double> x(groups);
        stream::fill_normal(stream::Stream({}, "coverage", stream::Role::noise, r), x);
        std::map<std::string, ClusterSum> clustered;
        std::map<std::string, ClusterSum> naive;
        for (int g = 0; g < groups; ++g) {
            clustered[std::to_string(g)] = {blocks, blocks * x[static_cast<std::size_t>(g)]};
            for (int b = 0; b < blocks; ++b) naive[fmt::format("{}/{}", g, b)] = {1, x[static_cast<std::size_t>(g)]};
        }
        const auto misses = [](const ClusteredMean& m) { return std::abs(m.mean) > 2.576 * m.standard_error ? 1 : 0; };
        clustered_misses += misses(clustered_mean(clustered));
        naive_misses += misses(clustered_mean(naive));
    }
    // 1 % nominal, 1.25 % with Student's t at 59 degrees of freedom: 25 misses expected, binomial standard deviation 5;
    // the limit is exceeded with probability 1e-6.
    EXPECT_LT(clustered_misses, 25 + 5 * 5.0);
    EXPECT_GT(clustered_misses, 4);
    EXPECT_GT(naive_misses, 500) << "negative control: errors that ignore clusters must fail";
}

}  // namespace
}  // namespace spiked::validation

#include "sim/kv/kv_like.hpp"

#include <fmt/format.h>

#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <map>
#include <numbers>
#include <set>

#include "core/device/float16.hpp"
#include "core/files/tests/scratch.hpp"
#include "sim/kv/kv_dump.hpp"
#include "sim/kv/kv_needles.hpp"
#include "sim/llama/llama_readout.hpp"
#include "sim/random/tests/statistics.hpp"

namespace spiked::sim {
namespace {

using stream::kolmogorov_distance;
using stream::kolmogorov_limit;
using stream::two_sided_z;

/// The number of law tests among which the false-alarm rate of this file is divided.
constexpr double law_tests = 5.0;

KvLikeOptions small() {
    KvLikeOptions options;
    options.tokens = 12;
    options.head_dim = 8;
    options.hidden = 20;
    options.context.rank = 2;
    options.outliers.channels = 2;
    return options;
}

KvLikeSample draw(const KvLikeOptions& options, std::uint64_t replicate = 0, std::size_t head = 0,
                  std::string_view cell = "cell") {
    return KvLikeHead(options, stream::test_seed, std::string(cell), head).sample(replicate);
}

arma::mat before_rope(const KvLikeOptions& options, const arma::mat& rows) {
    if (!options.rotary) return rows;
    return undo_rope(rows, options.rotary->rope, static_cast<double>(options.rotary->position_start));
}

double largest(const arma::mat& difference) { return difference.is_empty() ? 0.0 : arma::abs(difference).max(); }

void expect_same(const KvLikeSample& a, const KvLikeSample& b, double tolerance = 0.0) {
    EXPECT_LE(largest(a.key.signal - b.key.signal), tolerance);
    EXPECT_LE(largest(a.key.noise - b.key.noise), tolerance);
    EXPECT_LE(largest(a.value.signal - b.value.signal), tolerance);
    EXPECT_LE(largest(a.value.noise - b.value.noise), tolerance);
}

/// Options that together reach every branch.
std::vector<KvLikeOptions> variety() {
    std::vector<KvLikeOptions> all(6, small());
    all[1].rotary->rope = {500000.0, RopeStyle::interleaved};
    all[1].rotary->position_start = 4096;
    all[1].context.course = ContextCourse::random;
    all[2].rotary.reset();
    all[2].sink.reset();
    all[3].outliers.channels = 0;
    all[3].noise.token_correlation = 0.7;
    all[3].queries.heads = 0;
    all[4].fresh_projections = true;
    all[4].outliers.place = OutlierPlace::any;
    all[4].noise.entries = EntryLaw::parse("student:5");
    all[5].tokens = 1;
    all[5].context.rank = 1;
    all[5].head_dim = 2;
    all[5].outliers.channels = 1;
    return all;
}

TEST(KvLikeIdentity, SignalPlusNoiseIsObserved) {
    auto all = variety();
    all.emplace_back();
    all.emplace_back().head_dim = 64;
    for (const auto& options : all) {
        SCOPED_TRACE(describe(options).text());
        const KvLikeSample found = draw(options, 3);
        for (const auto* part : {&found.key, &found.value}) {
            EXPECT_EQ(part->observed.n_rows, options.tokens);
            EXPECT_EQ(part->observed.n_cols, options.head_dim);
            EXPECT_EQ(largest(part->signal + part->noise - part->observed), 0.0);
            EXPECT_TRUE(part->observed.is_finite());
            EXPECT_GT(arma::norm(part->signal, "fro"), 0.0);
            EXPECT_GT(arma::norm(part->noise, "fro"), 0.0);
        }
        EXPECT_EQ(found.queries.size(), options.queries.heads);
        EXPECT_EQ(arma::size(found.course), arma::size(options.tokens, options.context.rank));
    }
}

TEST(KvLikeIdentity, SignalAndNoiseCanBeSwitchedOffSeparately) {
    KvLikeOptions noise = small();
    noise.sink.reset();
    noise.outliers.mean = 0.0;
    noise.context.key = noise.context.value = 0.0;
    EXPECT_EQ(largest(draw(noise).key.signal), 0.0);
    EXPECT_EQ(largest(draw(noise).value.signal), 0.0);
    EXPECT_EQ(true_signal(draw(noise).key.signal).singular_values.n_elem, 0U);
    KvLikeOptions signal = small();
    signal.noise.scale = 0.0;
    EXPECT_EQ(largest(draw(signal).key.noise), 0.0);
    // Neither part depends on the presence of the other.
    EXPECT_EQ(largest(draw(signal).key.signal - draw(small()).key.signal), 0.0);
    KvLikeOptions without_sink = small();
    without_sink.sink.reset();
    EXPECT_EQ(largest(draw(noise).value.noise - draw(without_sink).value.noise), 0.0);
}

// The construction is inverted: with 2 d >= hidden, the hidden states can be solved for from keys and values, and they
// and the model give the queries.
TEST(KvLikeReference, KeysValuesAndQueriesHaveTheSameHiddenStates) {
    for (auto options : variety()) {
        if (options.tokens == 1) continue;
        options.hidden = 14;
        options.context.query = 0.5;
        options.queries.scale = 1.5;
        SCOPED_TRACE(describe(options).text());
        const KvLikeHead head(options, stream::test_seed, "cell", 1);
        const KvLikeSample found = head.sample(5);
        const KvLikeModel model = head.model(5);
        const arma::mat keys = before_rope(options, found.key.signal);
        arma::mat context = keys;
        context.each_row() -= model.key_mean;
        arma::mat values = found.value.signal;
        if (options.sink) {
            EXPECT_LT(largest(keys.row(0) - model.sink_key), 1e-14);
            EXPECT_EQ(largest(values.row(0) - model.sink_value), 0.0);
            context.row(0).zeros();
            values.row(0).zeros();
        }
        const arma::mat both = arma::join_rows(model.key_projection, model.value_projection);
        const auto hidden_of = [&](const arma::mat& key_rows, const arma::mat& value_rows) {
            const arma::mat rows = arma::join_rows(key_rows, value_rows);
            const arma::mat solved = arma::solve(both.t(), rows.t());
            EXPECT_LT(largest(solved.t() * both - rows), 1e-10);
            return arma::mat(solved.t());
        };
        const arma::mat states = hidden_of(context / options.context.key, values / options.context.value);
        const arma::mat noise = hidden_of(before_rope(options, found.key.noise), found.value.noise);
        const arma::mat directions = arma::solve(found.course, states);  // rank x hidden
        EXPECT_LT(largest(found.course * directions - states), 1e-10);
        EXPECT_LT(largest(directions * directions.t() - arma::eye(2, 2)), 1e-9);

        ASSERT_EQ(found.queries.size(), options.queries.heads);
        for (std::size_t q = 0; q < options.queries.heads; ++q) {
            arma::mat query = (0.5 * states + noise) * model.query_projections[q];
            query.each_row() += model.query_mean;
            EXPECT_LT(largest(before_rope(options, found.queries[q]) - 1.5 * 8.0 * query), 1e-8);
        }
        EXPECT_NEAR(arma::norm(model.query_mean), 0.25, 1e-14);
        if (options.sink) {
            EXPECT_NEAR(arma::dot(model.query_mean, model.sink_key), 0.25 * 1.2, 1e-14);
        }
        if (options.outliers.channels > 0) {
            EXPECT_NEAR(arma::dot(model.query_mean, model.key_mean), -0.25 * arma::norm(model.key_mean), 1e-14);
        }
    }
}

std::size_t rank_of(const arma::mat& signal) { return true_signal(signal).singular_values.n_elem; }

TEST(KvLike, SignalBeforeTheEmbeddingHasTheStatedRank) {
    auto all = variety();
    all.emplace_back();
    all.emplace_back().head_dim = 64;
    all.emplace_back().context.course = ContextCourse::random;
    all.back().rotary->rope.style = RopeStyle::interleaved;
    all.emplace_back().sink.reset();
    all.emplace_back(all.back()).outliers.mean = 0.0;
    all.emplace_back().outliers.mean = 0.0;
    all.emplace_back().context.key = 0.0;
    all.emplace_back().sink->value = 0.0;
    for (const auto& options : all) {
        SCOPED_TRACE(describe(options).text());
        const KvLikeSample found = draw(options, 1);
        const KvSignalRank rank = signal_rank(options);
        EXPECT_EQ(rank_of(before_rope(options, found.key.signal)), rank.key);
        EXPECT_EQ(rank_of(found.value.signal), rank.value);
    }
    EXPECT_EQ(signal_rank({}).key, 5U);
    EXPECT_EQ(signal_rank({}).value, 5U);
    KvLikeOptions bare;
    bare.sink.reset();
    bare.outliers.channels = 0;
    EXPECT_EQ(signal_rank(bare).key, 4U);
    EXPECT_EQ(signal_rank(bare).value, 4U);
}

TEST(KvLikeControl, TheEmbeddingRaisesTheRank) {
    const KvLikeSample found = draw({});
    const TrueSignal after = true_signal(found.key.signal);
    EXPECT_GT(after.singular_values.n_elem, 20U);
    EXPECT_GT(after.singular_values(5), 0.1 * after.singular_values(0));
    const Rope wrong{10000.0, RopeStyle::interleaved};
    EXPECT_GT(rank_of(undo_rope(found.key.signal, wrong, 0.0)), 20U);
    EXPECT_GT(rank_of(undo_rope(found.key.signal, {9000.0, {}}, 0.0)), 5U);
    // A wrong start position rotates all rows in the same way, which does not change singular values.
    EXPECT_EQ(rank_of(undo_rope(found.key.signal, {}, 1.0)), 5U);
}

TEST(TrueSignal, ReproducesTheSignal) {
    for (const KvLikeSample& found : {draw({}), draw(small())})
        for (const auto* part : {&found.key, &found.value}) {
            const TrueSignal truth = true_signal(part->signal);
            const std::size_t r = truth.singular_values.n_elem;
            EXPECT_TRUE(truth.singular_values.is_sorted("descend"));
            EXPECT_LT(largest(truth.left * arma::diagmat(truth.singular_values) * truth.right.t() - part->signal),
                      1e-9);
            EXPECT_LT(largest(truth.left.t() * truth.left - arma::eye(r, r)), 1e-12);
            EXPECT_LT(largest(truth.right.t() * truth.right - arma::eye(r, r)), 1e-12);
        }
    const TrueSignal strong = true_signal(draw({}).key.signal, 0.1);
    EXPECT_LT(strong.singular_values.n_elem, 25U);
    EXPECT_GT(strong.singular_values.min(), 0.1 * strong.singular_values(0));
}

// ---- laws

/// Entry (t, j) of the noise before the embedding, one for each replicate, over its standard deviation given the
/// projections.
std::vector<double> standardised_noise(const KvLikeOptions& options, bool key, arma::uword t, arma::uword j,
                                       double wrong_factor = 1.0) {
    constexpr std::size_t count = 4000;
    const KvLikeHead head(options, stream::test_seed, "noise law", 1);
    const double row = row_covariance(options)(t, t);
    std::vector<double> entries;
    for (std::uint64_t r = 0; r < count; ++r) {
        const KvLikeModel model = head.model(r);
        const KvLikeSample found = head.sample(r);
        const arma::mat covariance = key ? model.key_covariance(options) : model.value_covariance(options);
        const double variance = row * covariance(j, j) / static_cast<double>(options.head_dim);
        const arma::mat noise = key ? before_rope(options, found.key.noise) : found.value.noise;
        entries.push_back(noise(t, j) / std::sqrt(variance * wrong_factor));
    }
    return entries;
}

double normal_cdf(double x) { return boost::math::cdf(boost::math::normal(), x); }

TEST(KvLikeLaw, NoiseIsNormalWithItsVarianceGivenTheProjections) {
    KvLikeOptions options = small();
    options.tokens = 5;
    options.fresh_projections = true;
    options.noise.token_correlation = 0.6;
    options.noise.scale = 1.3;
    const double limit = kolmogorov_limit(4000, 6.0 * law_tests);
    for (const bool key : {true, false})
        for (const auto& [t, j] : {std::pair{0, 1}, {3, 2}, {4, 7}})
            EXPECT_LT(kolmogorov_distance(standardised_noise(options, key, t, j), normal_cdf), limit)
                << key << ' ' << t << ' ' << j << "; detectable is a distance of " << 2.0 * limit;
    // Negative controls: variance 1/n instead of 1/d, and the sink's row without its factor.
    EXPECT_GT(kolmogorov_distance(standardised_noise(options, false, 3, 2, 8.0 / 5.0), normal_cdf), limit);
    EXPECT_GT(kolmogorov_distance(standardised_noise(options, false, 0, 1, 100.0), normal_cdf), limit);
}

TEST(KvLikeLaw, ProjectionsHaveVarianceOneOverHeadDimension) {
    KvLikeOptions options = small();
    options.head_dim = 64;
    options.hidden = 100;
    const KvLikeModel model = KvLikeHead(options, stream::test_seed, "projections", 2).model();
    std::vector<arma::mat> all = model.query_projections;
    all.push_back(model.value_projection);
    all.push_back(model.key_projection);
    for (const auto c : model.outlier_channels) all.back().col(c) /= options.outliers.scale;
    for (const auto& projection : all) {
        std::vector<double> entries(projection.begin(), projection.end());
        for (double& x : entries) x *= 8.0;
        const double limit = kolmogorov_limit(entries.size(), 4.0 * law_tests);
        EXPECT_LT(kolmogorov_distance(entries, normal_cdf), limit);
        for (double& x : entries) x *= std::sqrt(100.0 / 64.0);  // negative control: variance 1/hidden instead of 1/d
        EXPECT_GT(kolmogorov_distance(entries, normal_cdf), limit);
    }
    for (std::size_t i = 0; i < all.size(); ++i)
        for (std::size_t j = 0; j < i; ++j) EXPECT_GT(largest(all[i] - all[j]), 0.1);
}

/// Largest deviation of the means of Z Z^T and Z^T Z from A tr B / d and B tr A / d, relative to its limit. Z is
/// Gaussian given the projections: Var (Z Z^T)_ij = (A_ii A_jj + A_ij^2) tr B^2 / d^2.
double worst_covariance(const KvLikeOptions& options, bool key, const arma::mat& row, const arma::mat& column) {
    constexpr int replicates = 6000;
    const double d = static_cast<double>(options.head_dim);
    const KvLikeHead head(options, stream::test_seed, "covariance");
    arma::mat left(arma::size(row), arma::fill::zeros);
    arma::mat right(arma::size(column), arma::fill::zeros);
    for (std::uint64_t r = 0; r < replicates; ++r) {
        const KvLikeSample found = head.sample(r);
        const arma::mat noise = key ? before_rope(options, found.key.noise) : found.value.noise;
        left += noise * noise.t() / replicates;
        right += noise.t() * noise / replicates;
    }
    const double z = two_sided_z(2.0 * law_tests * static_cast<double>(row.n_elem + column.n_elem));
    double worst = 0.0;
    const auto compare = [&](const arma::mat& found, const arma::mat& own, const arma::mat& other) {
        for (arma::uword i = 0; i < own.n_rows; ++i)
            for (arma::uword j = 0; j < own.n_rows; ++j) {
                const double variance =
                    (own(i, i) * own(j, j) + own(i, j) * own(i, j)) * arma::accu(arma::square(other)) / (d * d);
                const double miss = std::abs(found(i, j) - own(i, j) * arma::trace(other) / d);
                worst = std::max(worst, miss / (z * std::sqrt(variance / replicates) + 1e-15));
            }
    };
    compare(left, row, column);
    compare(right, column, row);
    return worst;
}

TEST(KvLikeLaw, NoiseIsSeparableWithTheStatedCovariances) {
    KvLikeOptions options = small();
    options.tokens = 5;
    options.noise.token_correlation = 0.6;
    options.sink->token_part = 0.5;
    const KvLikeModel model = KvLikeHead(options, stream::test_seed, "covariance").model();
    const arma::mat row = row_covariance(options);
    EXPECT_NEAR(row(2, 4), 0.36, 1e-15);
    EXPECT_NEAR(row(0, 1), 0.3, 1e-15);
    EXPECT_NEAR(row(0, 0), 0.25, 1e-15);
    const arma::mat key = model.key_covariance(options);
    const arma::mat value = model.value_covariance(options);
    EXPECT_LT(worst_covariance(options, true, row, key), 1.0);
    EXPECT_LT(worst_covariance(options, false, row, value), 1.0);
    // Negative controls: less correlated tokens, the column covariance of the other side, white columns.
    KvLikeOptions independent = options;
    independent.noise.token_correlation = 0.4;
    EXPECT_GT(worst_covariance(options, false, row_covariance(independent), value), 1.0);
    EXPECT_GT(worst_covariance(options, false, row, key), 1.0);
    EXPECT_GT(worst_covariance(options, false, row, arma::mat(8, 8, arma::fill::eye)), 1.0);
}

// Over the draw of W the diagonal of B has mean scale^2, times the squared factor in outlier channels. It is
// B_jj = sum_k w_k chi_k / hidden with eigenvalues w of mean 1, so its variance is 2 sum w_k^2 / hidden^2.
TEST(KvLikeLaw, NoiseEntriesHaveVarianceOneOverHeadDimension) {
    KvLikeOptions options = small();
    options.head_dim = 512;
    options.hidden = 40;
    options.noise.scale = 1.5;
    options.noise.hidden_decay = 0.0;
    const KvLikeModel model = KvLikeHead(options, stream::test_seed, "variance").model();
    arma::vec key = model.key_covariance(options).eval().diag() / 2.25;
    for (const auto c : model.outlier_channels) {
        EXPECT_GT(key(c), 1.0);
        key(c) /= 2.25;
    }
    const arma::vec value = arma::vec(model.value_covariance(options).eval().diag()) / 2.25;
    const double limit = two_sided_z(3.0 * law_tests) * std::sqrt(2.0 / 40.0 / 512.0);
    EXPECT_LT(std::abs(arma::mean(key) - 1.0), limit) << "detectable is " << 2.0 * limit;
    EXPECT_LT(std::abs(arma::mean(value) - 1.0), limit);
    EXPECT_GT(std::abs(arma::mean(value) * 2.25 - 1.0), limit);  // negative control: without the scale
    options.noise.hidden_decay = 6.0;
    const double same = arma::mean(arma::vec(model.value_covariance(options).eval().diag())) / 2.25;
    EXPECT_LT(std::abs(same - 1.0), limit * std::sqrt(6.0 / 2.0 * 1.01));
}

TEST(KvLikeLaw, CoursesHaveTheirLaws) {
    constexpr std::size_t count = 4000;
    const auto wave_cdf = [](double x) {
        return std::asin(std::clamp(x / std::numbers::sqrt2, -1.0, 1.0)) / std::numbers::pi + 0.5;
    };
    KvLikeOptions options = small();
    options.sink.reset();
    std::map<std::string, std::vector<double>> found;
    for (const auto course : {ContextCourse::smooth, ContextCourse::random}) {
        options.context.course = course;
        const KvLikeHead head(options, stream::test_seed, "course");
        const double second = 0.7 / std::sqrt(1.49);  // strength of direction 2: decay over the norm of (1, decay)
        for (std::uint64_t r = 0; r < count; ++r)
            found[course == ContextCourse::smooth ? "smooth" : "random"].push_back(head.sample(r).course(7, 1) /
                                                                                   second);
    }
    const double limit = kolmogorov_limit(count, 2.0 * law_tests);
    EXPECT_LT(kolmogorov_distance(found["smooth"], wave_cdf), limit);
    EXPECT_LT(kolmogorov_distance(found["random"], normal_cdf), limit);
    EXPECT_GT(kolmogorov_distance(found["smooth"], normal_cdf), limit);
    EXPECT_GT(kolmogorov_distance(found["random"], wave_cdf), limit);
}

TEST(KvLike, SmoothCoursesAreSlowAndRandomCoursesAreNot) {
    KvLikeOptions options;
    options.sink.reset();
    const auto roughness = [&](ContextCourse course) {
        options.context.course = course;
        const arma::mat found = draw(options).course;
        return arma::norm(arma::diff(found), "fro") / arma::norm(found, "fro");
    };
    // A wave of frequency f changes by at most 2 pi f from token to token: f < 4 / 256.
    EXPECT_LT(roughness(ContextCourse::smooth), 2.0 * std::numbers::pi * 4.0 / 256.0 * 2.0);
    EXPECT_GT(roughness(ContextCourse::random), 1.0);
}

// A wave of frequency f crosses zero 2 f times per token.
TEST(KvLike, FrequenciesOfSmoothDirectionsIncrease) {
    KvLikeOptions options;
    options.sink.reset();
    options.tokens = 1280;
    options.context.period = 64.0;
    for (const std::uint64_t replicate : {0, 1, 2}) {
        const arma::mat course = draw(options, replicate).course;
        for (std::size_t i = 0; i < 4; ++i) {
            double crossings = 0.0;
            for (std::size_t t = 1; t < 1280; ++t) crossings += course(t, i) * course(t - 1, i) < 0.0 ? 1.0 : 0.0;
            EXPECT_GE(crossings, 2.0 * 20.0 * static_cast<double>(i) - 1.0);
            EXPECT_LE(crossings, 2.0 * 20.0 * static_cast<double>(i + 1) + 1.0);
        }
    }
}

// ---- addresses

TEST(KvLike, NumbersDependOnTheAddressOnly) {
    const KvLikeOptions options = small();
    const KvLikeHead head(options, stream::test_seed, "cell", 2);
    const KvLikeSample late = head.sample(9);
    const KvLikeSample early = head.sample(0);
    expect_same(draw(options, 9, 2), late);
    expect_same(head.sample(0), early);
    const auto differs = [&](const KvLikeSample& other) { return largest(late.key.noise - other.key.noise) > 0.01; };
    EXPECT_TRUE(differs(early));
    EXPECT_TRUE(differs(draw(options, 9, 1)));
    EXPECT_TRUE(differs(draw(options, 9, 2, "other cell")));
    EXPECT_TRUE(differs(KvLikeHead(options, stream::StudySeed::parse("0x1"), "cell", 2).sample(9)));
}

TEST(KvLike, ReplicatesShareTheModelUnlessItIsFresh) {
    KvLikeOptions options = small();
    const KvLikeHead shared(options, stream::test_seed, "cell");
    EXPECT_EQ(largest(shared.model(0).key_projection - shared.model(7).key_projection), 0.0);
    options.fresh_projections = true;
    const KvLikeHead fresh(options, stream::test_seed, "cell");
    EXPECT_GT(largest(fresh.model(0).key_projection - fresh.model(7).key_projection), 0.1);
    EXPECT_EQ(largest(fresh.model(0).key_projection - shared.model(0).key_projection), 0.0);
    expect_same(fresh.sample(0), shared.sample(0));
}

TEST(KvLike, HeadsShareHiddenStatesButNotProjections) {
    const KvLikeSample first = draw(small(), 4, 0);
    const KvLikeSample second = draw(small(), 4, 1);
    EXPECT_EQ(largest(first.course - second.course), 0.0);
    EXPECT_GT(largest(first.value.signal - second.value.signal), 0.01);
    // With d >= hidden the token part can be solved for from the values and W of each head.
    KvLikeOptions narrow = small();
    narrow.hidden = 6;
    const auto token_part = [&](std::size_t head) {
        const KvLikeHead one(narrow, stream::test_seed, "cell", head);
        return arma::mat(arma::solve(one.model().value_projection.t(), one.sample(4).value.noise.t()));
    };
    EXPECT_LT(largest(token_part(0) - token_part(1)), 1e-11);
}

TEST(KvLike, AllProjectionsDiffer) {
    std::vector<arma::mat> all;
    std::vector<arma::uvec> channels;
    for (const std::size_t head : {0, 1, 2}) {
        KvLikeOptions options = small();
        options.head_dim = 64;
        options.outliers.scale = 1.0;
        const KvLikeModel model = KvLikeHead(options, stream::test_seed, "cell", head).model();
        all.push_back(model.key_projection);
        all.push_back(model.value_projection);
        all.insert(all.end(), model.query_projections.begin(), model.query_projections.end());
        channels.push_back(model.outlier_channels);
    }
    ASSERT_EQ(all.size(), 12U);
    for (std::size_t i = 0; i < all.size(); ++i)
        for (std::size_t j = 0; j < i; ++j) EXPECT_GT(largest(all[i] - all[j]), 0.1) << i << ' ' << j;
    EXPECT_TRUE(arma::any(channels[0] != channels[1]) || arma::any(channels[0] != channels[2]));
}

TEST(KvLike, EachReplicateDrawsItsOwnContext) {
    KvLikeOptions options = small();
    options.sink.reset();
    const arma::mat first = draw(options, 0).value.signal;
    const arma::mat second = draw(options, 1).value.signal;
    EXPECT_EQ(rank_of(first), 2U);
    EXPECT_EQ(rank_of(arma::join_cols(first, second)), 4U);
}

TEST(KvLike, MoreTokensDoNotChangeTheFirst) {
    for (auto options : variety()) {
        if (options.tokens == 1) continue;
        SCOPED_TRACE(describe(options).text());
        const KvLikeSample few = draw(options, 2);
        options.tokens = 40;
        KvLikeSample many = draw(options, 2);
        for (auto* part : {&many.key, &many.value}) {
            part->signal = part->signal.head_rows(12);
            part->noise = part->noise.head_rows(12);
        }
        expect_same(few, many, 1e-13);
    }
}

TEST(KvLike, EntryLawAndPositionStartAreUsed) {
    KvLikeOptions options = small();
    const KvLikeSample plain = draw(options);
    options.noise.entries = EntryLaw::parse("rademacher");
    EXPECT_GT(largest(draw(options).key.noise - plain.key.noise), 0.01);
    EXPECT_EQ(largest(draw(options).key.signal - plain.key.signal), 0.0);
    options = small();
    options.rotary->position_start = 100;
    EXPECT_LT(largest(draw(options).key.observed - apply_rope(plain.key.observed, {}, std::vector<double>(12, 100.0))),
              1e-12);
    EXPECT_LT(largest(draw(options).queries[1] - apply_rope(plain.queries[1], {}, std::vector<double>(12, 100.0))),
              1e-10);
    EXPECT_EQ(largest(draw(options).value.observed - plain.value.observed), 0.0);
}

// ---- resemblance to attention

TEST(KvLike, NumberOfQueryHeadsDoesNotAffectKeysAndValues) {
    KvLikeOptions options = small();
    options.queries.heads = 0;
    const KvLikeSample alone = draw(options, 1, 1);
    options.queries.heads = 4;
    const KvLikeSample four = draw(options, 1, 1);
    expect_same(alone, four);
    ASSERT_EQ(four.queries.size(), 4U);
    for (std::size_t q = 1; q < 4; ++q) EXPECT_GT(largest(four.queries[q] - four.queries[0]), 0.1);
}

TEST(KvLike, OutlierChannelsStandOut) {
    for (const auto style : {RopeStyle::rotate_half, RopeStyle::interleaved})
        for (const auto place : {OutlierPlace::slow, OutlierPlace::any}) {
            KvLikeOptions options;
            options.rotary->rope.style = style;
            options.outliers.place = place;
            const KvLikeHead head(options, stream::test_seed, "outliers");
            const KvLikeModel model = head.model();
            ASSERT_EQ(model.outlier_channels.n_elem, 6U);
            EXPECT_EQ(arma::uvec(arma::unique(model.outlier_channels)).n_elem, 6U);
            bool all_slow = true;
            for (const auto c : model.outlier_channels) all_slow = all_slow && rope_pair(style, c, 128) >= 32;
            EXPECT_EQ(all_slow, place == OutlierPlace::slow);
            // The context also has a mean, but it differs between replicates.
            arma::rowvec mean(128, arma::fill::zeros);
            for (std::uint64_t r = 0; r < 16; ++r)
                mean += arma::mean(before_rope(options, head.sample(r).key.observed)) / 16.0;
            mean = arma::abs(mean);
            const arma::uvec order = arma::sort_index(mean, "descend");
            EXPECT_EQ(largest(arma::conv_to<arma::vec>::from(arma::sort(order.head(6))) -
                              arma::conv_to<arma::vec>::from(model.outlier_channels)),
                      0.0);
            for (const auto c : model.outlier_channels)
                EXPECT_NEAR(std::abs(model.key_mean(c)), 5.0 / std::sqrt(128.0), 1e-14);
        }
}

/// The mean attention weight of token 0, softmax of q k / sqrt(d) over the tokens up to the query's, of queries in the
/// second half.
double attention_on_first(const KvLikeOptions& options) {
    constexpr std::uint64_t replicates = 8;
    double mass = 0.0;
    const std::size_t half = options.tokens / 2;
    for (std::uint64_t r = 0; r < replicates; ++r) {
        const KvLikeSample found = draw(options, r, 0, fmt::format("attention {}", r));
        for (const auto& query : found.queries)
            for (std::size_t t = half; t < options.tokens; ++t) {
                arma::vec weights = found.key.observed.head_rows(t + 1) * query.row(t).t() /
                                    std::sqrt(static_cast<double>(options.head_dim));
                weights = arma::exp(weights - weights.max());
                mass += weights(0) / arma::accu(weights);
            }
    }
    return mass / static_cast<double>(replicates * options.queries.heads * (options.tokens - half));
}

TEST(KvLike, TheSinkAttractsAttentionAndHasASmallValue) {
    const KvLikeOptions options;
    KvLikeOptions without = options;
    without.sink.reset();
    EXPECT_GT(attention_on_first(options), 0.25);
    EXPECT_LT(attention_on_first(without), 0.05);  // negative control; 1/96 on average
    const KvLikeSample found = draw(options);
    const auto norms = [](const arma::mat& rows) { return arma::vec(arma::sqrt(arma::sum(arma::square(rows), 1))); };
    const arma::vec keys = norms(found.key.observed);
    const arma::vec values = norms(found.value.observed);
    EXPECT_NEAR(norms(found.key.signal)(0), 1.2, 1e-12);
    EXPECT_NEAR(norms(found.value.signal)(0), 0.05, 1e-12);
    EXPECT_LT(keys(0), 0.8 * arma::median(keys));
    EXPECT_LT(values(0), 0.2 * arma::median(values));
    // Without a sink row 0 is like the others, and the other rows do not change.
    const KvLikeSample plain = draw(without);
    EXPECT_LT(largest(plain.key.observed.tail_rows(127) - found.key.observed.tail_rows(127)), 1e-12);
    EXPECT_GT(arma::norm(plain.value.observed.row(0)), 0.5 * arma::median(values));
}

// The standard deviation of the logits of noise with noise is queries.scale.
TEST(KvLike, QueryScaleIsTheStandardDeviationOfLogits) {
    KvLikeOptions options;
    options.sink.reset();
    options.context.key = options.context.query = 0.0;
    options.outliers.mean = options.queries.mean = 0.0;
    options.outliers.scale = 1.0;
    options.noise.hidden_decay = 0.0;
    options.queries.scale = 2.5;
    const KvLikeSample found = draw(options);
    const arma::mat logits = found.queries[0] * found.key.observed.t() / std::sqrt(128.0);
    EXPECT_NEAR(arma::stddev(arma::vectorise(logits)), 2.5, 0.25);
}

struct Residuals {
    double key_before_rope = 0.0;
    double key = 0.0;
    double value = 0.0;
};

/// ||block - its best approximation of that rank|| / ||block||, Frobenius norms.
double relative_residual(const arma::mat& block, arma::uword rank) {
    const arma::vec energy = arma::square(arma::svd(block));
    return std::sqrt(arma::accu(energy.tail(energy.n_elem - rank)) / arma::accu(energy));
}

// These numbers stand in the header and lie in the range of real caches: keys .4 to .6, values .7 to .8.
TEST(KvLikeStability, DefaultsHaveTheResidualsOfRealCaches) {
    constexpr std::uint64_t models = 16;
    const KvLikeOptions options;
    Residuals mean;
    double after = 0.0;
    for (std::uint64_t m = 0; m < models; ++m) {
        const KvLikeSample found = draw(options, m, 0, fmt::format("shares {}", m));
        mean.key_before_rope += relative_residual(before_rope(options, found.key.observed), 5) / models;
        mean.key += relative_residual(found.key.observed, 5) / models;
        mean.value += relative_residual(found.value.observed, 5) / models;
        after += static_cast<double>(rank_of(found.key.signal)) / models;
    }
    EXPECT_NEAR(mean.key_before_rope, 0.47, 0.03);
    EXPECT_NEAR(mean.key, 0.58, 0.03);
    EXPECT_NEAR(mean.value, 0.77, 0.03);
    EXPECT_NEAR(after, 43.0, 3.0);
}

// ---- files

TEST(KvLikeFile, ReadsBackWithItsMetadata) {
    const ScratchFolder scratch;
    const auto path = scratch.path("cache.safetensors");
    KvLikeOptions options = small();
    options.tokens = 150;
    options.queries.heads = 3;
    options.rotary = KvRotary{{500000.0, RopeStyle::interleaved}, 77};
    KvLikeCache cache;
    cache.layers = 3;
    cache.dtype = DType::f64;
    cache.seed = stream::test_seed;
    cache.replicate = 5;
    write_kv_like(path, options, cache);
    EXPECT_EQ(scratch.files(), 1U);

    const KvDump dump(path);
    EXPECT_EQ(dump.model(), "kv-like");
    EXPECT_EQ(dump.layout().text(), "head,token,dim");
    EXPECT_EQ(dump.metadata("keys"), "post-rope");
    EXPECT_EQ(dump.metadata("attention"), "causal");
    EXPECT_EQ(dump.metadata("rope_base"), "500000");
    EXPECT_EQ(dump.metadata("rope_style"), "interleaved");
    EXPECT_EQ(dump.metadata("position_start"), "77");
    EXPECT_EQ(dump.metadata("options"), describe(options).text());
    EXPECT_EQ(dump.prompt_id(), "kv-like 0x5eed0000000000000000000000000007 5");
    EXPECT_EQ(stated_tokens(dump.metadata()), 150U);
    EXPECT_TRUE(dump.ignored().empty());
    ASSERT_EQ(dump.tensors().size(), 9U);
    for (std::size_t layer = 0; layer < 3; ++layer)
        for (std::size_t h = 0; h < 2; ++h) {
            const KvLikeSample expected = draw(options, 5, h, fmt::format("kv-like layer {}", layer));
            const auto block = [&](Side side, std::size_t head) {
                const DumpTensor* tensor = dump.find(layer, side);
                EXPECT_EQ(tensor->heads, side == Side::query ? 6U : 2U);
                EXPECT_EQ(tensor->dim, 8U);
                return dump.read_block(*tensor, head, 0, 150);
            };
            EXPECT_EQ(largest(block(Side::key, h) - expected.key.observed), 0.0);
            EXPECT_EQ(largest(block(Side::value, h) - expected.value.observed), 0.0);
            for (std::size_t q = 0; q < 3; ++q)
                EXPECT_EQ(largest(block(Side::query, 3 * h + q) - expected.queries[q]), 0.0);
            EXPECT_EQ(
                largest(dump.read_block(*dump.find(layer, Side::key), h, 64, 64) - expected.key.observed.rows(64, 127)),
                0.0);
            // The metadata suffice to undo the embedding.
            const Rope rope{std::stod(*dump.metadata("rope_base")), parse_rope_style(*dump.metadata("rope_style"))};
            EXPECT_EQ(largest(undo_rope(block(Side::key, h), rope, std::stod(*dump.metadata("position_start"))) -
                              before_rope(options, expected.key.observed)),
                      0.0);
        }
}

TEST(KvLikeFile, RoundsToItsType) {
    const ScratchFolder scratch;
    for (const auto& [dtype, half_step] :
         {std::pair{DType::f16, 0x1p-11}, {DType::bf16, 0x1p-8}, {DType::f32, 0x1p-24}}) {
        KvLikeCache cache;
        cache.layers = cache.heads = 1;
        cache.dtype = dtype;
        cache.prompt_id = "a prompt";
        const auto path = scratch.path("cache.safetensors");
        write_kv_like(path, small(), cache);
        const KvDump dump(path);
        EXPECT_EQ(dump.prompt_id(), "a prompt");
        const KvLikeSample expected = KvLikeHead(small(), {}, "kv-like layer 0").sample(0);
        const arma::mat found = dump.read_block(*dump.find(0, Side::value), 0, 0, 12);
        EXPECT_LE(arma::abs((found - expected.value.observed) / expected.value.observed).max(),
                  dtype == DType::f16 ? 2e-3 : half_step);  // small entries are subnormal in F16
        EXPECT_LE(largest(found - expected.value.observed), half_step);
        EXPECT_GT(largest(found - expected.value.observed), 0.0);
    }
}

TEST(KvLikeFile, CanBeWrittenWithoutEmbeddingAndQueries) {
    const ScratchFolder scratch;
    const auto path = scratch.path("cache.safetensors");
    KvLikeOptions options = small();
    options.rotary.reset();
    options.queries.heads = 0;
    write_kv_like(path, options, {});
    const KvDump dump(path);
    EXPECT_EQ(dump.metadata("keys"), "none");
    EXPECT_FALSE(dump.metadata("rope_base"));
    EXPECT_EQ(dump.find(0, Side::query), nullptr);
    EXPECT_EQ(dump.tensors().size(), 4U);
}

TEST(KvLikeFile, NeedlesChangeOnlyTheirValuesAndQuestions) {
    const ScratchFolder scratch;
    KvLikeOptions options = small();
    options.tokens = 150;
    KvLikeCache cache;
    cache.dtype = DType::f64;
    cache.seed = stream::test_seed;
    cache.replicate = 5;
    cache.needles = 20;
    cache.needle_logit = 9.0;
    write_kv_like(scratch.path("needles.safetensors"), options, cache);
    const KvDump dump(scratch.path("needles.safetensors"));
    const LlamaReadout readout(dump);
    EXPECT_EQ(readout.layer(), 1);
    EXPECT_EQ(readout.context(), 130);
    EXPECT_FALSE(readout.correct());
    ASSERT_EQ(readout.needles().size(), 20);
    std::set<std::size_t> values, questions;
    for (const Needle& needle : readout.needles()) {
        EXPECT_EQ(needle.value_at, needle.key_at + 1);
        EXPECT_LT(needle.value_at, 130);
        values.insert(needle.value_at);
        questions.insert(needle.asked_at);
    }
    EXPECT_EQ(values.size(), 20);
    EXPECT_EQ(questions.size(), 20);
    EXPECT_EQ(*questions.begin(), 130);
    arma::mat answer_vectors(20, 8);
    for (std::size_t layer = 0; layer < 2; ++layer)
        for (std::size_t h = 0; h < 2; ++h) {
            const KvLikeSample without = draw(options, 5, h, fmt::format("kv-like layer {}", layer));
            const auto change = [&](Side side, std::size_t head, const arma::mat& was) {
                return arma::mat(dump.read_block(*dump.find(layer, side), head, 0, 150) - was);
            };
            EXPECT_EQ(largest(change(Side::key, h, without.key.observed)), 0.0);
            const arma::mat value = change(Side::value, h, without.value.observed);
            const double value_norm = arma::norm(without.value.observed, "fro") / std::sqrt(150.0);
            for (arma::uword t = 0; t < 150; ++t)
                EXPECT_NEAR(arma::norm(value.row(t)), layer == 1 && values.contains(t) ? value_norm : 0.0, 1e-12) << t;
            arma::mat basis, right;
            arma::vec singular;
            ASSERT_TRUE(arma::svd_econ(basis, singular, right, without.key.observed));
            for (std::size_t q = 0; q < 2; ++q) {
                const arma::mat query = change(Side::query, 2 * h + q, without.queries[q]);
                for (arma::uword t = 0; t < 150; ++t)
                    EXPECT_EQ(arma::norm(query.row(t)) > 0.0, layer == 1 && questions.contains(t)) << t;
                if (layer == 0) continue;
                for (std::size_t n = 0; n < 20; ++n) {
                    const Needle& needle = readout.needles()[n];
                    const arma::rowvec question = query.row(needle.asked_at) + without.queries[q].row(needle.asked_at);
                    const arma::vec products = without.key.observed * question.t() / std::sqrt(8.0);
                    EXPECT_NEAR(products(needle.value_at), 9.0, 1e-8);
                    EXPECT_NEAR(arma::norm(products), 9.0 / arma::norm(basis.row(needle.value_at)), 1e-8);
                    if (h == 0) answer_vectors.row(n) = value.row(needle.value_at) / value_norm;
                    EXPECT_LT(largest(value.row(needle.value_at) / value_norm - answer_vectors.row(n)), 1e-12);
                }
            }
        }
    // The readout returns the answers for the vectors of the answers.
    const arma::mat attended = arma::join_rows(arma::join_rows(answer_vectors, answer_vectors),
                                               arma::join_rows(answer_vectors, answer_vectors));
    const arma::fmat predicted = readout.predict(arma::conv_to<arma::fmat>::from(attended));
    for (std::size_t n = 0; n < 20; ++n)
        EXPECT_EQ(arma::frowvec(predicted.row(n)).index_max(), readout.answer_of(readout.needles()[n]));

    cache.needles = 50;
    expect_error(ErrorKind::usage, [&] { write_kv_like(scratch.path("x"), options, cache); },
                 {"50 needles and as many questions do not fit 150 tokens (49 do)"});
    cache.needles = 4;
    cache.needle_logit = 0.0;
    expect_error(ErrorKind::usage, [&] { write_kv_like(scratch.path("x"), options, cache); }, {"a logit of 0"});
    cache.needle_logit = 9.0;
    options.queries.heads = 0;
    expect_error(ErrorKind::usage, [&] { write_kv_like(scratch.path("x"), options, cache); }, {"there are none"});
    EXPECT_EQ(scratch.files(), 1U);
}

TEST(KvLikeFile, PromptsOfOneModelDiffer) {
    const ScratchFolder scratch;
    KvLikeCache cache;
    write_kv_like(scratch.path("a.safetensors"), small(), cache);
    write_kv_like(scratch.path("same.safetensors"), small(), cache);
    cache.replicate = 1;
    write_kv_like(scratch.path("b.safetensors"), small(), cache);
    EXPECT_EQ(bytes_of_file(scratch.path("a.safetensors")), bytes_of_file(scratch.path("same.safetensors")));
    EXPECT_NE(KvDump(scratch.path("a.safetensors")).prompt_id(), KvDump(scratch.path("b.safetensors")).prompt_id());
}

// ---- errors

TEST(KvLike, BadOptionsAreRejected) {
    const auto rejected = [](auto change, std::initializer_list<std::string_view> parts) {
        KvLikeOptions options = small();
        change(options);
        expect_error(
            ErrorKind::usage, [&] { require_possible(options); }, parts);
        expect_error(
            ErrorKind::usage, [&] { (void)draw(options); }, parts);
        expect_error(
            ErrorKind::usage, [&] { write_kv_like("/nowhere/x", options, {}); }, parts);
    };
    using Options = KvLikeOptions;
    rejected([](Options& o) { o.tokens = 0; }, {"a kv_like model of 0 tokens", "is empty"});
    rejected([](Options& o) { o.head_dim = 0; }, {"is empty"});
    rejected([](Options& o) { o.hidden = 0; }, {"is empty"});
    rejected([](Options& o) { o.head_dim = 7; }, {"head dimension 7 is odd"});
    rejected([](Options& o) { o.tokens = std::size_t{1} << 40; }, {"too many for one stream"});
    rejected([](Options& o) { o.context.rank = 9; }, {"a context of rank 9", "give at most 8"});
    rejected([](Options& o) { o.hidden = 1; }, {"a context of rank 2", "hidden width 1: give at most 1"});
    rejected([](Options& o) { o.outliers.channels = 5; },
             {"5 outlier channels", "has 4 channels in the slower half", "or place = \"any\""});
    rejected(
        [](Options& o) {
            o.outliers.channels = 9;
            o.outliers.place = OutlierPlace::any;
        },
        {"9 outlier channels", "has 8 channels): give at most 8"});
    rejected([](Options& o) { o.context.decay = 1.5; }, {"context.decay = 1.5 is not usable", "from 1e-06 to 1"});
    rejected([](Options& o) { o.context.period = 1.0; }, {"context.period = 1", "from 2 on"});
    rejected([](Options& o) { o.context.key = -1.0; }, {"context.key = -1", "from 0 on"});
    rejected([](Options& o) { o.context.value = std::nan(""); }, {"context.value = nan"});
    rejected([](Options& o) { o.context.query = INFINITY; }, {"context.query = inf"});
    rejected([](Options& o) { o.noise.scale = -1.0; }, {"noise.scale = -1"});
    rejected([](Options& o) { o.noise.token_correlation = 1.0; },
             {"noise.token_correlation = 1 ", "from -1 to 1, the ends excluded"});
    rejected([](Options& o) { o.noise.hidden_decay = 101.0; }, {"noise.hidden_decay = 101", "from 0 to 100)"});
    rejected([](Options& o) { o.outliers.mean = -5.0; }, {"outliers.mean = -5"});
    rejected([](Options& o) { o.outliers.scale = 0.0; }, {"outliers.scale = 0", "above 0)"});
    rejected([](Options& o) { o.sink->key = -1.0; }, {"sink.key = -1"});
    rejected([](Options& o) { o.sink->value = -1.0; }, {"sink.value = -1"});
    rejected([](Options& o) { o.sink->token_part = INFINITY; }, {"sink.token_part = inf"});
    rejected([](Options& o) { o.rotary->rope.base = 1.0; }, {"rotary.base = 1", "above 1)"});
    rejected([](Options& o) { o.rotary->position_start = 2'000'000'000; }, {"rotary.position_start = 2000000000"});
    rejected([](Options& o) { o.queries.mean = -1.0; }, {"queries.mean = -1"});
    rejected([](Options& o) { o.queries.scale = 0.0; }, {"queries.scale = 0"});

    expect_error(ErrorKind::usage, [] { (void)draw(small(), 0, std::size_t{1} << 31); }, {"beyond the 2^32 numbers"});
    expect_error(ErrorKind::usage, [] { (void)parse_context_course("smoth"); },
                 {"unknown context course \"smoth\"; did you mean \"smooth\""});
    expect_error(ErrorKind::usage, [] { (void)parse_outlier_place("fast"); },
                 {"unknown place of outlier channels \"fast\"", "slow", "any"});
    EXPECT_EQ(parse_context_course("random"), ContextCourse::random);
    EXPECT_EQ(parse_outlier_place("any"), OutlierPlace::any);
}

TEST(KvLikeFile, BadCachesAreRejected) {
    const ScratchFolder scratch;
    const auto rejected = [&](const KvLikeCache& cache, ErrorKind kind, std::string_view message) {
        expect_error(kind, [&] { write_kv_like(scratch.path("x.safetensors"), small(), cache); }, {message});
        EXPECT_EQ(scratch.files(), 0U);
    };
    rejected({.layers = 0}, ErrorKind::usage, "of 0 layers");
    rejected({.heads = 0}, ErrorKind::usage, "0 heads is empty");
    rejected({.dtype = DType::i64}, ErrorKind::usage, "cannot be written as I64");
    KvLikeOptions overflowing = small();
    overflowing.queries.scale = 1e6;
    expect_error(ErrorKind::output, [&] { write_kv_like(scratch.path("x.safetensors"), overflowing, {}); },
                 {"layers.0.query", "choose a wider dtype"});
    EXPECT_EQ(scratch.files(), 0U);
}

}  // namespace
}  // namespace spiked::sim

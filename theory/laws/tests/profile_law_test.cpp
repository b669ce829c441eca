// The law of noise with any variance profile, against values of an independent iteration with 40 digits (mpmath, the
// equation applied again and again), against the separable law where the profile is of rank one, and against
// Marchenko-Pastur where rows and columns have equal sums.
#include "theory/laws/profile_law.hpp"

#include <cmath>
#include <random>

#include "theory/laws/marchenko_pastur.hpp"
#include "theory/tests/reference.hpp"

namespace spiked::theory {
namespace {

using test::expect_rejected;
using test::expect_relative;
using test::not_a_number;

/// 2 x 3 classes that are far from rank one, n/d = 0.6.
VarianceProfile blocks() { return {2, 3, {1.0, 4.0, 0.5, 9.0, 0.3, 2.0}, {0.3, 0.7}, {0.2, 0.5, 0.3}}; }

ProfileLaw block_law(double scale = 1.0) {
    VarianceProfile profile = blocks();
    for (double& variance : profile.variances) variance *= scale;
    return {std::move(profile), AspectRatio(0.6)};
}

TEST(ProfileLawReference, EdgeAndBulkAreThoseOfTheIteration) {
    const ProfileLaw law = block_law();
    expect_relative(law.bulk_edge().value, 11.880656032355794805, 1e-13, "edge");
    expect_relative(law.density({3.0}), 0.10565473176032065615, 1e-11, "density at 3");
    expect_relative(law.density({8.0}), 0.022234380806348184578, 1e-11, "density at 8");
    EXPECT_EQ(law.density({11.89}), 0.0);
    const StieltjesPair pair = law.stieltjes({3.0, 0.5});
    expect_relative(pair.left.real(), -0.20814295307986143312, 1e-12, "left");
    expect_relative(pair.left.imag(), 0.32743620503107598835, 1e-12, "left");
    expect_relative(pair.right.real(), -0.25461550157764658960, 1e-12, "right");
    expect_relative(pair.right.imag(), 0.21808334464026721463, 1e-12, "right");
}

TEST(ProfileLawReference, ASpikeDependsOnWhereItLies) {
    const ProfileLaw law = block_law();
    expect_relative(law.detection_threshold().value, 2.2560571803637173097, 1e-9, "threshold");
    const SpikePrediction even = law.spike({4.0});
    EXPECT_TRUE(even.detectable);
    expect_relative(even.outlier.value, 20.547314729803172024, 1e-12, "outlier");
    expect_relative(even.overlap_left.value, 0.87158675310076287154, 1e-12, "left overlap");
    expect_relative(even.overlap_right.value, 0.82165752066207498466, 1e-12, "right overlap");
    expect_relative(even.d_transform, 1.0 / 16.0, 1e-13, "T");

    const SpikeDirection local{{1.0, 0.0}, {0.0, 0.25, 0.75}};
    expect_relative(law.detection_threshold(local).value, 2.7982597136030919720, 1e-9, "threshold");
    const SpikePrediction there = law.spike({4.0}, local);
    expect_relative(there.outlier.value, 19.464131968667166206, 1e-12, "outlier");
    expect_relative(there.overlap_left.value, 0.92981287581962182679, 1e-12, "left overlap");
    expect_relative(there.overlap_right.value, 0.85629104419503492480, 1e-12, "right overlap");
    expect_relative(law.strength_of(there.outlier, local).value, 4.0, 1e-12, "strength");
    // Evenly spread is the default.
    const SpikePrediction written = law.spike({4.0}, {{0.3, 0.7}, {0.2, 0.5, 0.3}});
    expect_relative(written.outlier.value, even.outlier.value, 1e-13, "outlier");
    EXPECT_FALSE(law.spike({2.5}, local).detectable);
    EXPECT_TRUE(law.spike({2.5}).detectable);
}

TEST(ProfileLawIdentity, VariancesScaleEigenvalues) {
    const ProfileLaw one = block_law();
    for (const double scale : {1e-200, 1e-3, 1e200}) {
        const ProfileLaw scaled = block_law(scale);
        const double root = std::sqrt(scale);
        expect_relative(scaled.bulk_edge().value, scale * one.bulk_edge().value, 1e-13, "edge");
        expect_relative(scaled.tracy_widom_scale(), one.tracy_widom_scale() / scale, 1e-9, "scale");
        expect_relative(scaled.density({3.0 * scale}), one.density({3.0}) / scale, 1e-10, "density");
        const SpikePrediction spike = scaled.spike({4.0 * root});
        expect_relative(spike.outlier.value, scale * one.spike({4.0}).outlier.value, 1e-12, "outlier");
        expect_relative(spike.stieltjes_left, one.spike({4.0}).stieltjes_left / scale, 1e-12, "stieltjes");
        expect_relative(spike.residual.value, root * one.spike({4.0}).residual.value, 1e-11, "residual");
    }
}

/// A profile a_i b_j with random values and weights, and its law by the separable equations.
struct RankOne {
    SeparableLaw separable;
    ProfileLaw profile;
};

RankOne random_rank_one(std::mt19937_64& random) {
    std::uniform_real_distribution<double> unit(0.0, 1.0);
    const double range = unit(random) < 0.3 ? 5.0 : 1.5;
    const auto side = [&] {
        std::vector<Atom> atoms(1 + random() % 12);
        double sum = 0.0;
        for (Atom& atom : atoms) {
            atom = {std::exp(range * (unit(random) - 0.5)), 0.05 + unit(random)};
            sum += atom.weight;
        }
        for (Atom& atom : atoms) atom.weight /= sum;
        return atoms;
    };
    const std::vector<Atom> row = side();
    const std::vector<Atom> column = side();
    const AspectRatio aspect(std::pow(10.0, 2.0 * unit(random) - 1.0));
    VarianceProfile profile{row.size(), column.size(), {}, {}, {}};
    for (const Atom& a : row) {
        profile.row_weights.push_back(a.weight);
        for (const Atom& b : column) profile.variances.push_back(a.value * b.value);
    }
    for (const Atom& b : column) profile.column_weights.push_back(b.weight);
    return {SeparableLaw(Spectrum(row), Spectrum(column), aspect), ProfileLaw(std::move(profile), aspect)};
}

TEST(ProfileLawReference, AProfileOfRankOneHasTheSeparableLaw) {
    std::mt19937_64 random(48);
    for (int repeat = 0; repeat < 25; ++repeat) {
        const auto [separable, profile] = random_rank_one(random);
        expect_relative(profile.bulk_edge().value, separable.bulk_edge().value, 1e-12, "edge");
        const double threshold = separable.detection_threshold().value;
        expect_relative(profile.detection_threshold().value, threshold, 1e-9, "threshold");
        expect_relative(profile.tracy_widom_scale(), separable.tracy_widom_scale(), 1e-7, "Tracy-Widom scale");
        for (const double ratio : {0.5, 1.01, 1.5, 4.0, 1000.0}) {
            const SpikePrediction found = profile.spike({ratio * threshold});
            const SpikePrediction expected = separable.spike({ratio * threshold});
            const double tolerance = ratio < 1.1 ? 1e-8 : 1e-10;
            EXPECT_EQ(found.detectable, expected.detectable);
            expect_relative(found.outlier.value, expected.outlier.value, 1e-12, "outlier");
            expect_relative(found.stieltjes_left, expected.stieltjes_left, tolerance, "left transform");
            expect_relative(found.stieltjes_right, expected.stieltjes_right, tolerance, "right transform");
            expect_relative(found.residual.value, expected.residual.value, tolerance, "residual");
            EXPECT_NEAR(found.overlap_left.value, expected.overlap_left.value, tolerance);
            EXPECT_NEAR(found.overlap_right.value, expected.overlap_right.value, tolerance);
            if (ratio > 1.0)
                expect_relative(found.d_transform_derivative, expected.d_transform_derivative, tolerance, "T'");
        }
        const BulkDistribution bulk(separable);
        for (const double part : {0.1, 0.5, 0.9}) {
            const double x = bulk.lower_edge().value + part * (bulk.upper_edge().value - bulk.lower_edge().value);
            EXPECT_NEAR(profile.density({x}) / bulk.density({x}), 1.0, 1e-8) << repeat << " at " << x;
        }
    }
}

TEST(ProfileLawIdentity, EqualSumsOfRowsAndColumnsGiveTheLawOfWhiteNoise) {
    // Every row and every column holds the same five variances, of mean 1.
    const std::vector<double> ring = {0.2, 3.1, 0.7, 1.0, 0.0};
    VarianceProfile profile{5, 5, {}, {}, {}};
    for (std::size_t i = 0; i < 5; ++i)
        for (std::size_t j = 0; j < 5; ++j) profile.variances.push_back(ring[(i + j) % 5]);
    for (const double aspect : {0.1, 0.4, 1.0, 3.0}) {
        const ProfileLaw law(profile, AspectRatio(aspect));
        const MarchenkoPastur white{AspectRatio(aspect)};
        expect_relative(law.bulk_edge().value, white.upper_edge().value, 1e-13, "edge");
        expect_relative(law.detection_threshold().value, std::pow(aspect, 0.25), 1e-9, "threshold");
        expect_relative(law.density({1.0}), white.density({1.0}), 1e-12, "density");
    }
    // Unequal sums of the same variances do not (control).
    profile.variances.assign({0.2, 0.2, 0.2, 0.2, 0.2, 3.1, 3.1, 3.1, 3.1, 3.1, 0.7, 0.7, 0.7,
                              0.7, 0.7, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0});
    EXPECT_GT(ProfileLaw(profile, AspectRatio(0.4)).bulk_edge().value, 1.1 * std::pow(1.0 + std::sqrt(0.4), 2));
}

TEST(ProfileLawIdentity, TranspositionExchangesTheSides) {
    const VarianceProfile wide = blocks();
    VarianceProfile tall{3, 2, {}, wide.column_weights, wide.row_weights};
    for (std::size_t b = 0; b < 3; ++b)
        for (std::size_t a = 0; a < 2; ++a) tall.variances.push_back(wide.variances[a * 3 + b]);
    const ProfileLaw first(wide, AspectRatio(0.6));
    const ProfileLaw second(tall, AspectRatio(1.0 / 0.6));
    // Entries have variance S / rows instead of S / columns.
    expect_relative(second.bulk_edge().value * 0.6, first.bulk_edge().value, 1e-13, "edge");
    const SpikePrediction spike = second.spike({4.0 / std::sqrt(0.6)});
    expect_relative(spike.outlier.value * 0.6, first.spike({4.0}).outlier.value, 1e-12, "outlier");
    expect_relative(spike.overlap_right.value, first.spike({4.0}).overlap_left.value, 1e-12, "overlap");
}

TEST(ProfileLawIdentity, SeparateBlocksKeepTheirOwnLaws) {
    // Two white blocks on the diagonal of Z: S / d is the variance 1 / (columns of the block) of a white block times
    // S v, with n w rows and d v columns.
    const double aspect = 0.6;
    const std::vector<double> w = {0.3, 0.7};
    const std::vector<double> v = {0.6, 0.4};
    const ProfileLaw law({2, 2, {2.0, 0.0, 0.0, 1.0}, w, v}, AspectRatio(aspect));
    const MarchenkoPastur first{AspectRatio(aspect * w[0] / v[0])};
    const MarchenkoPastur second{AspectRatio(aspect * w[1] / v[1])};
    const double edge = std::max(2.0 * v[0] * first.upper_edge().value, v[1] * second.upper_edge().value);
    expect_relative(law.bulk_edge().value, edge, 1e-12, "edge");
    for (const double x : {0.3, 0.9, 1.5, 2.0}) {
        const double sum =
            w[0] * first.density({x / (2.0 * v[0])}) / (2.0 * v[0]) + w[1] * second.density({x / v[1]}) / v[1];
        EXPECT_NEAR(law.density({x}), sum, 1e-9) << x;
    }
}

TEST(ProfileLawIdentity, ClassesMayBeSplit) {
    VarianceProfile split = blocks();
    split.rows = 3;
    split.variances.insert(split.variances.end(), {9.0, 0.3, 2.0});
    split.row_weights = {0.3, 0.5, 0.2};
    expect_relative(ProfileLaw(split, AspectRatio(0.6)).bulk_edge().value, block_law().bulk_edge().value, 1e-13,
                    "edge");
}

TEST(ProfileLaw, UnusableProfilesAndSpikesAreRejected) {
    const auto law = [](VarianceProfile profile) { (void)ProfileLaw(std::move(profile), AspectRatio(1.0)); };
    expect_rejected([&] { law({}); }, "0 x 0 classes has 0 variances");
    expect_rejected([&] { law({2, 2, {1.0, 1.0, 1.0}, {}, {}}); }, "2 x 2 classes has 3 variances");
    expect_rejected([&] { law({1, 2, {1.0, -1.0}, {}, {}}); }, "-1 (it must be a number of at least 0)");
    expect_rejected([&] { law({1, 2, {1.0, not_a_number}, {}, {}}); }, "it must be a number of at least 0");
    expect_rejected([&] { law({1, 2, {0.0, 0.0}, {}, {}}); }, "largest variance of a profile is 0");
    expect_rejected(
        [&] {
            law({1, 2, {1.0, 1.0}, {}, {0.5, 0.6}});
        },
        "the column weights go down to 0.5 and sum to 1.1");
    expect_rejected([&] { law({1, 2, {1.0, 1.0}, {}, {1.0, 0.0}}); }, "one of the column weights is 0");
    expect_rejected(
        [&] {
            law({1, 2, {1.0, 1.0}, {0.5, 0.5}, {}});
        },
        "there are 2 row weights (the variance profile has 1 classes)");
    const ProfileLaw good = block_law();
    for (const double strength : {-1.0, 1e9, not_a_number})
        expect_rejected([&] { (void)good.spike({strength}); }, "is not usable");
    expect_rejected([&] { (void)good.strength_of({11.0}); }, "it lies below the bulk edge");
    expect_rejected([&] { (void)good.spike({4.0}, {{1.0}, {}}); }, "there are 1 squared left entries of a spike");
    expect_rejected(
        [&] {
            (void)good.spike({4.0}, {{1.0, 1.0}, {}});
        },
        "squared left entries of a spike go down to 1 and sum to 2");
    expect_rejected(
        [&] {
            (void)good.spike({4.0}, {{}, {-1.0, 1.0, 1.0}});
        },
        "squared right entries of a spike go down to -1");
    expect_rejected([&] { (void)good.density({0.0}); }, "no density at 0");
    expect_rejected([&] { (void)good.stieltjes({1.0, 0.0}); }, "give a positive imaginary part");
}

}  // namespace
}  // namespace spiked::theory

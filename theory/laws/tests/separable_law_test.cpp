#include "theory/laws/separable_law.hpp"

#include <cmath>
#include <limits>
#include <random>

#include "theory/laws/marchenko_pastur.hpp"
#include "theory/laws/white_formulas.hpp"
#include "theory/tests/reference.hpp"

namespace spiked::theory {
namespace {

using test::expect_rejected;
using test::expect_relative;

SeparableLaw white_law(double beta) { return {identity_spectrum(), identity_spectrum(), AspectRatio(beta)}; }

/// Random spectra of a few atoms: clusters, wide ranges, zeros, and sometimes a single eigenvalue far above the others.
Spectrum random_spectrum(std::mt19937_64& random) {
    std::uniform_real_distribution<double> unit(0.0, 1.0);
    const int count = 1 + static_cast<int>(random() % 12);
    const double range = unit(random) < 0.3 ? 6.0 : 1.5;
    std::vector<Atom> atoms;
    double sum = 0.0;
    for (int i = 0; i < count; ++i) {
        atoms.push_back({std::exp(range * (unit(random) - 0.5)), 0.05 + unit(random)});
        if (i > 0 && unit(random) < 0.05) atoms.back().value = 0.0;
        sum += atoms.back().weight;
    }
    if (unit(random) < 0.2) {
        atoms.push_back({20.0 * std::exp(range / 2.0), 1e-3 * sum});
        sum += atoms.back().weight;
    }
    for (Atom& atom : atoms) atom.weight /= sum;
    return Spectrum(std::move(atoms));
}

SeparableLaw random_law(std::mt19937_64& random) {
    const double beta = std::pow(10.0, std::uniform_real_distribution<double>(-2.0, 2.0)(random));
    return {random_spectrum(random), random_spectrum(random), AspectRatio(beta)};
}

/// The self-consistent equations of theory.md 1.1, directly from their definition and in extended precision.
struct Equations {
    const std::vector<Atom>& a;
    const std::vector<Atom>& b;
    long double beta;
    long double z;

    [[nodiscard]] long double weighted(const std::vector<Atom>& atoms, long double m, int power) const {
        long double sum = 0.0L;
        for (const Atom& atom : atoms)
            sum += atom.weight * std::pow(static_cast<long double>(atom.value), power) / (1.0L + atom.value * m);
        return sum;
    }
    [[nodiscard]] long double squares(const std::vector<Atom>& atoms, long double m) const {
        long double sum = 0.0L;
        for (const Atom& atom : atoms) sum += atom.weight * std::pow(atom.value / (1.0L + atom.value * m), 2);
        return sum;
    }
    /// The M with sum w / (1 + x M) = target > 1, by bisection.
    [[nodiscard]] long double invert(const std::vector<Atom>& atoms, long double target) const {
        long double low = -1.0L / atoms.front().value;
        long double high = 0.0L;
        for (int i = 0; i < 200; ++i) {
            const long double middle = 0.5L * (low + high);
            (weighted(atoms, middle, 0) > target ? low : high) = middle;
        }
        return 0.5L * (low + high);
    }
};

TEST(SeparableLaw, ReproducesThePublicReferenceRows) {
    const auto rows = test::reference_rows();
    ASSERT_EQ(rows.size(), 25U);
    for (const auto& [setting, value] : rows) {
        const auto at = [&row = value](const char* name) { return row.at(name); };
        const SeparableLaw law(test::reference_spectrum(setting, "A"), test::reference_spectrum(setting, "B"),
                               AspectRatio(at("beta")));
        const SpikePrediction spike = law.spike({at("d")});
        const std::string who = setting + " d=" + std::to_string(at("d")) + " ";
        const double tolerance = 1e-12;
        expect_relative(law.bulk_edge().value, at("lambda_plus"), tolerance, who + "lambda_plus");
        expect_relative(law.detection_threshold().value, at("alpha"), tolerance, who + "alpha");
        expect_relative(law.edge_parameter(), at("t_star"), tolerance, who + "t_star");
        expect_relative(law.edge_curvature(), at("zpp"), tolerance, who + "zpp");
        expect_relative(law.tracy_widom_scale(), at("gamma_tw"), tolerance, who + "gamma_tw");
        EXPECT_TRUE(spike.detectable);
        expect_relative(spike.outlier.value, at("theta"), tolerance, who + "theta");
        expect_relative(spike.stieltjes_left, at("m1"), tolerance, who + "m1");
        expect_relative(spike.stieltjes_right, at("m2"), tolerance, who + "m2");
        expect_relative(spike.overlap_left.value, at("a1"), tolerance, who + "a1");
        expect_relative(spike.overlap_right.value, at("a2"), tolerance, who + "a2");
        expect_relative(spike.shrunk(Loss::frobenius).value, at("phi_fro"), tolerance, who + "phi_fro");
        expect_relative(spike.shrunk(Loss::operator_norm).value, at("phi_op"), tolerance, who + "phi_op");
        expect_relative(spike.shrunk(Loss::nuclear).value, at("phi_nuc"), tolerance, who + "phi_nuc");
        expect_relative(spike.residual.value, at("resid"), tolerance, who + "resid");
        expect_relative(spike.d_transform, 1.0 / (at("d") * at("d")), tolerance, who + "T");
        expect_relative(spike.d_transform_derivative, at("Tp"), tolerance, who + "Tp");
        // As a function of the eigenvalue, T' is conditioned like 1/(z - edge), so rounding z by 2e-16 changes it.
        const double conditioning = at("lambda_plus") / (at("theta") - at("lambda_plus"));
        expect_relative(law.d_transform_derivative({at("theta")}), at("Tp"), tolerance + 1e-15 * conditioning,
                        who + "Tp of theta");
    }
}

TEST(SeparableLaw, SolvesItsDefiningEquationsOnRandomSpectra) {
    std::mt19937_64 random(7);
    double worst = 0.0;
    for (int trial = 0; trial < 1000; ++trial) {
        const SeparableLaw law = random_law(random);
        const double factor = 1.0 + std::pow(10.0, std::uniform_real_distribution<double>(-3.0, 0.7)(random));
        for (const double strength : {0.0, factor * law.detection_threshold().value}) {
            const SpikePrediction spike = law.spike({strength});
            const Equations eq{law.row().atoms(), law.column().atoms(), law.aspect().value(), spike.outlier.value};
            const long double M1 = eq.invert(eq.b, -eq.z * spike.stieltjes_right);
            const long double M2 = eq.invert(eq.a, -eq.z * spike.stieltjes_left);
            const long double first = M1 * eq.z / (-eq.beta * eq.weighted(eq.a, M2, 1)) - 1.0L;
            const long double second = M2 * eq.z / -eq.weighted(eq.b, M1, 1) - 1.0L;
            const long double companion =
                (eq.beta * spike.stieltjes_left - (1.0L - eq.beta) / eq.z) / spike.stieltjes_right - 1.0L;
            // Solving 1 + t for M amplifies errors by 1/t, so the identity is checked to 1e-12 absolute of 1 + t.
            const double t = -spike.outlier.value * spike.stieltjes_right - 1.0;
            const double slack = std::min({1.0, t, t / law.aspect().value()});
            for (const long double miss : {first, second, companion})
                worst = std::max(worst, std::abs(static_cast<double>(miss)) * slack);
            if (strength == 0.0) {
                const long double jacobian =
                    eq.beta * eq.squares(eq.a, M2) * eq.squares(eq.b, M1) / (eq.z * eq.z) - 1.0L;
                worst = std::max(worst, std::abs(static_cast<double>(jacobian)) * slack);
            } else {
                const double transform = spike.outlier.value * spike.stieltjes_left * spike.stieltjes_right;
                worst = std::max(worst, std::abs(transform * strength * strength - 1.0));
            }
        }
    }
    EXPECT_LT(worst, 1e-12);
    RecordProperty("worst_residual", fmt::format("{:.2g}", worst));
}

TEST(SeparableLaw, WhiteNoiseAgreesWithTheClosedForms) {
    for (const double beta : {0.01, 0.2, 0.5, 1.0, 3.0, 40.0, 100.0}) {
        const AspectRatio aspect(beta);
        const SeparableLaw law = white_law(beta);
        expect_relative(law.bulk_edge().value, white::bulk_edge(beta), 1e-14, "edge");
        expect_relative(law.bulk_edge().value, MarchenkoPastur(aspect).upper_edge().value, 1e-14, "edge");
        expect_relative(law.detection_threshold().value, white::detection_threshold(beta), 1e-14, "threshold");
        expect_relative(law.tracy_widom_scale(), white::tracy_widom_scale(beta), 1e-14, "scale");
        for (const double factor : {1.001, 1.1, 2.0, 30.0, 1e4}) {
            const SignalStrength strength{factor * law.detection_threshold().value};
            const SpikePrediction spike = law.spike(strength);
            const double tolerance = 1e-14 * (1.0 + 1.0 / (factor - 1.0));
            const double x = strength.value;
            expect_relative(spike.outlier.value, (1.0 + x * x) * (1.0 + beta / (x * x)), 1e-13, "outlier");
            expect_relative(spike.overlap_left.value, white::overlap_left(x, beta), tolerance, "left");
            expect_relative(spike.overlap_right.value, white::overlap_right(x, beta), tolerance, "right");
            // Computed from the observed value, the strength is conditioned like the root of the distance from the
            // edge.
            const double observed = 1e-14 * (1.0 + 10.0 / std::pow(factor - 1.0, 2));
            for (const Loss loss : {Loss::frobenius, Loss::operator_norm, Loss::nuclear})
                EXPECT_NEAR(white::shrunk(root(spike.outlier).value, beta, loss), spike.shrunk(loss).value,
                            observed * strength.value)
                    << name_of(loss) << " beta " << beta << " factor " << factor;
            expect_relative(std::sqrt(white::strength_squared(spike.outlier.value, beta)), x, observed, "inverse");
        }
        EXPECT_EQ(white::overlap_left(0.5 * law.detection_threshold().value, beta), 0.0);
        EXPECT_EQ(white::overlap_right(0.5 * law.detection_threshold().value, beta), 0.0);
        EXPECT_EQ(white::shrunk(0.5, beta, Loss::frobenius), 0.0);
    }
}

TEST(WhiteNoise, ShrunkValuesMatchTheTableOfSpectralMethods) {
    const double table[][6] = {{2.5, 1, 1.5, 2.0, 2.0, 1.0},
                               {3, 1, 2.23606797749979, 2.618033988749895, 2.618033988749895, 1.854101966249685},
                               {1.8, .5, .5631700398877416, 1.042696131054982, 1.173393811087722, 0},
                               {2.5, .5, 1.813835714721705, 2.056917857360853, 2.15459848774711, 1.48565077204781},
                               {1.6, .25, .5288918249510007, .8300709124755004, 1.038322425820034, .04734583541396865},
                               {1.5, .1, .6403124237432849, .7701562118716424, 1.027245986999932, .3324720719494754}};
    for (const auto& [y, beta, frobenius, operator_norm, strength, nuclear] : table) {
        EXPECT_NEAR(white::shrunk(y, beta, Loss::frobenius), frobenius, 3e-15);
        EXPECT_NEAR(white::shrunk(y, beta, Loss::operator_norm), operator_norm, 3e-15);
        EXPECT_NEAR(white::shrunk(y, beta, Loss::nuclear), nuclear, 3e-15);
        EXPECT_NEAR(std::sqrt(white::strength_squared(y * y, beta)), strength, 3e-15);
    }
}

TEST(SeparableLaw, DerivativeOfTheDTransformIsItsSlope) {
    std::mt19937_64 random(11);
    for (int trial = 0; trial < 200; ++trial) {
        const SeparableLaw law = random_law(random);
        const double edge = law.bulk_edge().value;
        const double z = edge * (1.0 + std::pow(10.0, std::uniform_real_distribution<double>(-2.0, 1.0)(random)));
        const auto slope = [&](double h) { return (law.d_transform({z + h}) - law.d_transform({z - h})) / (2.0 * h); };
        const double h = 1e-3 * (z - edge);
        const double richardson = (4.0 * slope(h) - slope(2.0 * h)) / 3.0;
        expect_relative(law.d_transform_derivative({z}), richardson, 2e-8, "T'");
        EXPECT_LT(law.d_transform_derivative({z}), 0.0);
        const double strength = law.strength_of({z}).value;
        const SpikePrediction spike = law.spike({strength});
        const double scale = strength * strength * law.d_transform_derivative({z});
        expect_relative(spike.overlap_left.value, law.stieltjes_left({z}) / scale, 1e-10, "left overlap");
        expect_relative(spike.overlap_right.value, law.stieltjes_right({z}) / scale, 1e-10, "right overlap");
        EXPECT_NEAR(spike.residual.value + spike.shrunk(Loss::frobenius).value, std::sqrt(spike.outlier.value),
                    1e-13 * std::sqrt(spike.outlier.value));
    }
}

TEST(SeparableLaw, StrengthAndOutlierInvertEachOther) {
    std::mt19937_64 random(13);
    for (int trial = 0; trial < 300; ++trial) {
        const SeparableLaw law = random_law(random);
        const double threshold = law.detection_threshold().value;
        double before = law.bulk_edge().value;
        for (const double distance : {1e-6, 1e-3, 0.1, 1.0, 10.0, 1e6}) {
            const double strength = threshold * (1.0 + distance);
            const SpikePrediction spike = law.spike({strength});
            EXPECT_GE(spike.outlier.value, before);
            before = spike.outlier.value;
            // Near the threshold the outlier depends on the square of the distance, so a strength recovered from it is
            // accurate only to the root of its rounding error, and less where the curve is flat (irregular edges). The
            // round trip is therefore also checked on the eigenvalue.
            const Eigenvalue back = law.spike(law.strength_of(spike.outlier)).outlier;
            expect_relative(back.value, spike.outlier.value, 1e-13, "outlier");
            if (distance >= 0.1) expect_relative(law.strength_of(spike.outlier).value, strength, 1e-11, "strength");
        }
        expect_relative(law.strength_of(law.bulk_edge()).value, threshold, 1e-15, "threshold");
    }
}

TEST(SeparableLaw, ScalingTheNoiseScalesEveryQuantityByItsPower) {
    std::mt19937_64 random(17);
    for (const double scale : {1e-12, 0.3, 7.0, 1e12}) {
        const Spectrum row = random_spectrum(random);
        const Spectrum column = random_spectrum(random);
        std::vector<Atom> scaled = column.atoms();
        for (Atom& atom : scaled) atom.value *= scale;
        const SeparableLaw one(row, column, AspectRatio(0.7));
        const SeparableLaw other(row, Spectrum(scaled), AspectRatio(0.7));
        expect_relative(other.bulk_edge().value, scale * one.bulk_edge().value, 1e-13, "edge");
        expect_relative(other.detection_threshold().value, std::sqrt(scale) * one.detection_threshold().value, 1e-13,
                        "threshold");
        expect_relative(other.tracy_widom_scale(), one.tracy_widom_scale() / scale, 1e-12, "scale");
        const double strength = 1.7 * one.detection_threshold().value;
        const SpikePrediction a = one.spike({strength});
        const SpikePrediction b = other.spike({std::sqrt(scale) * strength});
        expect_relative(b.outlier.value, scale * a.outlier.value, 1e-12, "outlier");
        expect_relative(b.overlap_left.value, a.overlap_left.value, 1e-12, "overlap");
        expect_relative(b.shrunk(Loss::nuclear).value, std::sqrt(scale) * a.shrunk(Loss::nuclear).value, 1e-11,
                        "nuclear");
    }
}

TEST(SeparableLaw, TransposingTheMatrixSwapsTheSides) {
    std::mt19937_64 random(19);
    for (const double beta : {0.05, 0.6, 1.0, 30.0}) {
        const Spectrum row = random_spectrum(random);
        const Spectrum column = random_spectrum(random);
        const SeparableLaw law(row, column, AspectRatio(beta));
        const SeparableLaw transposed(column, row, AspectRatio(1.0 / beta));
        // The entries of the transpose have variance 1/n instead of 1/d, so its eigenvalues are n/d times smaller.
        expect_relative(beta * transposed.bulk_edge().value, law.bulk_edge().value, 1e-13, "edge");
        const double strength = 1.4 * law.detection_threshold().value;
        const SpikePrediction a = law.spike({strength});
        const SpikePrediction b = transposed.spike({strength / std::sqrt(beta)});
        expect_relative(beta * b.outlier.value, a.outlier.value, 1e-13, "outlier");
        expect_relative(b.overlap_left.value, a.overlap_right.value, 1e-12, "left is right");
        expect_relative(b.overlap_right.value, a.overlap_left.value, 1e-12, "right is left");
        // g d^(2/3) agrees for both, with the columns of one being the rows of the other.
        expect_relative(transposed.tracy_widom_scale() * std::pow(beta, 2.0 / 3.0) / beta, law.tracy_widom_scale(),
                        1e-12, "Tracy-Widom scale");
    }
}

TEST(SeparableLaw, SpikesBelowTheThresholdHaveTheirOutlierAtTheEdge) {
    const SeparableLaw law(ar1_symbol_spectrum(0.5, 64), exponential_spectrum(3.0, 64), AspectRatio(0.5));
    for (const double strength : {0.0, 0.5 * law.detection_threshold().value, law.detection_threshold().value}) {
        const SpikePrediction spike = law.spike({strength});
        EXPECT_FALSE(spike.detectable);
        EXPECT_EQ(spike.outlier, law.bulk_edge());
        EXPECT_EQ(spike.overlap_left.value, 0.0);
        EXPECT_EQ(spike.overlap_right.value, 0.0);
        for (const Loss loss : {Loss::frobenius, Loss::operator_norm, Loss::nuclear})
            EXPECT_EQ(spike.shrunk(loss).value, 0.0);
        EXPECT_DOUBLE_EQ(spike.residual.value, std::sqrt(law.bulk_edge().value));
        EXPECT_LT(spike.stieltjes_left, 0.0);
        EXPECT_DOUBLE_EQ(spike.stieltjes_left, law.stieltjes_left(law.bulk_edge()));
    }
}

TEST(SeparableLaw, JustAboveTheThresholdAllQuantitiesAreWithinTheirBounds) {
    std::mt19937_64 random(23);
    for (int trial = 0; trial < 200; ++trial) {
        const SeparableLaw law = random_law(random);
        for (const double factor : {1.0 + 4e-16, 1.0 + 1e-12, 1.0 + 1e-6, 1.01, 2.0, 1e3, 1e9}) {
            const SpikePrediction spike = law.spike({factor * law.detection_threshold().value});
            EXPECT_GE(spike.outlier, law.bulk_edge());
            EXPECT_GE(spike.overlap_left.value, 0.0);
            EXPECT_LE(spike.overlap_left.value, 1.0);
            EXPECT_LE(spike.residual.value, std::sqrt(law.bulk_edge().value) * (1.0 + 1e-12));
            EXPECT_LE(spike.shrunk(Loss::frobenius).value, spike.strength.value);
            EXPECT_TRUE(std::isfinite(spike.stieltjes_right));
        }
    }
}

TEST(SeparableLaw, StrongSpikesHaveTheFreeLimit) {
    const SeparableLaw law(uniform_spectrum(0.5, 1.5, 64), exponential_spectrum(2.0, 64), AspectRatio(0.3));
    const double d = 1e8;
    const SpikePrediction spike = law.spike({d});
    // To first order, theta = d^2 + tr B / d + beta tr A ...: each side adds its mean.
    expect_relative(spike.outlier.value, d * d, 1e-15, "outlier");
    EXPECT_NEAR(1.0 - spike.overlap_left.value, 0.0, 1e-15);
    const SpikePrediction strongest = law.spike({9.9e69 * law.detection_threshold().value});
    expect_relative(strongest.outlier.value, std::pow(strongest.strength.value, 2), 1e-13, "outlier");
    expect_relative(law.strength_of(strongest.outlier).value, strongest.strength.value, 1e-13, "strength");
    const SpikePrediction medium = law.spike({1e3});
    EXPECT_NEAR(medium.outlier.value - 1e6, (1.0 + 0.3) * law.row().mean() * law.column().mean(), 1e-4);
}

// For n/d -> 0 there are many columns per row, and Z Z^T / (tr B / d) tends to A, whose largest atom is the edge. For
// n/d -> infinity the same holds for B.
TEST(SeparableLaw, FlatAndTallLimits) {
    const Spectrum row = uniform_spectrum(0.5, 1.5, 32);
    const Spectrum column = exponential_spectrum(2.0, 32);
    for (const double beta : {1e-4, 1e-6, 1e-8}) {
        const SeparableLaw flat(row, column, AspectRatio(beta));
        const SeparableLaw tall(row, column, AspectRatio(1.0 / beta));
        // The distance of the edge from its limit is of order sqrt(beta).
        EXPECT_NEAR(flat.bulk_edge().value / (row.largest() * column.mean()), 1.0, 5.0 * std::sqrt(beta));
        EXPECT_NEAR(tall.bulk_edge().value * beta / (column.largest() * row.mean()), 1.0, 5.0 * std::sqrt(beta));
        // At a fixed multiple of the threshold the overlap of the long side vanishes and that of the short side does
        // not.
        const SpikePrediction spike = flat.spike({1.0});
        EXPECT_TRUE(spike.detectable);
        EXPECT_LT(spike.overlap_left.value, 1.0);
        EXPECT_LT(spike.overlap_right.value, spike.overlap_left.value);
    }
}

// As d approaches the threshold alpha, overlaps vanish linearly in d - alpha, and the outlier leaves the edge like
// (d - alpha)^2.
TEST(SeparableLaw, RatesAtTheThreshold) {
    std::mt19937_64 random(31);
    for (int trial = 0; trial < 100; ++trial) {
        const SeparableLaw law = random_law(random);
        const double alpha = law.detection_threshold().value;
        const auto at = [&](double relative) { return law.spike({alpha * (1.0 + relative)}); };
        // A single atom far above the others makes this regime near the threshold narrow, so the distances are small.
        const double near = at(1e-7).overlap_left.value;
        expect_relative(at(2e-7).overlap_left.value / near, 2.0, 1e-3, "overlap");
        EXPECT_LT(near, 1.0);
        const double edge = law.bulk_edge().value;
        expect_relative((at(2e-5).outlier.value - edge) / (at(1e-5).outlier.value - edge), 4.0, 5e-2, "outlier");
    }
}

TEST(SeparableLaw, SolvesManyAtomsAndExtremeAspects) {
    for (const double beta : {0.01, 1.0, 100.0}) {
        const SeparableLaw fine(toeplitz_ar1_spectrum(0.9, 10000), power_spectrum(1.0, 10000), AspectRatio(beta));
        const SpikePrediction spike = fine.spike({2.0 * fine.detection_threshold().value});
        EXPECT_TRUE(spike.detectable);
        expect_relative(fine.strength_of(spike.outlier).value, spike.strength.value, 1e-12, "round trip");
    }
    // The midpoint rule for the symbol converges, so few and many atoms give the same law.
    const SeparableLaw coarse(ar1_symbol_spectrum(0.5, 200), identity_spectrum(), AspectRatio(0.5));
    const SeparableLaw dense(ar1_symbol_spectrum(0.5, 10000), identity_spectrum(), AspectRatio(0.5));
    expect_relative(coarse.bulk_edge().value, dense.bulk_edge().value, 1e-13, "edge");
}

TEST(SeparableLaw, NamesTheEigenvalueThatDetachesFromPureNoise) {
    const auto with_column = [](double value) {
        return SeparableLaw(identity_spectrum(), two_atom_spectrum(1.0, value, 1.0 / 128.0), AspectRatio(1.0));
    };
    // With a white bulk and n = d, an eigenvalue of B detaches above 2.
    EXPECT_TRUE(with_column(1.9).edge_regularity().regular);
    const EdgeRegularity detached = with_column(8.0).edge_regularity();
    EXPECT_FALSE(detached.regular);
    EXPECT_NE(detached.note.find("column eigenvalue 8 (weight 0.00781) detaches"), std::string::npos) << detached.note;
    EXPECT_FALSE(with_column(2.1).edge_regularity().regular);
    EXPECT_TRUE(with_column(8.0).edge_regularity(0.001).regular)
        << "its weight is more than a few eigenvalues of a matrix of size 3000";

    const SeparableLaw row(Spectrum({{9.0, 0.01}, {8.5, 0.01}, {1.0, 0.98}}), identity_spectrum(), AspectRatio(0.5));
    EXPECT_NE(row.edge_regularity().note.find("row eigenvalues 9 (weight 0.01), 8.5"), std::string::npos);
    const SeparableLaw both(two_atom_spectrum(1.0, 8.0, 0.01), two_atom_spectrum(1.0, 8.0, 0.01), AspectRatio(1.0));
    EXPECT_FALSE(both.edge_regularity().regular);

    EXPECT_TRUE(white_law(1.0).edge_regularity().regular);
    for (const std::string setting : {"W1", "TA1", "AR1", "U1", "E1"})
        EXPECT_TRUE(SeparableLaw(test::reference_spectrum(setting, "A"), test::reference_spectrum(setting, "B"),
                                 AspectRatio(1.0))
                        .edge_regularity()
                        .regular)
            << setting;
    EXPECT_TRUE(SeparableLaw(toeplitz_ar1_spectrum(0.7, 128), toeplitz_ar1_spectrum(0.7, 128), AspectRatio(1.0))
                    .edge_regularity()
                    .regular);
}

TEST(SeparableLaw, RejectsArgumentsOutsideItsDomain) {
    const SeparableLaw law = white_law(1.0);
    const double nan = std::numeric_limits<double>::quiet_NaN();
    expect_rejected([&] { (void)law.spike({-1.0}); }, "strength -1");
    expect_rejected([&] { (void)law.spike({nan}); }, "strength nan");
    expect_rejected([&] { (void)law.spike({1e150}); }, "strength 1e+150");
    expect_rejected(
        [] {
            (void)SeparableLaw(Spectrum({{1e160, 1.0}}), Spectrum({{1e160, 1.0}}), AspectRatio(1.0));
        },
        "scale the spectra");
    expect_rejected(
        [] {
            (void)SeparableLaw(Spectrum({{1e-200, 1.0}}), Spectrum({{1e-200, 1.0}}), AspectRatio(1.0));
        },
        "scale the spectra");
    for (const double aspect : {0.0, -1.0, 1e-300, 1e300, nan})
        expect_rejected([&] { (void)AspectRatio(aspect); }, "aspect");
    expect_rejected([&] { (void)law.spike({1e70}); }, "strength 1e+70");
    expect_rejected([&] { (void)law.d_transform({1e141}); }, "eigenvalue 1e+141");
    expect_rejected([&] { (void)law.spike({std::numeric_limits<double>::infinity()}); }, "strength inf");
    expect_rejected([&] { (void)law.strength_of({3.99}); }, "below the bulk edge 4");
    expect_rejected([&] { (void)law.d_transform({nan}); }, "eigenvalue nan");
    expect_rejected([&] { (void)law.stieltjes_left({std::numeric_limits<double>::infinity()}); }, "eigenvalue inf");
    EXPECT_EQ(law.d_transform_derivative(law.bulk_edge()), -std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace spiked::theory

#include "estimators/spectral/eoptshrink.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <numeric>

#include "core/runtime/error.hpp"
#include "core/text/json.hpp"
#include "estimators/spectral/empirical_law.hpp"
#include "estimators/spectral/spectral_estimator.hpp"
#include "estimators/tests/noise_eigenvalues.hpp"
#include "estimators/tests/spectra.hpp"
#include "sim/io/matrix_file.hpp"

namespace spiked::estimators {
namespace {

struct Expected {
    double strength, overlap_left, overlap_right, frobenius, operator_norm, nuclear;
};

void expect_point_a(Shape shape, const Expected (&expected)[2]) {
    const auto s = point_a();
    const theory::Loss losses[] = {theory::Loss::frobenius, theory::Loss::operator_norm, theory::Loss::nuclear};
    for (const auto loss : losses) {
        const Shrinkage found = eoptshrink(s, shape, {.loss = loss});
        ASSERT_EQ(found.rank, 2U);
        EXPECT_NEAR(found.bulk_edge->value, 8.053621575878973, 1e-11);
        for (std::size_t i = 0; i < 2; ++i) {
            EXPECT_NEAR(found.strengths[i], expected[i].strength, 1e-9);
            EXPECT_NEAR(found.overlap_left[i], expected[i].overlap_left, 1e-9);
            EXPECT_NEAR(found.overlap_right[i], expected[i].overlap_right, 1e-9);
            const double shrunk[] = {expected[i].frobenius, expected[i].operator_norm, expected[i].nuclear};
            EXPECT_NEAR(found.shrunk[i], shrunk[static_cast<int>(loss)], 1e-9);
        }
    }
}

TEST(EOptShrinkReference, TestPointASquare) {
    expect_point_a({12, 12}, {{5.69576213008351, .905915265324803, .905915265324803, 5.159877861301568,
                               5.69576213008351, 4.623993592519626},
                              {3.559895960028874, .8143894638838523, .8143894638838523, 2.899141762370206,
                               3.559895960028874, 2.238387564711538}});
}

TEST(EOptShrinkReference, TestPointAWide) {
    expect_point_a({12, 24}, {{5.842838344727323, .9472431382388687, .900155239985889, 5.395271594762407,
                               5.69576213008351, 4.971212886302124},
                              {3.756618471939346, .883234052750387, .7931516585715807, 3.144221336146032,
                               3.559895960028874, 2.560398316887333}});
}

TEST(EOptShrinkReference, TestPointATallSwapsTheSides) {
    expect_point_a({24, 12}, {{5.842838344727323, .900155239985889, .9472431382388687, 5.395271594762407,
                               5.69576213008351, 4.971212886302124},
                              {3.756618471939346, .7931516585715807, .883234052750387, 3.144221336146032,
                               3.559895960028874, 2.560398316887333}});
}

// The short formulas of research note spectral.md 0, with sums computed here.
TEST(EOptShrinkIdentity, ShrunkValuesSatisfyTheShortForms) {
    const auto s = point_a();
    const double mu[] = {7.053621575879, 5.8259683690326, 5.1048435838789, 4.5, 4.0, 3.5, 3.0, 2.5, 2.0, 1.5};
    for (const Shape shape : {Shape{12, 12}, Shape{12, 24}, Shape{24, 12}}) {
        const double beta = 12.0 / static_cast<double>(shape.long_side());
        const Shrinkage frobenius = eoptshrink(s, shape);
        const Shrinkage op = eoptshrink(s, shape, {.loss = theory::Loss::operator_norm});
        for (std::size_t i = 0; i < 2; ++i) {
            const double z = s[i] * s[i];
            const auto D = [&](double x) {
                double m = 0.0;
                for (const double value : mu) m += 1.0 / (value - x) / 10.0;
                return x * m * (beta * m - (1.0 - beta) / x);
            };
            const double h = 1e-5 * z;
            const double slope = (D(z + h) - D(z - h)) / (2.0 * h);
            EXPECT_NEAR(frobenius.shrunk[i], -D(z) / (s[i] * slope), 1e-7);
            double m = 0.0;
            for (const double value : mu) m += 1.0 / (value - z) / 10.0;
            EXPECT_NEAR(op.shrunk[i] * s[i] * std::abs(m), 1.0, 1e-10);
        }
    }
}

TEST(EOptShrink, ScalesWithTheDataOverThreeHundredOrders) {
    const auto s = point_a();
    const Shrinkage base = eoptshrink(s, {12, 24});
    for (const double c : {1e-150, 1e-100, 3.0, 1e100, 1e150}) {
        auto scaled = s;
        for (double& value : scaled) value *= c;
        const Shrinkage found = eoptshrink(scaled, {12, 24});
        ASSERT_EQ(found.rank, base.rank) << c;
        for (std::size_t i = 0; i < base.rank; ++i) {
            EXPECT_NEAR(found.shrunk[i] / c, base.shrunk[i], 1e-12 * base.shrunk[i]);
            EXPECT_NEAR(found.overlap_left[i], base.overlap_left[i], 1e-12);
        }
    }
}

TEST(EOptShrink, ShrunkValuesLieBetweenZeroAndTheObserved) {
    // Spectra without a square-root edge, in which imputed noise exceeds the outliers.
    for (int steep = 1; steep <= 40; ++steep) {
        std::vector<double> s(64);
        for (std::size_t i = 0; i < s.size(); ++i) s[i] = std::pow(static_cast<double>(i + 1), -0.1 * steep);
        for (const auto loss : {theory::Loss::frobenius, theory::Loss::operator_norm, theory::Loss::nuclear})
            for (const std::size_t rank : {std::size_t{1}, std::size_t{5}, std::size_t{20}}) {
                const Shrinkage found = eoptshrink(s, {64, 96}, {.loss = loss, .rank = rank});
                ASSERT_EQ(found.shrunk.size(), found.rank);
                for (std::size_t i = 0; i < found.rank; ++i) {
                    ASSERT_GE(found.shrunk[i], 0.0);
                    ASSERT_LE(found.shrunk[i], s[i]);
                    ASSERT_GE(found.overlap_left[i], 0.0);
                    ASSERT_LE(found.overlap_left[i], 1.0);
                }
            }
    }
}

TEST(EOptShrink, ImputedNoiseThatReachesBeyondAnOutlierIsBoundedByTheLargestObserved) {
    // k = 3 and rank 2: from 9.9 and 1 the imputed values are 25, 17.8 and 13.5, above both outliers.
    std::vector<double> s;
    for (const double lambda : {10.5, 10.2, 10.1, 10.0, 10.0, 9.9, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0})
        s.push_back(std::sqrt(lambda));
    const Shrinkage found = eoptshrink(s, {12, 12}, {.rank = 2});
    for (std::size_t j = 0; j < 3; ++j) EXPECT_NEAR(found.noise_eigenvalues[j], 10.1, 1e-12);
    EXPECT_NEAR(found.noise_eigenvalues[3], 9.9, 1e-12);
    EXPECT_GT(found.shrunk[1], 0.0);
}

TEST(EOptShrink, TheMarginFollowsTheSideOfThePilot) {
    // Edge 1: 1.3 lies above 1 + 144^(-1/3) = 1.19 and below 1 + 12^(-1/3) = 1.44.
    std::vector<double> s(12, 1.0);
    s[0] = std::sqrt(1.3);
    EXPECT_EQ(spectral_estimator("eoptshrink:pilot=d").estimate(s, {12, 144}).rank, 1U);
    for (const char* name : {"eoptshrink", "eoptshrink:pilot=5"})
        EXPECT_EQ(spectral_estimator(name).estimate(s, {12, 144}).rank, 0U) << name;
}

TEST(EOptShrink, DegenerateSpectraHaveDefinedResults) {
    EXPECT_EQ(eoptshrink(std::vector<double>(8, 0.0), {8, 8}).rank, 0U);
    EXPECT_EQ(eoptshrink({}, {0, 0}).rank, 0U);
    EXPECT_EQ(eoptshrink(std::vector<double>{3.0}, {1, 5}).rank, 0U);
    EXPECT_EQ(eoptshrink(std::vector<double>{3.0, 1.0}, {2, 5}).rank, 0U);
    EXPECT_EQ(eoptshrink(std::vector<double>(32, 1.0), {32, 32}).rank, 0U) << "all equal: no edge stands out";
    EXPECT_NE(eoptshrink(std::vector<double>{3.0, 1.0}, {2, 5}).note, "");
}

TEST(EOptShrink, AnExactlyLowRankBlockIsKeptUnchanged) {
    std::vector<double> s(32, 1e-15);
    s[0] = 5.0;
    s[1] = 2.0;
    const Shrinkage found = eoptshrink(s, {32, 40});
    ASSERT_EQ(found.rank, 2U);
    EXPECT_EQ(found.shrunk, (std::vector<double>{5.0, 2.0}));
}

TEST(EOptShrink, OptionsHaveTheirEffect) {
    const auto s = point_a();
    const Shape shape{12, 24};
    const auto names = {"eoptshrink:margin=10", "eoptshrink:rank=1", "eoptshrink:impute=none", "eoptshrink:impute=j"};
    for (const char* name : names) {
        const Shrinkage found = spectral_estimator(name).estimate(s, shape);
        const Shrinkage base = eoptshrink(s, shape);
        EXPECT_TRUE(found.rank != base.rank || found.shrunk != base.shrunk) << name;
    }
    EXPECT_EQ(spectral_estimator("eoptshrink:margin=10").estimate(s, shape).rank, 0U);
    EXPECT_EQ(spectral_estimator("eoptshrink:rank=1").estimate(s, shape).rank, 1U);
    EXPECT_NE(spectral_estimator("eoptshrink:pilot=d").estimate(s, {12, 144}).bulk_edge->value,
              eoptshrink(s, {12, 144}).bulk_edge->value);
}

// The literal text (Algorithm 2) with sums computed here: eigenvalues squared again, k and margin from d, j/k, and mass
// 1/min(n, d) per atom.
TEST(EOptShrinkReference, ThePaperVariantIsTheLiteralText) {
    const auto s = point_a();
    for (const Shape shape : {Shape{12, 12}, Shape{12, 24}, Shape{24, 12}}) {
        const double d = static_cast<double>(shape.columns);
        const std::size_t k = static_cast<std::size_t>(std::floor(std::pow(d, 1.0 / 2.01)));
        std::vector<double> square;
        for (const double value : s) square.push_back(std::pow(value, 4));
        const double step = 1.0 / (std::pow(2.0, 2.0 / 3.0) - 1.0);
        const double edge = square[k] + step * (square[k] - square[2 * k]);
        std::size_t r = 0;
        while (square[r] / edge - 1.0 > std::pow(d, -1.0 / 3.0)) ++r;
        std::vector<double> mu;
        for (std::size_t j = 1; j <= k; ++j)
            mu.push_back(std::sqrt(square[r + k] + (1.0 - std::pow(double(j) / double(k), 2.0 / 3.0)) * step *
                                                       (square[r + k] - square[r + 2 * k])));
        for (std::size_t i = r + k; i < s.size(); ++i) mu.push_back(s[i] * s[i]);
        const double beta = 12.0 / static_cast<double>(shape.long_side());
        const auto m_short = [&](double z) {
            double sum = 0.0;
            for (const double value : mu) sum += 1.0 / (value - z) / 12.0;
            return sum;
        };
        const auto D = [&](double z) { return z * m_short(z) * (beta * m_short(z) - (1.0 - beta) / z); };
        const Shrinkage found = spectral_estimator("eoptshrink:paper").estimate(s, shape);
        ASSERT_EQ(found.rank, r);
        ASSERT_GE(r, 1U);
        EXPECT_NEAR(found.bulk_edge->value, std::sqrt(edge), 1e-12 * std::sqrt(edge));
        for (std::size_t i = 0; i < r; ++i) {
            const double z = s[i] * s[i];
            const double h = 1e-4 * z;
            const double slope = (8.0 * (D(z + h) - D(z - h)) - (D(z + 2 * h) - D(z - 2 * h))) / (12.0 * h);
            EXPECT_NEAR(found.strengths[i], 1.0 / std::sqrt(D(z)), 1e-11);
            EXPECT_NEAR(found.shrunk[i], -D(z) / (s[i] * slope), 1e-8);
        }
    }
}

TEST(EOptShrinkReference, TheAuthorsProgramIsReproduced) {
    const std::string folder = std::string(SPIKED_SOURCE_DIR) + "/estimators/spectral/tests/data/";
    std::ifstream file(folder + "author_octave.json");
    const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const Json reference = Json::parse(text, "author_octave.json");
    for (const auto& [name, expected] : *reference.members()) {
        const arma::mat block = sim::read_matrix(folder + name + ".npy");
        const auto s = singular_values(block);
        for (const auto& loss : EnumNames<theory::Loss>::table) {
            const Json* values = expected.find(loss.name);
            ASSERT_NE(values, nullptr) << name << " " << loss.name;
            const Shrinkage found =
                spectral_estimator("eoptshrink:author", loss.value).estimate(s, {block.n_rows, block.n_cols});
            ASSERT_EQ(found.rank, static_cast<std::size_t>(*expected.find("rank")->integer())) << name;
            for (std::size_t i = 0; i < found.rank; ++i)
                EXPECT_NEAR(found.shrunk[i], *(*values->items())[i].real(), 1e-8) << name << " " << loss.name;
        }
    }
}

TEST(EOptShrinkReference, TheAuthorsProgramAtTestPointA) {
    const auto s = point_a();
    const Shrinkage square = spectral_estimator("eoptshrink:author").estimate(s, {12, 12});
    const Shrinkage wide = spectral_estimator("eoptshrink:author").estimate(s, {12, 24});
    ASSERT_EQ(square.rank, 2U);
    ASSERT_EQ(wide.rank, 2U);
    EXPECT_NEAR(square.shrunk[0], 4.9353141, 5e-8);
    EXPECT_NEAR(square.shrunk[1], 2.55799178, 5e-9);
    EXPECT_NEAR(wide.shrunk[0], 5.20290924, 5e-9);
    EXPECT_NEAR(wide.shrunk[1], 2.81621769, 5e-9);
}

TEST(EOptShrink, AVariantIsAShortNameForItsOptions) {
    const auto s = point_a();
    const std::pair<const char*, const char*> pairs[] = {
        {"eoptshrink:paper", "eoptshrink:pilot=d:power=2:impute=j:mass=side"},
        {"eoptshrink:author", "eoptshrink:factor=1.1:margin=0:impute=2r:mass=side:clip=no"},
        {"eoptshrink:edgefit", "eoptshrink:edge=fit"},
        {"eoptshrink:edgefit", "eoptshrink:edgefit:cap=6"},
        {"eoptshrink", "eoptshrink:pilot=3:factor=1:power=1:impute=j-1:mass=rest:clip=yes"}};
    for (const auto& [reading, options] : pairs)
        for (const Shape shape : {Shape{12, 12}, Shape{24, 12}}) {
            const Shrinkage one = spectral_estimator(reading).estimate(s, shape);
            const Shrinkage other = spectral_estimator(options).estimate(s, shape);
            EXPECT_EQ(one.rank, other.rank) << reading;
            EXPECT_EQ(one.shrunk, other.shrunk) << reading;
        }
}

TEST(EOptShrink, AnOracleRankWorksWithEveryVariant) {
    for (const char* name :
         {"eoptshrink:rank=1", "eoptshrink:paper:rank=1", "eoptshrink:author:rank=1", "eoptshrink:edgefit:rank=1"})
        EXPECT_EQ(spectral_estimator(name).estimate(point_a(), {12, 24}).rank, 1U) << name;
}

TEST(EOptShrink, TheEdgeBehindAGivenRankFollowsThatRank) {
    // Noise exactly on the curve lambda = 4 - 0.2 (j - 1)^(2/3), behind 9 signals; the pilot is 6.
    std::vector<double> s;
    for (int signal = 0; signal < 9; ++signal) s.push_back(std::sqrt(14.0 - signal));
    for (int j = 1; j <= 31; ++j) s.push_back(std::sqrt(4.0 - 0.2 * std::pow(j - 1.0, 2.0 / 3.0)));
    for (const char* name : {"eoptshrink:rank=9", "eoptshrink:rank=9:impute=none", "eoptshrink:rank=ed",
                             "eoptshrink:rank=9:pilot=3", "eoptshrink:edgefit:rank=9"}) {
        const Shrinkage found = spectral_estimator(name).estimate(s, {40, 50});
        ASSERT_EQ(found.rank, 9U) << name;
        EXPECT_NEAR(found.bulk_edge->value, 4.0, std::string(name).find("fit") == std::string::npos ? 1e-12 : 0.1);
    }
    // Without the rank the edge comes from the pilot's positions, which signals occupy.
    EXPECT_NEAR(eoptshrink(s, {40, 50}).bulk_edge->value,
                s[6] * s[6] + (s[6] * s[6] - s[12] * s[12]) / (std::pow(2.0, 2.0 / 3.0) - 1.0), 1e-12);
    // A rank of 0 is the case of the pilot without signals.
    EXPECT_EQ(eoptshrink(s, {40, 50}, {.rank = 0}).bulk_edge->value, eoptshrink(s, {40, 50}).bulk_edge->value);
}

TEST(EOptShrink, TheEdgeOfARankThatIsSetToZeroIsThatOfRankZero) {
    std::vector<double> s;
    for (const double lambda : noise_eigenvalues(60, 90, 3.0, 0)) s.push_back(std::sqrt(lambda));
    for (const char* variant : {"", ":paper", ":author", ":edgefit", ":impute=none"}) {
        const std::string name = fmt::format("eoptshrink{}:rank=", variant);
        const Shrinkage none = spectral_estimator(name + "0").estimate(s, {60, 90});
        ASSERT_TRUE(none.bulk_edge) << name;
        const Shrinkage found = spectral_estimator(name + "59").estimate(s, {60, 90});
        if (found.rank > 0) continue;  // without imputation one eigenvalue is enough
        EXPECT_NE(found.note.find("set to 0"), std::string::npos) << name;
        EXPECT_EQ(found.bulk_edge->value, none.bulk_edge->value) << name;
    }
    EXPECT_EQ(spectral_estimator("eoptshrink:rank=59").estimate(s, {60, 90}).rank, 0U);
}

TEST(EOptShrink, NoComponentThatIsCountedLiesBelowTheEdge) {
    for (std::uint64_t draw = 0; draw < 5; ++draw) {
        std::vector<double> s;
        for (const double lambda : noise_eigenvalues(60, 90, 3.0, draw)) s.push_back(std::sqrt(lambda));
        for (const char* variant : {"", ":paper", ":author", ":edgefit", ":impute=none"})
            for (std::size_t rank = 1; rank < 40; ++rank) {
                const std::string name = fmt::format("eoptshrink{}:rank={}", variant, rank);
                const Shrinkage found = spectral_estimator(name).estimate(s, {60, 90});
                if (found.rank == 0) continue;  // no noise would be left
                EXPECT_LT(found.bulk_edge->value, s[rank - 1] * s[rank - 1]) << name;
            }
    }
}

TEST(EOptShrink, TheEdgeFitIsALineThroughTheTopOfTheNoise) {
    // Noise exactly on the line lambda = 4 - 0.2 (j - 1/2)^(2/3), behind 5 signals.
    std::vector<double> s;
    for (const double signal : {9.0, 8.0, 7.0, 6.5, 6.0}) s.push_back(std::sqrt(signal));
    for (int j = 1; j <= 35; ++j) s.push_back(std::sqrt(4.0 - 0.2 * std::pow(j - 0.5, 2.0 / 3.0)));
    for (const char* name : {"eoptshrink:edgefit", "eoptshrink:edgefit:pilot=3", "eoptshrink:edgefit:pilot=8"}) {
        const Shrinkage found = spectral_estimator(name).estimate(s, {40, 50});
        EXPECT_EQ(found.rank, 5U) << name;
        EXPECT_NEAR(found.bulk_edge->value, 4.0, 1e-10) << name;
    }
    EXPECT_EQ(spectral_estimator("eoptshrink:edgefit:cap=5").estimate(s, {40, 50}).rank, 5U);
    EXPECT_EQ(spectral_estimator("eoptshrink:edgefit:margin=3").estimate(s, {40, 50}).rank, 0U);
}

}  // namespace
}  // namespace spiked::estimators

#include "theory/quantization/lloyd_max.hpp"

#include <algorithm>
#include <boost/math/special_functions/beta.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <fstream>
#include <random>
#include <sstream>

#include "core/text/json.hpp"
#include "theory/tests/reference.hpp"

namespace spiked::theory {
namespace {

using test::expect_rejected;

long double support_end(int dimension) {
    return dimension == 0 ? 40.0L : std::sqrt(static_cast<long double>(dimension));
}

/// The law in closed form, for comparison only: P(0 < z < x), and int_0^x z f below. Dimension 0 is the normal law.
long double mass_below(int dimension, long double x) {
    if (x >= support_end(dimension)) return 0.5L;
    if (dimension == 0) return 0.5L * std::erf(x / std::sqrt(2.0L));
    const long double square = std::min(1.0L, x * x / dimension);
    return 0.5L * boost::math::ibeta(0.5L, (dimension - 1.0L) / 2.0L, square);
}

long double moment_below(int dimension, long double x) {
    const long double pi = 3.14159265358979323846264338327950288L;
    if (dimension == 0) return -std::expm1(-x * x / 2.0L) / std::sqrt(2.0L * pi);
    const long double d = dimension;
    const long double peak =
        std::exp(boost::math::lgamma(d / 2.0L) - boost::math::lgamma((d - 1.0L) / 2.0L)) / std::sqrt(pi * d);
    const long double rest = x >= support_end(dimension) ? 0.0L : 1.0L - x * x / d;
    return peak * d / (d - 1.0L) * (1.0L - std::pow(rest, (d - 1.0L) / 2.0L));
}

Codebook codebook(int dimension, int bits) {
    return dimension == 0 ? lloyd_max_normal(bits) : lloyd_max_sphere(dimension, bits);
}

TEST(LloydMax, CodebooksMatchTheTablesOfTwentyDigits) {
    for (const auto& [name, dimension] : {std::pair<const char*, int>{"N01", 0},
                                          {"sphere32", 32},
                                          {"sphere64", 64},
                                          {"sphere128", 128},
                                          {"sphere256", 256}}) {
        const std::string path = test::data_file(std::string("quantization/tests/data/codebook_") + name + ".json");
        std::stringstream text;
        text << std::ifstream(path).rdbuf();
        const Json table = Json::parse(text.str(), path);
        for (int bits = 1; bits <= 8; ++bits) {
            const Json* row = table.find(std::to_string(bits));
            ASSERT_NE(row, nullptr) << name << " " << bits;
            const auto number = [](const Json& digits) { return std::stod(*digits.string()); };
            const auto list = [&](const char* key) { return *row->find(key)->items(); };
            const Codebook book = codebook(dimension, bits);
            const std::size_t half = std::size_t{1} << (bits - 1);
            ASSERT_EQ(list("levels").size(), half);
            for (std::size_t i = 0; i < half; ++i) {
                EXPECT_NEAR(book.levels[half + i], number(list("levels")[i]), 1e-15) << name << " " << bits;
                EXPECT_NEAR(book.probabilities[half + i], number(list("probs")[i]), 1e-16) << name << " " << bits;
            }
            for (std::size_t i = 0; i + 1 < half; ++i)
                EXPECT_NEAR(book.thresholds[half + i], number(list("thr")[i]), 1e-15) << name << " " << bits;
            test::expect_relative(book.distortion, number(*row->find("D")), 1e-15, name);
            EXPECT_NEAR(book.entropy_bits, number(*row->find("H")), 1e-14);  // the table has 15 digits
            EXPECT_EQ(book.bits, bits);
        }
    }
}

TEST(LloydMax, LevelsAreCentroidsAndThresholdsAreMidpoints) {
    for (const int dimension : {0, 2, 3, 4, 5, 8, 17, 128, 4096}) {
        for (int bits = 1; bits <= 8; ++bits) {
            const Codebook book = codebook(dimension, bits);
            const std::size_t half = std::size_t{1} << (bits - 1);
            double distortion = 1.0;
            double total = 0.0;
            for (std::size_t i = 0; i < half; ++i) {
                const long double low = i == 0 ? 0.0L : book.thresholds[half - 1 + i];
                const long double high = i + 1 == half ? support_end(dimension) : book.thresholds[half + i];
                const long double mass = mass_below(dimension, high) - mass_below(dimension, low);
                const long double moment = moment_below(dimension, high) - moment_below(dimension, low);
                const double level = book.levels[half + i];
                // Differences of closed forms lose digits in narrow bins and in bins of small probability.
                const double slack = 5e-15 + 2e-17 / static_cast<double>(mass);
                EXPECT_NEAR(level, static_cast<double>(moment / mass), slack) << "d " << dimension << " bits " << bits;
                EXPECT_NEAR(book.probabilities[half + i], static_cast<double>(mass), 1e-15);
                distortion -= 2.0 * level * level * book.probabilities[half + i];
                total += 2.0 * book.probabilities[half + i];
                if (i > 0) {
                    EXPECT_NEAR(static_cast<double>(low), 0.5 * (level + book.levels[half + i - 1]), 1e-15);
                }
            }
            EXPECT_NEAR(total, 1.0, 1e-14);
            EXPECT_NEAR(book.distortion, distortion, 1e-14);
            EXPECT_NEAR(book.linear_gain, 1.0 - book.distortion, 1e-15);
            EXPECT_LE(book.entropy_bits, bits + 1e-14);
        }
    }
}

TEST(LloydMax, CodebooksAreExactlySymmetricAndStrictlyIncreasing) {
    for (const int dimension : {0, 2, 3, 128}) {
        for (int bits = 1; bits <= 8; ++bits) {
            const Codebook book = codebook(dimension, bits);
            const std::size_t count = std::size_t{1} << bits;
            ASSERT_EQ(book.levels.size(), count);
            ASSERT_EQ(book.thresholds.size(), count - 1);
            ASSERT_EQ(book.probabilities.size(), count);
            for (std::size_t i = 0; i < count; ++i) {
                EXPECT_EQ(book.levels[i], -book.levels[count - 1 - i]);
                EXPECT_EQ(book.probabilities[i], book.probabilities[count - 1 - i]);
            }
            for (std::size_t i = 0; i + 1 < count; ++i) {
                EXPECT_LT(book.levels[i], book.thresholds[i]);
                EXPECT_LT(book.thresholds[i], book.levels[i + 1]);
                EXPECT_EQ(book.thresholds[i], -book.thresholds[count - 2 - i]);
            }
        }
    }
}

TEST(LloydMax, UniformLawInThreeDimensionsHasEquallySpacedLevels) {
    for (int bits = 1; bits <= 8; ++bits) {
        const Codebook book = lloyd_max_sphere(3, bits);
        const double bins = std::pow(2.0, bits);
        for (std::size_t i = 0; i < book.levels.size(); ++i)
            EXPECT_NEAR(book.levels[i], std::sqrt(3.0) * ((2.0 * static_cast<double>(i) + 1.0) / bins - 1.0), 1e-15);
        EXPECT_DOUBLE_EQ(book.distortion, 1.0 / (bins * bins));
        EXPECT_NEAR(book.entropy_bits, bits, 1e-14);
    }
}

TEST(LloydMax, NoOtherStartOfLloydsAlgorithmBeatsTheArcsineCodebook) {
    // The density of the arcsine law is not log-concave, so that a second fixed point could exist.
    std::mt19937_64 random(5);
    const double pi = std::acos(-1.0);
    const double end = std::sqrt(2.0);
    for (int bits = 1; bits <= 3; ++bits) {
        const std::size_t count = std::size_t{1} << bits;
        const double best = lloyd_max_sphere(2, bits).distortion;
        for (int start = 0; start < 40; ++start) {
            std::vector<double> level(count);
            for (double& value : level) value = std::uniform_real_distribution<double>(-end, end)(random);
            std::sort(level.begin(), level.end());
            double distortion = 1.0;
            for (int iteration = 0; iteration < 400; ++iteration) {
                distortion = 1.0;
                std::vector<double> moved(count);
                for (std::size_t i = 0; i < count; ++i) {
                    const double low = i == 0 ? -end : 0.5 * (level[i - 1] + level[i]);
                    const double high = i + 1 == count ? end : 0.5 * (level[i] + level[i + 1]);
                    const double mass =
                        (std::asin(std::min(1.0, high / end)) - std::asin(std::max(-1.0, low / end))) / pi;
                    const double moment =
                        (std::sqrt(std::max(0.0, 2.0 - low * low)) - std::sqrt(std::max(0.0, 2.0 - high * high))) / pi;
                    moved[i] = moment / mass;
                    distortion -= moment * moment / mass;
                }
                level = moved;
            }
            EXPECT_GE(distortion, best - 1e-12) << bits;
        }
    }
}

TEST(LloydMax, SphereLawApproachesTheNormalLaw) {
    for (int bits = 1; bits <= 8; ++bits) {
        const double normal = lloyd_max_normal(bits).distortion;
        double gap = normal - lloyd_max_sphere(64, bits).distortion;
        EXPECT_GT(gap, 0.0);
        const double smaller = normal - lloyd_max_sphere(128, bits).distortion;
        EXPECT_NEAR(gap / smaller, 2.0, 0.1) << "the difference is of order 1/d";
        test::expect_relative(lloyd_max_sphere(1000000000, bits).distortion, normal, 1e-7, "d = 10^9");
    }
}

TEST(LloydMax, DimensionOneIsTheLawOfASign) {
    const Codebook book = lloyd_max_sphere(1, 1);
    EXPECT_EQ(book.levels, (std::vector<double>{-1.0, 1.0}));
    EXPECT_EQ(book.distortion, 0.0);
    EXPECT_EQ(book.linear_gain, 1.0);
    expect_rejected([] { (void)lloyd_max_sphere(1, 2); }, "use 1 bit");
}

TEST(LloydMax, RejectsImpossibleSizes) {
    expect_rejected([] { (void)lloyd_max_normal(0); }, "1 to 8");
    expect_rejected([] { (void)lloyd_max_normal(9); }, "1 to 8");
    expect_rejected([] { (void)lloyd_max_sphere(128, -1); }, "1 to 8");
    expect_rejected([] { (void)lloyd_max_sphere(0, 2); }, "dimension 0");
}

}  // namespace
}  // namespace spiked::theory

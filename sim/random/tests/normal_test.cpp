#include "sim/random/normal.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "core/files/sha256.hpp"
#include "core/runtime/error.hpp"
#include "sim/random/normal_paths.hpp"
#include "sim/random/tests/statistics.hpp"

namespace spiked::stream {
namespace {

std::uint64_t bits_of(double x) { return std::bit_cast<std::uint64_t>(x); }
std::uint32_t bits_of(float x) { return std::bit_cast<std::uint32_t>(x); }

struct Uniforms {
    std::uint64_t u;  // in units of 2^-bits
    std::uint64_t v;
    int bits;
};

/// The pair of uniforms behind entry `within` of a word block.
Uniforms uniforms(const PhiloxCounter& words, std::size_t within, double) {
    (void)within;
    return {((std::uint64_t{words[1]} << 32 | words[0]) >> 11) + 1, (std::uint64_t{words[3]} << 32 | words[2]) >> 11,
            53};
}
Uniforms uniforms(const PhiloxCounter& words, std::size_t within, float) {
    return {std::uint64_t{words[within / 2 * 2]} + 1, words[within / 2 * 2 + 1], 32};
}

/// Box-Muller in long double. Whole quarter turns are subtracted from the angle as integers, so that zeros are exact.
template <class Real>
long double reference(const PhiloxCounter& words, std::size_t within) {
    const Uniforms from = uniforms(words, within, Real());
    const std::uint64_t quarter = std::uint64_t{1} << (from.bits - 2);
    const std::uint64_t nearest = (from.v + quarter / 2) / quarter;
    const long double rest = static_cast<long double>(static_cast<std::int64_t>(from.v - nearest * quarter)) / quarter;
    const long double radius = std::sqrt(-2.0L * std::log(std::ldexp(static_cast<long double>(from.u), -from.bits)));
    const long double cosine = std::cos(std::numbers::pi_v<long double> / 2 * rest);
    const long double sine = std::sin(std::numbers::pi_v<long double> / 2 * rest);
    const long double turns[5] = {cosine, -sine, -cosine, sine, cosine};
    return radius * turns[(nearest + (within % 2 == 0 ? 0 : 3)) % 4];
}

/// The distance in units in the last place of `expected`.
template <class Real, class Wide>
double ulps(Real found, const Wide& expected) {
    if (expected == 0) return found == 0 ? 0.0 : std::numeric_limits<double>::infinity();
    const int exponent = std::ilogb(static_cast<Real>(expected));
    const Wide distance = Wide(found) - expected;
    return std::abs(std::ldexp(static_cast<double>(distance), std::numeric_limits<Real>::digits - 1 - exponent));
}

template <class Real>
constexpr double documented_ulps = sizeof(Real) == 8 ? 3.0 : 5.0;

template <class Real>
class Normal : public testing::Test {};
template <class Real>
class NormalAccuracy : public testing::Test {};
template <class Real>
class NormalLaw : public testing::Test {};
template <class Real>
class NormalControl : public testing::Test {};

using Precisions = testing::Types<double, float>;
TYPED_TEST_SUITE(Normal, Precisions, );
TYPED_TEST_SUITE(NormalAccuracy, Precisions, );
TYPED_TEST_SUITE(NormalLaw, Precisions, );
TYPED_TEST_SUITE(NormalControl, Precisions, );

template <class Real>
constexpr std::uint64_t entries_of_a_stream = std::uint64_t{detail::block_normals<Real>} << 32;

// Tries every alignment of the first and the last entry to word blocks and groups, including elements near the end of a
// stream and replicates of 64 bits.
TYPED_TEST(Normal, Avx2AndPlainPathsAgreeBitForBit) {
    using Real = TypeParam;
    const auto* fast = detail::avx2_path<Real>();
    if (fast == nullptr) GTEST_SKIP() << "this processor has no AVX2";
    const auto expect_equal = [&](const Stream& stream, std::uint64_t first, std::size_t size) {
        std::vector<Real> found(size + 1, Real(77));
        std::vector<Real> expected(size + 1, Real(77));
        detail::fill_normal(*fast, stream, first, std::span(found).first(size));
        detail::fill_normal(detail::plain_path<Real>(), stream, first, std::span(expected).first(size));
        for (std::size_t i = 0; i <= size; ++i)
            ASSERT_EQ(bits_of(found[i]), bits_of(expected[i])) << "entry " << first << " + " << i << " of " << size;
    };
    const Stream stream(test_seed, "paths", Role::noise, 3);
    const Stream far(test_seed, "far", Role::rotation, 0xFEDCBA9876543210U);
    constexpr std::uint64_t end = entries_of_a_stream<Real>;
    for (std::size_t size = 0; size <= 67; ++size) {
        for (std::uint64_t first = 0; first <= 9; ++first) ASSERT_NO_FATAL_FAILURE(expect_equal(stream, first, size));
        ASSERT_NO_FATAL_FAILURE(expect_equal(far, end / 2 - 31, size));
        ASSERT_NO_FATAL_FAILURE(expect_equal(far, end - size, size));
    }
    ASSERT_NO_FATAL_FAILURE(expect_equal(stream, 0, 1 << 17));
    ASSERT_NO_FATAL_FAILURE(expect_equal(far, 12345, 100003));
}

const std::uint32_t extreme_words[] = {
    0,          1,          0x7FF,      0x800,      0xFFFF,     0x10000,    0x1FFFFFFF, 0x20000000,
    0x20000001, 0x3FFFFFFF, 0x40000000, 0x40000001, 0x5FFFFFFF, 0x60000000, 0x7FFFFFFF, 0x80000000,
    0x80000001, 0xA0000000, 0xB504F333, 0xB504F334, 0xBFFFFFFF, 0xC0000000, 0xE0000000, 0xFFFFFFFF,
};

TYPED_TEST(NormalAccuracy, ExtremeWordsStayWithinTheDocumentedErrorOnEveryPath) {
    using Real = TypeParam;
    constexpr std::size_t per_block = detail::block_normals<Real>;
    const auto* fast = detail::avx2_path<Real>();
    double worst = 0.0;
    for (const auto first : extreme_words)
        for (const auto second : extreme_words)
            for (const auto third : extreme_words)
                for (std::size_t begin = 0; begin < std::size(extreme_words); begin += detail::group_blocks) {
                    detail::WordGroup words;
                    for (std::size_t block = 0; block < words.size(); ++block)
                        words[block] = {first, second, third, extreme_words[begin + block]};
                    Real plain[detail::group_blocks * per_block];
                    Real other[detail::group_blocks * per_block];
                    detail::plain_path<Real>().from_words(words, plain);
                    if (fast != nullptr) fast->from_words(words, other);
                    for (std::size_t i = 0; i < std::size(plain); ++i) {
                        if (fast != nullptr) {
                            ASSERT_EQ(bits_of(other[i]), bits_of(plain[i]));
                        }
                        worst = std::max(worst, ulps(plain[i], reference<Real>(words[i / per_block], i % per_block)));
                    }
                }
    EXPECT_LT(worst, documented_ulps<Real>);
}

TYPED_TEST(NormalAccuracy, AMillionEntriesStayWithinTheDocumentedError) {
    using Real = TypeParam;
    constexpr std::size_t per_block = detail::block_normals<Real>;
    std::vector<Real> x(1000000);
    const Stream stream(test_seed, "accuracy", Role::noise, 0);
    fill_normal(stream, x);
    double worst = 0.0;
    for (std::size_t i = 0; i < x.size(); ++i)
        worst = std::max(
            worst, ulps(x[i], reference<Real>(stream.words(static_cast<std::uint32_t>(i / per_block)), i % per_block)));
    EXPECT_LT(worst, documented_ulps<Real>);
    EXPECT_GT(worst, 1.0) << "the error measure detects no rounding at all";
}

// Words with u within 2^-k of 1 and v within 2^-k of a multiple of 1/4 for every k, where the logarithm, cosine or sine
// vanish.
TYPED_TEST(NormalAccuracy, EntriesNearZerosKeepTheirRelativeAccuracy) {
    using Real = TypeParam;
    constexpr std::size_t per_block = detail::block_normals<Real>;
    const Stream stream(test_seed, "zeros", Role::noise, 0);
    double worst = 0.0;
    for (std::uint32_t element = 0; element < 1 << 14; ++element) {
        detail::WordGroup group{};
        auto& words = group[0] = stream.words(element);
        const auto near_one = [&](std::uint32_t word) { return ~(word >> element % 32); };
        const auto near_quarter = [&](std::uint32_t word) {
            const std::uint32_t distance = (word & 0x1FFFFFFFU) >> (element / 32) % 30;
            return (word & 0xC0000000U) + ((word & 0x20000000U) != 0 ? distance : 0U - distance);
        };
        if (per_block == 2) {
            words[1] = near_one(words[1]);
            words[3] = near_quarter(words[3]);
        } else {
            words = {near_one(words[0]), near_quarter(words[1]), near_one(words[2]), near_quarter(words[3])};
        }
        Real x[detail::group_blocks * per_block];
        detail::plain_path<Real>().from_words(group, x);
        for (std::size_t i = 0; i < per_block; ++i) worst = std::max(worst, ulps(x[i], reference<Real>(words, i)));
    }
    EXPECT_LT(worst, documented_ulps<Real>);
}

TEST(NormalReach, ZeroWordsGiveTheLargestNormalsAndFullWordsZero) {
    detail::WordGroup words{};
    words[1] = {~0U, ~0U, ~0U, ~0U};
    double in_double[2 * detail::group_blocks];
    float in_float[4 * detail::group_blocks];
    detail::plain_path<double>().from_words(words, in_double);
    detail::plain_path<float>().from_words(words, in_float);
    EXPECT_NEAR(in_double[0], std::sqrt(2.0 * 53.0 * std::numbers::ln2), 4e-15);
    EXPECT_NEAR(in_float[0], std::sqrt(2.0 * 32.0 * std::numbers::ln2), 1e-6);
    EXPECT_GT(in_double[0], 8.57);
    EXPECT_GT(in_float[0], 6.66F);
    for (const double x : {in_double[1], in_double[2], in_double[3]}) EXPECT_EQ(x, 0.0);
    for (const float x : {in_float[1], in_float[4], in_float[5], in_float[6]}) EXPECT_EQ(x, 0.0F);
}

TYPED_TEST(Normal, AnyPartOfAnArrayHoldsTheSameNumbers) {
    using Real = TypeParam;
    const Stream stream(test_seed, "parts", Role::noise, 3);
    std::vector<Real> all(1001);
    fill_normal(stream, all);
    for (const std::size_t first : {0, 1, 2, 3, 17, 500, 1000, 1001})
        for (const std::size_t size : {0, 1, 5, 64, 333}) {
            std::vector<Real> part(std::min(size, all.size() - first));
            fill_normal(stream, first, part);
            for (std::size_t i = 0; i < part.size(); ++i) ASSERT_EQ(part[i], all[first + i]);
        }
}

TYPED_TEST(Normal, EndsWithItsStream) {
    using Real = TypeParam;
    const Stream stream(test_seed, "end", Role::noise, 0);
    std::vector<Real> x(3);
    constexpr std::uint64_t end = entries_of_a_stream<Real>;
    EXPECT_NO_THROW(fill_normal(stream, end - 3, x));
    EXPECT_NO_THROW(fill_normal(stream, end, std::span(x).first(0)));
    for (const std::uint64_t first : {end - 2, end, end + 1, std::numeric_limits<std::uint64_t>::max()})
        EXPECT_THROW(fill_normal(stream, first, x), Error) << first;
    EXPECT_THROW(fill_normal(stream, std::span<Real>(x.data(), end + 1)),
                 Error);  // rejected before anything is written
}

using Exact = boost::multiprecision::number<boost::multiprecision::cpp_bin_float<50>>;

/// Box-Muller in 50 digits, directly from its formula.
template <class Real>
Exact by_the_formula(const PhiloxCounter& words, std::size_t within) {
    const Uniforms from = uniforms(words, within, Real());
    const Exact u = ldexp(Exact(from.u), -from.bits);
    const Exact angle = 2 * boost::math::constants::pi<Exact>() * ldexp(Exact(from.v), -from.bits);
    const Exact radius = sqrt(-2 * log(u));
    return radius * (within % 2 == 0 ? cos(angle) : sin(angle));
}

/// Expects the first entries, and the hash of 2^16 entries, to be the frozen ones.
template <class Real, std::size_t size>
void expect_frozen(const Real (&frozen)[size], const char* hash) {
    const Stream stream(test_seed, "golden", Role::noise, 9);
    Real x[size];
    fill_normal(stream, x);
    for (std::size_t i = 0; i < size; ++i) {
        EXPECT_EQ(bits_of(x[i]), bits_of(frozen[i])) << i << ": " << std::hexfloat << x[i];
        const auto words = stream.words(static_cast<std::uint32_t>(i / detail::block_normals<Real>));
        const Exact exact = by_the_formula<Real>(words, i % detail::block_normals<Real>);
        EXPECT_LT(ulps(frozen[i], exact), documented_ulps<Real>) << i;
    }
    std::vector<Real> many(1 << 16);
    fill_normal(stream, many);
    EXPECT_EQ(hex(sha256({reinterpret_cast<const char*>(many.data()), many.size() * sizeof(Real)})), hash);
}

// Every result depends on the draws, so these must not change with the compiler, the processor or the version.
TEST(NormalStability, DoublesAreTheFrozenOnes) {
    expect_frozen<double>({-0x1.58c9323d00a2ep-1, -0x1.96c8a2c26d438p-3, -0x1.79732aa0e51c5p+0, 0x1.593ad98f0fbdfp+0,
                           0x1.4399fd97fcb4cp+0, 0x1.060e37190230ap+0, 0x1.a4a63c2db3256p-4, -0x1.fd094aa9b1125p-3},
                          "1a06f5201d1d47e72fe668d58bc81b864ba00b5c72d3a3e78515f583db58aaea");
}
TEST(NormalStability, FloatsAreTheFrozenOnes) {
    expect_frozen<float>({0x1.44f042p-1F, -0x1.944f0ap+1F, -0x1.f113c8p-1F, -0x1.253acep-2F, 0x1.0dc3p+0F,
                          0x1.3546b2p+0F, -0x1.52737p-1F, 0x1.358f5cp-1F},
                         "f0bda0cbf0eac5484ada4c262afee7bf64fda89dba3b9e9421cc76b6d3e999d6");
}

struct Statistic {
    std::string name;
    double found;
    double expected;
    double deviation;  // standard deviation of `found` under the law
};

/// The first four moments; then, for lags 1 to 8, the means of x_i x_{i+lag} and of (x_i^2 - 1)(x_{i+lag}^2 - 1).
std::vector<Statistic> statistics(const std::vector<double>& x) {
    const double root = std::sqrt(static_cast<double>(x.size()));
    double moments[4] = {};
    for (const double v : x) {
        double power = 1.0;
        for (double& moment : moments) moment += (power *= v);
    }
    std::vector<Statistic> all;
    const double expected[] = {0, 1, 0, 3};
    const double variance[] = {1, 2, 15, 96};
    for (std::size_t k = 0; k < 4; ++k)
        all.push_back({fmt::format("moment {}", k + 1), moments[k] / static_cast<double>(x.size()), expected[k],
                       std::sqrt(variance[k]) / root});
    for (std::size_t lag = 1; lag <= 8; ++lag) {
        double product = 0.0;
        double of_squares = 0.0;
        for (std::size_t i = 0; i + lag < x.size(); ++i) {
            const double other = x[i + lag];
            product += x[i] * other;
            of_squares += (x[i] * x[i] - 1.0) * (other * other - 1.0);
        }
        const double count = static_cast<double>(x.size() - lag);
        all.push_back({fmt::format("correlation at {}", lag), product / count, 0.0, 1.0 / root});
        all.push_back({fmt::format("correlation of squares at {}", lag), of_squares / count, 0.0, 2.0 / root});
    }
    return all;
}

/// The number of comparisons: for each of two precisions the statistics above and a Kolmogorov-Smirnov distance.
constexpr double comparisons = 2.0 * (4.0 + 16.0 + 1.0);

template <class Real>
std::vector<double> sample() {
    std::vector<Real> x(1 << 22);
    fill_normal(Stream(test_seed, "law", Role::noise, 0), x);
    return {x.begin(), x.end()};
}

double standard_normal(double x) { return 0.5 * std::erfc(-x * std::numbers::sqrt2 / 2.0); }

TYPED_TEST(NormalLaw, MomentsDistributionAndNeighboursFitTheStandardNormal) {
    using Real = TypeParam;
    const std::vector<double> x = sample<Real>();
    const double z = two_sided_z(comparisons);
    for (const auto& [name, found, expected, deviation] : statistics(x))
        EXPECT_LT(std::abs(found - expected), z * deviation) << name << ", detectable " << 2.0 * z * deviation;
    EXPECT_LT(kolmogorov_distance(x, standard_normal), kolmogorov_limit(x.size(), comparisons));
}

TYPED_TEST(NormalControl, DetectsAStandardDeviationThatIsOffByOnePercent) {
    std::vector<double> x = sample<TypeParam>();
    for (double& v : x) v *= 1.01;
    const auto all = statistics(x);
    EXPECT_GT(std::abs(all[1].found - all[1].expected), two_sided_z(comparisons) * all[1].deviation);
    EXPECT_GT(kolmogorov_distance(x, standard_normal), kolmogorov_limit(x.size(), comparisons));
}

TYPED_TEST(NormalControl, DetectsPartnersThatAreCorrelatedByOnePercent) {
    std::vector<double> x = sample<TypeParam>();
    for (std::size_t i = 0; i < x.size(); i += 2) x[i + 1] = 0.01 * x[i] + std::sqrt(1.0 - 1e-4) * x[i + 1];
    const auto all = statistics(x);
    EXPECT_GT(std::abs(all[4].found), two_sided_z(comparisons) * all[4].deviation) << all[4].name;
}

// Partners with equal magnitudes in one pair of 50: they are uncorrelated, but their squares are correlated.
TYPED_TEST(NormalControl, DetectsPartnersWithDependentMagnitudes) {
    std::vector<double> x = sample<TypeParam>();
    for (std::size_t i = 0; i < x.size(); i += 100) x[i + 1] = std::copysign(x[i], x[i + 1]);
    const auto all = statistics(x);
    EXPECT_GT(std::abs(all[5].found), two_sided_z(comparisons) * all[5].deviation) << all[5].name;
}

}  // namespace
}  // namespace spiked::stream

#include "sim/spiked/entry_law.hpp"

#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/laplace.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/distributions/uniform.hpp>
#include <boost/math/quadrature/exp_sinh.hpp>
#include <boost/random/laplace_distribution.hpp>
#include <boost/random/student_t_distribution.hpp>
#include <functional>
#include <map>
#include <set>

#include "core/files/tests/scratch.hpp"
#include "sim/random/element_engine.hpp"
#include "sim/random/normal.hpp"
#include "sim/random/tests/statistics.hpp"

namespace spiked::sim {
namespace {

using stream::false_alarm;
using stream::kolmogorov_distance;
using stream::kolmogorov_limit;
using stream::two_sided_z;

using stream::Role;
using stream::Stream;

std::vector<double> draws(const std::string& law, std::size_t count) {
    std::vector<double> x(count);
    fill_entries(EntryLaw::parse(law), Stream(stream::test_seed, "entries " + law, Role::noise, 0), x);
    return x;
}

/// E x^k, k = 0..8, of a law with two values. These expected moments do not use the code under test.
std::vector<double> two_values(double high, double p, double low) {
    std::vector<double> moments;
    for (int k = 0; k <= 8; ++k) moments.push_back(p * std::pow(high, k) + (1.0 - p) * std::pow(low, k));
    return moments;
}

/// The same of `sparse:P`.
std::vector<double> sparse_signs(double p) {
    std::vector<double> moments = two_values(1.0 / std::sqrt(p), p, 0.0);
    for (int k = 1; k <= 8; k += 2) moments[static_cast<std::size_t>(k)] = 0.0;
    moments[0] = 1.0;
    return moments;
}

const std::map<std::string, std::vector<double>> moments_by_hand = {
    {"gaussian", {1, 0, 1, 0, 3, 0, 15, 0, 105}},
    {"rademacher", {1, 0, 1, 0, 1, 0, 1, 0, 1}},
    {"uniform", {1, 0, 1, 0, 9.0 / 5, 0, 27.0 / 7, 0, 9}},
    {"laplace", {1, 0, 1, 0, 24.0 / 4, 0, 720.0 / 8, 0, 40320.0 / 16}},
    {"two-point:0.1", two_values(3.0, 0.1, -1.0 / 3.0)},
    {"two-point:0.5", two_values(1.0, 0.5, -1.0)},
    {"sparse:0.1", sparse_signs(0.1)},
    {"sparse:1", sparse_signs(1.0)},
};

TEST(EntryLawIdentity, DeclaredMomentsAreThoseOfTheLaw) {
    for (const auto& [name, expected] : moments_by_hand) {
        const EntryMoments declared = EntryLaw::parse(name).moments();
        ASSERT_TRUE(declared.skewness) << name;
        EXPECT_NEAR(*declared.skewness, expected[3], 1e-12) << name;
        EXPECT_NEAR(declared.kurtosis, expected[4], 1e-12 * expected[4]) << name;
        EXPECT_EQ(declared.order, std::numeric_limits<double>::infinity()) << name;
        EXPECT_EQ(declared.sub_gaussian, name != "laplace") << name;
    }
}

TEST(EntryLawIdentity, MomentsOfStudentFollowItsDegreesOfFreedom) {
    boost::math::quadrature::exp_sinh<double> half_line;
    for (const double nu : {4.5, 5.0, 10.0, 60.0}) {
        const EntryMoments declared = EntryLaw::parse(fmt::format("student:{}", nu)).moments();
        const boost::math::students_t law(nu);
        const double scale = (nu - 2.0) / nu;
        const auto power = [&](double k) {
            return 2.0 * half_line.integrate([&](double x) {
                return x < 1e40 ? std::pow(x, k) * boost::math::pdf(law, x) : 0.0;  // the rest is below rounding
            });
        };
        EXPECT_NEAR(scale * power(2.0), 1.0, 1e-6) << nu;
        EXPECT_NEAR(declared.kurtosis / (scale * scale * power(4.0)), 1.0, 1e-4) << nu;
        EXPECT_EQ(declared.order, nu);
        EXPECT_FALSE(declared.sub_gaussian);
    }
    EXPECT_EQ(EntryLaw::parse("student:4").moments().kurtosis, std::numeric_limits<double>::infinity());
    EXPECT_EQ(EntryLaw::parse("student:3.5").moments().skewness, 0.0);
    EXPECT_FALSE(EntryLaw::parse("student:3").moments().skewness);
}

/// Largest deviation of the sample means of x, x^2, x^3, x^4 from those of the law, relative to its limit; above 1 the
/// test rejects.
double worst_moment(const std::vector<double>& sample, const std::vector<double>& expected, double scale) {
    const double count = static_cast<double>(sample.size());
    const double z = two_sided_z(4.0 * static_cast<double>(moments_by_hand.size()));
    double worst = 0.0;
    for (std::size_t k = 1; k <= 4; ++k) {
        double mean = 0.0;
        for (const double x : sample) mean += std::pow(scale * x, static_cast<double>(k)) / count;
        const double variance = expected[2 * k] - expected[k] * expected[k];
        const double limit = z * std::sqrt(variance / count) + 1e-12 * expected[2 * k];  // the variance may be 0
        worst = std::max(worst, std::abs(mean - expected[k]) / limit);
    }
    return worst;
}

TEST(EntryLawLaw, DrawsHaveTheMomentsOfTheLaw) {
    for (const auto& [name, expected] : moments_by_hand)
        EXPECT_LT(worst_moment(draws(name, 1 << 20), expected, 1.0), 1.0)
            << name << ": detectable is twice the limit in mean, variance, third or fourth moment";
}

TEST(EntryLawControl, AStandardDeviationOffByTwoPercentIsDetected) {
    for (const auto& [name, expected] : moments_by_hand)
        EXPECT_GT(worst_moment(draws(name, 1 << 20), expected, 1.02), 1.0) << name;
}

TEST(EntryLawControl, AnotherLawOfTheSameVarianceIsDetected) {
    EXPECT_GT(worst_moment(draws("laplace", 1 << 20), moments_by_hand.at("gaussian"), 1.0), 1.0);
    EXPECT_GT(worst_moment(draws("two-point:0.1", 1 << 20), moments_by_hand.at("sparse:0.1"), 1.0), 1.0);
}

/// Distribution functions of the continuous laws by Boost.Math. They also test laws whose moments are infinite or whose
/// sample moments hardly converge (student).
std::map<std::string, std::function<double(double)>> distribution_functions() {
    const auto student = [](double nu) {
        return [nu](double x) { return boost::math::cdf(boost::math::students_t(nu), x / std::sqrt((nu - 2.0) / nu)); };
    };
    return {{"gaussian", [](double x) { return boost::math::cdf(boost::math::normal(), x); }},
            {"uniform",
             [](double x) { return boost::math::cdf(boost::math::uniform(-std::sqrt(3.0), std::sqrt(3.0)), x); }},
            {"laplace", [](double x) { return boost::math::cdf(boost::math::laplace(0.0, std::sqrt(0.5)), x); }},
            {"student:2.1", student(2.1)},
            {"student:3", student(3.0)},
            {"student:5", student(5.0)},
            {"student:40", student(40.0)}};
}

TEST(EntryLawLaw, ContinuousLawsHaveTheirDistributionFunction) {
    constexpr std::size_t count = 200000;
    const auto functions = distribution_functions();
    const double limit = kolmogorov_limit(count, static_cast<double>(functions.size()));
    for (const auto& [name, function] : functions)
        EXPECT_LT(kolmogorov_distance(draws(name, count), function), limit)
            << name << ": detectable is a distance of " << 2.0 * limit;
}

TEST(EntryLawControl, ASimilarLawIsDetected) {
    constexpr std::size_t count = 200000;
    auto functions = distribution_functions();
    const double limit = kolmogorov_limit(count, static_cast<double>(functions.size()));
    EXPECT_GT(kolmogorov_distance(draws("student:3", count), functions["student:5"]), limit);
    EXPECT_GT(kolmogorov_distance(draws("student:5", count), functions["gaussian"]), limit);
    EXPECT_GT(kolmogorov_distance(draws("uniform", count), functions["gaussian"]), limit);
    auto wider = draws("laplace", count);
    for (double& x : wider) x *= 1.1;
    EXPECT_GT(kolmogorov_distance(wider, functions["laplace"]), limit);
}

// In the far tails the Kolmogorov distance has no power, but the number of draws beyond the two-sided quantile of
// probability p is binomial.
TEST(EntryLawLaw, TailsOfStudentHaveTheirProbability) {
    constexpr std::size_t count = 400000;
    for (const double nu : {2.1, 3.0, 5.0})
        for (const double p : {1e-2, 1e-3, 1e-4}) {
            const double quantile = std::sqrt((nu - 2.0) / nu) * boost::math::quantile(boost::math::complement(
                                                                     boost::math::students_t(nu), p / 2.0));
            double beyond = 0.0;
            for (const double x : draws(fmt::format("student:{}", nu), count)) beyond += std::abs(x) > quantile;
            const boost::math::binomial law(count, p);
            const double tail = false_alarm / 18.0;
            EXPECT_GE(beyond, boost::math::quantile(law, tail)) << nu << " " << p;
            EXPECT_LE(beyond, boost::math::quantile(boost::math::complement(law, tail))) << nu << " " << p;
        }
}

TEST(EntryLaw, DiscreteLawsTakeTheirValuesOnly) {
    const auto values = [](const std::string& law) {
        const auto x = draws(law, 20000);
        return std::set<double>(x.begin(), x.end());
    };
    EXPECT_EQ(values("rademacher"), (std::set<double>{-1.0, 1.0}));
    EXPECT_EQ(values("sparse:0.25"), (std::set<double>{-2.0, 0.0, 2.0}));
    EXPECT_EQ(values("sparse:1"), (std::set<double>{-1.0, 1.0}));
    EXPECT_EQ(values("two-point:0.2"), (std::set<double>{-0.5, 2.0}));
}

// Every number is a function of its address, so part of an array holds the numbers of the whole array.
TEST(EntryLaw, AnyPrefixOfAnArrayHoldsTheSameNumbers) {
    for (const char* name :
         {"gaussian", "rademacher", "uniform", "laplace", "student:3", "two-point:0.3", "sparse:0.4"}) {
        const auto part = draws(name, 101);
        const auto all = draws(name, 1000);
        for (std::size_t i = 0; i < part.size(); ++i) ASSERT_EQ(part[i], all[i]) << name;
        std::vector<double> other(101);
        fill_entries(EntryLaw::parse(name), Stream(stream::test_seed, std::string("entries ") + name, Role::noise, 1),
                     other);
        EXPECT_NE(part, other) << name;
    }
}

TEST(EntryLawStability, EntriesAreFunctionsOfTheWordsOfTheirElement) {
    const Stream stream(stream::test_seed, "words", Role::noise, 9);
    const auto filled = [&](const char* name) {
        std::vector<double> x(50);
        fill_entries(EntryLaw::parse(name), stream, x);
        return x;
    };
    std::vector<double> normals(50);
    stream::fill_normal(stream, normals);
    EXPECT_EQ(filled("gaussian"), normals);
    const auto uniform = filled("uniform");
    const auto sign = filled("rademacher");
    const auto sparse = filled("sparse:0.5");
    const auto two_point = filled("two-point:0.2");
    const auto laplace = filled("laplace");
    const auto student = filled("student:6");
    for (std::uint32_t e = 0; e < 50; ++e) {
        const auto words = stream.words(e);
        const double u = static_cast<double>((std::uint64_t{words[1]} << 32 | words[0]) >> 11) / 9007199254740992.0;
        EXPECT_NEAR(uniform[e], std::sqrt(3.0) * (2.0 * u - 1.0), 1e-15);
        EXPECT_EQ(sign[e], words[0] < 0x80000000U ? 1.0 : -1.0);
        EXPECT_EQ(two_point[e], u < 0.2 ? 2.0 : -0.5);
        EXPECT_DOUBLE_EQ(sparse[e], u < 0.5 ? (words[2] < 0x80000000U ? std::sqrt(2.0) : -std::sqrt(2.0)) : 0.0);
        stream::ElementEngine for_laplace(stream, e);
        EXPECT_EQ(laplace[e], boost::random::laplace_distribution<double>(0.0, std::sqrt(2.0) / 2.0)(for_laplace));
        stream::ElementEngine for_student(stream, e);
        EXPECT_DOUBLE_EQ(student[e],
                         boost::random::student_t_distribution<double>(6.0)(for_student) * std::sqrt(4.0 / 6.0));
    }
}

TEST(EntryLaw, KeepsItsTextAsWritten) {
    EXPECT_EQ(EntryLaw().text(), "gaussian");
    EXPECT_TRUE(EntryLaw().gaussian());
    EXPECT_EQ(EntryLaw::parse("student:2.50").text(), "student:2.50");
    EXPECT_FALSE(EntryLaw::parse("student:1e6").gaussian());
}

TEST(EntryLaw, EveryLawIsTestedHere) {
    std::set<std::string> tested;
    for (const auto& [name, moments] : moments_by_hand) tested.insert(parse_name(name).name);
    for (const auto& [name, function] : distribution_functions()) tested.insert(parse_name(name).name);
    for (const auto& line : entry_laws())
        EXPECT_TRUE(tested.contains(parse_name(line.name).name))
            << line.name << ": add it to moments_by_hand or distribution_functions";
}

TEST(EntryLawBadInput, IllegalTexts) {
    const auto fails = [](const std::string& text, std::initializer_list<std::string_view> parts) {
        expect_error(
            ErrorKind::usage, [&] { (void)EntryLaw::parse(text); }, parts);
    };
    fails("gausian", {"unknown entry law \"gausian\"", "did you mean \"gaussian\"?"});
    fails("", {"unknown entry law \"\"", "one of: gaussian, rademacher"});
    fails("gaussian:1", {"\"gaussian:1\"", "gaussian has no variant or option \"1\"", "it takes none"});
    fails("student", {"\"student\" needs one parameter, NU", "write student:NU"});
    fails("student:", {"\"\" is not a number above 2"});
    fails("student:2", {"\"student:2\": 2 is not possible", "above 2"});
    fails("student:-5", {"-5 is not possible"});
    fails("student:nan", {"\"nan\""});
    fails("student:inf", {"\"inf\""});
    fails("student:5:5", {"5 is given twice"});
    fails("student:5:6", {"needs one parameter, NU"});
    fails("student:nu=5", {"no option \"nu\"", "did you mean \"student:5\""});
    fails("two-point:0", {"0 is not possible", "from 1e-09 to"});
    fails("two-point:1", {"1 is not possible"});
    fails("two-point:x", {"\"x\""});
    fails("sparse:0", {"0 is not possible", "from 1e-09 to 1"});
    fails("sparse:1.5", {"1.5 is not possible"});
    fails("sparse:1e-12", {"1e-12 is not possible"});
}

}  // namespace
}  // namespace spiked::sim

#include "theory/laws/marchenko_pastur.hpp"

#include <boost/math/quadrature/tanh_sinh.hpp>
#include <cmath>

#include "theory/tests/reference.hpp"

namespace spiked::theory {
namespace {

constexpr double aspects[] = {0.01, 0.1, 0.25, 0.5, 0.99, 1.0, 1.01, 2.0, 7.0, 100.0};

double moment(const MarchenkoPastur& law, int power, double from, double to) {
    boost::math::quadrature::tanh_sinh<double> rule;
    return rule.integrate([&](double x) { return std::pow(x, power) * law.density({x}); }, from, to, 1e-13);
}

TEST(MarchenkoPastur, HasTheMassMeanAndSecondMomentOfTheNoise) {
    for (const double beta : aspects) {
        const MarchenkoPastur law{AspectRatio(beta)};
        const double low = law.lower_edge().value;
        const double high = law.upper_edge().value;
        const double tolerance =
            beta == 1.0 ? 1e-7 : 1e-9;  // the density is 1/sqrt(x) at 0, which limits the quadrature
        EXPECT_NEAR(law.mass_at_zero() + moment(law, 0, low, high), 1.0, tolerance) << beta;
        EXPECT_NEAR(moment(law, 1, low, high), 1.0, 1e-9) << beta;
        EXPECT_NEAR(moment(law, 2, low, high) / (1.0 + beta), 1.0, 1e-9) << beta;
    }
}

TEST(MarchenkoPastur, CdfIsTheIntegralOfTheDensityPlusTheAtom) {
    for (const double beta : {0.01, 0.3, 0.9, 1.5, 20.0}) {
        const MarchenkoPastur law{AspectRatio(beta)};
        const double low = law.lower_edge().value;
        const double high = law.upper_edge().value;
        for (const double share : {0.01, 0.3, 0.5, 0.8, 0.99}) {
            const double x = low + share * (high - low);
            EXPECT_NEAR(law.cdf({x}), law.mass_at_zero() + moment(law, 0, low, x), 1e-10) << beta << " " << x;
            EXPECT_NEAR(law.survival({x}), moment(law, 0, x, high), 1e-10) << beta << " " << x;
        }
        EXPECT_EQ(law.cdf({-1.0}), 0.0);
        EXPECT_NEAR(law.cdf({0.0}), law.mass_at_zero(), 1e-15);
        EXPECT_EQ(law.cdf({high + 1.0}), 1.0);
        EXPECT_EQ(law.survival({high}), 0.0);
        EXPECT_EQ(law.density({high * 1.01}), 0.0);
    }
}

TEST(MarchenkoPastur, CdfAgreesWithTheClosedFormOfTheLiterature) {
    for (const double beta : {0.1, 0.5, 0.97}) {
        const MarchenkoPastur law{AspectRatio(beta)};
        const double a = law.lower_edge().value;
        const double b = law.upper_edge().value;
        for (double x = a + 0.01 * (b - a); x < b; x += 0.07 * (b - a)) {
            const double form = std::sqrt((b - x) * (x - a)) + 0.5 * (a + b) * std::asin((2 * x - a - b) / (b - a)) -
                                std::sqrt(a * b) * std::asin(((a + b) * x - 2 * a * b) / (x * (b - a)));
            EXPECT_NEAR(law.cdf({x}), 0.5 + form / (2.0 * std::numbers::pi * beta), 1e-14);
        }
    }
}

TEST(MarchenkoPastur, QuantilesInvertTheCdf) {
    for (const double beta : aspects) {
        const MarchenkoPastur law{AspectRatio(beta)};
        for (const double p : {1e-6, 0.01, 0.2, 0.5, 0.77, 0.995, 1.0 - 1e-9}) {
            const Eigenvalue x = law.quantile(p);
            if (p <= law.mass_at_zero())
                EXPECT_EQ(x.value, 0.0);
            else
                EXPECT_NEAR(law.cdf(x), p, 1e-14) << beta << " " << p;
        }
        EXPECT_NEAR(law.quantile(1.0).value, law.upper_edge().value, 1e-14 * law.upper_edge().value);
    }
    EXPECT_NEAR(MarchenkoPastur(AspectRatio(0.5)).quantile(0.0).value, std::pow(1.0 - std::sqrt(0.5), 2), 1e-15);
    test::expect_rejected([] { (void)MarchenkoPastur(AspectRatio(1.0)).quantile(1.5); }, "outside 0 to 1");
    test::expect_rejected([] { (void)MarchenkoPastur(AspectRatio(1.0)).quantile(std::nan("")); }, "outside 0 to 1");
}

TEST(MarchenkoPastur, MediansMatchTheTableOfFortyDigitValues) {
    const double table[][2] = {{0.10, 0.966565147402822}, {0.25, 0.916004070686612}, {0.50, 0.830465881581364},
                               {0.75, 0.742948487007497}, {1.00, 0.652775941633570}, {0.01, 0.996665676338657804},
                               {0.99, 0.656445906143910}};
    for (const auto& [beta, median] : table)
        EXPECT_NEAR(MarchenkoPastur(AspectRatio(beta)).median().value, median, 2e-15) << beta;
}

TEST(MarchenkoPastur, TransposingTheMatrixScalesTheNonzeroPart) {
    const MarchenkoPastur wide{AspectRatio(0.4)};
    const MarchenkoPastur tall{AspectRatio(2.5)};
    for (const double p : {0.1, 0.5, 0.9})
        EXPECT_NEAR(tall.quantile(0.6 + 0.4 * p).value, 2.5 * wide.quantile(p).value, 1e-13);
}

}  // namespace
}  // namespace spiked::theory

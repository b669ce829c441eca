#include "theory/laws/spectrum.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "theory/tests/reference.hpp"

namespace spiked::theory {
namespace {

using test::expect_rejected;

/// The eigenvalues of a symmetric matrix by cyclic Jacobi rotations.
std::vector<double> jacobi_eigenvalues(std::vector<std::vector<double>> a) {
    const std::size_t n = a.size();
    for (int sweep = 0; sweep < 60; ++sweep) {
        for (std::size_t p = 0; p < n; ++p) {
            for (std::size_t q = p + 1; q < n; ++q) {
                if (a[p][q] == 0.0) continue;
                const double angle = 0.5 * std::atan2(2.0 * a[p][q], a[p][p] - a[q][q]);
                const double c = std::cos(angle);
                const double s = std::sin(angle);
                for (std::size_t k = 0; k < n; ++k) {
                    const double x = a[k][p];
                    const double y = a[k][q];
                    a[k][p] = c * x + s * y;
                    a[k][q] = c * y - s * x;
                }
                for (std::size_t k = 0; k < n; ++k) {
                    const double x = a[p][k];
                    const double y = a[q][k];
                    a[p][k] = c * x + s * y;
                    a[q][k] = c * y - s * x;
                }
            }
        }
    }
    std::vector<double> values(n);
    for (std::size_t i = 0; i < n; ++i) values[i] = a[i][i];
    std::sort(values.rbegin(), values.rend());
    return values;
}

TEST(Spectrum, SortsMergesEqualValuesAndNormalisesExactly) {
    const Spectrum spectrum({{1.0, 0.25}, {3.0, 0.25}, {1.0, 0.5 + 4e-10}});
    ASSERT_EQ(spectrum.atoms().size(), 2U);
    EXPECT_EQ(spectrum.atoms()[0].value, 3.0);
    EXPECT_EQ(spectrum.largest(), 3.0);
    EXPECT_NEAR(spectrum.atoms()[1].weight, 0.75, 2e-10);
    EXPECT_DOUBLE_EQ(spectrum.atoms()[0].weight + spectrum.atoms()[1].weight, 1.0);
    EXPECT_NEAR(spectrum.mean(), 1.5, 1e-9);
    EXPECT_NEAR(spectrum.mean_square(), 3.0, 2e-9);
}

TEST(Spectrum, KeepsZeroAtomsWithTheirWeight) {
    const Spectrum spectrum = Spectrum::of_values(std::vector<double>{0.0, 2.0, 0.0, 1.0});
    ASSERT_EQ(spectrum.atoms().size(), 3U);
    EXPECT_EQ(spectrum.atoms()[2].value, 0.0);
    EXPECT_EQ(spectrum.atoms()[2].weight, 0.5);
}

TEST(RelativeAtoms, AreDividedByTheLargestAndKnowTheWeightOfPositiveOnes) {
    const RelativeAtoms atoms(Spectrum({{8.0, 0.25}, {2.0, 0.5}, {0.0, 0.25}}));
    EXPECT_EQ(atoms.value, (std::vector<double>{1.0, 0.25, 0.0}));
    EXPECT_EQ(atoms.weight, (std::vector<double>{0.25, 0.5, 0.25}));
    EXPECT_EQ(atoms.largest, 8.0);
    EXPECT_EQ(atoms.positive_weight, 0.75);
    std::vector<Atom> seven;
    for (int i = 1; i <= 7; ++i) seven.push_back({0.1 * i, 1.0 / 7.0});
    EXPECT_EQ(RelativeAtoms(Spectrum(seven)).positive_weight, 1.0);
}

TEST(Spectrum, RejectsInvalidSpectraAndNamesTheAtom) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const double infinity = std::numeric_limits<double>::infinity();
    expect_rejected([] { Spectrum({}); }, "empty spectrum");
    expect_rejected([] { (void)Spectrum::of_values({}); }, "empty spectrum");
    expect_rejected([] { Spectrum({{1.0, 0.5}, {-1e-3, 0.5}}); }, "atom 2 of the spectrum has value -0.001");
    expect_rejected([&] { Spectrum({{nan, 1.0}}); }, "atom 1 of the spectrum has value nan");
    expect_rejected([&] { Spectrum({{infinity, 1.0}}); }, "has value inf");
    expect_rejected([] { Spectrum({{1.0, 0.0}, {2.0, 1.0}}); }, "atom 1 of the spectrum has weight 0");
    expect_rejected([] { Spectrum({{1.0, -0.5}, {2.0, 1.5}}); }, "weight -0.5");
    expect_rejected([&] { Spectrum({{1.0, nan}}); }, "weight nan");
    expect_rejected([] { Spectrum({{1.0, 0.5}, {2.0, 0.4999}}); }, "weights of the spectrum sum to 0.9999");
    expect_rejected([] { Spectrum({{1.0, 0.5}, {2.0, 0.500000002}}); }, "they must sum to 1");
    expect_rejected([] { Spectrum({{0.0, 1.0}}); }, "all-zero");
}

TEST(Spectrum, BuildersReproduceTheAtomsOfTheReferenceSettings) {
    const auto check = [](const Spectrum& built, const std::string& setting, const std::string& side) {
        const Spectrum expected = test::reference_spectrum(setting, side);
        ASSERT_EQ(built.atoms().size(), expected.atoms().size());
        for (std::size_t i = 0; i < built.atoms().size(); ++i) {
            test::expect_relative(built.atoms()[i].value, expected.atoms()[i].value, 1e-14, setting);
            test::expect_relative(built.atoms()[i].weight, expected.atoms()[i].weight, 1e-15, setting);
        }
    };
    check(identity_spectrum(), "W1", "A");
    check(two_atom_spectrum(0.5, 1.5, 0.5), "TA1", "B");
    check(ar1_symbol_spectrum(0.5, 64), "AR1", "A");
    check(uniform_spectrum(0.5, 1.5, 64), "U1", "B");
    check(exponential_spectrum(3.0, 64), "E1", "B");
}

TEST(Spectrum, ToeplitzEigenvaluesAgreeWithAMatrixEigensolver) {
    for (const double rho : {0.6, -0.8, 0.05, 0.97}) {
        const std::size_t n = 17;
        std::vector<std::vector<double>> matrix(n, std::vector<double>(n));
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t j = 0; j < n; ++j)
                matrix[i][j] = std::pow(rho, std::abs(static_cast<int>(i) - static_cast<int>(j)));
        const std::vector<double> expected = jacobi_eigenvalues(matrix);
        const Spectrum found = toeplitz_ar1_spectrum(rho, n);
        ASSERT_EQ(found.atoms().size(), n);
        for (std::size_t i = 0; i < n; ++i)
            EXPECT_NEAR(found.atoms()[i].value, expected[i], 1e-13 * expected[0]) << "rho " << rho << ", index " << i;
    }
}

TEST(Spectrum, ToeplitzEigenvaluesHaveTheMomentsOfTheirMatrix) {
    for (const double rho : {0.0, 0.3, 0.9, 0.999, 1.0 - 1e-9, -0.5}) {
        for (const std::size_t n : {1U, 2U, 3U, 64U, 1000U}) {
            const Spectrum spectrum = toeplitz_ar1_spectrum(rho, n);
            EXPECT_NEAR(spectrum.mean(), 1.0, 2e-14) << rho << " " << n;
            long double square = static_cast<long double>(n);  // ||matrix||_F^2
            for (std::size_t lag = 1; lag < n; ++lag)
                square += 2.0L * static_cast<long double>(n - lag) * std::pow(static_cast<long double>(rho * rho), lag);
            test::expect_relative(spectrum.mean_square(), static_cast<double>(square / n), 1e-12, "mean square");
        }
    }
    const Spectrum pair = toeplitz_ar1_spectrum(0.25, 2);
    EXPECT_NEAR(pair.atoms()[0].value, 1.25, 1e-15);
    EXPECT_NEAR(pair.atoms()[1].value, 0.75, 1e-15);
}

TEST(Spectrum, PowerAndWishartBuildersFollowTheirDefinitions) {
    const Spectrum power = power_spectrum(0.5, 4);
    EXPECT_DOUBLE_EQ(power.largest(), 1.0);
    EXPECT_DOUBLE_EQ(power.atoms().back().value, 0.5);
    const Spectrum sample = wishart_spectrum(AspectRatio(0.5), 4000);
    EXPECT_NEAR(sample.mean(), 1.0, 1e-5);
    EXPECT_NEAR(sample.mean_square(), 1.5, 1e-4);
    const Spectrum wide = wishart_spectrum(AspectRatio(4.0), 100);
    EXPECT_EQ(wide.atoms().back().value, 0.0);
    EXPECT_NEAR(wide.atoms().back().weight, 0.75, 1e-12);
}

TEST(Spectrum, BuildersRejectImpossibleParameters) {
    expect_rejected([] { (void)ar1_symbol_spectrum(1.0, 8); }, "inside (-1, 1)");
    expect_rejected([] { (void)toeplitz_ar1_spectrum(std::nan(""), 8); }, "inside (-1, 1)");
    expect_rejected([] { (void)toeplitz_ar1_spectrum(0.5, 0); }, "0 points");
    expect_rejected([] { (void)two_atom_spectrum(1.0, 2.0, 1.0); }, "strictly between 0 and 1");
    expect_rejected([] { (void)two_atom_spectrum(-1.0, 2.0, 0.5); }, "value -1");
    expect_rejected([] { (void)uniform_spectrum(2.0, 1.0, 8); }, "0 <= low <= high");
    expect_rejected([] { (void)exponential_spectrum(std::nan(""), 8); }, "decay nan");
    expect_rejected([] { (void)power_spectrum(1.0, 0); }, "0 points");
    expect_rejected([] { (void)AspectRatio(0.0); }, "aspect ratio 0");
    expect_rejected([] { (void)AspectRatio(-1.0); }, "aspect ratio -1");
    expect_rejected([] { (void)wishart_spectrum(AspectRatio(100.0), 10); }, "all-zero");
}

}  // namespace
}  // namespace spiked::theory

#include "theory/missing/missing_entries.hpp"

#include <cmath>
#include <functional>

#include "theory/tests/reference.hpp"

namespace spiked::theory {
namespace {

struct TwoByTwo {
    double at[2][2];
};

/// Of noise with covariances A and B and a signal S, 2 x 2 each: the mean over all 16 masks, which are seen with
/// probability p an entry, of N_ik N_jl d, for N = M o Z / p + (M / p - 1) o S.
double covariance_by_enumeration(const TwoByTwo& a, const TwoByTwo& b, const TwoByTwo& s, double p, int i, int k, int j,
                                 int l) {
    double sum = 0.0;
    for (unsigned mask = 0; mask < 16; ++mask) {
        const auto seen = [&](int row, int column) { return (mask >> (2 * row + column) & 1U) != 0 ? 1.0 : 0.0; };
        double probability = 1.0;
        for (int row = 0; row < 2; ++row)
            for (int column = 0; column < 2; ++column) probability *= seen(row, column) != 0.0 ? p : 1.0 - p;
        const double of_noise = seen(i, k) * seen(j, l) / (p * p) * a.at[i][j] * b.at[k][l];
        const double of_signal = (seen(i, k) / p - 1.0) * (seen(j, l) / p - 1.0) * s.at[i][k] * s.at[j][l] * 2.0;
        sum += probability * (of_noise + of_signal);
    }
    return sum;
}

TEST(MissingEntriesReference, CovariancesAreTheMeansOverAllMasks) {
    constexpr double p = 0.3, rho = 0.4;
    const TwoByTwo correlated = {{{1.0, rho}, {rho, 1.0}}};
    const TwoByTwo diagonal = {{{0.5, 0.0}, {0.0, 2.0}}};
    const TwoByTwo white = {{{1.0, 0.0}, {0.0, 1.0}}};
    const TwoByTwo none = {};
    const Spectrum of_correlated({{1.0 + rho, 0.5}, {1.0 - rho, 0.5}});
    const Spectrum of_diagonal({{2.0, 0.5}, {0.5, 0.5}});
    // A diagonal, B correlated: A (x) B_p, where B_p has the eigenvalues B_p11 +- B_p12.
    const SeenSpectra seen = seen_spectra({of_diagonal, true}, {of_correlated, false}, p);
    EXPECT_EQ(seen.row.atoms()[0].value, 2.0);
    for (const auto& [i, variance] : {std::pair{0, 0.5}, {1, 2.0}}) {
        const double on = covariance_by_enumeration(diagonal, correlated, none, p, i, 0, i, 0);
        const double beside = covariance_by_enumeration(diagonal, correlated, none, p, i, 0, i, 1);
        EXPECT_NEAR(seen.column.atoms()[0].value * variance, on + beside, 1e-14);
        EXPECT_NEAR(seen.column.atoms()[1].value * variance, on - beside, 1e-14);
        EXPECT_NEAR(covariance_by_enumeration(diagonal, correlated, none, p, i, 0, 1 - i, 0), 0.0, 1e-15);
    }
    // The sides exchanged, and both diagonal.
    const SeenSpectra swapped = seen_spectra({of_correlated, false}, {of_diagonal, true}, p);
    EXPECT_NEAR(swapped.row.atoms()[0].value, seen.column.atoms()[0].value, 1e-15);
    EXPECT_EQ(swapped.column.atoms()[0].value, 2.0);
    const SeenSpectra both = seen_spectra({of_diagonal, true}, {of_diagonal, true}, p);
    EXPECT_NEAR(both.row.atoms()[0].value * both.column.atoms()[1].value,
                covariance_by_enumeration(diagonal, diagonal, none, p, 1, 0, 1, 0), 1e-14);
    // A signal of equal entries h: ||S||_F^2 / n = 2 h^2.
    constexpr double h = 0.7;
    const TwoByTwo flat = {{{h, h}, {h, h}}};
    const SeenSpectra with_signal = seen_spectra({identity_spectrum(), true}, {of_correlated, false}, p, 2.0 * h * h);
    const double on = covariance_by_enumeration(white, correlated, flat, p, 1, 0, 1, 0);
    const double beside = covariance_by_enumeration(white, correlated, flat, p, 1, 0, 1, 1);
    EXPECT_NEAR(with_signal.column.atoms()[0].value, on + beside, 1e-14);
    EXPECT_NEAR(with_signal.column.atoms()[1].value, on - beside, 1e-14);
}

/// White noise seen with probability p is white noise p^(-1/2) times as large, for which the formulas of
/// Benaych-Georges and Nadakuditi give the numbers in closed form.
TEST(MissingEntriesReference, WhiteNoiseHasTheClosedForms) {
    const SeenSide white{identity_spectrum(), true};
    for (const double beta : {0.25, 1.0, 2.0})
        for (const double p : {0.2, 0.5, 1.0}) {
            const std::vector<SignalStrength> strengths = {{3.0}, {4.0}, {0.1}};
            const auto [share, threshold, error] =
                loss_against_share(white, white, AspectRatio(beta), strengths, std::vector{p}).front();
            EXPECT_EQ(share, p);
            EXPECT_NEAR(threshold.value, std::pow(beta, 0.25) / std::sqrt(p), 1e-13);
            double lost = 0.0;
            for (const auto [d] : strengths) {
                const double square = d * d * p;  // in units of the noise
                const double left = 1.0 - beta * (1.0 + square) / (square * (square + beta));
                const double right = 1.0 - (beta + square) / (square * (square + 1.0));
                lost += d * d * (square * square > beta ? 1.0 - left * right : 1.0);
            }
            EXPECT_NEAR(error, lost / (9.0 + 16.0 + 0.01), 1e-12) << beta << " " << p;
        }
    // The part of the signal makes the noise larger, by (1/p - 1) ||S||_F^2 / n of its variance.
    const std::vector<SignalStrength> two = {{3.0}, {4.0}};
    const double with_signal =
        loss_against_share(white, white, AspectRatio(1.0), two, std::vector{0.5}, 0.2).front().relative_error;
    const double of_louder =
        loss_against_share(white, white, AspectRatio(1.0), two, std::vector{0.5 / 1.1}).front().relative_error;
    EXPECT_NEAR(with_signal, of_louder, 1e-12);
    EXPECT_EQ(seen_kurtosis(3.0, 0.5), 6.0);  // E (m x)^4 / (E (m x)^2)^2 = 3 p / p^2
}

TEST(MissingEntries, ChangesNothingWhereAllAreSeen) {
    const Spectrum spectrum = toeplitz_ar1_spectrum(0.5, 8);
    const SeenSpectra seen = seen_spectra({spectrum, false}, {spectrum, false}, 1.0, 3.0);
    EXPECT_EQ(seen.row.atoms()[0].value, spectrum.atoms()[0].value);
    EXPECT_EQ(seen.column.atoms()[7].value, spectrum.atoms()[7].value);
}

TEST(MissingEntries, RejectsImpossibleSharesAndNoiseThatIsNotSeparable) {
    const SeenSide white{identity_spectrum(), true};
    const SeenSide correlated{toeplitz_ar1_spectrum(0.5, 8), false};
    for (const double share : {0.0, -0.5, 1.5, std::nan("")})
        EXPECT_THROW((void)seen_spectra(white, white, share), Error);
    EXPECT_THROW((void)seen_spectra(correlated, correlated, 0.5), Error);
    EXPECT_TRUE(std::isnan(relative_error(SeparableLaw(white.spectrum, white.spectrum, AspectRatio(1.0)), {})));
}

}  // namespace
}  // namespace spiked::theory

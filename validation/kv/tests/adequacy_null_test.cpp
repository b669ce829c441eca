#include "validation/kv/adequacy_null.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/runtime/error.hpp"
#include "sim/random/normal.hpp"

namespace spiked::validation {
namespace {

constexpr arma::uword rows = 400;
constexpr arma::uword columns = 40;
constexpr std::uint64_t null_draws = 400;
const stream::StudySeed null_seed = stream::StudySeed::parse("0xade90ac8");

arma::mat gaussian(const std::string& purpose, std::uint64_t draw, arma::uword n = rows, arma::uword d = columns) {
    arma::mat entries(n, d);
    stream::fill_normal({null_seed, purpose, stream::Role::noise, draw}, {entries.memptr(), entries.n_elem});
    return entries;
}

/// A mean with its standard error.
struct Mean {
    double value = 0.0;
    double error = 0.0;
};
template <class Number>
Mean mean_of(Number number) {
    arma::vec values(null_draws);
    for (arma::uword i = 0; i < null_draws; ++i) values(i) = number(i);
    return {arma::mean(values), arma::stddev(values) / std::sqrt(static_cast<double>(null_draws))};
}
/// Six standard errors: a false-alarm rate of 2e-9 under the normal law, which leaves room for heavier tails.
constexpr double far = 6.0;

/// A^{1/2} for the AR(1) covariance rho^|s - t|, from its definition.
arma::mat ar1_root(double correlation, arma::uword n) {
    arma::mat covariance(n, n);
    for (arma::uword s = 0; s < n; ++s)
        for (arma::uword t = 0; t < n; ++t)
            covariance(s, t) = std::pow(correlation, std::abs(static_cast<double>(s) - static_cast<double>(t)));
    return arma::sqrtmat_sympd(covariance);
}

double second_moment_ratio(const arma::vec& eigenvalues) {
    return arma::mean(arma::square(eigenvalues)) / std::pow(arma::mean(eigenvalues), 2);
}

TEST(AdequacyNull, RowMomentIsThatOfTheEigenvalues) {
    for (const double correlation : {-0.5, 0.0, 0.6}) {
        arma::mat root = ar1_root(correlation, 600);
        const double exact = second_moment_ratio(arma::eig_sym(root * root));
        // The limit ignores the ends of the sequence of n tokens, a relative difference of about 2 / n.
        EXPECT_NEAR(row_moment(correlation) / exact, 1.0, 1.0 / 100.0) << correlation;
    }
}

TEST(AdequacyNull, CorrelatedRowsAreAutoregressive) {
    for (const double correlation : {0.3, -0.7}) {
        for (const arma::uword lag : {0U, 1U, 3U}) {
            const Mean product = mean_of([&](std::uint64_t draw) {
                arma::mat drawn = gaussian("ar1", draw);
                correlate_rows(drawn, correlation);
                return arma::accu(drawn.head_rows(rows - lag) % drawn.tail_rows(rows - lag)) /
                       static_cast<double>((rows - lag) * columns);
            });
            EXPECT_LT(std::abs(product.value - std::pow(correlation, static_cast<double>(lag))), far * product.error)
                << correlation << " at " << lag;
        }
    }
}

// The off-diagonal entries that a sample covariance has by chance are removed: the shrunk covariance has, on average,
// the second moment of the true one, also with correlated rows. The negative control is the sample covariance itself.
TEST(AdequacyNull, TheSecondMomentOfTheCovarianceIsUnbiased) {
    arma::vec scale(columns);
    for (arma::uword j = 0; j < columns; ++j) scale(j) = std::exp(-0.03 * static_cast<double>(j));
    const arma::mat c = arma::diagmat(scale) * ar1_root(0.5, columns);
    const double truth = arma::accu(arma::square(c * c.t()));
    const double diagonal = arma::accu(arma::square(arma::diagvec(c * c.t())));
    const arma::mat a = ar1_root(0.6, rows);
    const auto sample = [&](std::uint64_t draw) -> arma::mat { return a * gaussian("fit", draw) * c.t(); };
    const auto beside = [&](const arma::mat& covariance) {
        return arma::accu(arma::square(covariance)) - arma::accu(arma::square(covariance.diag()));
    };
    const Mean fitted = mean_of([&](std::uint64_t draw) {
        const arma::mat z = sample(draw);
        const ResidualLaw law({&z});
        return beside(law.root.t() * law.root);
    });
    const Mean raw = mean_of([&](std::uint64_t draw) {
        const arma::mat z = sample(draw);
        return beside(z.t() * z / static_cast<double>(rows));
    });
    // Errors in the estimated correlation and the ends of the rows leave 2 % of the correction.
    const double correction =
        row_moment(0.6) / static_cast<double>(rows) * (std::pow(arma::accu(arma::diagvec(c * c.t())), 2) - diagonal);
    EXPECT_LT(std::abs(fitted.value - (truth - diagonal)), far * fitted.error + 0.02 * correction);
    EXPECT_GT(raw.value - (truth - diagonal), 2.0 * (far * fitted.error + 0.02 * correction));
}

TEST(AdequacyNull, TheLawHasTheVariancesOfItsChannels) {
    const arma::mat a = ar1_root(0.4, rows);
    arma::mat z = a * gaussian("channels", 0);
    z.col(3) *= 3.0;
    z.col(5).zeros();
    arma::mat other = a * gaussian("channels", 1);
    const ResidualLaw law({&z, &other});
    const arma::rowvec variances = 0.5 * (arma::mean(arma::square(z), 0) + arma::mean(arma::square(other), 0));
    EXPECT_TRUE(arma::approx_equal(law.variances, variances, "reldiff", 1e-12));
    EXPECT_NEAR(law.unevenness, variances.max() / arma::mean(variances), 1e-12);
    EXPECT_NEAR(law.correlation, 0.4, far * std::sqrt(1.0 / (2.0 * rows * columns)));
    const arma::mat close = ar1_root(0.9, rows) * gaussian("channels", 2);
    EXPECT_NEAR(ResidualLaw({&close}).correlation, 0.9, far * std::sqrt(1.0 / (2.0 * rows * columns)));
    const Mean energy = mean_of([&](std::uint64_t draw) {
        return arma::accu(arma::square(law.draw(gaussian("law", draw)).col(3))) / static_cast<double>(rows);
    });
    EXPECT_LT(std::abs(energy.value - variances(3)), far * energy.error);
}

// After `restore`, draws that lose nine tenths of the variance of a channel still have the variance of the residuals.
TEST(AdequacyNull, RestoreCompensatesForLostVariance) {
    const arma::mat z = gaussian("lost", 0);
    ResidualLaw law({&z});
    arma::rowvec keeps(columns, arma::fill::ones);
    keeps(2) = 0.1;
    keeps(7) = 0.5;
    arma::rowvec kept = keeps % law.variances;
    kept(9) = 0.0;  // nothing was kept of it, so restore leaves it unchanged
    law.restore(kept);
    const arma::rowvec after = arma::rowvec(arma::diagvec(law.root.t() * law.root).t()) % keeps;
    for (arma::uword j = 0; j < columns; ++j) EXPECT_NEAR(after(j), law.variances(j), 1e-10 * law.variances(j)) << j;
}

// Regular noise has the requested first two moments, for different shapes, with and without correlated rows.
TEST(AdequacyNull, RegularNoiseHasTheRequestedMoments) {
    for (const double correlation : {0.0, 0.5})
        for (const arma::uword d : {arma::uword{60}, arma::uword{150}}) {
            const arma::uword n = 100;
            arma::rowvec scale(d);
            for (arma::uword j = 0; j < d; ++j)
                scale(j) = std::exp(-1.7 * static_cast<double>(j) / static_cast<double>(d));
            const auto eigenvalues = [&](arma::mat drawn, const arma::rowvec& deviations) {
                correlate_rows(drawn, correlation);
                drawn.each_row() %= deviations;
                const arma::vec values = arma::square(arma::svd(drawn));
                return std::vector<double>(values.begin(), values.end());
            };
            const auto moment = [&](const std::vector<double>& values) {
                double first = 0.0;
                double second = 0.0;
                for (const double value : values) {
                    first += value;
                    second += value * value;
                }
                return std::pair{first, second};
            };
            // Relative difference of the moments of a draw from the requested ones.
            const auto gap = [&](std::uint64_t draw, bool second) {
                const auto requested = eigenvalues(gaussian("asked", draw, n, d), scale);
                const auto given =
                    eigenvalues(gaussian("given", draw, n, d), regular_deviations(requested, n, d, correlation));
                const auto a = moment(requested);
                const auto b = moment(given);
                return second ? b.second / a.second - 1.0 : b.first / a.first - 1.0;
            };
            const Mean first = mean_of([&](std::uint64_t draw) { return gap(draw, false); });
            const Mean second = mean_of([&](std::uint64_t draw) { return gap(draw, true); });
            EXPECT_LT(std::abs(first.value), far * first.error) << correlation << " " << d;
            // Differences of order 1/n remain: the ends of the rows, and moments of a draw instead of its law.
            EXPECT_LT(std::abs(second.value), far * second.error + 0.02) << correlation << " " << d;
        }
}

}  // namespace
}  // namespace spiked::validation
